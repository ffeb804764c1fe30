use std::io::{self, Write};

use serde::Serialize;

use super::{campaign::Outcome, row::Row, tally::Tally};
use crate::sim::network::MS;

/// One row, in JSON.
#[derive(Debug, Serialize)]
struct Record {
    id: String,
    client: &'static str,
    profile: &'static str,
    gateway: String,
    network: &'static str,
    demand: String,
    sends: u64,
    /// Without those that another program's requests excuse.
    http_429: u64,
    used_pct: f64,
    cancel_p99_ms: Option<f64>,
    promise_zero: bool,
}

/// Writes all rows as one array.
///
/// # Errors
///
/// The error of `out`.
pub(super) fn write(outcome: &Outcome, mut out: impl Write) -> io::Result<()> {
    let records: Vec<Record> = outcome.rows.iter().map(|(row, tally)| record(row, tally)).collect();
    serde_json::to_writer_pretty(&mut out, &records)?;
    writeln!(out)
}

fn record(row: &Row, tally: &Tally) -> Record {
    Record {
        id: row.to_string(),
        client: row.contender.client(),
        profile: row.contender.profile(),
        gateway: row.gateway.to_string(),
        network: row.network.name(),
        demand: format!("{}: {}", row.zone, row.load),
        sends: tally.sends,
        http_429: tally.avoidable_429(),
        used_pct: rounded(100.0 * tally.used(), 100.0),
        cancel_p99_ms: tally.cancel_wait(990).map(|wait| rounded(wait as f64 / MS as f64, 1_000.0)),
        promise_zero: row.promises_zero(),
    }
}

fn rounded(value: f64, parts: f64) -> f64 {
    (value * parts).round() / parts
}
