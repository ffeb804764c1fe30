//! The sidecar's knowledge as a pure model: readings, calls and events go in, and the page's state comes out.

use std::collections::VecDeque;

use steadfast::{dedup::OrderEvent, spec::OrderRequest};

use super::{
    calls::{Call, Calls},
    orders::{End, Orders},
    reading::{Reading, ZoneReading},
    state::{Head, Line, SCHEMA_VERSION, State, Word},
    strips::Strips,
    words::{self, Level},
};

/// How many lines of the log are kept.
const LINES: usize = 200;

/// Parts of the page that nothing here can tell yet.
const ABSENT: [&str; 6] = [
    "when the next renewal of the token is due: its end and phase are shown",
    "how long requests waited in each lane (p50, p99): how many wait, and the next free slot, are shown",
    "429s that were repeated without their caller's knowledge: the pauses that they cause are shown",
    "the reads of the order list for each order in doubt, and the next of them",
    "the split of a call's time into queue, wire and repeats: calls of more than one send are counted",
    "the sends and answers of an order before its caller's answer",
];

/// A moment: the wall clock's, and the time since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Now {
    /// In milliseconds since the Unix epoch.
    pub(crate) at: u64,
    /// In milliseconds; it never goes back.
    pub(crate) ran: u64,
}

/// The model.
#[derive(Debug)]
pub(crate) struct Board {
    account: Option<String>,
    gateway: String,
    started: u64,
    last: Reading,
    strips: Strips,
    orders: Orders,
    calls: Calls,
    log: VecDeque<Line>,
}

impl Board {
    pub(crate) fn new(gateway: String, now: Now, first: Reading) -> Self {
        let words = format!("dashboard began; {}", first.trading);
        let mut strips = Strips::default();
        strips.push(first.zones.clone());
        let mut board = Self {
            account: None,
            gateway,
            started: now.at,
            last: first,
            strips,
            orders: Orders::default(),
            calls: Calls::default(),
            log: VecDeque::new(),
        };
        board.log(now.at, Level::Note, words, None);
        board.orders.left(now.at, &board.last.left);
        board
    }

    pub(crate) fn name_account(&mut self, account: String) {
        self.account = Some(account);
    }

    /// Enters a reading.
    pub(crate) fn read(&mut self, now: Now, reading: Reading) {
        self.orders.left(now.at, &reading.left);
        let before = std::mem::replace(&mut self.last, reading);
        self.log_changes(now.at, &before);
    }

    /// Enters a reading as the sample of its second.
    pub(crate) fn sample(&mut self, now: Now, reading: Reading) {
        self.calls.forget(now.ran);
        self.strips.push(reading.zones.clone());
        self.read(now, reading);
    }

    pub(crate) fn call_ended(&mut self, now: Now, call: Call) {
        self.calls.push(now.ran, call);
    }

    pub(crate) fn refused(&mut self, reason: &'static str) {
        self.calls.refuse(reason);
    }

    pub(crate) fn order_asked(&mut self, now: Now, name: &str, order: &OrderRequest) {
        self.orders.asked(now.at, name, order);
    }

    pub(crate) fn order_ended(&mut self, now: Now, name: &str, end: End) {
        self.orders.ended(now.at, name, end);
    }

    pub(crate) fn order_ruled(&mut self, now: Now, name: &str, order_id: Option<String>) {
        let words = match &order_id {
            Some(id) => format!("ruled by an operator: placed as {id}"),
            None => "ruled by an operator: not placed".to_owned(),
        };
        self.orders.ruled(now.at, name, order_id, &words);
        self.log(now.at, Level::Note, words, Some(name.to_owned()));
    }

    pub(crate) fn order_event(&mut self, now: Now, event: &OrderEvent) {
        self.orders.told(now.at, event);
        let (level, words) = words::of(event);
        self.log(now.at, level, words, words::name_of(event).map(ToString::to_string));
    }

    /// Enters that events came faster than they were taken.
    pub(crate) fn events_missed(&mut self, now: Now, count: u64) {
        let words = format!("{count} events about orders were missed: compare the order list");
        self.log(now.at, Level::Alarm, words, None);
    }

    /// Returns everything that the page shows, by the last reading.
    pub(crate) fn state(&self, now: Now, may_trade: bool) -> State {
        let reading = &self.last;
        State {
            schema_version: SCHEMA_VERSION,
            at: now.at,
            may_trade,
            head: Head {
                account: self.account.clone(),
                gateway: self.gateway.clone(),
                version: Word::Borrowed(env!("CARGO_PKG_VERSION")),
                started: self.started,
                in_doubt: reading.in_doubt,
                unresolved: reading.unresolved,
                in_flight: reading.in_flight,
                waiting: reading.waiting,
                trading: Word::Borrowed(reading.trading),
                withheld: reading.withheld.clone(),
                token: reading.token.clone(),
                sharing: reading.sharing.clone(),
            },
            zones: self.strips.zones(),
            lanes: self.strips.lanes(),
            doubts: self.orders.doubts(now.at),
            resolved: self.orders.resolved(),
            unresolved: reading.unruled.clone(),
            calls: self.calls.state(now.ran),
            log: self.log.iter().cloned().collect(),
            absent: ABSENT.map(Word::Borrowed).to_vec(),
        }
    }

