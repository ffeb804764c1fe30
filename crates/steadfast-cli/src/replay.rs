//! `steadfast replay`: places a file of orders, each of them once.

mod known;
mod result;
mod row;
mod truth;

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, IsTerminal, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{StreamExt, stream::FuturesUnordered};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use steadfast::{
    Access, BaseUrl, Client, Paths,
    limit::{Account, ColdStart, InvalidLimiter, ZoneLimiter},
};
use tokio::sync::watch;

pub(crate) use self::known::{with_advice, with_source};
use self::{
    result::{Counts, Results},
    row::{Row, Rows},
    truth::Truth,
};
use crate::{
    arena::Arena,
    exit::{Failed, print_line, print_note},
    placement::{Placement, Tell, place},
    signal::stop_on_signal,
};

/// What the help of every verb that places or looks for orders says.
pub(crate) const CREDENTIALS: &str = "\
With --base-url, credentials come from the environment: STEADFAST_API_KEY, and either STEADFAST_ACCESS_TOKEN or \
STEADFAST_CLIENT_ID, STEADFAST_PASSWORD and STEADFAST_TOTP_SECRET.";

#[derive(clap::Args)]
#[command(after_help = CREDENTIALS)]
pub(crate) struct Args {
    /// CSV with the header symId,qty,side,type,product,validity,limitPrice,trigPrice.
    file: PathBuf,
    /// The service to place the orders with; a sandbox of its own if absent.
    #[arg(long, value_name = "URL")]
    base_url: Option<BaseUrl>,
    /// Write down each order before it is sent, so that a run that dies can be run again; with --base-url, the orders'
    /// file with .journal behind its name if absent.
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Write what became of each row to this file instead of standard output.
    #[arg(long, value_name = "RESULT.csv")]
    out: Option<PathBuf>,
    /// Print the counts as one JSON object.
    #[arg(long)]
    json: bool,
    /// Place orders once more that were looked for and are not there, at the risk that they are only late.
    #[arg(long)]
    resend_absent: bool,
    /// Show no progress.
    #[arg(long, short)]
    quiet: bool,
}

/// The object of `replay --json`.
#[derive(Debug, Serialize)]
struct Output {
    schema_version: u32,
    #[serde(flatten)]
    counts: Counts,
    /// What the embedded sandbox has; of another service nobody knows.
    ground_truth: Option<Truth>,
}

/// How many orders wait or are on their way at once: enough to use the quota while some are looked for.
const IN_FLIGHT: usize = 64;

pub(crate) async fn run(args: Args) -> Result<(), Failed> {
    let name = args.file.display();
    let file = fs::read(&args.file).map_err(|error| Failed::usage(format_args!("{name}: {error}")))?;
    let file = Bytes::from(file);
    let open = || Rows::new(file.clone()).map_err(|error| Failed::usage(format_args!("{name}: {error}")));
    let (rows, again) = (open()?, open()?);
    let journal = args
        .journal
        .clone()
        .or_else(|| args.base_url.as_ref().map(|_| known::beside(&args.file, ".journal")));
    if let Some(journal) = &journal {
        known::refuse_other_day(journal, known::today())?;
        known::refuse_other_rows(journal, &args.file, again)?;
    }
    let out: Box<dyn Write> = match &args.out {
        Some(path) => Box::new(
            File::create(path).map_err(|error| Failed::usage(format_args!("{}: {error}", path.display())))?,
        ),
        None if args.json => Box::new(io::sink()),
        None => Box::new(io::stdout()),
    };
    let sent_again = known::sent_again(journal.as_deref())?;
    let service = Service::open(args.base_url.as_ref(), journal).await?;
    let mut replay = Replay {
        client: service.client,
        tell: if service.arena.is_some() { Tell::Sandbox } else { Tell::Nobody },
        results: Results::new(out),
        sent: Vec::new(),
        leftovers: 0,
        unwritten: None,
        bar: bar(&args),
    };
    let again = Again { all: args.resend_absent, sent: sent_again };
    let (stop, stopped) = watch::channel(false);
    let bar = replay.bar.clone();
    let note = "interrupted: waiting for the orders that were asked for; interrupt again to leave them";
    let end = tokio::select! {
        // Listens before the first order is asked for.
        biased;
        failed = stop_on_signal(stop, || say(&bar, note)) => Err(failed),
        end = replay.place(rows, &again, stopped) => Ok(end),
    };
    bar.finish_and_clear();
    let end = end?;
    let counts = replay.results.counts;
    if args.json {
        let ground_truth = service.arena.map(|arena| Truth::of(&arena.sandbox.state(), &replay.sent));
        let output = Output { schema_version: 1, counts, ground_truth };
        print_line(serde_json::to_string(&output).map_err(Failed::error)?);
    }
    let (refused, unresolved) = (counts.refused + counts.bad, counts.unresolved + counts.not_observed);
    print_note(format_args!("placed {} refused {refused} unresolved {unresolved}", counts.placed));
    if let Some(error) = replay.unwritten {
        return Err(Failed::error(format_args!("results cannot be written: {error}")));
    }
    match end {
        End::Interrupted => Err(Failed::interrupted("")),
        End::Whole if unresolved + replay.leftovers > 0 => Err(Failed::outcome_unknown()),
        End::Whole if refused > 0 => Err(Failed::already_said()),
        End::Whole => Ok(()),
    }
}

