//! `steadfast orders`: handles orders that earlier runs left in doubt.

mod next_step;
mod row;
mod rule;
mod sidecar;
mod verify;

use std::{
    io,
    path::{Path, PathBuf},
};

use steadfast::dedup::{RecoveredOrder, Settings, journal::FileJournal};

use self::{
    next_step::NextSteps,
    row::{NOT_EXECUTED, Row, show},
};
use crate::{
    account,
    events::{Kept, Seen},
    exit::{Failed, print_note},
    journal::{admin_of, clearing, in_use, way_out, with_advice},
    placement::means_rejected,
    stdout,
};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// List the orders that a journal knows no end of; nothing is asked of the service.
    Unresolved(Unresolved),
    /// List the events that a run has written down beside a journal; --clear says that they have been looked at.
    Events(Events),
    /// Look for the orders in doubt of a journal in the service's order list; nothing is ever sent again.
    #[command(after_help = format!("{}\n\n{}", verify::INTERRUPTED, account::SECRETS))]
    Verify(verify::Verify),
    /// Say what became of an order in doubt, after a look at the service's order list; nothing is asked of the service.
    Rule(rule::Rule),
}

#[derive(clap::Args)]
struct Unresolved {
    /// The journal.
    #[arg(long, value_name = "FILE", env = "STEADFAST_JOURNAL", hide_env_values = true)]
    journal: PathBuf,
    /// Print a JSON array.
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct Events {
    #[command(flatten)]
    journal: Unresolved,
    /// The events have been looked at: no verb lists them any more, and a later run that meets the same ones again on this day
    /// names them in passing and ends as without them. The events are kept in the journal's file name with .events.seen behind
    /// it.
    #[arg(long)]
    clear: bool,
}

pub(crate) async fn run(args: Args) -> Result<(), Failed> {
    match args.verb {
        Verb::Unresolved(args) => list(&args),
        Verb::Events(args) => events(&args),
        Verb::Verify(args) => verify::run(args).await,
        Verb::Rule(args) => rule::run(args).await,
    }
}

fn list(args: &Unresolved) -> Result<(), Failed> {
    let (doubtful, whole) = in_doubt(&args.journal);
    let Some(doubtful) = doubtful else {
        return whole.and_then(|()| Err(missing(&args.journal)));
    };
    let kept = Kept::beside(&args.journal);
    let steps = NextSteps::of(&args.journal, Settings::default().today()).beside(admin_of(&args.journal));
    let listed = print(&doubtful, &standing(&kept)?, &steps, &args.journal, args.json, Search::Ended);
    // Readable orders are listed even if the journal may be incomplete.
    whole.and(listed)
}

/// Names orders of which it is not known what became of them, with what a person can do about each, and returns their
/// number. Those of `journal`, if there is one, and `unresolved`.
pub(crate) fn name_open(journal: Option<&Path>, unresolved: &[RecoveredOrder]) -> usize {
    let mut open = journal.and_then(|journal| in_doubt(journal).0).unwrap_or_default();
    let is_listed = |order: &RecoveredOrder, of: &[RecoveredOrder]| {
        of.iter().any(|its| (&its.account, its.intent) == (&order.account, order.intent))
    };
    let others: Vec<_> = unresolved.iter().filter(|order| !is_listed(order, &open)).cloned().collect();
    open.extend(others);
    let steps = journal.map(|journal| NextSteps::of(journal, Settings::default().today()));
    for order in &open {
        let next = steps.as_ref().and_then(|steps| steps.for_order(order));
        print_note(format_args!("steadfast: {}", Row { next, ..Row::of(order) }));
    }
    open.len()
}

fn missing(journal: &Path) -> Failed {
    Failed::usage(format_args!("{}: no such file", journal.display()))
}

/// Returns the orders without an end in a journal, if it exists and can be read, and whether it is the journal that was
/// written last, complete.
fn in_doubt(journal: &Path) -> (Option<Vec<RecoveredOrder>>, Result<(), Failed>) {
    let refused = |error| Failed::usage(with_advice(&error));
    let whole = FileJournal::check(journal).map_err(refused);
    match FileJournal::read(journal).map_err(refused) {
        Ok(found) => (found.map(|found| steadfast::dedup::unresolved(&found)), whole),
        Err(failed) => (None, Err(failed)),
    }
}

/// Lists events. Cleared events no longer count as a failure.
fn events(args: &Events) -> Result<(), Failed> {
    let Unresolved { journal, json } = &args.journal;
    let kept = Kept::beside(journal);
    if args.clear {
        let seen = kept.clear(journal).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => Failed::usage(in_use(journal)),
            _ => Failed::usage(format_args!("{}: {error}", kept.path().display())),
        })?;
        stdout::done(format_args!("the events are cleared, and kept in {}.seen", kept.path().display()));
        show(&seen.iter().map(Row::of_event).collect::<Vec<_>>(), *json)?;
        print_note(format_args!(
            "events {}: looked at, and kept in {}.seen",
            seen.len(),
            kept.path().display()
        ));
        return Ok(());
    }
    let (doubtful, whole) = in_doubt(journal);
    if doubtful.is_none() && whole.is_ok() && !kept.path().exists() {
        return Err(missing(journal));
    }
    let (unresolved, events) = (doubtful.map_or(0, |doubtful| doubtful.len()), standing(&kept)?);
    show(&events.iter().map(Row::of_event).collect::<Vec<_>>(), *json)?;
    note_events(&events, journal);
    if unresolved > 0 {
        print_note(format_args!("see `steadfast orders unresolved --journal {}`", journal.display()));
    }
    print_note(format_args!("events {} unresolved {unresolved}", events.len()));
    whole?;
    if unresolved + events.len() > 0 { Err(Failed::outcome_unknown()) } else { Ok(()) }
}

