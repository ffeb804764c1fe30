//! `steadfast orders rule`: records a person's ruling on an order that has no end in the journal.

use std::{
    collections::BTreeMap,
    io::{self, IsTerminal},
    path::{Path, PathBuf},
    time::Duration,
};

use http::Uri;
use steadfast::dedup::{
    IntentNo, Reason, RecoveredOrder, Verdict,
    journal::{Entry, FileJournal, Journal, JournalError, Record},
};
use steadfast_call::Outcome;

use super::{
    Unresolved, missing,
    row::{Row, show},
    sidecar::Sidecar,
};
use crate::{
    exit::{Failed, print_note},
    journal::{beside, in_use, with_advice},
    question::confirmed,
    readable::identifier,
    signal::interrupted,
    stdout,
};

#[derive(clap::Args)]
pub(super) struct Rule {
    #[command(flatten)]
    journal: Unresolved,
    /// The orders, as `orders unresolved` names them: line-3, or #7 for one without a name.
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    ruling: Ruling,
    /// Write it down without being asked. Needed where no question can be asked, because input or screen is no terminal.
    #[arg(long, short)]
    yes: bool,
    /// The operator's address of the sidecar that holds the journal. Without it the verb finds one by itself.
    #[arg(long, value_name = "URL")]
    admin: Option<Uri>,
    /// The file with that sidecar's local token; beside the journal if absent.
    #[arg(long, value_name = "PATH", requires = "admin")]
    token_file: Option<PathBuf>,
}

#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct Ruling {
    /// It is placed, and this is its identifier, exactly as the service's order list shows it: a later replay says so and
    /// sends nothing for it.
    #[arg(long, value_name = "ORDER-ID")]
    placed: Option<String>,
    /// It is not placed, and will not be: a later replay of its row, or a program that repeats
    /// its name, sends it again.
    #[arg(long)]
    not_placed: bool,
}

/// The process that writes the ruling to the journal.
enum Writer {
    /// This process. The journal is locked from before the question to the end, so that no run can send or settle the order
    /// meanwhile.
    Own(FileJournal),
    /// The sidecar that runs. It takes no ruling on an order that it has settled meanwhile.
    Sidecar(Sidecar),
}

/// A ruling on one order.
struct Ruled<'a> {
    order: &'a RecoveredOrder,
    /// An earlier ruling on it is corrected.
    corrects: bool,
    owner: Option<Owner>,
    row: Row<'a>,
}

pub(super) async fn run(args: Rule) -> Result<(), Failed> {
    tokio::select! {
        () = interrupted() => Err(Failed::interrupted("interrupted; `steadfast orders unresolved` shows what is still in doubt")),
        ended = rule(args) => ended,
    }
}