/// Where the orders go.
struct Service {
    client: Client,
    /// The embedded sandbox, if it is one.
    arena: Option<Arena>,
}

impl Service {
    async fn open(base: Option<&BaseUrl>, journal: Option<PathBuf>) -> Result<Self, Failed> {
        let Some(base) = base else {
            let sandbox = steadfast_sandbox::Sandbox::builder().build().map_err(Failed::error)?;
            let arena = Arena::serve(sandbox).await?;
            let own = arena.credentials.clone();
            let access = Access::token(own.api_key, own.access_token).map_err(Failed::error)?;
            let base = own.base_url.parse().map_err(Failed::error)?;
            return Ok(Self { client: client(base, access, journal)?, arena: Some(arena) });
        };
        Ok(Self { client: open_client(base.clone(), journal)?, arena: None })
    }
}

/// A client of the service at `base`, with credentials from the environment.
pub(crate) fn open_client(base: BaseUrl, journal: Option<PathBuf>) -> Result<Client, Failed> {
    client(base, from_environment()?, journal)
}

/// What is written down is of one service: a journal of another one's orders is refused.
fn client(base: BaseUrl, access: Access, journal: Option<PathBuf>) -> Result<Client, Failed> {
    let account = Account::new(base.to_string());
    let builder = Client::builder(base, access).paths(Paths::public());
    let builder = match journal {
        Some(journal) => {
            known::refuse_other_account(&journal, &account)?;
            builder.account(account).limiter(limiter(&journal)?).journal(journal)
        }
        None => builder,
    };
    builder.build().map_err(|error| Failed::usage(with_source(&error)))
}

/// Limits that begin with what an earlier run has spent: to the gateway, both are one.
fn limiter(journal: &Path) -> Result<ZoneLimiter, Failed> {
    let kept = ColdStart::Journal(known::beside(journal, ".limits"));
    ZoneLimiter::builder().preset().cold_start(kept).build().map_err(|error| match error {
        InvalidLimiter::JournalInUse(_) => Failed::usage(format_args!(
            "journal {} is in use: wait until the run that uses it has ended",
            journal.display()
        )),
        error => Failed::usage(with_source(&error)),
    })
}

fn from_environment() -> Result<Access, Failed> {
    let value = |name: &str| {
        std::env::var(name).map_err(|_| Failed::usage(format_args!("{name} is not set; see --help")))
    };
    let api_key = value("STEADFAST_API_KEY")?;
    let access = match std::env::var("STEADFAST_ACCESS_TOKEN") {
        Ok(token) => Access::token(api_key, token),
        Err(_) => Access::totp(
            api_key,
            value("STEADFAST_CLIENT_ID")?,
            value("STEADFAST_PASSWORD")?,
            value("STEADFAST_TOTP_SECRET")?,
        ),
    };
    access.map_err(Failed::usage)
}

/// One run over a file.
struct Replay {
    client: Client,
    tell: Tell,
    results: Results<Box<dyn Write>>,
    /// The names under which orders were asked for.
    sent: Vec<String>,
    /// Orders of an earlier run that are in doubt and have no row.
    leftovers: usize,
    /// Why results cannot be written any more.
    unwritten: Option<io::Error>,
    bar: ProgressBar,
}

