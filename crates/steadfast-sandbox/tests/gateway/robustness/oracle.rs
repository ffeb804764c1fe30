//! Which answers are allowed, and what the ground truth must have for each.

use std::{collections::BTreeMap, fmt};

use serde_json::Value;
use steadfast_sandbox::{ArrivalTruth, State};
use steadfast_spec::{ERRORS, TokenRecord};

use crate::{client::Answer, world::PLACE_ORDER};

/// Judges answers, and counts the kinds of them.
#[derive(Default)]
pub(super) struct Oracle {
    kinds: BTreeMap<&'static str, u64>,
    statuses: BTreeMap<u16, u64>,
}

impl Oracle {
    pub(super) fn check(&mut self, request: &str, answer: &Answer) {
        *self.statuses.entry(answer.status()).or_default() += 1;
        let kind = kind_of(request, answer);
        *self.kinds.entry(kind).or_default() += 1;
        if !answer.is_reset() {
            let date = answer.header("date").expect("a date");
            httpdate::parse_http_date(date).unwrap_or_else(|error| panic!("{request}: {date}: {error}"));
        }
    }

    /// Compares what the clients saw with the ground truth.
    pub(super) fn agree(&mut self, truth: &State, seen: &[Answer]) {
        assert_eq!(truth.requests, seen.len() as u64);
        let statuses = truth.arrivals.iter().map(|arrival| arrival.status);
        assert!(statuses.eq(seen.iter().map(Answer::status)), "the truth saw other answers");

        let refused: u64 = truth.refusals.values().sum();
        let answered_429 = seen.iter().filter(|answer| answer.status() == 429).count() as u64;
        let lost_429s =
            truth.arrivals.iter().filter(|a| a.zone_refused.is_some() && a.status != 429).count() as u64;
        assert_eq!(answered_429 + lost_429s, refused + truth.injected_429s, "every 429 has a cause");

        // No answer names an order that does not exist, or that belongs to another user.
        for (answer, arrival) in seen.iter().zip(&truth.arrivals).filter(|(_, arrival)| is_placement(arrival))
        {
            if let (200, true, Ok(body)) =
                (answer.status(), answer.is_whole(), serde_json::from_slice::<Value>(answer.body()))
                && let Some(id) = body["d"]["orderId"].as_str()
            {
                let order = truth.orders.iter().find(|order| order.order_id == id);
                let order = order.unwrap_or_else(|| panic!("order {id} is invented"));
                assert_eq!((Some(&order.owner), &order.intent), (arrival.owner.as_ref(), &arrival.intent));
            }
        }
        let orders =
            truth.orders.iter().filter(|order| order.leg_type == "main").count() + truth.pending_orders;
        let (mut least, mut most) = (0, 0);
        for arrival in truth.arrivals.iter().filter(|arrival| is_placement(arrival)) {
            let (low, high) = placed_by(arrival);
            (least, most) = (least + low, most + high);
        }
        assert!((least..=most).contains(&orders), "{orders} orders, and not {least} to {most}");
    }

    pub(super) fn assert_everything_was_seen(&self) {
        for kind in
            ["ok", "no-data", "error", "token record", "login page", "redirect", "reset", "broken off"]
        {
            assert!(self.kinds.contains_key(kind), "no {kind}: {self}");
        }
        for status in [0, 200, 302, 400, 401, 403, 404, 405, 415, 429, 500, 502, 503, 504] {
            assert!(self.statuses.contains_key(&status), "no {status}: {self}");
        }
    }
}

impl fmt::Display for Oracle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, {:?}", self.kinds, self.statuses)
    }
}

fn kind_of(request: &str, answer: &Answer) -> &'static str {
    if answer.is_reset() {
        return "reset";
    }
    match answer.header("content-type") {
        Some("text/html; charset=utf-8") if answer.status() == 200 || !answer.is_whole() => "login page",
        Some("text/html; charset=utf-8") => {
            assert_eq!(answer.status(), 302, "{request}: {answer}");
            assert!(answer.header("location").is_some_and(|to| to.contains("code=")), "{request}");
            "redirect"
        }
        Some("application/json") if answer.is_whole() => envelope(request, answer),
        Some("application/json") => "broken off",
        other => panic!("{request}: content type {other:?}"),
    }
}

/// Checks for an envelope of §1 with a text of §7, or for the one answer without envelope, the
/// token record of §4.2.
fn envelope(request: &str, answer: &Answer) -> &'static str {
    let json = answer.json();
    let fields = json.as_object().unwrap_or_else(|| panic!("{request}: no object: {answer}"));
    let status = answer.status();
    match json.get("s").map(|s| s.as_str().unwrap_or_else(|| panic!("{request}: {answer}"))) {
        None => {
            TokenRecord::parse(answer.body()).unwrap_or_else(|error| panic!("{request}: {error}"));
            assert_eq!(status, 200, "{request}: {answer}");
            "token record"
        }
        Some("ok") => {
            assert!(status == 200 && fields.len() == 2 && fields.contains_key("d"), "{request}: {answer}");
            "ok"
        }
        Some("no-data") => {
            assert!(status == 200 && fields.len() == 2 && json["msg"] == "no-data", "{request}: {answer}");
            "no-data"
        }
        Some("error") => {
            assert_eq!(fields.len(), 2, "{request}: {answer}");
            let msg = json["msg"].as_str().unwrap_or_else(|| panic!("{request}: {answer}"));
            let is_known =
                ERRORS.iter().any(|row| row.status == status && row.msg.is_none_or(|known| known == msg));
            // `placement.200-error` is the only error with a 200. `placement.400-unknown-*` have a
            // text that is not in §7.
            let is_fault = matches!(status, 200 | 400) && request.contains("/place-order");
            assert!(is_known || is_fault, "{request}: {answer}");
            "error"
        }
        Some(_) => panic!("{request}: {answer}"),
    }
}

fn is_placement(arrival: &ArrivalTruth) -> bool {
    arrival.method == "POST" && arrival.path == PLACE_ORDER
}

/// Returns the minimum and maximum number of orders that a place-order created.
fn placed_by(arrival: &ArrivalTruth) -> (usize, usize) {
    match arrival.faults.iter().find(|fault| fault.starts_with("placement.")) {
        Some(&"placement.double-forward") => (2, 2),
        Some(&("placement.200-error" | "placement.400-bad-request" | "placement.400-validation")) => (0, 0),
        Some(fault) if fault.ends_with("-not-applied") => (0, 0),
        Some(_) => (1, 1),
        None if arrival.status == 200 => (1, 1),
        None if arrival.faults.contains(&"connection.reset-after") => (0, 1),
        None => (0, 0),
    }
}
