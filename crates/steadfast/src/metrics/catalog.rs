//! The names, as data. A name, label or value that is not here is never recorded.

use metrics::{KeyName, Unit};
use steadfast_call::Lane;
use steadfast_dedup::{Cause, Confidence, Reason as Unresolved, TagEcho};
use steadfast_spec::{Endpoint, Zone};

use super::reason::Reason;

/// The label of a request or value that is in no table.
pub(super) const UNKNOWN: &str = "unknown";

/// How long calls took, from below the route until the head of the answer.
pub const CALL_DURATION: &str = "steadfast_call_duration_seconds";
/// How long single sends took, until their answer was classified; without any wait for permits.
pub const ATTEMPT_DURATION: &str = "steadfast_attempt_duration_seconds";
/// How long requests waited for their permits.
pub const PERMIT_WAIT: &str = "steadfast_permit_wait_seconds";
/// How long requests waited for permits without getting them, by how the wait ended.
pub const PERMIT_MISSED: &str = "steadfast_permit_missed_seconds";
/// Sends that followed another send of the same call, by how the earlier one ended.
pub const RETRIES: &str = "steadfast_retries_total";
/// Login attempts, by result.
pub const LOGINS: &str = "steadfast_logins_total";
/// Orders in doubt now. Alert a person while it is above zero.
pub const ORDERS_IN_DOUBT: &str = "steadfast_orders_in_doubt";
/// Lost outcomes of orders, by what was lost.
pub const AMBIGUOUS: &str = "steadfast_ambiguous_total";
/// Orders in doubt that were found, by how certain the match is.
pub const RECOVERED: &str = "steadfast_recovered_total";
/// Orders that ended without certainty, by the reason.
pub const UNRESOLVED: &str = "steadfast_unresolved_total";
/// Searches for orders in doubt, by result.
pub const VERIFICATIONS: &str = "steadfast_verifications_total";
/// Orders that were absent beyond the lateness bound and not sent again.
pub const NOT_OBSERVED: &str = "steadfast_not_observed_total";
/// Orders that were sent again after a verified absence.
pub const RESENT: &str = "steadfast_resent_total";
/// Orders that appeared after they had been taken for absent or given up.
pub const LATE_DUPLICATE: &str = "steadfast_late_duplicate_total";
/// Orders that were refused and are in the list all the same.
pub const REFUSED_BUT_PLACED: &str = "steadfast_refused_but_placed_total";
/// Listed orders that exceed what was asked for.
pub const EXCESS: &str = "steadfast_excess_total";
/// Answers that contradicted what was known.
pub const CONFLICT: &str = "steadfast_conflict_total";
/// Acknowledged orders that no list showed.
pub const NOT_LISTED: &str = "steadfast_not_listed_total";
/// Acknowledged orders that a shutdown could read no list for.
pub const ACK_UNCONFIRMED: &str = "steadfast_ack_unconfirmed_total";
/// Lists that lacked an order which they should have held.
pub const INCOMPLETE_LISTS: &str = "steadfast_incomplete_lists_total";
/// Acknowledged orders that a list shows in a form that does not match them.
pub const UNCALIBRATED: &str = "steadfast_uncalibrated_total";
/// Acknowledged orders with a tag, by `echo`: how much of it a list showed.
pub const TAG_ECHOES: &str = "steadfast_tag_echoes_total";
/// How many orders in doubt were seen within `le` of the earliest instant at which they could have
/// appeared.
pub const VISIBILITY_LAG: &str = "steadfast_visibility_lag_seconds_bucket";
/// The longest such lag.
pub const VISIBILITY_LAG_MAX: &str = "steadfast_visibility_lag_max_seconds";
/// Slots of a zone's window that are spent, where the zone is fullest.
pub const ZONE_USED: &str = "steadfast_zone_used";
/// Slots of a zone's window that are free, where the zone is fullest.
pub const ZONE_FREE: &str = "steadfast_zone_free";
/// Requests granted and not yet answered.
pub const ZONE_IN_FLIGHT: &str = "steadfast_zone_in_flight";
/// Requests waiting for their permits.
pub const ZONE_WAITING: &str = "steadfast_zone_waiting";
/// How long a zone still pauses after a 429.
pub const ZONE_PAUSED: &str = "steadfast_zone_paused_seconds";
/// The limit that 429s have taught a lane for a zone's shortest window, where it is lowest; zero if the documented one
/// applies.
pub const ZONE_LEARNED: &str = "steadfast_zone_learned_limit";
/// How far the service's clock is ahead of this machine's; negative if it is behind.
pub const CLOCK_SKEW: &str = "steadfast_clock_skew_seconds";
/// One if there is a usable token, otherwise zero.
pub const TOKEN_USABLE: &str = "steadfast_token_usable";
/// One if logins have stopped until a reset, otherwise zero.
pub const LOGINS_LATCHED: &str = "steadfast_logins_latched";
/// Sessions that this process has opened, or may have, in the last 24 hours.
pub const SESSIONS: &str = "steadfast_sessions";