/// Which rows are asked for once more when their order was looked for and is not there.
struct Again {
    /// Every one of them.
    all: bool,
    /// Those whose second order an earlier run has sent: this one attaches to it, and sends nothing.
    sent: BTreeSet<u64>,
}

impl Again {
    fn concerns(&self, row: &Row) -> bool {
        self.all || self.sent.contains(&row.line)
    }
}

/// How a run came to its end.
enum End {
    Whole,
    /// Somebody asked for the end, and what was asked for by then has been followed to its own.
    Interrupted,
}

impl Replay {
    /// Places the rows in their order; what follows a bad row goes on.
    ///
    /// Once it is `stopped`, what waits or has been sent comes to its end, and nothing more is asked for.
    async fn place(&mut self, mut rows: Rows, again: &Again, stopped: watch::Receiver<bool>) -> End {
        let client = self.client.clone();
        let tell = self.tell;
        let order = |row: Row, name: String| {
            let client = client.clone();
            async move {
                let placement = place(&client, &name, &row.order, tell).await;
                (row, placement)
            }
        };
        let mut on_their_way = FuturesUnordered::new();
        let mut absent = Vec::new();
        let stopped = || *stopped.borrow();
        let mut more = true;
        loop {
            // What nobody would be told of is not placed.
            more &= self.unwritten.is_none() && !stopped();
            while more && on_their_way.len() < IN_FLIGHT {
                match rows.next() {
                    None => more = false,
                    Some(Err(bad)) => {
                        for error in &bad.errors {
                            self.note(error);
                        }
                        let written = self.results.bad(&bad);
                        self.note_unwritten(written);
                    }
                    Some(Ok(row)) => {
                        if row.order.is_eos_outside_bse() {
                            self.note(format_args!("line {}: validity eos is for BSE only", row.line));
                        }
                        let name = format!("line-{}", row.line);
                        self.sent.push(name.clone());
                        on_their_way.push(order(row, name));
                    }
                }
            }
            match on_their_way.next().await {
                Some((row, Placement::NotObserved)) if again.concerns(&row) && !stopped() => absent.push(row),
                Some((row, placement)) => self.ended(row.line, &placement),
                None => break,
            }
        }
        for row in absent {
            if stopped() {
                self.ended(row.line, &Placement::NotObserved);
                continue;
            }
            let name = known::name_of_second(row.line);
            let (row, placement) = order(row, name).await;
            self.ended(row.line, &placement);
        }
        client.shutdown().await;
        self.report_leftovers();
        if stopped() { End::Interrupted } else { End::Whole }
    }

    /// What an earlier run left in doubt and no row of this file stands for: nobody else will speak of it.
    fn report_leftovers(&mut self) {
        let recovered = self.client.recovered();
        let rows: BTreeSet<&str> = self.sent.iter().map(String::as_str).collect();
        for order in known::unknown(&recovered) {
            let name = order.name.as_ref().map_or("an order without a name", |name| name.as_str());
            if !rows.contains(name.trim_end_matches("-again")) {
                self.note(format_args!("{name} of an earlier run is not resolved: see `steadfast orders`"));
                self.leftovers += 1;
            }
        }
    }

    fn ended(&mut self, line: u64, placement: &Placement) {
        self.bar.inc(1);
        let written = self.results.ended(line, placement);
        self.note_unwritten(written);
    }

    fn note_unwritten(&mut self, written: io::Result<()>) {
        if let Err(error) = written {
            self.unwritten.get_or_insert(error);
        }
    }

    fn note(&self, text: impl std::fmt::Display) {
        say(&self.bar, text);
    }
}

/// Prints a line for a person above the bar.
fn say(bar: &ProgressBar, text: impl std::fmt::Display) {
    bar.suspend(|| print_note(text));
}

/// A bar where somebody watches and the results do not scroll past him.
fn bar(args: &Args) -> ProgressBar {
    let results_are_shown = args.out.is_none() && !args.json;
    if args.quiet || results_are_shown || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner();
    // A template that cannot be read leaves the default one.
    if let Ok(style) = ProgressStyle::with_template("{spinner}  {pos} rows  {elapsed}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}