    /// Says what has changed since the reading before.
    fn log_changes(&mut self, at: u64, before: &Reading) {
        let reading = &self.last;
        let mut lines = Vec::new();
        if before.trading != reading.trading {
            lines.push(trading(reading.trading));
        }
        let words = |reading: &Reading| reading.sharing.as_ref().map(|sharing| sharing.words.clone());
        if let (before, Some(now)) = (words(before), words(reading))
            && before.as_ref() != Some(&now)
        {
            lines.push((Level::Note, now));
        }
        match &reading.withheld {
            Some(why) if before.withheld.is_none() => lines.push((Level::Alarm, why.clone())),
            None if before.withheld.is_some() => lines.push((Level::Note, "orders leave again".to_owned())),
            _ => {}
        }
        match &reading.token.trouble {
            Some(why) if before.token.trouble.is_none() => {
                lines.push((Level::Alarm, format!("requests fail: {why}")));
            }
            None if before.token.phase != reading.token.phase => lines.push(token(&reading.token.phase)),
            _ => {}
        }
        if !before.token.latched && reading.token.latched {
            lines.push((Level::Alarm, "logins have stopped until a reset".to_owned()));
        }
        if before.in_doubt == 0 && reading.in_doubt > 0 {
            lines.push((Level::Warning, format!("orders in doubt: {}", reading.in_doubt)));
        } else if before.in_doubt > 0 && reading.in_doubt == 0 {
            lines.push((Level::Note, "no order is looked for any more".to_owned()));
        }
        if reading.unresolved > before.unresolved {
            let words = format!("orders that a person has to look for: {}", reading.unresolved);
            lines.push((Level::Alarm, words));
        }
        let zones = before.zones.iter().zip(&reading.zones);
        lines.extend(zones.flat_map(|(before, zone)| zone_changes(before, zone)));
        for (level, words) in lines {
            self.log(at, level, words, None);
        }
    }

    fn log(&mut self, at: u64, level: Level, words: String, order: Option<String>) {
        self.log.push_front(Line { at, level: Word::Borrowed(level.as_str()), words, order });
        self.log.truncate(LINES);
    }
}

fn trading(now: &str) -> (Level, String) {
    match now {
        "halted" => (Level::Warning, "halted: no order and no change leaves".to_owned()),
        "ending" => (Level::Warning, "the sidecar is ending: no order leaves any more".to_owned()),
        _ => (Level::Note, "trading again".to_owned()),
    }
}

fn token(phase: &str) -> (Level, String) {
    match phase {
        "valid" => (Level::Note, "token is valid".to_owned()),
        "advisory" => (Level::Note, "token is being renewed in the background".to_owned()),
        "mandatory" => (Level::Warning, "token is about to end: requests wait for the next one".to_owned()),
        "expired" => (Level::Warning, "session has ended: the token has expired".to_owned()),
        "needs_human" => (Level::Alarm, "no token is usable, and only a person can log in".to_owned()),
        "latched" => (Level::Alarm, "no token is usable, and logins have stopped until a reset".to_owned()),
        "suspect" => (Level::Warning, "the service refuses the token although it is young".to_owned()),
        _ => (Level::Note, "there is no token yet".to_owned()),
    }
}

fn zone_changes(before: &ZoneReading, zone: &ZoneReading) -> Vec<(Level, String)> {
    let mut lines = Vec::new();
    if before.zone != zone.zone {
        return lines;
    }
    let name = zone.zone;
    if let (None, Some(rest)) = (before.paused_ms, zone.paused_ms) {
        #[expect(clippy::cast_precision_loss, reason = "a pause of more than 15 digits is none")]
        let seconds = rest as f64 / 1_000.0;
        lines.push((Level::Warning, format!("zone {name} was answered 429 and pauses for {seconds:.1} s")));
    }
    if before.step != zone.step {
        let level = if zone.step > before.step { Level::Warning } else { Level::Note };
        lines.push((level, format!("zone {name} goes by its step \"{}\" now", zone.step)));
    }
    if before.learned != zone.learned {
        lines.push(match zone.learned {
            Some(limit) => (Level::Warning, format!("zone {name} has learned a lower limit: {limit}")),
            None => (Level::Note, format!("zone {name} goes by its documented limit again")),
        });
    }
    lines
}
