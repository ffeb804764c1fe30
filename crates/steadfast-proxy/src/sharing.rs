//! The orders of an account that several sidecars share: one of them places orders, the others stand by.

use std::{fmt::Write, pin::Pin, sync::Arc, time::Duration};

use http::{Response, StatusCode};
use steadfast::dedup::journal::NotOwner;

use crate::answer::{AnswerBody, Own, text};

/// How soon a caller may try again that has not much to wait for.
const SOON: Duration = Duration::from_secs(1);

/// A sidecar's knowledge of the orders that it shares with others.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sharing {
    /// This sidecar's name.
    pub process: Arc<str>,
    /// True while it owns the orders, and places them.
    pub is_owner: bool,
    /// The name of the process that owns them, if it is another one and known.
    pub owner: Option<Arc<str>>,
    /// Host and port of the store.
    pub store: Arc<str>,
    /// How long a call to the store takes; `None` if it does not answer.
    pub round_trip: Option<Duration>,
    /// Why no orders can be had from the store.
    pub trouble: Option<Arc<str>>,
    /// The mark by which a person accepts that the store may lack some of the orders' journal. No process gets them before.
    pub mark: Option<Arc<str>>,
}

impl Sharing {
    /// Returns that of a sidecar which knows nothing yet.
    #[must_use]
    pub fn new(process: impl Into<Arc<str>>, store: impl Into<Arc<str>>) -> Self {
        let (process, store) = (process.into(), store.into());
        Self { process, is_owner: false, owner: None, store, round_trip: None, trouble: None, mark: None }
    }

    /// Returns `active` or `standby`.
    #[must_use]
    pub fn role(&self) -> &'static str {
        if self.is_owner { "active" } else { "standby" }
    }

    /// Says in words who places the orders, or why nobody does.
    pub(crate) fn words(&self) -> String {
        match (self.is_owner, &self.mark, &self.owner, &self.trouble) {
            (true, ..) => format!("active: {} owns the orders", self.process),
            (_, Some(mark), ..) => format!(
                "standby: store {} may lack orders, so no process places any; compare the order list with what was placed, \
                 then POST /-/accept?mark={mark}",
                self.store
            ),
            (_, _, Some(owner), _) => format!("standby: process {owner} owns the orders"),
            (_, _, _, Some(trouble)) => format!("standby: {trouble}"),
            _ => "standby: no process is known to own the orders".to_owned(),
        }
    }
}

/// Why orders do not leave again at all sidecars after a resume, or may not.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotResumed {
    /// Another sidecar has halted meanwhile. Another resume ends that.
    HaltedAgain {
        /// The number of that halt.
        halt: u64,
    },
    /// It is not known whether they heard of it: the reason.
    NotHeard(String),
}

/// The orders that a sidecar shares with others of the account, as its program keeps them.
pub trait SharedOrders: Send + Sync {
    /// Returns what is known now. It must not block.
    fn now(&self) -> Sharing;

    /// Halts the orders of all sidecars that share them. Resolves once that holds everywhere, or to the reason for which it may
    /// not.
    fn halt(&self) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

    /// Lets orders of all those sidecars leave again. Resolves once that holds everywhere, or to the reason for which it may not.
    fn resume(&self) -> Pin<Box<dyn Future<Output = Result<(), NotResumed>> + Send>>;

    /// Accepts by its mark, on a person's word, that the store may lack orders. Resolves to the reason for which that cannot be.
    fn accept(&self, mark: String) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;
}

/// Returns the answer to an order that another process would have to place. It has not left.
pub(crate) fn refusal(not_owner: Option<&NotOwner>, sharing: Option<Sharing>, why: &str) -> Own {
    let own = |details: &str| Own::new(StatusCode::SERVICE_UNAVAILABLE, "http_request_denied", details);
    // Waiting does not help.
    if let Some(sharing) = sharing.as_ref().filter(|sharing| sharing.mark.is_some()) {
        let details = format!(
            "store {} may lack orders, so no process places any until a person accepts it; nothing was sent",
            sharing.store
        );
        return own(&details);
    }
    // The refusing client may be as old as an earlier owner: since then the orders went to a third process, or came here.
    if sharing.as_ref().is_some_and(|sharing| sharing.is_owner) {
        return own("this process has just got the orders; nothing was sent").retry_after(SOON);
    }
    let owner = sharing.as_ref().and_then(|sharing| sharing.owner.as_deref());
    let owner = owner.or_else(|| not_owner.and_then(|not_owner| not_owner.owner.as_deref()));
    let trouble = sharing.as_ref().and_then(|sharing| sharing.trouble.as_deref());
    let answer = match (owner, trouble) {
        (Some(owner), _) => own(&format!("process {owner} owns the orders; nothing was sent"))
            .with("x-steadfast-owner", owner),
        (None, Some(trouble)) => {
            own(&format!("no process is known to own the orders: {trouble}; nothing was sent"))
        }
        (None, None) => own(why),
    };
    answer.retry_after(not_owner.map_or(SOON, |not_owner| not_owner.try_in))
}

/// Answers whether this sidecar can be of use; with `owner`, whether it places orders.
pub(crate) fn readiness(sharing: Option<Sharing>, owner: bool) -> Response<AnswerBody> {
    let Some(sharing) = sharing else { return text(StatusCode::OK, "ok\n") };
    let words = sharing.words();
    if owner && !sharing.is_owner {
        return text(StatusCode::SERVICE_UNAVAILABLE, format!("{words}\n"));
    }
    match &sharing.trouble {
        // Without the store no request leaves but a cancel now and then.
        Some(trouble) if sharing.round_trip.is_none() => {
            text(StatusCode::SERVICE_UNAVAILABLE, format!("{}: {trouble}\n", sharing.role()))
        }
        _ => text(StatusCode::OK, format!("ok; {words}\n")),
    }
}

