//! `steadfast orders`: handles orders that earlier runs left in doubt.

mod rule;

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use serde::Serialize;
use steadfast::{
    OrderRequest,
    dedup::{RecoveredOrder, Settings, Verdict, journal::FileJournal},
};
use tokio::sync::broadcast::error::TryRecvError;

use crate::{
    account, client,
    events::{Contradicted, Kept, Seen, Told},
    exit::{Failed, print_note},
    journal::{way_out, with_advice},
    sends::Sends,
    stdout::{self, print_line},
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
    /// List the events that a run has written down beside a journal; --clear says that somebody has looked at them.
    Events(Events),
    /// Look for them in the service's order list; nothing is ever sent again.
    #[command(after_help = account::SECRETS)]
    Verify(Verify),
    /// Say what became of one of them, after a look at the service's order list; nothing is asked of the service.
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
    /// They have been looked at: `orders unresolved` and `orders verify` list them no more. They are kept in the journal's
    /// file name with .events.seen behind it.
    #[arg(long)]
    clear: bool,
}

#[derive(clap::Args)]
struct Verify {
    #[command(flatten)]
    account: account::Whose,
    #[command(flatten)]
    journal: Unresolved,
}

/// The status of an order that the service refused (401, 429), as a list has confirmed.
const NOT_EXECUTED: &str = "not executed";

/// An order that was in doubt, or an event that is not cleared.
#[derive(Debug, Serialize)]
struct Row<'a> {
    intent: Option<u64>,
    name: Option<&'a str>,
    #[serde(rename = "symId")]
    sym_id: Option<&'a str>,
    side: Option<&'static str>,
    qty: Option<String>,
    /// `in doubt`, `recovered`, `not executed`, the reason why it is not resolved, the ruling of `orders rule` (`placed`,
    /// `not placed`), or the kind of an event, such as `late order`.
    status: String,
    /// The status of the order in the list, if it was found there.
    listed: Option<&'a str>,
    #[serde(rename = "orderId")]
    order_id: Option<&'a str>,
    candidates: &'a [String],
    /// The text of an event.
    msg: Option<&'a str>,
}

pub(crate) async fn run(args: Args) -> Result<(), Failed> {
    match args.verb {
        Verb::Unresolved(args) => list(&args),
        Verb::Events(args) => events(&args),
        Verb::Verify(args) => verify(args).await,
        Verb::Rule(args) => rule::run(args).await,
    }
}

fn list(args: &Unresolved) -> Result<(), Failed> {
    let (doubtful, whole) = in_doubt(&args.journal);
    let Some(doubtful) = doubtful else {
        return whole.and_then(|()| Err(missing(&args.journal)));
    };
    let kept = Kept::beside(&args.journal);
    let listed = print(&doubtful, &standing(&kept)?, &kept, &args.journal, args.json);
    // Readable orders are listed even if the journal may be incomplete.
    whole.and(listed)
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
            io::ErrorKind::WouldBlock => Failed::usage(format_args!(
                "journal {} is in use: wait until the run that uses it has ended",
                journal.display()
            )),
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
    note_events(&events, &kept);
    if unresolved > 0 {
        print_note(format_args!("see `steadfast orders unresolved --journal {}`", journal.display()));
    }
    print_note(format_args!("events {} unresolved {unresolved}", events.len()));
    whole?;
    if unresolved + events.len() > 0 { Err(Failed::outcome_unknown()) } else { Ok(()) }
}

/// Prints what to do about events, if there are any.
fn note_events(events: &[Seen], kept: &Kept) {
    if !events.is_empty() {
        print_note(format_args!(
            "events {}: look at each in the service's order list, then `steadfast orders events --clear`; they stand in {}",
            events.len(),
            kept.path().display()
        ));
    }
}

/// Returns the events that a run has stored beside the journal.
fn standing(kept: &Kept) -> Result<Vec<Seen>, Failed> {
    kept.read().map_err(|error| Failed::usage(format_args!("{}: {error}", kept.path().display())))
}

