//! `steadfast replay`: places a file of orders, each of them once.

mod known;
mod out;
mod paired;
mod result;
mod row;
mod run;
mod target;
mod truth;
mod words;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, IsTerminal, Read, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use bytes::Bytes;
use indicatif::{ProgressBar, ProgressStyle};
use secrecy::ExposeSecret;
use serde::Serialize;
use steadfast::{Access, BaseUrl, Client, limit};

use self::{
    out::{OutFile, Unput},
    result::{Counts, Results},
    row::Rows,
    run::{Again, Replay, Stop},
    target::Target,
    truth::Truth,
};
use crate::{
    account::{self, Whose},
    arena::Arena,
    client,
    events::{Contradicted, EventCounts, Kept},
    exit::{Failed, print_note},
    journal::{beside, way_out},
    placement::{Hindrance, Tell},
    secret::{find, variable_of},
    sends::Sends,
    signal::Signals,
    stdout::{self, Stdout, print_line},
};

#[derive(clap::Args)]
#[command(after_help = account::SECRETS)]
pub(crate) struct Args {
    /// CSV with the header symId,qty,side,type,product,validity,limitPrice,trigPrice; - is standard input. Each run
    /// sends the rows again that were refused or turned away before; what is placed or in doubt is not sent again.
    file: PathBuf,
    /// Place the orders with this service, for real. If absent, STEADFAST_BASE_URL names it; without either, the orders go
    /// to a sandbox of this command's own, and nothing real is placed.
    #[arg(long, value_name = "URL", conflicts_with = "sandbox")]
    base_url: Option<BaseUrl>,
    /// Rehearse with a sandbox of this command's own, whatever STEADFAST_BASE_URL says.
    #[arg(long)]
    sandbox: bool,
    /// Read the file, name what is wrong with it, and place nothing anywhere.
    #[arg(long, conflicts_with_all = ["yes", "out", "journal", "resend_absent", "in_order"])]
    check: bool,
    /// Place real orders without being asked. Needed where nobody can be asked: at a terminal whose input is not the
    /// keyboard, and without a terminal for a service that only STEADFAST_BASE_URL names.
    #[arg(long, short)]
    yes: bool,
    /// The file that keeps the token; one for each account below the user's state directory if absent.
    #[arg(long, value_name = "FILE", env = "STEADFAST_STORE", hide_env_values = true)]
    store: Option<PathBuf>,
    /// Write down each order before it is sent, so that a run that dies can be run again. With a service, STEADFAST_JOURNAL
    /// if absent, as for `orders`, else the orders' file with .journal behind its name. One file has one journal, and the
    /// variable must name another one for each file.
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Write what became of each row to this file or device instead of standard output; a file is put there once it is
    /// whole.
    #[arg(long, value_name = "RESULT.csv")]
    out: Option<PathBuf>,
    /// Print the counts as one JSON object.
    #[arg(long)]
    json: bool,
    /// Place orders once more that were looked for and are not there, at the risk that they are only late.
    #[arg(long)]
    resend_absent: bool,
    /// Send a row only when the one before has its result. Without it rows are sent side by side, as the quota allows, and a
    /// later one may be executed before an earlier one.
    #[arg(long)]
    in_order: bool,
    /// Show no progress.
    #[arg(long, short)]
    quiet: bool,
}

/// The object of `replay --json`.
#[derive(Debug, Serialize)]
struct Output {
    schema_version: u32,
    /// `sandbox`, the service's address, or `none` if nothing was to be placed.
    target: String,
    #[serde(flatten)]
    counts: Counts,
    events: EventCounts,
    /// The orders of the embedded sandbox; not known for another service.
    ground_truth: Option<Truth>,
}

