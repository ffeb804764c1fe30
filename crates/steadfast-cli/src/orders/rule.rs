//! `steadfast orders rule`: records a person's ruling on an order that has no end in the journal.

use std::{
    collections::BTreeMap,
    io::{self, IsTerminal},
    path::Path,
};

use steadfast::dedup::{
    IntentNo, Reason, RecoveredOrder, Verdict,
    journal::{Entry, FileJournal, Journal, JournalError, Record},
};
use steadfast_call::Outcome;

use super::{
    Unresolved,
    row::{Row, show},
};
use crate::{
    exit::{Failed, print_note},
    journal::with_advice,
    question::confirmed,
    readable::identifier,
    signal::interrupted,
    stdout,
};

#[derive(clap::Args)]
pub(super) struct Rule {
    #[command(flatten)]
    journal: Unresolved,
    /// The order, as `orders unresolved` names it: line-3, or #7 for one without a name.
    name: String,
    #[command(flatten)]
    ruling: Ruling,
    /// Write it down without being asked. Needed where no question can be asked, because input or screen is no terminal.
    #[arg(long, short)]
    yes: bool,
}

#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct Ruling {
    /// It is placed, and this is its identifier at the service: a later replay says so and sends nothing for it.
    #[arg(long, value_name = "ORDER-ID")]
    placed: Option<String>,
    /// It is not placed, and will not be: a later replay of its row sends it again.
    #[arg(long)]
    not_placed: bool,
}

pub(super) async fn run(args: Rule) -> Result<(), Failed> {
    tokio::select! {
        () = interrupted() => Err(Failed::interrupted("interrupted; `steadfast orders unresolved` shows what is still in doubt")),
        ended = rule(args) => ended,
    }
}

/// Asks the service nothing. The journal is locked from before the question to the end, so that no run can send or
/// settle the order meanwhile.
async fn rule(
    Rule { journal: Unresolved { journal: path, json }, name, ruling, yes }: Rule,
) -> Result<(), Failed> {
    let order_id = ruling.placed.as_deref().map(str::trim);
    if order_id.is_some_and(|id| id.is_empty() || id.chars().any(char::is_control)) {
        return Err(Failed::usage(
            "--placed wants the order's identifier, as the service's order list shows it",
        ));
    }
    let journal = open(&path)?;
    let entries = journal.recover();
    let open = steadfast::dedup::unresolved(&entries);
    // An earlier ruling may be corrected.
    let unruled: Vec<_> =
        entries.iter().filter(|entry| !matches!(entry.record, Record::Ruled { .. })).cloned().collect();
    let rulable = steadfast::dedup::unresolved(&unruled);
    let order = pick(&rulable, &name, &path)?;
    let corrects = !open.iter().any(|other| other.account == order.account && other.intent == order.intent);
    let owner = order_id.and_then(|order_id| owner(&entries, order, order_id));
    if let Some((order_id, owner)) = order_id.zip(owner.as_ref()).filter(|(id, it)| !it.may_lose(order, id)) {
        return Err(Failed::usage(format_args!(
            "nothing was written: the journal gives {order_id} to {}, and no two orders have one identifier",
            owner.name
        )));
    }
    let row = Row {
        status: if order_id.is_some() { "placed" } else { "not placed" }.to_owned(),
        order_id: order_id.map(identifier),
        candidates: Vec::new(),
        ..Row::of(order)
    };
    if let Some(order_id) = order_id.filter(|order_id| !is_listed(&entries, order, order_id)) {
        print_note(format_args!(
            "no list that the journal knows has shown {order_id}: make sure that it is the order's identifier"
        ));
    }
    print_note(format_args!("{row}: {}", consequence(order_id.is_some())));
    if let Some(owner) = &owner {
        print_note(format_args!(
            "an answer gave that identifier to {}, which is in doubt from now on, and not sent again",
            owner.name
        ));
    }
    consent(yes).await?;
    let lost = owner.iter().map(|owner| Record::Unresolved {
        intent: owner.intent,
        reason: Reason::AcceptedUnknownId.as_str().to_owned(),
        candidates: Vec::new(),
    });
    for record in lost {
        // First: an order in doubt too many does no harm.
        let written = journal.append_durably(Entry { account: order.account.clone(), record });
        written.await.map_err(|error| Failed::error(with_advice(&error)))?;
    }
    let record = Record::Ruled { intent: order.intent, order_id: order_id.map(str::to_owned) };
    let written = journal.append_durably(Entry { account: order.account.clone(), record });
    written.await.map_err(|error| Failed::error(with_advice(&error)))?;
    stdout::done(format_args!("the ruling is written down in {}", path.display()));
    show(&[row], json)?;
    print_note(format_args!(
        "written down in {}; still in doubt: {}",
        path.display(),
        open.len() - usize::from(!corrects) + usize::from(owner.is_some())
    ));
    Ok(())
}