async fn verify(args: Verify) -> Result<(), Failed> {
    let Unresolved { journal, json } = args.journal;
    if !journal.exists() {
        return Err(Failed::usage(format_args!("{}: no such file", journal.display())));
    }
    let client = client::open(args.account, Some(journal.clone()), &Sends::default()).await?;
    let (count, bound) = (client.recovered().len(), Settings::default().verification_bound());
    if count > 0 {
        // Not yet resolved, so there is no result to show.
        print_note(format_args!("looking for orders in doubt: {count}; this may take {} s", bound.as_secs()));
    }
    let mut events = client.tracker().events();
    let orders = client.recover().await.map_err(Failed::unavailable)?;
    client.shutdown().await;
    let (kept, mut contradicted) = (Kept::beside(&journal), Contradicted::default());
    loop {
        let told = match events.try_recv() {
            Ok(event) => contradicted.tell(&event, |_| false),
            Err(TryRecvError::Lagged(missed)) => Told::missed(missed),
            Err(TryRecvError::Empty | TryRecvError::Closed) => break,
        };
        match told {
            Told::Stands(seen) => kept
                .keep(&seen)
                .map_err(|error| Failed::error(format_args!("{}: {error}", kept.path().display())))?,
            Told::Note(note) => print_note(note),
            Told::Elsewhere => {}
        }
    }
    print(&orders, &standing(&kept)?, &kept, &journal, json)
}

fn print(
    orders: &[RecoveredOrder],
    events: &[Seen],
    kept: &Kept,
    journal: &Path,
    json: bool,
) -> Result<(), Failed> {
    let doubts = orders.iter().map(Row::of);
    let rows: Vec<Row<'_>> = doubts.chain(events.iter().map(Row::of_event)).collect();
    show(&rows, json)?;
    let is_unknown =
        |row: &&Row<'_>| row.order_id.is_none() && row.msg.is_none() && row.status != NOT_EXECUTED;
    let unknown = rows.iter().filter(is_unknown).count();
    let refused = rows.iter().filter(|row| row.status == NOT_EXECUTED).count();
    note_events(events, kept);
    if unknown > 0 {
        print_note(way_out(journal));
    }
    let recovered = orders.len() - unknown - refused;
    let refused = if refused > 0 { format!(" not executed {refused}") } else { String::new() };
    print_note(format_args!("recovered {recovered} unresolved {unknown}{refused} events {}", events.len()));
    if unknown + events.len() > 0 { Err(Failed::outcome_unknown()) } else { Ok(()) }
}

fn show(rows: &[Row<'_>], json: bool) -> Result<(), Failed> {
    if json {
        print_line(serde_json::to_string(rows).map_err(Failed::error)?);
    } else {
        rows.iter().for_each(print_line);
    }
    Ok(())
}

impl fmt::Display for Row<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.name, self.intent) {
            (Some(name), _) => f.write_str(name)?,
            (None, Some(intent)) => write!(f, "#{intent}")?,
            (None, None) => f.write_str("-")?,
        }
        if let (Some(side), Some(qty), Some(sym_id)) = (self.side, &self.qty, self.sym_id) {
            write!(f, " {side} {qty} {sym_id}")?;
        }
        write!(f, " {} {}", self.order_id.unwrap_or("-"), self.status)?;
        if let Some(listed) = self.listed {
            write!(f, "; the list shows it as {listed}")?;
        }
        self.candidates.iter().try_for_each(|candidate| write!(f, " {candidate}"))?;
        self.msg.map_or(Ok(()), |msg| write!(f, ": {msg}"))
    }
}

impl<'a> Row<'a> {
    fn of(order: &'a RecoveredOrder) -> Self {
        let request: &OrderRequest = &order.order;
        let (status, order_id, candidates) = match &order.verdict {
            Verdict::Acknowledged { order_id } => {
                ("acknowledged".to_owned(), Some(order_id.as_str()), &[][..])
            }
            Verdict::Recovered { order_id, .. } => ("recovered".to_owned(), Some(order_id.as_str()), &[][..]),
            Verdict::Unresolved(unresolved) => {
                (unresolved.reason.to_string(), None, unresolved.candidates.as_slice())
            }
            Verdict::NotPlaced => (NOT_EXECUTED.to_owned(), None, &[][..]),
            _ => ("in doubt".to_owned(), None, &[][..]),
        };
        let listed = match &order.verdict {
            Verdict::Recovered { status, .. } => status.as_deref(),
            _ => None,
        };
        Self {
            intent: Some(order.intent.0),
            name: order.name.as_ref().map(|name| name.as_str()),
            sym_id: Some(request.sym_id().as_str()),
            side: Some(request.side().as_str()),
            qty: Some(request.qty().to_string()),
            status,
            listed,
            order_id,
            candidates,
            msg: None,
        }
    }

    fn of_event(seen: &'a Seen) -> Self {
        Self {
            intent: seen.intent,
            name: seen.name.as_deref(),
            sym_id: None,
            side: None,
            qty: None,
            status: seen.event.replace('_', " "),
            listed: None,
            order_id: seen.order_id.as_deref(),
            candidates: &[],
            msg: Some(&seen.msg),
        }
    }
}