/// Prints what to do about events, if there are any.
fn note_events(events: &[Seen], journal: &Path) {
    if !events.is_empty() {
        print_note(format_args!("events {}: {}", events.len(), clearing(journal)));
    }
}

/// Returns the events that a run has stored beside the journal.
fn standing(kept: &Kept) -> Result<Vec<Seen>, Failed> {
    kept.read().map_err(|error| Failed::usage(format_args!("{}: {error}", kept.path().display())))
}

/// Whether a search for orders in doubt, if there was one, has ended by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Search {
    Ended,
    Interrupted,
}

fn print(
    orders: &[RecoveredOrder],
    events: &[Seen],
    steps: &NextSteps<'_>,
    journal: &Path,
    json: bool,
    how: Search,
) -> Result<(), Failed> {
    let doubts = orders.iter().map(|order| Row { next: steps.for_order(order), ..Row::of(order) });
    let rows: Vec<Row<'_>> = doubts.chain(events.iter().map(Row::of_event)).collect();
    show(&rows, json)?;
    let unknown = rows.iter().filter(|row| row.next.is_some()).count();
    let refused = rows.iter().filter(|row| row.status == NOT_EXECUTED).count();
    note_events(events, journal);
    if unknown > 0 {
        print_note(way_out(journal));
    }
    let recovered = orders.len() - unknown - refused;
    let rejected = rows.iter().filter(|row| row.listed.as_deref().is_some_and(means_rejected)).count();
    let count = |what, count| if count > 0 { format!(" {what} {count}") } else { String::new() };
    let (refused, among) = (count("not executed", refused), count("rejected", rejected));
    print_note(format_args!(
        "recovered {recovered}{among} unresolved {unknown}{refused} events {}",
        events.len()
    ));
    match unknown + events.len() {
        0 if how == Search::Interrupted => Err(Failed::interrupted("")),
        0 if rejected == 0 => Ok(()),
        0 => Err(Failed::already_said()),
        _ => Err(Failed::outcome_unknown()),
    }
}