fn consequence(is_placed: bool) -> &'static str {
    if is_placed {
        "a later replay of its row sends nothing for it"
    } else {
        "a later replay of its row SENDS IT AGAIN; if it is placed all the same, there are two"
    }
}

/// Opens the journal and locks it until it is dropped.
fn open(path: &Path) -> Result<FileJournal, Failed> {
    // Opening would create it.
    if !path.exists() {
        return Err(Failed::usage(format_args!("{}: no such file", path.display())));
    }
    FileJournal::open(path).map_err(|error| match error {
        JournalError::InUse { .. } => Failed::usage(format_args!(
            "journal {} is in use: wait until the run that uses it has ended; nothing was written",
            path.display()
        )),
        error => Failed::usage(with_advice(&error)),
    })
}

/// Finds the order, which must be in doubt.
fn pick<'a>(open: &'a [RecoveredOrder], name: &str, path: &Path) -> Result<&'a RecoveredOrder, Failed> {
    let is_meant = |order: &&RecoveredOrder| match name.strip_prefix('#') {
        Some(number) => number.parse() == Ok(order.intent.0),
        None => order.name.as_ref().is_some_and(|its| its.as_str() == name),
    };
    let meant: Vec<_> = open.iter().filter(is_meant).collect();
    match meant[..] {
        [order] => Ok(order),
        [] => Err(Failed::usage(format_args!(
            "nothing was written: {name} is not in doubt; `steadfast orders unresolved --journal {}` lists what is",
            path.display()
        ))),
        _ => {
            let numbers: Vec<_> = meant.iter().map(|order| format!("#{}", order.intent.0)).collect();
            Err(Failed::usage(format_args!(
                "nothing was written: {name} stands for several orders in doubt; name one of {}",
                numbers.join(", ")
            )))
        }
    }
}

/// Another order to which the journal assigns an id.
struct Owner {
    intent: IntentNo,
    name: String,
    /// Only an answer said so; no list and no ruling.
    by_answer: bool,
}

impl Owner {
    /// True if the id may go to an order in doubt instead: a list showed it as what that one may be.
    fn may_lose(&self, order: &RecoveredOrder, order_id: &str) -> bool {
        let Verdict::Unresolved(unresolved) = &order.verdict else { return false };
        self.by_answer && unresolved.candidates.iter().any(|id| id == order_id)
    }
}

/// Returns another order to which the journal assigns the id, in any spelling.
///
/// The ids of answers that were withdrawn belong to no order.
fn owner(entries: &[Entry], order: &RecoveredOrder, order_id: &str) -> Option<Owner> {
    let (mut ids, mut names) = (BTreeMap::new(), BTreeMap::new());
    for entry in entries.iter().filter(|entry| entry.account == order.account) {
        match &entry.record {
            Record::Begun { attempt, name: Some(name), .. } => {
                names.insert(attempt.intent, name.as_str());
            }
            Record::Closed { attempt, outcome: Outcome::Accepted { order_id: Some(id) }, .. } => {
                ids.insert(attempt.intent, (&**id, true));
            }
            Record::Found { intent, order_id, .. } | Record::Ruled { intent, order_id: Some(order_id) } => {
                ids.insert(*intent, (order_id.as_str(), false));
            }
            Record::Unresolved { intent, .. } => {
                ids.remove(intent);
            }
            _ => {}
        }
    }
    let its =
        ids.iter().find(|(intent, (id, _))| **intent != order.intent && spelled(id) == spelled(order_id));
    its.map(|(&intent, &(_, by_answer))| {
        let name = names.get(&intent).map_or_else(|| format!("#{}", intent.0), |&name| name.to_owned());
        Owner { intent, name, by_answer }
    })
}

/// True if a list that the journal knows has shown the id, in any spelling.
fn is_listed(entries: &[Entry], order: &RecoveredOrder, order_id: &str) -> bool {
    entries.iter().filter(|entry| entry.account == order.account).any(|entry| {
        let ids = match &entry.record {
            Record::Seen { order_ids, .. } => order_ids,
            Record::Unresolved { candidates, .. } => candidates,
            _ => return false,
        };
        ids.iter().any(|id| spelled(id) == spelled(order_id))
    })
}

/// Normalises an id: removes what is lost when it is read as a number or typed.
fn spelled(order_id: &str) -> String {
    let text = order_id.trim().to_ascii_lowercase();
    match text.bytes().all(|b| b.is_ascii_digit()) {
        true => text.trim_start_matches('0').to_owned(),
        false => text,
    }
}

/// Asks for confirmation, because a wrong ruling duplicates or loses an order.
async fn consent(yes: bool) -> Result<(), Failed> {
    if yes {
        return Ok(());
    }
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Err(Failed::usage(
            "nothing was written: no question can be asked here; give --yes if you have looked",
        ));
    }
    if confirmed("have you looked, and is that so? [y/N] ").await? {
        return Ok(());
    }
    Err(Failed::error("nothing was written"))
}
