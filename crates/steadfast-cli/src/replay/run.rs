use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Write},
    path::PathBuf,
    time::Duration,
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use indicatif::ProgressBar;
use steadfast::{
    Client,
    auth::TokenPhase,
    dedup::{OrderEvent, Resolution, Ruling, Settings, Verdict},
};
use tokio::{
    sync::broadcast::{Receiver, error::RecvError, error::TryRecvError},
    time::Instant,
};

use super::{
    known,
    result::Results,
    row::{Row, Rows},
};
use crate::{
    clock::wall,
    events::{Contradicted, EventCounts, Kept, Seen, Told},
    exit::print_note,
    placement::{Hindrance, Placement, Tell, place},
    sends::Sends,
    signal::Signals,
};

/// How many orders wait or are in flight at once: enough to use the quota while some are looked for.
pub(super) const IN_FLIGHT: usize = 64;

const STOPPED: &str =
    "interrupted: nothing more is sent; waiting for the orders on their way; interrupt again to leave them";

const TOKEN_REFUSED: &str =
    "401 to the token, with which the order list cannot be read; see `steadfast doctor`";

/// How long after the last result a note on a terminal explains the wait.
const QUIET: Duration = Duration::from_secs(5);

/// How long a run that is left at once waits for answers already on their way.
const LEAVING: Duration = Duration::from_millis(200);

/// How long the journal may take to contain the results of its orders.
const JOURNAL_LAG: Duration = Duration::from_secs(2);

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
    /// What this run has begun to send.
    pub(super) sends: Sends,
    pub(super) journal: Option<PathBuf>,
    /// Orders of an earlier run that are in doubt and have no row.
    pub(super) leftovers: usize,
    pub(super) events: EventCounts,
    pub(super) contradicted: Contradicted,
    /// The file for events.
    pub(super) kept: Option<Kept>,
    /// Why results or events can no longer be written.
    pub(super) unwritten: Option<io::Error>,
    pub(super) bar: ProgressBar,
    /// The rows whose orders are in flight, with the orders' names.
    pub(super) open: BTreeMap<u64, String>,
    /// How many orders wait or are in flight at once.
    pub(super) most: usize,
    pub(super) stop: Stop,
    /// The cause that ended the run, if no later order could be placed either.
    pub(super) ended_by: Option<Hindrance>,
}

/// Why the run ends early, if it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stop {
    Nobody,
    /// No later order could be placed: nothing more leaves, and orders on the wire are followed to their end.
    Hindered,
    /// Nothing more leaves, and orders on the wire are followed to their end.
    Halted,
    /// The run waits for nothing any more.
    Left,
}

/// Which rows are placed again if their order was looked for and not found.
pub(super) struct Again {
    /// All of them.
    pub(super) all: bool,
    /// Rows whose second order was sent by an earlier run. Placing it again joins that order and sends nothing.
    pub(super) sent: BTreeSet<u64>,
}

