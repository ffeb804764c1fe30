//! The last lines of a run: its counts, and where to look.

use std::path::Path;

use super::{result::Counts, run::Stop};
use crate::{
    events::{EventCounts, Seen},
    exit::print_note,
    journal::way_out,
    placement::Hindrance,
};

/// Said if a run met a 401 and its last list was read with the same token.
pub(super) const TOKEN_IS_GOOD: &str =
    "the service has refused the token (401) and accepts it now: no login is needed; run again";

/// Says what was sent and which files record it, in case results are lost.
pub(super) fn where_kept(
    counts: &Counts,
    is_rehearsal: bool,
    journal: Option<&Path>,
    out: Option<&Path>,
) -> String {
    let is_sent = counts.rows > counts.bad + counts.not_sent + counts.placed_before;
    let mut kept = match (is_sent, is_rehearsal) {
        (false, _) => "no order was sent",
        (true, false) => "orders were sent",
        (true, true) => "orders were sent to a sandbox",
    }
    .to_owned();
    if let Some(journal) = journal {
        kept += &format!("; what was sent stands in the journal {}", journal.display());
    }
    if let Some(out) = out {
        kept += &format!("; each row's result stands in {}", out.display());
    }
    kept
}

/// Returns all counts in one line: three always, the others if they are not 0.
pub(super) fn last_line(
    counts: &Counts,
    events: &EventCounts,
    events_before: usize,
    leftovers: usize,
) -> String {
    let Counts { placed, placed_before, refused, unresolved, .. } = counts;
    let now = placed - placed_before;
    let mut line = format!(
        "placed {placed} ({now} now, {placed_before} before) refused {refused} unresolved {unresolved}"
    );
    for (word, count) in [
        ("unconfirmed", counts.unconfirmed),
        ("rejected", counts.rejected),
        ("not looked for", counts.not_looked_for),
        ("not observed", counts.not_observed),
        ("not executed", counts.not_executed),
        ("not sent", counts.not_sent),
        ("bad", counts.bad),
        ("in doubt of an earlier run", leftovers),
        ("events", events.sum()),
        ("events of earlier runs", events_before),
    ] {
        if count > 0 {
            line += &format!(" {word} {count}");
        }
    }
    line
}

/// Prints the events of earlier runs that are not cleared. Until they are, each run ends as the one that met them.
pub(super) fn tell_events_before(events: &[Seen]) {
    for seen in events {
        print_note(format_args!("event of an earlier run, not cleared: {}", seen.sentence()));
    }
}

/// Prints details for the counts of the last line. `ended_by` is the cause that ended the run early, if there was one.
pub(super) fn sum_up(
    counts: &Counts,
    events: &EventCounts,
    (stop, ended_by): (Stop, Option<Hindrance>),
    journal: Option<&Path>,
) {
    if let Some(journal) = journal.filter(|_| counts.unresolved + counts.not_observed > 0) {
        print_note(way_out(journal));
    }
    if stop == Stop::Left {
        let look = journal.map_or_else(String::new, |journal| {
            format!(": see `steadfast orders unresolved --journal {}`", journal.display())
        });
        // The last look, which tells such rows, was not waited for.
        let unlooked = match counts.not_looked_for {
            0 => String::new(),
            rows => format!(
                "; no last list was read for the rows that were placed or refused now: {rows}; the next run looks for them, too"
            ),
        };
        print_note(format_args!("interrupted; orders may be in doubt{look}{unlooked}"));
    }
    if let Some(why) = ended_by.filter(|_| counts.not_sent > 0) {
        print_note(format_args!(
            "ended early: {}; the next run looks for orders in doubt, and places the rows that were not sent",
            reason_of(why)
        ));
    }
    for (what, count) in [
        ("bad rows, which are no orders", counts.bad),
        (
            "rejected, as the order list shows; to place one again, add a row for it at the end",
            counts.rejected,
        ),
        ("not observed", counts.not_observed),
        ("turned away by the service, not executed", counts.not_executed),
        ("not sent", counts.not_sent),
        ("late orders", events.late_orders),
        ("conflicts", events.conflicts),
        ("refused but placed", events.refused_but_placed),
        ("excess orders", events.excess),
        ("acknowledged but in no list", events.ack_not_listed),
        ("placed, and shown by no list as they were sent", counts.unconfirmed),
        ("corrected", events.corrected),
        ("other events", events.other),
    ] {
        if count > 0 {
            print_note(format_args!("{what}: {count}"));
        }
    }
}

/// Explains why rows were not sent.
pub(super) fn reason_of(why: Hindrance) -> &'static str {
    match why {
        Hindrance::Login => "there is no token that the service accepts",
        Hindrance::Latched => "logins are latched, so that the account is not locked",
        _ => "interrupted before it left",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last line said `unresolved 0` for a run whose only row was looked for and not found.
    #[test]
    fn c03_the_last_line_leaves_out_no_row() {
        let counts = Counts { rows: 3, placed: 2, placed_before: 1, not_observed: 1, ..Counts::default() };
        let events = EventCounts { conflicts: 1, ..EventCounts::default() };
        assert_eq!(
            last_line(&counts, &events, 3, 2),
            "placed 2 (1 now, 1 before) refused 0 unresolved 0 not observed 1 in doubt of an earlier run 2 events 1 events of earlier runs 3"
        );
    }
}
