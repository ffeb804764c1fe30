//! All that is checked before an order leaves.

use std::{
    collections::BTreeSet,
    fs,
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use bytes::Bytes;
use steadfast::limit;

use super::{
    agreed::Agreed,
    args::Args,
    known,
    out::OutFile,
    output::{begin, finish, look, unwritten},
    paired, place,
    plan::Plan,
    preview::Preview,
    refusal,
    result::Results,
    row::{Rows, refuse_unended},
    run::Again,
    service::Service,
    target::{self, Target},
};
use crate::{
    dead_token::refuse_dead_token,
    events::{Kept, Seen},
    exit::{Failed, print_note},
    journal::{FILE, beside, refuse_without_lock, user::USER},
    secret::variable_of,
    stdout,
};

/// A run that is ready to start; nothing was sent yet.
pub(super) struct Ready {
    pub(super) rows: Rows,
    pub(super) target: Target,
    pub(super) service: Service,
    pub(super) again: Again,
    pub(super) before: BTreeSet<String>,
    pub(super) begun: BTreeSet<String>,
    /// Events of earlier runs that are not cleared.
    pub(super) events_before: Vec<Seen>,
    pub(super) journal: Option<PathBuf>,
    /// The last line whose faults were told.
    pub(super) told_bad: u64,
    pub(super) results: Results<Box<dyn Write>>,
    pub(super) out: Option<OutFile>,
}

/// Checks everything that can be wrong before an order leaves. `None` if there is nothing to place. `agreed` is set once the run
/// needs no further word of its user.
pub(super) async fn prepare(args: &Args, agreed: &mut Option<Agreed>) -> Result<Option<Ready>, Failed> {
    let name = args.file.display();
    let file = read(args.file.clone()).await?;
    let open = || Rows::new(file.clone()).map_err(|error| Failed::usage(format_args!("{name}: {error}")));
    let preview = Preview::of(open()?);
    refuse_unended(&file)
        .map_err(|error| Failed::usage(format_args!("{name}: {error}; nothing was sent")))?;
    if args.check {
        print_note("CHECK: nothing is placed");
        look(args, open()?, "none", &mut Results::new(io::sink(), false).map_err(Failed::error)?, &[])?;
        return Ok(None);
    }
    let target = Target::choose(args.base_url.as_ref(), args.sandbox, args.yes).await?;
    let journal = journal_of(args, &target)?;
    let check = |journal: &Path| check(journal, args, &target, &open);
    journal.as_deref().map(check).transpose()?;
    if let Some(out) = &args.out {
        OutFile::check(out, &own_files(args, journal.as_deref()))?;
    }
    if preview.lines.is_empty() {
        print_note(format_args!("{name} holds no order: nothing is placed"));
        let out = args.out.as_deref().map(OutFile::create).transpose()?;
        let mut results = begin(args, out.as_ref(), false)?;
        let looked = look(args, open()?, "none", &mut results, &Kept::standing(journal.as_deref())?);
        finish(args, out).map_or(Ok(()), |error| Err(unwritten(error)))?;
        return looked.map(|()| None);
    }
    if (args.out.is_none() || args.json) && stdout::is_closed() {
        return Err(Failed::usage(
            "standard output is closed, so that the results would be lost: write them to a file by --out, or to /dev/null",
        ));
    }
    let must_ask = match &target {
        Target::Service { named, .. } if !target.is_rehearsal() => target::must_ask(*named, args.yes)?,
        _ => false,
    };
    let mut run = Some(Agreed { rows: open()?, target: target.clone(), journal: journal.clone() });
    if !must_ask {
        *agreed = run.take();
    }
    let resends = match &target {
        Target::Sandbox => args.resends,
        Target::Service { base, peer, .. } => args.resends.to(base, peer),
    };
    let service = Service::open(&target, args.store.clone(), journal.clone(), resends).await?;
    // From here on the journal is locked for this run.
    let taken_for = journal.as_deref().map(check).transpose()?.flatten();
    let is_rehearsal = target.is_rehearsal();
    // A note that cannot be written is reported before the message that orders are sent.
    let of_real_orders = journal.as_deref().filter(|_| !is_rehearsal);
    let noted = of_real_orders.map(|journal| paired::note(journal, &args.file)).transpose()?.flatten();
    let events_before = Kept::standing(journal.as_deref())?;
    let ends = journal.as_deref().and_then(known::ends_in).unwrap_or_default();
    let plan = Plan::of(&preview, &ends, args.resend_absent);
    let account = service.user.clone().unwrap_or_else(|| "of the token".to_owned());
    target.announce(plan.to_send, &account);
    let mut told_bad = 0;
    if let Some(journal) = of_real_orders {
        told_bad = preview.warn();
        taken_for.iter().for_each(print_note);
        known::announce(journal)?;
        if !events_before.is_empty() {
            print_note(format_args!(
                "events of earlier runs that are not cleared: {}; `steadfast orders events --journal {}` names them",
                events_before.len(),
                journal.display()
            ));
        }
        let to_send = plan.to_send;
        let plan = format!("{} (account {account}): {plan}", target.word());
        if must_ask {
            target::ask(&plan).await?;
            *agreed = run.take();
        } else {
            print_note(plan);
        }
        noted.iter().for_each(print_note);
        if to_send > 0 {
            refuse_dead_token(&service.client, "nothing was sent", "this run").await?;
        }
    }
    let out = args.out.as_deref().map(OutFile::create).transpose()?;
    let before = known::sent_before(journal.as_deref())?;
    let begun = known::begun_in(journal.as_deref());
    let again = Again { all: args.resend_absent, sent: known::seconds(&before) };
    let results = begin(args, out.as_ref(), is_rehearsal)?;
    Ok(Some(Ready {
        rows: open()?,
        target,
        service,
        again,
        before,
        begun,
        events_before,
        journal,
        told_bad,
        results,
        out,
    }))
}

/// Refuses a journal that does not belong to these rows today. A returned text says why it is accepted nevertheless.
fn check(
    journal: &Path,
    args: &Args,
    target: &Target,
    open: &impl Fn() -> Result<Rows, Failed>,
) -> Result<Option<String>, Failed> {
    let today = known::today();
    refusal::refuse_unwhole(journal)?;
    paired::refuse_missing(journal, &args.file)?;
    refuse_without_lock(journal)?;
    refusal::refuse_other_day(journal, today)?;
    let taken_for = paired::refuse_other_file(journal, &args.file, args.journal.is_some())?;
    refusal::refuse_other_rows(journal, &args.file, open()?)?;
    if let (None, Target::Service { base, peer, .. }) = (&args.journal, target) {
        refusal::refuse_other_name(journal, open()?, today)?;
        // Another journal may have been begun before the sidecar told its account.
        let accounts = [peer.account(base), limit::Account::new(base.to_string())];
        paired::refuse_other_journal(journal, &args.file, open()?, today, &accounts)?;
    }
    Ok(taken_for)
}

/// Reads the orders' file once: it may be a pipe, and must not change during a run.
async fn read(file: PathBuf) -> Result<Bytes, Failed> {
    let name = file.display().to_string();
    let read = tokio::task::spawn_blocking(move || {
        if !is_stdin(&file) {
            return fs::read(file);
        }
        let mut bytes = Vec::new();
        io::stdin().read_to_end(&mut bytes).map(|_| bytes)
    });
    let bytes = read.await.map_err(Failed::error)?;
    bytes.map(Bytes::from).map_err(|error| Failed::usage(format_args!("{name}: {error}")))
}

fn is_stdin(file: &Path) -> bool {
    file == Path::new("-")
}

/// Returns the journal. A run with real orders always has one.
fn journal_of(args: &Args, target: &Target) -> Result<Option<PathBuf>, Failed> {
    let journal = match (&args.journal, target) {
        (Some(journal), _) => journal.clone(),
        // A rehearsal writes nothing to a journal of real orders.
        (None, target) if target.is_rehearsal() => return Ok(None),
        (None, _) => match variable_of("STEADFAST_JOURNAL")? {
            Some(journal) => journal.into(),
            None if is_stdin(&args.file) => {
                return Err(Failed::usage(
                    "orders from standard input need --journal FILE: without it a run that dies could not be run again",
                ));
            }
            None => place::journal_of(&args.file)?,
        },
    };
    match fs::metadata(&journal) {
        Ok(found) if !found.is_file() => {
            Err(Failed::usage(format_args!("journal {} is no file; nothing was sent", journal.display())))
        }
        _ => Ok(Some(journal)),
    }
}

/// The endings of the files that belong to a journal or a store.
const ENDINGS: [&str; 8] =
    [".lock", ".new", ".limits", ".limits.lock", ".limits.new", ".events", ".events.seen", USER];

/// Returns the files of the run, which results must not overwrite.
fn own_files(args: &Args, journal: Option<&Path>) -> Vec<PathBuf> {
    let mut own = vec![args.file.clone()];
    own.push(beside(&args.file, paired::JOURNALS));
    for kept in args.store.as_deref().into_iter().chain(journal) {
        own.push(kept.to_owned());
        own.extend(ENDINGS.map(|ending| beside(kept, ending)));
        own.push(beside(kept, FILE));
    }
    own
}