/// The types of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// It only grows.
    Counter,
    /// It goes up and down.
    Gauge,
    /// A distribution.
    Histogram,
}

/// One metric.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// Its unit.
    pub unit: Unit,
    /// Its labels.
    pub labels: &'static [Label],
    /// Its help text.
    pub help: &'static str,
}

/// One label of a metric.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Label {
    /// Its key.
    pub key: &'static str,
    values: fn() -> Vec<&'static str>,
    /// True if zones of the caller's own, or their windows, add values.
    pub is_extended_by_zones: bool,
}

impl Label {
    /// Returns all its values, with the zones of §8.
    #[must_use]
    pub fn values(&self) -> Vec<&'static str> {
        (self.values)()
    }
}

const fn label(key: &'static str, values: fn() -> Vec<&'static str>) -> Label {
    Label { key, values, is_extended_by_zones: false }
}

const ENDPOINT: Label = label("endpoint", endpoints);
const ZONE: Label =
    Label { key: "zone", values: || Zone::ALL.map(Zone::as_str).to_vec(), is_extended_by_zones: true };
const WINDOW: Label = Label { key: "window", values: || vec!["1s", "60s"], is_extended_by_zones: true };
const LANE: Label = label("lane", || Lane::ALL.map(Lane::as_str).to_vec());

pub(super) const OUTCOMES: [&str; 6] =
    ["accepted", "rejected", "not_executed", "not_sent", UNKNOWN, "dropped"];

pub(super) const STATUSES: [&str; 13] =
    ["2xx", "3xx", "401", "403", "429", "4xx", "502", "503", "504", "5xx", "other", "none", "dropped"];

pub(super) const LOGIN_RESULTS: [&str; 10] = [
    "ok",
    "refused",
    "code_refused",
    "misconfigured",
    "denied",
    "rate_limited",
    "not_sent",
    UNKNOWN,
    "no_code",
    "store",
];

pub(super) const MISSES: [&str; 5] = ["deadline", "queue_full", "not_ready", "other", "dropped"];

pub(super) const VERDICTS: [&str; 4] = ["found", "resent", "not_observed", "unresolved"];

/// The edges of [`LagHistogram`](steadfast_dedup::LagHistogram), in seconds.
pub(super) const LAG_EDGES: [&str; 15] =
    ["0.25", "0.5", "1", "2", "3.5", "5", "7.5", "10", "15", "30", "60", "90", "300", "1800", "+Inf"];

pub(super) fn endpoints() -> Vec<&'static str> {
    std::iter::once(UNKNOWN).chain(Endpoint::all().map(Endpoint::as_str)).collect()
}