/// Writes the figures in Prometheus' text format.
pub(crate) fn figures(page: &mut String, sharing: &Sharing) {
    let mut gauge = |name: &str, help: &str, label: &str, value: &dyn std::fmt::Display| {
        // Writing to a string cannot fail.
        let _ = write!(
            page,
            "# HELP steadfast_{name} {help}\n# TYPE steadfast_{name} gauge\nsteadfast_{name}{label} {value}\n"
        );
    };
    gauge(
        "orders_owned",
        "1 while this process places the account's orders",
        "",
        &u8::from(sharing.is_owner),
    );
    let owner = if sharing.is_owner { Some(&sharing.process) } else { sharing.owner.as_ref() };
    if let Some(owner) = owner {
        let label = format!("{{process=\"{}\"}}", escaped(owner));
        gauge("orders_owner", "the process that places the account's orders", &label, &1);
    }
    let needed = u8::from(sharing.mark.is_some());
    gauge(
        "orders_need_acceptance",
        "1 while a person has to accept that the store may lack orders",
        "",
        &needed,
    );
    gauge("shared_store_up", "1 while the shared store answers", "", &u8::from(sharing.round_trip.is_some()));
    if let Some(took) = sharing.round_trip {
        let help = "how long a call to the shared store takes";
        gauge("shared_store_round_trip_seconds", help, "", &took.as_secs_f64());
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standby() -> Sharing {
        Sharing { owner: Some("desk-a/7".into()), ..Sharing::new("desk-b/9", "store:6379") }
    }

    fn shown(answer: Own) -> (u16, Vec<(String, String)>) {
        let answer = answer.into_response();
        let headers = answer.headers().iter();
        let headers = headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
        (answer.status().as_u16(), headers.collect())
    }

    fn has(headers: &[(String, String)], name: &str, part: &str) -> bool {
        headers.iter().any(|(its, value)| its == name && value.contains(part))
    }

    #[test]
    fn an_order_of_a_standby_is_refused_with_the_name_of_the_owner() {
        let not_owner = NotOwner::new(Some("desk-a/7".into()), Duration::from_millis(6_100));
        let (status, headers) = shown(refusal(Some(&not_owner), Some(standby()), "why"));
        assert_eq!(status, 503);
        assert!(has(&headers, "proxy-status", "process desk-a/7 owns the orders"), "{headers:?}");
        assert!(
            has(&headers, "x-steadfast-owner", "desk-a/7") && has(&headers, "retry-after", "7"),
            "{headers:?}"
        );
    }

    // Regression: a sidecar that had lost the orders went on naming the process that took them from it.
    #[test]
    fn a_refusal_names_the_process_that_owns_the_orders_now() {
        let earlier = NotOwner::new(Some("desk-c/1".into()), Duration::from_secs(8));
        let (_, headers) = shown(refusal(Some(&earlier), Some(standby()), "why"));
        assert!(has(&headers, "x-steadfast-owner", "desk-a/7"), "{headers:?}");
        assert!(has(&headers, "proxy-status", "process desk-a/7 owns the orders"), "{headers:?}");
    }

    // The client that places them is about to be put in.
    #[test]
    fn a_sidecar_that_has_just_got_the_orders_names_no_other_owner() {
        let active = Sharing { is_owner: true, owner: None, ..standby() };
        let earlier = NotOwner::new(Some("desk-a/7".into()), Duration::from_secs(8));
        let (status, headers) = shown(refusal(Some(&earlier), Some(active), "why"));
        assert_eq!(status, 503);
        assert!(!has(&headers, "x-steadfast-owner", "") && has(&headers, "retry-after", "1"), "{headers:?}");
        assert!(!has(&headers, "proxy-status", "desk-a/7"), "{headers:?}");
    }

    #[test]
    fn waiting_is_not_advised_while_a_person_has_to_look() {
        let sharing = Sharing { mark: Some("m1".into()), ..standby() };
        let (status, headers) =
            shown(refusal(Some(&NotOwner::new(None, Duration::ZERO)), Some(sharing), "why"));
        assert_eq!(status, 503);
        assert!(
            has(&headers, "proxy-status", "until a person accepts it") && !has(&headers, "retry-after", "")
        );
    }

    #[test]
    fn a_standby_is_ready_for_reads_and_not_for_a_balancer_that_asks_for_the_owner() {
        assert_eq!(readiness(None, true).status(), 200, "alone it is the owner");
        assert_eq!(readiness(Some(standby()), false).status(), 200);
        assert_eq!(readiness(Some(standby()), true).status(), 503);
        let active = Sharing { is_owner: true, owner: None, ..standby() };
        assert_eq!(readiness(Some(active.clone()), true).status(), 200);
        let cut = Sharing { trouble: Some("store cannot be reached".into()), ..active };
        assert_eq!(readiness(Some(cut), false).status(), 503);
    }

    #[test]
    fn the_figures_name_role_owner_and_store() {
        let mut page = String::new();
        figures(&mut page, &Sharing { owner: Some("a\"b".into()), ..standby() });
        for line in [
            "steadfast_orders_owned 0",
            "steadfast_orders_owner{process=\"a\\\"b\"} 1",
            "steadfast_shared_store_up 0",
        ] {
            assert!(page.lines().any(|its| its == line), "{line}: {page}");
        }
        assert!(!page.contains("round_trip_seconds 0"), "{page}");
    }
}
