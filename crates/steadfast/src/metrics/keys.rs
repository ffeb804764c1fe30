//! Keys that are made once, so that recording allocates nothing.

use std::{sync::LazyLock, time::Duration};

use http::StatusCode;
use metrics::{Key, Label, Level, Metadata};
use steadfast_call::{Lane, Outcome};
use steadfast_spec::{Endpoint, Zone};

use super::catalog;

pub(super) static METADATA: Metadata<'static> = Metadata::new("steadfast", Level::INFO, Some("steadfast"));

/// Records a duration. The recorder is looked up each time, because it may be installed after the layers
/// were made.
pub(super) fn observe(key: &Key, value: Duration) {
    metrics::with_recorder(|recorder| {
        recorder.register_histogram(key, &METADATA).record(value.as_secs_f64());
    });
}

pub(super) fn count(key: &Key) {
    metrics::with_recorder(|recorder| recorder.register_counter(key, &METADATA).increment(1));
}

pub(super) fn key<const N: usize>(name: &'static str, labels: [(&'static str, &'static str); N]) -> Key {
    Key::from_parts(name, labels.map(|(key, value)| Label::from_static_parts(key, value)).to_vec())
}

/// The keys of a metric with two labels, for each pair of their values.
struct Table {
    columns: usize,
    keys: Vec<Key>,
}

impl Table {
    fn new(
        name: &'static str,
        (row, rows): (&'static str, &[&'static str]),
        (column, columns): (&'static str, &[&'static str]),
    ) -> Self {
        let pairs = rows.iter().flat_map(|r| columns.iter().map(move |c| (*r, *c)));
        let keys = pairs.map(|(r, c)| key(name, [(row, r), (column, c)])).collect();
        Self { columns: columns.len(), keys }
    }

    fn get(&self, row: usize, column: usize) -> Option<&Key> {
        self.keys.get(row * self.columns + column)
    }
}

pub(super) fn observe_call(endpoint: Option<Endpoint>, outcome: &'static str, took: Duration) {
    static KEYS: LazyLock<Table> = LazyLock::new(|| {
        Table::new(
            catalog::CALL_DURATION,
            ("endpoint", &catalog::endpoints()),
            ("outcome", &catalog::OUTCOMES),
        )
    });
    let column = catalog::OUTCOMES.iter().position(|name| *name == outcome);
    if let Some(key) = column.and_then(|column| KEYS.get(row_of(endpoint), column)) {
        observe(key, took);
    }
}

pub(super) fn observe_attempt(endpoint: Option<Endpoint>, status: &'static str, took: Duration) {
    static KEYS: LazyLock<Table> = LazyLock::new(|| {
        Table::new(
            catalog::ATTEMPT_DURATION,
            ("endpoint", &catalog::endpoints()),
            ("status", &catalog::STATUSES),
        )
    });
    let column = catalog::STATUSES.iter().position(|name| *name == status);
    if let Some(key) = column.and_then(|column| KEYS.get(row_of(endpoint), column)) {
        observe(key, took);
    }
}

pub(super) fn observe_permit(zone: Zone, lane: Lane, waited: Duration) {
    static KEYS: LazyLock<Table> = LazyLock::new(|| {
        let (zones, lanes) = (Zone::ALL.map(Zone::as_str), Lane::ALL.map(Lane::as_str));
        Table::new(catalog::PERMIT_WAIT, ("zone", &zones), ("lane", &lanes))
    });
    let row = Zone::ALL.iter().position(|known| *known == zone);
    let column = Lane::ALL.iter().position(|known| *known == lane);
    match row.zip(column).and_then(|(row, column)| KEYS.get(row, column)) {
        Some(key) => observe(key, waited),
        // A zone of the caller's own.
        None => {
            let labels = [("zone", zone.as_str()), ("lane", lane.as_str())];
            observe(&key(catalog::PERMIT_WAIT, labels), waited);
        }
    }
}

/// Records a wait that ended without permits. Such waits are too rare for prepared keys.
pub(super) fn observe_missed(zone: Zone, lane: Lane, end: &'static str, waited: Duration) {
    let labels = [("zone", zone.as_str()), ("lane", lane.as_str()), ("end", end)];
    observe(&key(catalog::PERMIT_MISSED, labels), waited);
}

/// Row 0 is for requests in no table.
fn row_of(endpoint: Option<Endpoint>) -> usize {
    endpoint.and_then(|endpoint| Endpoint::all().position(|e| e == endpoint)).map_or(0, |at| at + 1)
}

pub(super) fn outcome_label(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::NotSent => "not_sent",
        Outcome::NotExecuted => "not_executed",
        Outcome::Rejected => "rejected",
        Outcome::Accepted { .. } => "accepted",
        // Unknown, or newer than this table.
        _ => catalog::UNKNOWN,
    }
}

pub(super) fn status_label(status: StatusCode) -> &'static str {
    match status.as_u16() {
        401 => "401",
        403 => "403",
        429 => "429",
        502 => "502",
        503 => "503",
        504 => "504",
        200..=299 => "2xx",
        300..=399 => "3xx",
        400..=499 => "4xx",
        500..=599 => "5xx",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_endpoint_has_a_row_of_its_own() {
        let endpoints = catalog::endpoints();
        assert_eq!(endpoints[row_of(None)], catalog::UNKNOWN);
        for endpoint in Endpoint::all() {
            assert_eq!(endpoints[row_of(Some(endpoint))], endpoint.as_str());
        }
    }

    #[test]
    fn every_status_has_a_label_of_the_closed_set() {
        for status in 100..1_000 {
            let label = status_label(StatusCode::from_u16(status).unwrap());
            assert!(catalog::STATUSES.contains(&label), "{status}");
        }
    }
}
