//! The ways into the dashboard.
//!
//! 1. A **link** holds a one-time token in its fragment, which browsers send to no server. The door page posts it, and
//!    gets a cookie for it. A link serves once, and for ten minutes.
//! 2. The **cookie** is `HttpOnly` and `SameSite=Strict`, and named after the port, because ports share cookies. It serves
//!    a day, and allows what the link's maker was allowed.
//! 3. Ports share cookies in the other direction too: another server on this machine gets the cookie if the user opens
//!    its page by the same host name. So the cookie is for the dashboard alone and never for the programs' listener.

use std::{collections::VecDeque, fmt::Write, time::Duration};

use parking_lot::Mutex;
use subtle::ConstantTimeEq;
use tokio::time::Instant;

use crate::front::{Head, Refusal, Scope};

/// How long a link serves.
const LINK: Duration = Duration::from_secs(600);
/// How long a cookie serves.
const VISIT: Duration = Duration::from_secs(24 * 3_600);
/// The most links, and the most visits. Beyond them the oldest is forgotten.
const MOST: usize = 16;

/// The links that were not used yet, and those who came by one.
#[derive(Default)]
pub(crate) struct Access {
    links: Mutex<VecDeque<Pass>>,
    visits: Mutex<VecDeque<Pass>>,
}

struct Pass {
    secret: String,
    scope: Scope,
    since: Instant,
}

impl Access {
    /// Makes a one-time token; `None` if the system has no random numbers.
    pub(crate) fn link(&self, scope: Scope) -> Option<String> {
        add(&self.links, scope)
    }

    /// Exchanges a one-time token for the value of a cookie.
    pub(crate) fn enter(&self, link: &[u8]) -> Option<String> {
        let scope = {
            let mut links = self.links.lock();
            let place = find(&links, link, LINK)?;
            links.remove(place)?.scope
        };
        add(&self.visits, scope)
    }

    /// Forgets all links and cookies.
    pub(crate) fn forget(&self) {
        self.links.lock().clear();
        self.visits.lock().clear();
    }

    /// Returns what a visitor may do, by the request's cookies.
    pub(crate) fn visitor(&self, head: &Head<'_>) -> Option<Scope> {
        let name = cookie_name(head).ok()?;
        let visits = self.visits.lock();
        let cookies = head.all("cookie").flat_map(|line| line.split(|&byte| byte == b';'));
        let mut values = cookies
            .filter_map(|cookie| cookie.trim_ascii().strip_prefix(name.as_bytes())?.strip_prefix(b"="));
        values.find_map(|value| find(&visits, value, VISIT)).map(|place| visits[place].scope)
    }
}

/// Returns the name of the cookie for the host that a request names. Another sidecar on this machine has another port.
pub(crate) fn cookie_name(head: &Head<'_>) -> Result<String, Refusal> {
    let host = head.one("host")?.ok_or(Refusal::Host)?;
    let port = host.rsplit(|&byte| byte == b':').next().filter(|port| port.iter().all(u8::is_ascii_digit));
    let port = port.and_then(|port| std::str::from_utf8(port).ok()).unwrap_or("80");
    Ok(format!("steadfast-{port}"))
}

/// Returns the header that gives a visitor his cookie.
pub(crate) fn set_cookie(name: &str, value: &str) -> String {
    format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict")
}

fn add(passes: &Mutex<VecDeque<Pass>>, scope: Scope) -> Option<String> {
    let mut random = [0; 32];
    getrandom::fill(&mut random).ok()?;
    let secret = random.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    });
    let mut passes = passes.lock();
    if passes.len() == MOST {
        passes.pop_front();
    }
    passes.push_back(Pass { secret: secret.clone(), scope, since: Instant::now() });
    Some(secret)
}

/// Finds a pass that still serves. Each is compared in a time that does not depend on it.
fn find(passes: &VecDeque<Pass>, secret: &[u8], serves: Duration) -> Option<usize> {
    let is = |pass: &Pass| bool::from(pass.secret.as_bytes().ct_eq(secret)) && pass.since.elapsed() < serves;
    passes.iter().position(is)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visitor(access: &Access, cookies: &str) -> Option<Scope> {
        let head = format!("GET / HTTP/1.1\r\nHost: localhost:8091\r\n{cookies}\r\n");
        access.visitor(&Head::parse(head.as_bytes()).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn a_link_serves_once_and_for_ten_minutes() {
        let access = Access::default();
        let link = access.link(Scope::Trade).unwrap();
        assert_eq!(link.len(), 64);
        assert!(access.enter(b"").is_none());
        assert!(access.enter(&link.as_bytes()[..63]).is_none());
        assert!(access.enter(link.as_bytes()).is_some());
        assert!(access.enter(link.as_bytes()).is_none(), "it was used");
        let old = access.link(Scope::Trade).unwrap();
        tokio::time::advance(LINK).await;
        assert!(access.enter(old.as_bytes()).is_none(), "it is too old");
    }

    #[tokio::test(start_paused = true)]
    async fn a_cookie_allows_what_its_link_allowed_for_a_day() {
        let access = Access::default();
        let [trader, reader] = [Scope::Trade, Scope::Read]
            .map(|scope| access.enter(access.link(scope).unwrap().as_bytes()).unwrap());
        assert_eq!(visitor(&access, &format!("Cookie: steadfast-8091={trader}\r\n")), Some(Scope::Trade));
        assert_eq!(visitor(&access, &format!("Cookie: a=b; steadfast-8091={reader}\r\n")), Some(Scope::Read));
        assert_eq!(
            visitor(&access, &format!("Cookie: a=b\r\nCookie: steadfast-8091={reader};c\r\n")),
            Some(Scope::Read)
        );
        for other in [
            String::new(),
            format!("Cookie: steadfast-8092={trader}\r\n"),
            format!("Cookie: steadfast-8091x={trader}\r\n"),
            format!("Cookie: steadfast-8091={}\r\n", &trader[1..]),
            "Cookie: steadfast-8091=\r\n".to_owned(),
            format!("X-Cookie: steadfast-8091={trader}\r\n"),
        ] {
            assert_eq!(visitor(&access, &other), None, "{other}");
        }
        tokio::time::advance(VISIT).await;
        assert_eq!(visitor(&access, &format!("Cookie: steadfast-8091={trader}\r\n")), None);
    }

    #[tokio::test]
    async fn a_link_is_no_cookie_and_the_oldest_of_too_many_is_forgotten() {
        let access = Access::default();
        let first = access.link(Scope::Trade).unwrap();
        assert_eq!(visitor(&access, &format!("Cookie: steadfast-8091={first}\r\n")), None);
        let later: Vec<_> = (0..MOST).map(|_| access.link(Scope::Read).unwrap()).collect();
        assert!(access.enter(first.as_bytes()).is_none());
        assert!(later.iter().all(|link| access.enter(link.as_bytes()).is_some()));
    }

    #[test]
    fn the_cookie_is_out_of_reach_of_scripts_and_other_sites() {
        assert_eq!(set_cookie("steadfast-80", "v"), "steadfast-80=v; Path=/; HttpOnly; SameSite=Strict");
    }
}
