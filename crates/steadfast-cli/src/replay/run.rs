mod ending;
mod last_list;
mod naming;
mod stopping;
mod telling;

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet},
    io::{self, Write},
    path::PathBuf,
    time::Duration,
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use indicatif::ProgressBar;
use steadfast::{Client, dedup::OrderEvent};
use tokio::{sync::broadcast::Receiver, time::Instant};

use super::{
    known,
    result::Results,
    row::{Row, Rows},
};
use crate::{
    events::{Contradicted, EventCounts, Kept, Seen, ToldBefore},
    exit::print_note,
    placement::{Hindrance, Placement, Tell, place},
    row_name,
    sends::Sends,
    signal::Signals,
};

pub(super) use self::{naming::Again, stopping::Stop};

/// How many orders wait or are in flight at once: enough to use the quota while some are looked for.
pub(super) const IN_FLIGHT: usize = 64;

/// How long after the last result a note on a terminal explains the wait.
const QUIET: Duration = Duration::from_secs(5);

/// How long a run that is left at once waits for answers already on their way.
const LEAVING: Duration = Duration::from_millis(200);

/// One run over a file.
pub(super) struct Replay {
    pub(super) client: Client,
    pub(super) tell: Tell,
    pub(super) results: Results<Box<dyn Write>>,
    /// The names under which orders were placed.
    pub(super) sent: Vec<String>,
    /// The names of orders that earlier runs have sent and that may be placed.
    pub(super) before: BTreeSet<String>,
    /// The names of orders that earlier runs have begun to send, whatever became of them.
    pub(super) begun: BTreeSet<String>,
    /// How the orders of the journal ended, read for the first row whose turn does not come.
    pub(super) ends: OnceCell<Option<known::Ends>>,
    /// The orders that this run has begun to send.
    pub(super) sends: Sends,
    pub(super) journal: Option<PathBuf>,
    /// Orders of an earlier run that are in doubt and have no row.
    pub(super) leftovers: usize,
    pub(super) events: EventCounts,
    /// Events of earlier runs that are not cleared and that this run has not told again.
    pub(super) events_before: Vec<Seen>,
    pub(super) contradicted: Contradicted,
    pub(super) told_before: ToldBefore,
    /// The file for events.
    pub(super) kept: Option<Kept>,
    /// Why results or events can no longer be written.
    pub(super) unwritten: Option<io::Error>,
    pub(super) bar: ProgressBar,
    /// The last line whose faults were told before the question.
    pub(super) told_bad: u64,
    /// The rows whose orders are in flight, with the orders' names.
    pub(super) open: BTreeMap<u64, String>,
    /// How many orders wait or are in flight at once.
    pub(super) most: usize,
    pub(super) stop: Stop,
    /// When the last order was answered.
    pub(super) answered: Option<Instant>,
    /// How many orders were turned away for the token (401) since one was placed.
    pub(super) turned_away: usize,
    /// True if the last list was read, and with the token that the run has.
    pub(super) is_token_good: bool,
    /// The cause that ended the run, if no later order could be placed either.
    pub(super) ended_by: Option<Hindrance>,
}

impl Replay {
    /// Places the rows in their order, also those after a bad row. In the end each row has a result.
    ///
    /// The first signal halts: no order leaves after it, orders on the wire are resolved, and rows that were not sent
    /// are listed. The second ends the run at once.
    pub(super) async fn place(&mut self, mut rows: Rows, again: &Again, signals: &mut Signals) {
        let mut events = self.client.tracker().events();
        let mut absent = Vec::new();
        let mut first = |replay: &mut Self| {
            replay.next_row(&mut rows).map(|row| (replay.name_of_first(row.line, again), row))
        };
        self.drive(&mut first, self.most, &mut events, signals, |row| {
            again.concerns(row).then(|| absent.push(row.clone())).is_some()
        })
        .await;
        let mut seconds = absent.into_iter();
        let mut second =
            |replay: &mut Self| seconds.next().map(|row| (replay.name_after_absence(row.line, again), row));
        self.drive(&mut second, 1, &mut events, signals, |_| false).await;
        // The second order of a row was not placed any more, so the result is that of the first.
        for row in seconds {
            self.ended(&row_name::of_first(row.line), row.line, &Placement::NotObserved { said: None });
        }
        self.shut_down(&mut events, signals).await;
        self.take_waiting(&mut events);
        self.end_open();
        if self.stop != Stop::Nobody {
            // It may have been read before a search ended.
            self.ends.take();
            while let Some(row) = self.next_row(&mut rows) {
                let not_sent = self.not_sent();
                self.ended(&row_name::of_first(row.line), row.line, &not_sent);
            }
        }
        // Each row has its result by now: the list shows which of the placed ones were rejected.
        let rejected = self.last_list(&mut events, signals).await;
        self.take_waiting(&mut events);
        self.agree_with_journal().await;
        let written = self.results.reject(&rejected);
        self.note_unwritten(written);
        let written = self.results.leave_contradicted();
        self.note_unwritten(written);
        if self.stop == Stop::Left {
            let written = self.results.leave_unlooked();
            self.note_unwritten(written);
        }
        self.report_leftovers();
    }

