//! A process that dies between two of its steps, and its state for the next one.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use steadfast::{
    call::{Outcome, Resend},
    dedup::journal::{Durable, Entry, Journal, Record},
    limit::ColdStart,
};
use tokio::time::Instant;

use crate::sim::{
    chooser::{Chooser, Site},
    orders::counts::Counts,
};

/// A journal in memory. A crash keeps its durable part and perhaps a little more.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryJournal {
    written: Arc<Mutex<Written>>,
}

#[derive(Debug, Default)]
struct Written {
    entries: Vec<Entry>,
    durable: usize,
    /// Its process is dead: remaining tasks of that process write nothing any more.
    ended: bool,
}

/// The state of a dead process, and how its successor treated it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Crash {
    /// Orders that had left and were not refused, and whose end no caller had learned.
    pub(crate) left: u64,
    /// Those of them that the next process named without a request.
    pub(crate) reported: u64,
    /// Orders that were sent while the next process only recovered.
    pub(crate) sent_by_recovery: u64,
    /// Repeated sends of orders that an earlier process had sent and that were not refused.
    pub(crate) sent_again: u64,
    /// True if the next process assumed empty windows for a used token, which breaks the limiter's promise.
    pub(crate) starts_empty: bool,
}

impl MemoryJournal {
    /// Ends the process, and returns the journal that the next one finds.
    pub(crate) fn crash(&self, chooser: &Chooser) -> Self {
        let mut written = self.written();
        written.ended = true;
        let lazy = u32::try_from(written.entries.len() - written.durable).unwrap_or(u32::MAX);
        let kept = written.durable + chooser.choose(Site::new("crash.kept"), lazy.saturating_add(1)) as usize;
        let entries = written.entries[..kept].to_vec();
        Self { written: Arc::new(Mutex::new(Written { entries, durable: kept, ended: false })) }
    }

    /// Returns how many records of each kind and outcome it holds.
    pub(crate) fn counts(&self) -> Counts {
        self.written().entries.iter().map(|entry| (name(&entry.record), 1)).collect()
    }

    fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, entry: Option<Entry>, durably: bool) {
        let mut written = self.written();
        if written.ended {
            return;
        }
        written.entries.extend(entry);
        if durably {
            written.durable = written.entries.len();
        }
    }
}

/// Every name in [`MemoryJournal::counts`].
pub(crate) const WRITTEN: [&str; 14] = [
    "journal.begun",
    "journal.closed-not-sent",
    "journal.closed-not-executed",
    "journal.closed-rejected",
    "journal.closed-accepted",
    "journal.closed-unknown-until-absent",
    "journal.closed-unknown",
    "journal.seen",
    "journal.found",
    "journal.ruled",
    "journal.confirmed",
    "journal.renamed",
    "journal.named-until",
    "journal.unresolved",
];

const fn name(record: &Record) -> &'static str {
    WRITTEN[match record {
        Record::Begun { .. } => 0,
        Record::Closed { outcome: Outcome::NotSent, .. } => 1,
        Record::Closed { outcome: Outcome::NotExecuted, .. } => 2,
        Record::Closed { outcome: Outcome::Rejected, .. } => 3,
        Record::Closed { outcome: Outcome::Accepted { .. }, .. } => 4,
        Record::Closed { outcome: Outcome::Unknown { resend: Resend::AfterAbsence }, .. } => 5,
        Record::Closed { .. } => 6,
        Record::Seen { .. } => 7,
        Record::Found { .. } => 8,
        Record::Ruled { .. } => 9,
        Record::Confirmed { .. } => 10,
        Record::Renamed { .. } => 11,
        Record::NamedUntil { .. } => 12,
        // Kinds of records from later versions count as the last kind.
        _ => 13,
    }]
}

impl Journal for MemoryJournal {
    fn recover(&self) -> Vec<Entry> {
        self.written().entries.clone()
    }

    fn append(&self, entry: Entry) {
        self.add(Some(entry), false);
    }

    fn append_durably(&self, entry: Entry) -> Durable {
        self.add(Some(entry), true);
        Durable::known(Ok(()))
    }

    fn flush(&self) -> Durable {
        self.add(None, true);
        Durable::known(Ok(()))
    }

    fn salt(&self) -> [u8; 16] {
        [7; 16]
    }
}

/// Chooses what the next process counts as spent.
pub(crate) fn cold_start(chooser: &Chooser) -> ColdStart {
    match chooser.weigh(Site::new("crash.cold-start"), &[50, 50]) {
        0 => ColdStart::Auto,
        _ => ColdStart::Pessimistic,
    }
}

/// Returns when the process dies, and how long no process runs after that.
pub(crate) fn moments(chooser: &Chooser, start: Instant, orders: usize) -> (Instant, Duration) {
    let orders = u32::try_from(orders).unwrap_or(u32::MAX);
    // Mostly while orders are placed, often enough while the last of them are searched for.
    let most = orders.saturating_mul(100).saturating_add(30_000);
    let millis = |what, most| Duration::from_millis(u64::from(chooser.choose(Site::new(what), most)));
    (start + millis("crash.at", most), millis("crash.down", 30_000))
}

impl Crash {
    /// Compares the orders that the next process named with those whose end no caller knew.
    pub(crate) fn of(
        stood: &BTreeSet<u64>,
        reported: &BTreeSet<u64>,
        sent_by_recovery: u64,
        starts_empty: bool,
    ) -> Self {
        let (left, reported) = (stood.len() as u64, stood.intersection(reported).count() as u64);
        Self { left, reported, sent_by_recovery, sent_again: 0, starts_empty }
    }

    /// Adds how many orders of an earlier process were sent again.
    #[must_use]
    pub(crate) fn then_sent(self, sent_again: u64) -> Self {
        Self { sent_again, ..self }
    }
}
