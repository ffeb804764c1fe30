//! The results of a run: their rows, and the object of `--json`.

use std::io::{self, Write};

use serde::Serialize;

use super::{
    args::Args,
    closing::tell_events_before,
    out::{OutFile, Unput},
    result::{Counts, Results, RowEnd},
    row::Rows,
    truth::Truth,
};
use crate::{
    events::{EventCounts, Seen},
    exit::{Failed, print_note},
    stdout::{self, Stdout, print_line},
};

/// The object of `replay --json`.
#[derive(Debug, Serialize)]
pub(super) struct Output<'a> {
    pub(super) schema_version: u32,
    /// `sandbox`, the service's address, or `none` if nothing was to be placed.
    pub(super) target: String,
    #[serde(flatten)]
    pub(super) counts: Counts,
    /// Orders in doubt of an earlier run that have no row.
    pub(super) in_doubt_without_row: usize,
    /// The lines of the rows that are `unconfirmed`.
    pub(super) unconfirmed_lines: Vec<u64>,
    /// The lines of the rows that are `not_looked_for`.
    pub(super) not_looked_for_lines: Vec<u64>,
    pub(super) events: EventCounts,
    /// Events of earlier runs that are not cleared.
    pub(super) events_before: usize,
    /// Each row with its end, by line. With `--check` and for a file without orders, the rows that are bad.
    pub(super) results: Vec<&'a RowEnd>,
    /// The orders of the embedded sandbox; not known for another service.
    pub(super) ground_truth: Option<Truth>,
}

/// Reports every row that is not an order.
pub(super) fn look<W: Write>(
    args: &Args,
    rows: Rows,
    target: &str,
    results: &mut Results<W>,
    events_before: &[Seen],
) -> Result<(), Failed> {
    let mut orders = 0_usize;
    for row in rows {
        match row {
            Ok(row) => {
                orders += 1;
                row.warning().iter().for_each(print_note);
            }
            Err(bad) => {
                bad.errors.iter().for_each(print_note);
                results.bad(&bad).map_err(unwritten)?;
            }
        }
    }
    let counts = results.counts;
    let rows = counts.rows + orders;
    if args.json {
        let counts = Counts { rows, ..counts };
        let output = Output {
            schema_version: 1,
            target: target.to_owned(),
            counts,
            in_doubt_without_row: 0,
            unconfirmed_lines: Vec::new(),
            not_looked_for_lines: Vec::new(),
            events: EventCounts::default(),
            events_before: events_before.len(),
            results: results.ends().collect(),
            ground_truth: None,
        };
        print_line(serde_json::to_string(&output).map_err(Failed::error)?);
    }
    print_note(format_args!("rows {rows} orders {orders} bad {}; nothing was sent", counts.bad));
    tell_events_before(events_before);
    if !events_before.is_empty() {
        return Err(Failed::outcome_unknown());
    }
    if counts.bad > 0 { Err(Failed::already_said()) } else { Ok(()) }
}

/// Returns the destination of the rows' results.
fn sink(args: &Args, out: Option<&OutFile>) -> Box<dyn Write> {
    match out {
        Some(out) => Box::new(out.writer()),
        None if args.json => Box::new(io::sink()),
        None => Box::new(Stdout),
    }
}

/// Begins the results, before anything is sent. If the header cannot be written, no row is sent.
pub(super) fn begin(
    args: &Args,
    out: Option<&OutFile>,
    is_rehearsal: bool,
) -> Result<Results<Box<dyn Write>>, Failed> {
    Results::new(sink(args, out), is_rehearsal).map_err(|error| {
        // Reported here instead.
        drop(stdout::take_failure());
        Failed::usage(format_args!("results cannot be written: {error}"))
    })
}

/// Puts the results in their place. If that fails, their rows are printed, with the reason.
pub(super) fn finish(args: &Args, out: Option<OutFile>) -> Option<io::Error> {
    let Unput { rows, error } = out?.finish().err()?;
    // With `--json` standard output holds one object only.
    let printed = if args.json { io::stderr().write_all(&rows) } else { Stdout.write_all(&rows) };
    error.or(printed.err())
}

pub(super) fn unwritten(error: io::Error) -> Failed {
    Failed::error(format_args!("results cannot be written: {error}"))
}