impl Again {
    fn concerns(&self, row: &Row) -> bool {
        self.all || self.sent.contains(&row.line)
    }
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
            self.ended(&name_of(row.line), row.line, &Placement::NotObserved { said: None });
        }
        self.shut_down(&mut events, signals).await;
        self.take_waiting(&mut events);
        self.end_open();
        if self.stop != Stop::Nobody {
            while let Some(row) = self.next_row(&mut rows) {
                let not_sent = self.not_sent();
                self.ended(&name_of(row.line), row.line, &not_sent);
            }
        }
        self.agree_with_journal().await;
        let written = self.results.leave_contradicted();
        self.note_unwritten(written);
        self.report_leftovers();
    }

    /// Writes the results of rows whose calls were abandoned, by the journal, as `orders unresolved` does.
    ///
    /// Nothing has left since the halt, and nothing leaves before it is in the journal.
    fn end_open(&mut self) {
        let open = std::mem::take(&mut self.open);
        let read = || known::ends_in(self.journal.as_deref()?);
        let ends = if open.is_empty() { None } else { read() };
        for (line, name) in open {
            let is_second = name != name_of(line);
            let placement = match ends.as_ref().map(|ends| ends.get(&name)) {
                None | Some(Some(known::End::Open)) => Placement::unresolved("interrupted", None),
                Some(Some(known::End::Placed(order_id))) => {
                    let (order_id, msg) = (order_id.clone(), "answered before the run was left".to_owned());
                    Placement::Placed { order_id, msg, resolution: None }
                }
                // The journal knows only the first order.
                Some(_) if is_second => Placement::NotObserved { said: None },
                Some(Some(known::End::NotPlaced)) => Placement::NotExecuted {
                    why: Hindrance::Interrupted,
                    msg: "turned away before the run was left".to_owned(),
                },
                Some(None) => {
                    self.sent.retain(|sent| *sent != name);
                    self.not_sent()
                }
            };
            self.ended(&name, line, &placement);
        }
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

    /// Returns the name under which a row is placed first.
    ///
    /// If an earlier run has settled the first order and sent a second one, the second name is used: under the first
    /// the order would be sent again.
    fn name_of_first(&self, line: u64, again: &Again) -> String {
        let first = name_of(line);
        let is_settled = again.sent.contains(&line) && !self.before.contains(&first);
        if is_settled { known::name_of_second(line) } else { first }
    }

    /// Returns the name under which a row is placed again after its order was not found.
    ///
    /// The first order is settled before, so that no run looks for it once the second one has replaced it. A run that
    /// dies in between has sent nothing for the row; the next run does.
    fn name_after_absence(&self, line: u64, again: &Again) -> String {
        let (first, second) = (name_of(line), known::name_of_second(line));
        let Some(journal) = &self.journal else { return second };
        if self.name_of_first(line, again) == second {
            return second;
        }
        let settled = known::in_doubt(journal, &first).is_some_and(|order| {
            let ruled = self.client.tracker().resolve(Some(&order.account), order.intent, Ruling::NotPlaced);
            ruled.is_ok()
        });
        // It was found meanwhile: placing it again sends nothing and returns its id.
        if settled { second } else { first }
    }

    /// Waits until no order is in doubt. Signals meanwhile are handled as before.
    async fn shut_down(&mut self, events: &mut Receiver<OrderEvent>, signals: &mut Signals) {
        let client = self.client.clone();
        let mut ended = std::pin::pin!(client.shutdown());
        let mut quiet = Some(Instant::now() + QUIET);
        while self.stop != Stop::Left {
            tokio::select! {
                biased;
                () = signals.next() => {
                    self.interrupt();
                    quiet = Some(Instant::now() + QUIET);
                }
                event = events.recv() => self.take(event),
                () = until(quiet) => {
                    quiet = None;
                    self.note_wait(0);
                }
                () = &mut ended => return,
            }
        }
    }

    /// Prints how many orders have had no result for a while, and how long that may last.
    fn note_wait(&self, on_their_way: usize) {
        let bound = Settings::default().verification_bound();
        let until = httpdate::fmt_http_date(wall() + bound);
        let (doubtful, bound) = (self.client.tracker().in_doubt(), bound.as_secs());
        if doubtful > 0 {
            self.note(format_args!(
                "waiting: orders in doubt, which are looked for in the order list: {doubtful}; {bound} s at most, until {until}"
            ));
        } else if on_their_way > 0 {
            self.note(format_args!(
                "waiting: orders that wait for their turn or for an answer: {on_their_way}; an answer that is lost is looked \
                 for, for {bound} s at most"
            ));
        } else {
            self.note(format_args!(
                "waiting: a last look for orders that the list has not shown yet; {bound} s at most, until {until}"
            ));
        }
    }

    /// Handles the end of an order's call.
    fn came_back(&mut self, name: &str, row: &Row, placement: Placement) -> Placement {
        self.open.remove(&row.line);
        let placement = self.judged(placement);
        if matches!(placement, Placement::NotSent { .. }) {
            self.sent.retain(|sent| *sent != name);
        }
        placement
    }

    /// Ends the run if the result shows that no later order can be placed either. Orders that were held back by that
    /// get its reason.
    fn judged(&mut self, placement: Placement) -> Placement {
        let why = placement.hindrance();
        if self.stop == Stop::Nobody
            && let Some(why) = why.filter(|why| why.is_for_good())
        {
            self.client.halt();
            self.stop = Stop::Hindered;
            self.ended_by = Some(why);
            self.note(format_args!("{}: nothing more is sent; see `steadfast doctor`", reason_of(why)));
        }
        match placement {
            Placement::NotSent { why: Hindrance::Interrupted, .. } => self.not_sent(),
            Placement::NotExecuted { why: Hindrance::Interrupted, msg } => {
                Placement::NotExecuted { why: self.ended_by.unwrap_or(Hindrance::Interrupted), msg }
            }
            // The verdict does not say why the list could not be read.
            Placement::Unresolved { reason, candidates, said: None } => {
                let is_refused = self.client.tokens().status().phase == TokenPhase::Suspect;
                let said = is_refused.then(|| TOKEN_REFUSED.to_owned());
                Placement::Unresolved { reason, candidates, said }
            }
            placement => placement,
        }
    }

    /// Returns the result of a row whose turn did not come.
    fn not_sent(&self) -> Placement {
        let why = self.ended_by.unwrap_or(Hindrance::Interrupted);
        Placement::NotSent { why, msg: reason_of(why).to_owned() }
    }

    fn interrupt(&mut self) {
        if self.stop < Stop::Halted {
            self.client.halt();
            self.note(STOPPED);
            self.stop = Stop::Halted;
        } else {
            self.stop = Stop::Left;
        }
    }

    /// Returns the next row that is an order. Bad rows before it get their results.
    fn next_row(&mut self, rows: &mut Rows) -> Option<Row> {
        loop {
            match rows.next()? {
                Err(bad) => {
                    for error in &bad.errors {
                        self.note(error);
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

    /// Handles the events that have arrived.
    fn take_waiting(&mut self, events: &mut Receiver<OrderEvent>) {
        loop {
            match events.try_recv() {
                Ok(event) => self.take(Ok(event)),
                Err(TryRecvError::Lagged(missed)) => self.take(Err(RecvError::Lagged(missed))),
                Err(TryRecvError::Empty | TryRecvError::Closed) => return,
            }
        }
    }

    fn take(&mut self, event: Result<OrderEvent, RecvError>) {
        let told = match event {
            Ok(event) => {
                let Self { contradicted, open, .. } = self;
                contradicted.tell(&event, |name| line_of(name).is_some_and(|line| open.contains_key(&line)))
            }
            Err(RecvError::Lagged(missed)) => Told::missed(missed),
            // Not possible, because this run holds the client that sends them.
            Err(RecvError::Closed) => return,
        };
        match told {
            Told::Stands(seen) => self.stands(&seen),
            Told::Note(note) => self.note(note),
            Told::Elsewhere => {}
        }
    }

    /// Prints an event, counts it, and writes it to the results and beside the journal.
    fn stands(&mut self, seen: &Seen) {
        self.note(format_args!("{}: {}", seen.event.replace('_', " "), seen.msg));
        self.events.add(seen);
        let written = self.results.event(seen);
        self.note_unwritten(written);
        if let Some(kept) = &self.kept {
            let written = kept
                .keep(seen)
                .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", kept.path().display())));
            self.note_unwritten(written);
        }
    }

    /// Reports orders that an earlier run left in doubt and that have no row in this file.
    fn report_leftovers(&mut self) {
        let recovered = self.client.recovered();
        let rows: BTreeSet<&str> = self.sent.iter().map(|name| name.trim_end_matches("-again")).collect();
        let mut notes = Vec::new();
        for order in known::unknown(&recovered) {
            let name = order.name.as_ref().map_or("an order without a name", |name| name.as_str());
            if !rows.contains(name.trim_end_matches("-again")) {
                notes.push(format!("{name} of an earlier run is not resolved: see `steadfast orders`"));
            }
        }
        self.leftovers += notes.len();
        notes.iter().for_each(|note| self.note(note));
    }

    /// Corrects rows reported as not placed whose orders have no end in the journal: they are in doubt, and the next
    /// run treats them so.
    async fn agree_with_journal(&mut self) {
        let Some(journal) = self.journal.clone() else { return };
        let end = Instant::now() + JOURNAL_LAG;
        let doubtful = loop {
            let open = known::open_in(&journal);
            let not_placed = self.results.not_placed();
            let doubtful: Vec<(u64, Option<Verdict>)> = match &open {
                Some(open) => not_placed
                    .filter_map(|line| {
                        let verdict = open.get(&name_of(line)).or(open.get(&known::name_of_second(line)));
                        Some((line, Some(verdict?.clone())))
                    })
                    .collect(),
                None => not_placed.map(|line| (line, None)).collect(),
            };
            // The last records may still be on their way to the disk.
            if doubtful.is_empty() || self.stop == Stop::Left || Instant::now() >= end {
                break doubtful;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        for (line, verdict) in doubtful {
            self.note(format_args!("line {line}: the journal holds no end of its order, which is in doubt"));
            let (reason, candidates) = match &verdict {
                None => ("journal_open", &[][..]),
                Some(Verdict::Unresolved(it)) => (it.reason.as_str(), &*it.candidates),
                Some(_) if self.stop != Stop::Nobody => ("interrupted", &[][..]),
                Some(_) => ("unconfirmed", &[][..]),
            };
            let written = self.results.in_doubt_after_all(line, reason, candidates);
            self.note_unwritten(written);
        }
    }

    fn ended(&mut self, name: &str, line: u64, placement: &Placement) {
        self.bar.inc(1);
        let was_sent = self.was_sent_before(name, placement);
        let written = self.results.ended(line, placement, was_sent);
        self.note_unwritten(written);
    }

    /// Returns true if an earlier run has sent the order, and this one has sent nothing for it.
    fn was_sent_before(&self, name: &str, placement: &Placement) -> bool {
        match placement {
            // Within one run each name is asked for once.
            Placement::Placed { resolution: Some(Resolution::Attached { .. }), .. } => true,
            // It had been refused before, and was found now: by its send of an earlier run, or by one of this run.
            Placement::Placed { resolution: Some(Resolution::Recovered { .. }), .. } => {
                self.before.contains(name) || (self.begun.contains(name) && !self.sends.hold(name))
            }
            _ => self.before.contains(name),
        }
    }

    /// Ends the run if its output has gone: no order is placed whose result cannot be reported.
    fn note_unwritten(&mut self, written: io::Result<()>) {
        if let Err(error) = written
            && self.unwritten.is_none()
        {
            self.unwritten = Some(error);
            self.client.halt();
            self.stop = self.stop.max(Stop::Halted);
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

/// Explains why rows were not sent.
fn reason_of(why: Hindrance) -> &'static str {
    match why {
        Hindrance::Login => "there is no token that the service accepts",
        Hindrance::Latched => "logins are latched, so that the account is not locked",
        _ => "interrupted before it left",
    }
}

/// Returns the name of a row's order in the journal and at a sandbox.
fn name_of(line: u64) -> String {
    format!("line-{line}")
}

/// Returns the line of the row behind an order's name.
fn line_of(name: &str) -> Option<u64> {
    name.strip_prefix("line-")?.trim_end_matches("-again").parse().ok()
}

/// Prints a line above the progress bar.
pub(super) fn say(bar: &ProgressBar, text: impl std::fmt::Display) {
    bar.suspend(|| print_note(text));
}