/// Asks the service nothing.
async fn rule(args: Rule) -> Result<(), Failed> {
    let Unresolved { journal: path, json } = args.journal;
    let order_id = args.ruling.placed.as_deref().map(str::trim);
    if order_id.is_some_and(|id| id.is_empty() || id.chars().any(char::is_control)) {
        return Err(Failed::usage(
            "--placed wants the order's identifier, as the service's order list shows it",
        ));
    }
    if order_id.is_some() && args.names.len() > 1 {
        return Err(Failed::usage("--placed is one order's identifier: name one order"));
    }
    let writer = match args.admin {
        Some(admin) => {
            let token_file = args.token_file.unwrap_or_else(|| beside(&path, ".token"));
            Writer::Sidecar(Sidecar::at(&admin, &token_file)?)
        }
        None => open(&path)?,
    };
    let entries = match &writer {
        Writer::Own(journal) => journal.recover(),
        Writer::Sidecar(_) => entries_of(&path)?,
    };
    let open = steadfast::dedup::unresolved(&entries);
    // An earlier ruling may be corrected.
    let unruled: Vec<_> =
        entries.iter().filter(|entry| !matches!(entry.record, Record::Ruled { .. })).cloned().collect();
    let rulable = steadfast::dedup::unresolved(&unruled);
    let mut rulings: Vec<Ruled<'_>> = Vec::new();
    for name in &args.names {
        let order = pick(&rulable, name, &path)?;
        if !rulings.iter().any(|ruled| is_same(ruled.order, order)) {
            rulings.push(Ruled::new(order, order_id, &open, &entries)?);
        }
    }
    if let Some(order_id) =
        order_id.filter(|id| rulings.iter().any(|its| !is_listed(&entries, its.order, id)))
    {
        print_note(format_args!(
            "no list that the journal knows has shown {order_id}: make sure that it is the order's identifier"
        ));
    }
    for ruled in &rulings {
        print_note(format_args!("{}: {}", ruled.row, consequence(order_id.is_some())));
        if let Some(owner) = &ruled.owner {
            print_note(format_args!(
                "an answer gave that identifier to {}, which is in doubt from now on, and not sent again",
                owner.name
            ));
        }
    }
    consent(args.yes).await?;
    for ruled in &rulings {
        match &writer {
            Writer::Own(journal) => ruled.write(journal, order_id).await?,
            Writer::Sidecar(sidecar) => {
                sidecar.rule(ruled.order, order_id).await?;
                until_written(&path, ruled.order).await?;
            }
        }
    }
    stdout::done(format_args!("the ruling is written down in {}", path.display()));
    let still = open.len() - rulings.iter().filter(|ruled| !ruled.corrects).count()
        + rulings.iter().filter(|ruled| ruled.owner.is_some()).count();
    show(&rulings.into_iter().map(|ruled| ruled.row).collect::<Vec<_>>(), json)?;
    print_note(format_args!("written down in {}; still in doubt: {still}", path.display()));
    Ok(())
}

impl<'a> Ruled<'a> {
    fn new(
        order: &'a RecoveredOrder,
        order_id: Option<&'a str>,
        open: &[RecoveredOrder],
        entries: &[Entry],
    ) -> Result<Self, Failed> {
        if let Some((order_id, known)) =
            order_id.and_then(|order_id| Some((order_id, known_otherwise(entries, order, order_id)?)))
        {
            return Err(Failed::usage(format_args!(
                "nothing was written: the service has shown no order {order_id}, but {known}; give the identifier exactly as it \
                 is listed"
            )));
        }
        let owner = order_id.and_then(|order_id| owner(entries, order, order_id));
        if let Some((order_id, owner)) =
            order_id.zip(owner.as_ref()).filter(|(id, it)| !it.may_lose(order, id))
        {
            return Err(Failed::usage(format_args!(
                "nothing was written: the journal gives {} to {}, and no two orders have one identifier{}",
                owner.order_id,
                owner.name,
                if owner.order_id == order_id { "" } else { ", in whatever spelling" }
            )));
        }
        let row = Row {
            status: if order_id.is_some() { "placed" } else { "not placed" }.to_owned(),
            order_id: order_id.map(identifier),
            candidates: Vec::new(),
            ..Row::of(order)
        };
        let corrects = !open.iter().any(|other| is_same(other, order));
        Ok(Self { order, corrects, owner, row })
    }

    async fn write(&self, journal: &FileJournal, order_id: Option<&str>) -> Result<(), Failed> {
        let lost = self.owner.iter().map(|owner| Record::Unresolved {
            intent: owner.intent,
            reason: Reason::AcceptedUnknownId.as_str().to_owned(),
            candidates: Vec::new(),
        });
        let ruled = Record::Ruled { intent: self.order.intent, order_id: order_id.map(str::to_owned) };
        // The loser first: an order in doubt too many does no harm.
        for record in lost.chain([ruled]) {
            let written = journal.append_durably(Entry { account: self.order.account.clone(), record });
            written.await.map_err(|error| Failed::error(with_advice(&error)))?;
        }
        Ok(())
    }
}

fn is_same(one: &RecoveredOrder, other: &RecoveredOrder) -> bool {
    (&one.account, one.intent) == (&other.account, other.intent)
}