    /// Places the orders that `next` returns, `most` at a time, until there are no more or the user ends the run.
    ///
    /// `keep` takes each row whose order was not found; it has no result yet.
    async fn drive(
        &mut self,
        next: &mut dyn FnMut(&mut Self) -> Option<(String, Row)>,
        most: usize,
        events: &mut Receiver<OrderEvent>,
        signals: &mut Signals,
        mut keep: impl FnMut(&Row) -> bool,
    ) {
        let (client, tell) = (self.client.clone(), self.tell);
        let order = |name: String, row: Row| {
            let client = client.clone();
            async move {
                let placement = place(&client, &name, &row.order, tell).await;
                (name, row, placement)
            }
        };
        let mut on_their_way = FuturesUnordered::new();
        let mut quiet = Some(Instant::now() + QUIET);
        loop {
            while self.stop == Stop::Nobody && on_their_way.len() < most {
                let Some((name, row)) = next(self) else { break };
                self.open.insert(row.line, name.clone());
                self.sent.push(name.clone());
                on_their_way.push(order(name, row));
            }
            if on_their_way.is_empty() {
                return;
            }
            if self.stop == Stop::Left {
                // Answers that have arrived by now are reported.
                let end = tokio::time::Instant::now() + LEAVING;
                while let Ok(Some((name, row, placement))) =
                    tokio::time::timeout_at(end, on_their_way.next()).await
                {
                    let placement = self.came_back(&name, &row, placement);
                    self.ended(&name, row.line, &placement);
                }
                return;
            }
            tokio::select! {
                // A signal is handled before anything else is sent.
                biased;
                () = signals.next() => {
                    self.interrupt();
                    quiet = Some(Instant::now() + QUIET);
                }
                event = events.recv() => self.take(event),
                () = until(quiet) => {
                    quiet = None;
                    self.note_wait(on_their_way.len());
                }
                Some((name, row, placement)) = on_their_way.next() => {
                    quiet = Some(Instant::now() + QUIET);
                    let placement = self.came_back(&name, &row, placement);
                    let is_absent = matches!(placement, Placement::NotObserved { .. });
                    if !(is_absent && self.stop == Stop::Nobody && keep(&row)) {
                        self.ended(&name, row.line, &placement);
                    }
                }
            }
        }
    }

    /// Returns the next row that is an order. Bad rows before it get their results.
    fn next_row(&mut self, rows: &mut Rows) -> Option<Row> {
        loop {
            match rows.next()? {
                Err(bad) => {
                    if bad.line > self.told_bad {
                        bad.errors.iter().for_each(|error| self.note(error));
                    }
                    let written = self.results.bad(&bad);
                    self.note_unwritten(written);
                }
                Ok(row) => {
                    if let Some(warning) = row.warning() {
                        self.note(warning);
                    }
                    return Some(row);
                }
            }
        }
    }

    fn note(&self, text: impl std::fmt::Display) {
        say(&self.bar, text);
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Prints a line above the progress bar.
pub(super) fn say(bar: &ProgressBar, text: impl std::fmt::Display) {
    bar.suspend(|| print_note(text));
}