pub(crate) async fn run(args: Args) -> Result<(), Failed> {
    // Listens from here to the end, so that no signal is missed between two parts of the run.
    let mut signals = Signals::listen();
    stdout::done("nothing was sent");
    let ready = tokio::select! {
        biased;
        () = signals.next() => return Err(Failed::interrupted("interrupted; nothing was sent")),
        ready = prepare(&args) => ready.map_err(Failed::before_any_order)?,
    };
    match ready {
        Some(ready) => place(&args, ready, &mut signals).await,
        None => Ok(()),
    }
}

/// A run that is ready to start; nothing was sent yet.
struct Ready {
    rows: Rows,
    target: Target,
    service: Service,
    again: Again,
    before: BTreeSet<String>,
    begun: BTreeSet<String>,
    journal: Option<PathBuf>,
    results: Results<Box<dyn Write>>,
    out: Option<OutFile>,
}

/// The contents of a file, before any order is placed.
struct Preview {
    orders: usize,
    bad: usize,
    /// The errors of the first bad rows.
    first: Vec<String>,
}

impl Preview {
    /// How many bad rows are shown before the question.
    const SHOWN: usize = 3;

    fn of(rows: Rows) -> Self {
        let mut preview = Self { orders: 0, bad: 0, first: Vec::new() };
        for row in rows {
            match row {
                Ok(_) => preview.orders += 1,
                Err(bad) => {
                    preview.bad += 1;
                    if preview.bad <= Self::SHOWN {
                        preview.first.extend(bad.errors.iter().map(ToString::to_string));
                    }
                }
            }
        }
        preview
    }

    /// Prints which rows are not orders.
    fn warn(&self) {
        let Self { orders, bad, first } = self;
        if *bad > 0 {
            print_note(format_args!("{bad} of {} rows are bad, and are not placed:", orders + bad));
            first.iter().for_each(|error| print_note(format_args!("  {error}")));
            if *bad > Self::SHOWN {
                print_note(format_args!("  and {} more; --check names them all", bad - Self::SHOWN));
            }
        }
    }
}

/// Checks everything that can be wrong before an order leaves. `None` if there is nothing to place.
async fn prepare(args: &Args) -> Result<Option<Ready>, Failed> {
    let name = args.file.display();
    let file = read(args.file.clone()).await?;
    let open = || Rows::new(file.clone()).map_err(|error| Failed::usage(format_args!("{name}: {error}")));
    let preview = Preview::of(open()?);
    if args.check {
        print_note("CHECK: nothing is placed");
        look(args, open()?, "none", &mut Results::new(io::sink(), false).map_err(Failed::error)?)?;
        return Ok(None);
    }
    let target = Target::choose(args.base_url.as_ref(), args.sandbox)?;
    let journal = journal_of(args, &target)?;
    let check = |journal: &Path| check(journal, args, &target, &open);
    journal.as_deref().map(check).transpose()?;
    if let Some(out) = &args.out {
        OutFile::check(out, &own_files(args, journal.as_deref()))?;
    }
    if preview.orders == 0 {
        print_note(format_args!("{name} holds no order: nothing is placed"));
        let out = args.out.as_deref().map(OutFile::create).transpose()?;
        let mut results = begin(args, out.as_ref(), false)?;
        let looked = look(args, open()?, "none", &mut results);
        finish(args, out).map_or(Ok(()), |error| Err(unwritten(error)))?;
        return looked.map(|()| None);
    }
    if (args.out.is_none() || args.json) && stdout::is_closed() {
        return Err(Failed::usage(
            "standard output is closed, so that nobody would see the results: write them to a file by --out, or to /dev/null",
        ));
    }
    let must_ask = match &target {
        Target::Sandbox => false,
        Target::Service { named, .. } => target::must_ask(*named, args.yes)?,
    };
    let service = Service::open(&target, args, journal.clone()).await?;
    // From here on the journal is locked for this run.
    let taken_for = journal.as_deref().map(check).transpose()?.flatten();
    let is_rehearsal = service.arena.is_some();
    // A note that cannot be written is reported before the message that orders are sent.
    let of_real_orders = journal.as_deref().filter(|_| !is_rehearsal);
    let noted = of_real_orders.map(|journal| paired::note(journal, &args.file)).transpose()?.flatten();
    target.announce(preview.orders, service.user.as_deref());
    if let Some(journal) = of_real_orders {
        preview.warn();
        taken_for.iter().for_each(print_note);
        known::announce(journal)?;
        if must_ask {
            target::ask().await?;
        }
        noted.iter().for_each(print_note);
    }
    let out = args.out.as_deref().map(OutFile::create).transpose()?;
    let before = known::sent_before(journal.as_deref())?;
    let begun = known::begun_in(journal.as_deref());
    let again = Again { all: args.resend_absent, sent: known::seconds(&before) };
    let results = begin(args, out.as_ref(), is_rehearsal)?;
    Ok(Some(Ready { rows: open()?, target, service, again, before, begun, journal, results, out }))
}