fn entries_of(path: &Path) -> Result<Vec<Entry>, Failed> {
    let entries = FileJournal::read(path).map_err(|error| Failed::usage(with_advice(&error)))?;
    entries.ok_or_else(|| missing(path))
}

/// Waits until the order has an end in the journal of a sidecar that has ruled.
async fn until_written(path: &Path, order: &RecoveredOrder) -> Result<(), Failed> {
    for _ in 0..LOOKS {
        if !steadfast::dedup::unresolved(&entries_of(path)?).iter().any(|open| is_same(open, order)) {
            return Ok(());
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
    let path = path.display();
    Err(Failed::error(format_args!("the sidecar has ruled, but it is not written down in {path} yet")))
}

const BETWEEN_LOOKS: Duration = Duration::from_millis(50);
const LOOKS: usize = 200;

fn consequence(is_placed: bool) -> &'static str {
    if is_placed {
        "what repeats it, such as a later replay of its row, sends nothing"
    } else {
        "what repeats it, such as a later replay of its row, SENDS IT AGAIN; if it is placed all the same, there are two"
    }
}

/// Opens the journal and locks it until it is dropped, or finds the sidecar that holds it.
fn open(path: &Path) -> Result<Writer, Failed> {
    // Opening would create it.
    if !path.exists() {
        return Err(missing(path));
    }
    match FileJournal::open(path) {
        Ok(journal) => Ok(Writer::Own(journal)),
        Err(JournalError::InUse { .. }) => match Sidecar::of(path)? {
            Some(sidecar) => Ok(Writer::Sidecar(sidecar)),
            None => Err(Failed::usage(format_args!("{}; nothing was written", in_use(path)))),
        },
        Err(error) => Err(Failed::usage(with_advice(&error))),
    }
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
    /// As an answer, a list or a ruling spells it.
    order_id: String,
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

/// Returns another order to which the journal assigns the id. In another spelling it counts as the same, unless lists have
/// shown both.
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
    let is_same_order = |id: &str| {
        let both_listed = || [id, order_id].iter().all(|id| is_listed(entries, order, id));
        id == order_id || spelled(id) == spelled(order_id) && !both_listed()
    };
    let its = ids.iter().find(|(intent, (id, _))| **intent != order.intent && is_same_order(id));
    its.map(|(&intent, &(id, by_answer))| {
        let name = names.get(&intent).map_or_else(|| format!("#{}", intent.0), |&name| name.to_owned());
        Owner { intent, order_id: id.to_owned(), name, by_answer }
    })
}

/// True if a list that the journal knows has shown exactly this id.
fn is_listed(entries: &[Entry], order: &RecoveredOrder, order_id: &str) -> bool {
    shown_ids(entries, order).any(|(id, is_listed)| is_listed && id == order_id)
}

/// Returns the id that the service has shown in place of this one, if it has shown that in another spelling alone.
fn known_otherwise<'a>(entries: &'a [Entry], order: &RecoveredOrder, order_id: &str) -> Option<&'a str> {
    if shown_ids(entries, order).any(|(id, _)| id == order_id) {
        return None;
    }
    shown_ids(entries, order).map(|(id, _)| id).find(|id| spelled(id) == spelled(order_id))
}

/// Returns the ids that the service has shown in the order's account, and whether a list has.
fn shown_ids<'a>(entries: &'a [Entry], order: &RecoveredOrder) -> impl Iterator<Item = (&'a str, bool)> {
    let account = order.account.clone();
    entries.iter().filter(move |entry| entry.account == account).flat_map(|entry| {
        let (listed, told): (&[String], Option<&str>) = match &entry.record {
            Record::Seen { order_ids, .. } => (order_ids, None),
            Record::Unresolved { candidates, .. } => (candidates, None),
            Record::Closed { outcome: Outcome::Accepted { order_id: Some(id) }, .. } => (&[], Some(&**id)),
            _ => (&[], None),
        };
        listed.iter().map(|id| (id.as_str(), true)).chain(told.map(|id| (id, false)))
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
