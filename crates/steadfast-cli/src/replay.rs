//! `steadfast replay`: places a file of orders, each of them once.

mod agreed;
mod args;
mod closing;
mod known;
mod newest;
mod out;
mod output;
mod paired;
mod place;
mod plan;
mod preview;
mod ready;
mod refusal;
mod result;
mod row;
mod run;
mod service;
mod target;
mod truth;

use std::{
    cell::OnceCell,
    collections::BTreeMap,
    io::{self, IsTerminal, Write},
    path::PathBuf,
    time::Duration,
};

use indicatif::{ProgressBar, ProgressStyle};

pub(crate) use self::args::Args;
use self::{
    closing::{TOKEN_IS_GOOD, last_line, sum_up, tell_events_before, where_kept},
    out::OutFile,
    output::{Output, finish},
    ready::{Ready, prepare},
    result::Results,
    run::{Replay, Stop},
    target::Target,
    truth::Truth,
};
use crate::{
    account::keep_refusal,
    events::{Contradicted, EventCounts, Kept, Seen, ToldBefore},
    exit::{Failed, print_note},
    journal::clearing,
    placement::{Hindrance, Tell},
    signal::Signals,
    stdout::{self, print_line},
};

pub(crate) async fn run(args: Args) -> Result<(), Failed> {
    // Listens from here to the end, so that no signal is missed between two parts of the run.
    let mut signals = Signals::listen();
    stdout::done("nothing was sent");
    let mut agreed = None;
    let ready = tokio::select! {
        biased;
        () = signals.next() => None,
        ready = prepare(&args, &mut agreed) => Some(ready.map_err(Failed::before_any_order)?),
    };
    match (ready, agreed) {
        (Some(Some(ready)), _) => place(&args, ready, &mut signals).await,
        (Some(None), _) => Ok(()),
        (None, Some(agreed)) => agreed.interrupted(&args),
        (None, None) => Err(Failed::interrupted("interrupted; nothing was sent")),
    }
}

async fn place(args: &Args, ready: Ready, signals: &mut Signals) -> Result<(), Failed> {
    let Ready { rows, target, service, again, before, begun, events_before, journal, told_bad, results, out } =
        ready;
    let is_rehearsal = target.is_rehearsal();
    stdout::done(match (&journal, is_rehearsal) {
        (Some(journal), false) => format!("what was sent stands in the journal {}", journal.display()),
        _ => "nothing was sent to a real service".to_owned(),
    });
    let mut replay = Replay {
        client: service.client,
        tell: if service.arena.is_some() { Tell::Sandbox } else { Tell::Nobody },
        results,
        sent: Vec::new(),
        before,
        begun,
        sends: service.sends,
        journal: journal.clone(),
        ends: OnceCell::new(),
        leftovers: 0,
        events: EventCounts::default(),
        events_before,
        contradicted: Contradicted::default(),
        told_before: journal.as_deref().map(ToldBefore::beside).unwrap_or_default(),
        kept: journal.as_deref().map(Kept::beside),
        unwritten: None,
        bar: bar(args),
        told_bad,
        open: BTreeMap::new(),
        most: if args.in_order { 1 } else { run::IN_FLIGHT },
        stop: Stop::Nobody,
        answered: None,
        turned_away: 0,
        is_token_good: false,
        ended_by: None,
    };
    replay.place(rows, &again, signals).await;
    replay.bar.finish_and_clear();
    keep_refusal(replay.client.tokens()).await;
    let ground_truth = service.arena.map(|arena| Truth::of(&arena.sandbox.state(), &replay.sent));
    let Replay {
        results, unwritten, stop, ended_by, leftovers, events, events_before, is_token_good, ..
    } = replay;
    close(
        args,
        Ended {
            target,
            results,
            out,
            journal,
            leftovers,
            events,
            events_before,
            unwritten,
            stop,
            ended_by,
            is_token_good,
            is_rehearsal,
            ground_truth,
        },
    )
}

/// A run whose rows all have their results.
struct Ended {
    target: Target,
    results: Results<Box<dyn Write>>,
    out: Option<OutFile>,
    journal: Option<PathBuf>,
    leftovers: usize,
    events: EventCounts,
    events_before: Vec<Seen>,
    unwritten: Option<io::Error>,
    stop: Stop,
    ended_by: Option<Hindrance>,
    is_token_good: bool,
    is_rehearsal: bool,
    ground_truth: Option<Truth>,
}

/// Puts the results in their place, sums them up, and returns the exit code that they have.
fn close(args: &Args, ended: Ended) -> Result<(), Failed> {
    let Ended { target, results, out, journal, leftovers, events, events_before, .. } = ended;
    let Ended { unwritten, stop, ended_by, is_token_good, is_rehearsal, ground_truth, .. } = ended;
    let unput = finish(args, out);
    let is_put = args.out.as_deref().filter(|_| unput.is_none() && unwritten.is_none());
    let counts = results.counts;
    if args.json {
        let output = Output {
            schema_version: 1,
            target: target.word(),
            counts,
            in_doubt_without_row: leftovers,
            unconfirmed_lines: results.unconfirmed().collect(),
            not_looked_for_lines: results.unlooked().to_vec(),
            events,
            events_before: events_before.len(),
            results: results.ends().collect(),
            ground_truth,
        };
        print_line(serde_json::to_string(&output).map_err(Failed::error)?);
    }
    let hindrance = results.hindrances.first().copied();
    // A service that refuses a good token is not available.
    let is_stray = is_token_good && ended_by.is_none() && hindrance == Some(Hindrance::Login);
    let hindrance = if is_stray { Some(Hindrance::Unavailable) } else { hindrance };
    // Dropping it writes what it still holds: a failure of that is told below, and not a second time at the end.
    drop(results);
    let unwritten = unwritten.or(unput).or(stdout::take_failure());
    if is_rehearsal && unwritten.as_ref().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
        return Err(Failed::unread());
    }
    if let Some(error) = &unwritten {
        let kept = where_kept(&counts, is_rehearsal, journal.as_deref(), is_put);
        print_note(format_args!("steadfast: results cannot be written: {error}; {kept}"));
    }
    sum_up(&counts, &events, (stop, ended_by), journal.as_deref());
    if is_stray {
        print_note(TOKEN_IS_GOOD);
    }
    tell_events_before(&events_before);
    if let Some(journal) = journal.as_deref().filter(|_| events.sum() + events_before.len() > 0) {
        print_note(clearing(journal));
    }
    let last = last_line(&counts, &events, events_before.len(), leftovers);
    if is_rehearsal {
        print_note(format_args!("in {}: {last}", target.sandbox()));
        print_note("REHEARSAL: nothing was sent to the real service");
    } else {
        print_note(last);
    }

    if counts.unresolved
        + counts.not_observed
        + counts.not_looked_for
        + leftovers
        + events.sum()
        + events_before.len()
        > 0
    {
        // An interrupted run must be checked as well.
        return Err(Failed::outcome_unknown());
    }
    if unwritten.is_some() {
        return Err(Failed::already_said());
    }
    if stop >= Stop::Halted {
        return Err(Failed::interrupted(""));
    }
    match hindrance {
        // The first one blocks all others.
        Some(Hindrance::Latched) => Err(Failed::latched("")),
        Some(Hindrance::Login) => Err(Failed::login_needed("")),
        Some(Hindrance::Unavailable) => Err(Failed::unavailable("")),
        Some(Hindrance::RateLimited) => Err(Failed::rate_limited("")),
        Some(_) => Err(Failed::already_said()),
        None if counts.refused + counts.rejected + counts.bad > 0 => Err(Failed::already_said()),
        None => Ok(()),
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
