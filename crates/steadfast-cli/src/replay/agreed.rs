//! A run that may place orders and has not begun to.

use std::{collections::BTreeSet, path::PathBuf};

use super::{
    Ended,
    args::Args,
    close,
    closing::reason_of,
    known,
    out::OutFile,
    output::{begin, unwritten},
    result::RowEnd,
    row::Rows,
    run::Stop,
    target::Target,
};
use crate::{
    events::{EventCounts, Kept},
    exit::{Failed, print_note},
    placement::{Hindrance, Placement},
    row_name,
};

/// The rows of a run that needs no further word of its user.
pub(super) struct Agreed {
    pub(super) rows: Rows,
    pub(super) target: Target,
    pub(super) journal: Option<PathBuf>,
}

impl Agreed {
    /// Ends the run before its first order. Each row has a result, as after an interruption later on: by what an earlier run
    /// has left in the journal, else as not sent.
    pub(super) fn interrupted(self, args: &Args) -> Result<(), Failed> {
        let Self { rows, target, journal } = self;
        print_note("interrupted: nothing was sent");
        let before = known::sent_before(journal.as_deref())?;
        let ends = journal.as_deref().and_then(known::Ends::read);
        let events_before = Kept::standing(journal.as_deref())?;
        let is_rehearsal = target.is_rehearsal();
        let out = args.out.as_deref().map(OutFile::create).transpose()?;
        let mut results = begin(args, out.as_ref(), is_rehearsal)?;
        for row in rows {
            let told = match row {
                Err(bad) => results.bad(&bad),
                Ok(row) => {
                    let placement = known::told_of(row.line, &before, || ends.as_ref());
                    let placement = placement.unwrap_or_else(|| Placement::NotSent {
                        why: Hindrance::Interrupted,
                        msg: reason_of(Hindrance::Interrupted).to_owned(),
                    });
                    // This run has sent nothing.
                    results.ended(row.line, &placement, true)
                }
            };
            told.map_err(unwritten)?;
        }
        let told: BTreeSet<u64> = results.ends().filter_map(RowEnd::open_line).collect();
        let is_told = |name: &&String| row_name::line_of(name).is_some_and(|line| told.contains(&line));
        let open = ends.iter().flat_map(|ends| ends.verdicts.keys());
        let leftovers = open.filter(|name| !is_told(name)).count();
        close(
            args,
            Ended {
                target,
                results,
                out,
                journal,
                leftovers,
                events: EventCounts::default(),
                events_before,
                unwritten: None,
                stop: Stop::Halted,
                ended_by: None,
                is_token_good: false,
                is_rehearsal,
                ground_truth: None,
            },
        )
    }
}