/// Refuses a journal that does not belong to these rows today. A returned text says why it is accepted nevertheless.
fn check(
    journal: &Path,
    args: &Args,
    target: &Target,
    open: &impl Fn() -> Result<Rows, Failed>,
) -> Result<Option<String>, Failed> {
    let today = known::today();
    known::refuse_unwhole(journal)?;
    paired::refuse_missing(journal, &args.file)?;
    known::refuse_without_lock(journal)?;
    known::refuse_other_day(journal, today)?;
    let taken_for = paired::refuse_other_file(journal, &args.file, args.journal.is_some())?;
    known::refuse_other_rows(journal, &args.file, open()?)?;
    if let (None, Target::Service { base, .. }) = (&args.journal, target) {
        known::refuse_other_name(journal, open()?, today)?;
        let account = limit::Account::new(base.to_string());
        paired::refuse_other_journal(journal, &args.file, open()?, today, &account)?;
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
        (None, Target::Sandbox) => return Ok(None),
        (None, Target::Service { .. }) => match variable_of("STEADFAST_JOURNAL")? {
            Some(journal) => journal.into(),
            None if is_stdin(&args.file) => {
                return Err(Failed::usage(
                    "orders from standard input need --journal FILE: without it a run that dies could not be run again",
                ));
            }
            None => known::journal_of(&args.file)?,
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
const ENDINGS: [&str; 7] =
    [".lock", ".new", ".limits", ".limits.lock", ".limits.new", ".events", ".events.seen"];

/// Returns the files of the run, which results must not overwrite.
fn own_files(args: &Args, journal: Option<&Path>) -> Vec<PathBuf> {
    let mut own = vec![args.file.clone()];
    own.push(beside(&args.file, paired::JOURNALS));
    for kept in args.store.as_deref().into_iter().chain(journal) {
        own.push(kept.to_owned());
        own.extend(ENDINGS.map(|ending| beside(kept, ending)));
        own.push(beside(kept, paired::FILE));
    }
    own
}

/// Reports every row that is not an order.
fn look<W: Write>(args: &Args, rows: Rows, target: &str, results: &mut Results<W>) -> Result<(), Failed> {
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
        let (target, events) = (target.to_owned(), EventCounts::default());
        let output = Output { schema_version: 1, target, counts, events, ground_truth: None };
        print_line(serde_json::to_string(&output).map_err(Failed::error)?);
    }
    print_note(format_args!("rows {rows} orders {orders} bad {}; nothing was sent", counts.bad));
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
fn begin(args: &Args, out: Option<&OutFile>, is_rehearsal: bool) -> Result<Results<Box<dyn Write>>, Failed> {
    Results::new(sink(args, out), is_rehearsal).map_err(|error| {
        // Reported here instead.
        drop(stdout::take_failure());
        Failed::usage(format_args!("results cannot be written: {error}"))
    })
}

/// Puts the results in their place. If that fails, their rows are printed, with the reason.
fn finish(args: &Args, out: Option<OutFile>) -> Option<io::Error> {
    let Unput { rows, error } = out?.finish().err()?;
    // With `--json` standard output holds one object only.
    let printed = if args.json { io::stderr().write_all(&rows) } else { Stdout.write_all(&rows) };
    error.or(printed.err())
}

fn unwritten(error: io::Error) -> Failed {
    Failed::error(format_args!("results cannot be written: {error}"))
}

async fn place(args: &Args, ready: Ready, signals: &mut Signals) -> Result<(), Failed> {
    let Ready { rows, target, service, again, before, begun, journal, results, out } = ready;
    let is_rehearsal = service.arena.is_some();
    stdout::done(match (&journal, is_rehearsal) {
        (Some(journal), false) => format!("what was sent stands in the journal {}", journal.display()),
        _ => "nothing was sent to a real service".to_owned(),
    });
    let mut replay = Replay {
        client: service.client,
        tell: if is_rehearsal { Tell::Sandbox } else { Tell::Nobody },
        results,
        sent: Vec::new(),
        before,
        begun,
        sends: service.sends,
        journal: journal.clone(),
        leftovers: 0,
        events: EventCounts::default(),
        contradicted: Contradicted::default(),
        kept: journal.as_deref().map(Kept::beside),
        unwritten: None,
        bar: bar(args),
        open: BTreeMap::new(),
        most: if args.in_order { 1 } else { run::IN_FLIGHT },
        stop: Stop::Nobody,
        ended_by: None,
    };
    replay.place(rows, &again, signals).await;
    replay.bar.finish_and_clear();
    let unput = finish(args, out);
    let is_put = args.out.as_deref().filter(|_| unput.is_none() && replay.unwritten.is_none());
    let (counts, events) = (replay.results.counts, replay.events);
    if args.json {
        let ground_truth = service.arena.map(|arena| Truth::of(&arena.sandbox.state(), &replay.sent));
        let output = Output { schema_version: 1, target: target.word(), counts, events, ground_truth };
        print_line(serde_json::to_string(&output).map_err(Failed::error)?);
    }
    let unwritten = replay.unwritten.or(unput).or(stdout::take_failure());
    if let Some(error) = &unwritten {
        let kept = where_kept(&counts, is_rehearsal, journal.as_deref(), is_put);
        print_note(format_args!("steadfast: results cannot be written: {error}; {kept}"));
    }
    sum_up(&counts, &events, replay.stop, journal.as_deref());
    let last = last_line(&counts, &events, replay.leftovers);
    if is_rehearsal {
        print_note(format_args!("in the own sandbox: {last}"));
        print_note("REHEARSAL: nothing was sent to the real service");
    } else {
        print_note(last);
    }

    if counts.unresolved + counts.not_observed + replay.leftovers + events.sum() > 0 {
        // An interrupted run must be checked as well.
        return Err(Failed::outcome_unknown());
    }
    if unwritten.is_some() {
        return Err(Failed::already_said());
    }
    if replay.stop >= Stop::Halted {
        return Err(Failed::interrupted(""));
    }
    match replay.results.hindrances.first() {
        // The first one blocks all others.
        Some(Hindrance::Latched) => Err(Failed::latched("")),
        Some(Hindrance::Login) => Err(Failed::login_needed("")),
        Some(Hindrance::Unavailable) => Err(Failed::unavailable("")),
        Some(Hindrance::RateLimited) => Err(Failed::rate_limited("")),
        Some(_) => Err(Failed::already_said()),
        None if counts.refused + counts.bad > 0 => Err(Failed::already_said()),
        None => Ok(()),
    }
}

/// Says what was sent and which files record it, in case results are lost.
fn where_kept(counts: &Counts, is_rehearsal: bool, journal: Option<&Path>, out: Option<&Path>) -> String {
    let is_sent = counts.rows > counts.bad + counts.not_sent + counts.placed_before;
    let mut kept = match (is_sent, is_rehearsal) {
        (false, _) => "no order was sent",
        (true, false) => "orders were sent",
        (true, true) => "orders were sent to the own sandbox",
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
fn last_line(counts: &Counts, events: &EventCounts, leftovers: usize) -> String {
    let Counts { placed, placed_before, refused, unresolved, .. } = counts;
    let now = placed - placed_before;
    let mut line = format!(
        "placed {placed} ({now} now, {placed_before} before) refused {refused} unresolved {unresolved}"
    );
    for (word, count) in [
        ("not observed", counts.not_observed),
        ("not executed", counts.not_executed),
        ("not sent", counts.not_sent),
        ("bad", counts.bad),
        ("in doubt of an earlier run", leftovers),
        ("events", events.sum()),
    ] {
        if count > 0 {
            line += &format!(" {word} {count}");
        }
    }
    line
}

/// Prints details for the counts of the last line.
fn sum_up(counts: &Counts, events: &EventCounts, stop: Stop, journal: Option<&Path>) {
    if let Some(journal) = journal.filter(|_| counts.unresolved + counts.not_observed > 0) {
        print_note(way_out(journal));
    }
    if stop == Stop::Left {
        let look = journal.map_or_else(String::new, |journal| {
            format!(": see `steadfast orders unresolved --journal {}`", journal.display())
        });
        print_note(format_args!("interrupted; orders may be in doubt{look}"));
    }
    for (what, count) in [
        ("bad rows, which are no orders", counts.bad),
        ("not observed", counts.not_observed),
        ("turned away by the service, not executed", counts.not_executed),
        ("not sent", counts.not_sent),
        ("late orders", events.late_orders),
        ("conflicts", events.conflicts),
        ("refused but placed", events.refused_but_placed),
        ("excess orders", events.excess),
        ("acknowledged but in no list", events.ack_not_listed),
        ("corrected", events.corrected),
        ("other events", events.other),
    ] {
        if count > 0 {
            print_note(format_args!("{what}: {count}"));
        }
    }
}

/// The destination of the orders.
struct Service {
    client: Client,
    /// What it has sent, if there is a journal.
    sends: Sends,
    /// The user, if known.
    user: Option<String>,
    /// The embedded sandbox, if it is one.
    arena: Option<Arena>,
}

impl Service {
    /// Checks that the journal belongs to this run, and that the service can be reached.
    async fn open(target: &Target, args: &Args, journal: Option<PathBuf>) -> Result<Self, Failed> {
        let sends = Sends::default();
        let Target::Service { base, .. } = target else { return Self::sandbox(journal, sends).await };
        let user = find("CLIENT_ID").await?.map(|user| user.expose_secret().to_owned());
        let whose = Whose { base_url: base.clone(), store: args.store.clone() };
        let client = client::open(whose, journal, &sends).await?;
        Ok(Self { client, sends, user, arena: None })
    }

    async fn sandbox(journal: Option<PathBuf>, sends: Sends) -> Result<Self, Failed> {
        let sandbox = steadfast_sandbox::Sandbox::builder().build().map_err(Failed::error)?;
        let arena = Arena::serve(sandbox).await?;
        let own = arena.credentials.clone();
        let access = Access::token(own.api_key, own.access_token).map_err(Failed::error)?;
        let base = own.base_url.parse().map_err(Failed::error)?;
        let client = client::create(base, access, journal, &sends)?;
        Ok(Self { client, sends, user: None, arena: Some(arena) })
    }
}

/// Returns a progress bar, visible only on a terminal where no results are printed.
fn bar(args: &Args) -> ProgressBar {
    let results_are_shown = args.out.is_none() && !args.json;
    if args.quiet || results_are_shown || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner();
    // An invalid template leaves the default one.
    if let Ok(style) = ProgressStyle::with_template("{spinner}  {pos} rows  {elapsed}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
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
            last_line(&counts, &events, 2),
            "placed 2 (1 now, 1 before) refused 0 unresolved 0 not observed 1 in doubt of an earlier run 2 events 1"
        );
    }
}