/// Every metric, each with every label that it can have.
pub const METRICS: &[Metric] = &[
    seconds(CALL_DURATION, &[ENDPOINT, label("outcome", || OUTCOMES.to_vec())], "how long calls took"),
    seconds(
        ATTEMPT_DURATION,
        &[ENDPOINT, label("status", || STATUSES.to_vec())],
        "how long single sends took",
    ),
    seconds(PERMIT_WAIT, &[ZONE, LANE], "how long requests waited for their permits"),
    seconds(
        PERMIT_MISSED,
        &[ZONE, LANE, label("end", || MISSES.to_vec())],
        "how long requests waited for permits that they did not get",
    ),
    counter(
        RETRIES,
        &[label("reason", || Reason::ALL.map(Reason::as_str).to_vec())],
        "sends after the first, by the end of the one before",
    ),
    counter(LOGINS, &[label("result", || LOGIN_RESULTS.to_vec())], "attempts to log in"),
    gauge(
        ORDERS_IN_DOUBT,
        &[],
        "orders in doubt now, or unresolved and not ruled on: page somebody while it is above zero",
    ),
    counter(
        AMBIGUOUS,
        &[label("cause", || Cause::ALL.map(Cause::as_str).to_vec())],
        "lost outcomes of orders",
    ),
    counter(
        RECOVERED,
        &[label("confidence", || Confidence::ALL.map(Confidence::as_str).to_vec())],
        "orders in doubt that were found",
    ),
    counter(
        UNRESOLVED,
        &[label("reason", || Unresolved::ALL.map(Unresolved::as_str).to_vec())],
        "orders that ended without certainty",
    ),
    counter(
        VERIFICATIONS,
        &[label("verdict", || VERDICTS.to_vec())],
        "what looking for orders in doubt has come to",
    ),
    counter(NOT_OBSERVED, &[], "orders absent beyond the lateness bound and not sent again"),
    counter(RESENT, &[], "orders sent again after a verified absence"),
    counter(LATE_DUPLICATE, &[], "orders that appeared after they had been taken for absent or given up"),
    counter(REFUSED_BUT_PLACED, &[], "orders that were refused and are in the list all the same"),
    counter(EXCESS, &[], "orders that nobody asked for"),
    counter(CONFLICT, &[], "answers that contradicted the books or the list"),
    counter(NOT_LISTED, &[], "acknowledged orders that no list showed"),
    counter(ACK_UNCONFIRMED, &[], "acknowledged orders that a shutdown could read no list for"),
    counter(INCOMPLETE_LISTS, &[], "lists that lacked an order which they should have held"),
    counter(UNCALIBRATED, &[], "acknowledged orders listed in a form that does not match them"),
    counter(
        TAG_ECHOES,
        &[label("echo", || TagEcho::ALL.map(TagEcho::as_str).to_vec())],
        "acknowledged orders with a tag, by how much of it a list showed",
    ),
    counter(
        VISIBILITY_LAG,
        &[label("le", || LAG_EDGES.to_vec())],
        "orders in doubt seen within so many seconds",
    ),
    Metric {
        unit: Unit::Seconds,
        ..gauge(VISIBILITY_LAG_MAX, &[], "the longest time until an order in doubt was seen")
    },
    gauge(ZONE_USED, &[ZONE, WINDOW], "slots spent, where the zone is fullest"),
    gauge(ZONE_FREE, &[ZONE, WINDOW], "slots free, where the zone is fullest"),
    gauge(ZONE_IN_FLIGHT, &[ZONE], "requests granted and not yet answered"),
    gauge(ZONE_WAITING, &[ZONE, LANE], "requests that wait for their permits"),
    Metric {
        unit: Unit::Seconds,
        ..gauge(ZONE_PAUSED, &[ZONE], "how long the zone still pauses after a 429")
    },
    gauge(ZONE_LEARNED, &[ZONE, LANE], "the limit that 429s have taught; zero if the documented one applies"),
    Metric { unit: Unit::Seconds, ..gauge(CLOCK_SKEW, &[], "how far the service's clock is ahead") },
    gauge(TOKEN_USABLE, &[], "one if there is a token that may be used"),
    gauge(LOGINS_LATCHED, &[], "one if logins have stopped until a reset"),
    gauge(SESSIONS, &[], "sessions opened in the last 24 hours; a user has ten"),
];

const fn seconds(name: &'static str, labels: &'static [Label], help: &'static str) -> Metric {
    Metric { name, kind: Kind::Histogram, unit: Unit::Seconds, labels, help }
}

const fn counter(name: &'static str, labels: &'static [Label], help: &'static str) -> Metric {
    Metric { name, kind: Kind::Counter, unit: Unit::Count, labels, help }
}

const fn gauge(name: &'static str, labels: &'static [Label], help: &'static str) -> Metric {
    Metric { name, kind: Kind::Gauge, unit: Unit::Count, labels, help }
}

/// Describes every metric and its unit to the recorder. Call it once, after the recorder was
/// installed.
pub fn describe() {
    metrics::with_recorder(|recorder| {
        for metric in METRICS {
            let (name, unit) = (KeyName::from_const_str(metric.name), Some(metric.unit));
            match metric.kind {
                Kind::Counter => recorder.describe_counter(name, unit, metric.help.into()),
                Kind::Gauge => recorder.describe_gauge(name, unit, metric.help.into()),
                Kind::Histogram => recorder.describe_histogram(name, unit, metric.help.into()),
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use steadfast_dedup::LagHistogram;

    use super::*;

    #[test]
    fn the_edges_of_the_lag_are_those_of_its_histogram() {
        let mut edges: Vec<_> = LagHistogram::EDGES.map(|edge| edge.as_secs_f64().to_string()).to_vec();
        edges.push("+Inf".into());
        assert_eq!(edges, LAG_EDGES);
    }
}
