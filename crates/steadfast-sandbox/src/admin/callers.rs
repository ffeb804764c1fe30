use std::net::SocketAddr;

use http::{StatusCode, header, request::Parts};

use super::Refused;

/// The allowed callers of the admin API: programs that name its own address, and no web page.
///
/// A page can point its own name at this machine (DNS rebinding), so that its browser takes the API for the page's
/// server. `Host` then has the page's name, and browsers name every page in `Origin`.
#[derive(Clone, Debug)]
pub(crate) struct Callers {
    hosts: Vec<String>,
}

impl Callers {
    /// Allows calls to these addresses, or to this machine by a local name, at one of their ports.
    pub(crate) fn of(addresses: impl IntoIterator<Item = SocketAddr>) -> Self {
        let mut hosts = Vec::new();
        for address in addresses {
            let port = address.port();
            let own = [address.to_string(), format!("localhost:{port}"), format!("127.0.0.1:{port}")];
            for host in own.into_iter().chain([format!("[::1]:{port}")]) {
                if !hosts.contains(&host) {
                    hosts.push(host);
                }
            }
        }
        Self { hosts }
    }

    pub(super) fn admit(&self, request: &Parts) -> Result<(), Refused> {
        if request.headers.contains_key(header::ORIGIN) {
            return Err(Refused(StatusCode::FORBIDDEN, "web pages may not call the admin api".to_owned()));
        }
        let mut named = request.headers.get_all(header::HOST).iter();
        let (host, another) = (named.next().and_then(|host| host.to_str().ok()), named.next());
        let target = request.uri.authority().map(http::uri::Authority::as_str);
        if another.is_none()
            && host.is_some_and(|host| self.know(host))
            && target.is_none_or(|it| self.know(it))
        {
            return Ok(());
        }
        Err(Refused(StatusCode::FORBIDDEN, format!("host must be one of {}", self.hosts.join(", "))))
    }

    fn know(&self, host: &str) -> bool {
        self.hosts.iter().any(|known| {
            // Clients omit the port of plain HTTP.
            known.eq_ignore_ascii_case(host)
                || known.strip_suffix(":80").is_some_and(|known| known.eq_ignore_ascii_case(host))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_of_plain_http_may_be_left_out_and_no_other_one() {
        let callers = |port| Callers::of([SocketAddr::from(([10, 0, 0, 1], port))]);
        for host in ["10.0.0.1", "localhost", "LOCALHOST:80", "[::1]", "127.0.0.1:80"] {
            assert!(callers(80).know(host), "{host}");
            assert!(!callers(8081).know(host), "{host}");
        }
        assert!(!callers(80).know("localhost.example"));
    }
}
