use std::{sync::Arc, time::Duration};

use steadfast_dedup::journal::{Entry, JournalError, NotOwner, Report};
use tokio::{
    sync::{mpsc::UnboundedReceiver, oneshot},
    time::{Instant, sleep, sleep_until},
};

use crate::{
    orders::{
        book::Book,
        error::OrdersError,
        ledger::{Lease, Taken, Turn},
        ownership::{LOOKS_EVERY, RENEWS_EVERY},
        seat::Seat,
    },
    rule::Micros,
};

/// Keeps the lease of an account's orders and writes their journal, on a thread of its own: no runtime of the program can
/// hold it up.
#[derive(Debug)]
pub(crate) struct Keeper {
    pub(crate) book: Book,
    pub(crate) seat: Arc<Seat>,
    pub(crate) name: String,
    /// 128 random bits.
    pub(crate) mark: String,
    /// How many entries the store has said it has.
    pub(crate) entries: u64,
    pub(crate) renews_at: Instant,
    /// When the kill switch is looked at, if nothing else has told of it.
    pub(crate) looks_at: Instant,
    /// The turns of which the store knows that they are heard of.
    pub(crate) confirmed: u64,
}

/// A request to the keeper.
pub(crate) enum Job {
    Append(Entry),
    /// With an entry of its own, or as a barrier behind all others.
    Sync(Option<Entry>, Report),
}

/// How a process has the orders.
pub(crate) enum Begun {
    /// They are its own, with these entries that still matter, and the salt of their journal.
    Own(Vec<Entry>, String),
    /// Another process owns them.
    Others,
}

/// The reaction where another process owns the orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// Say so, once its lease is seen to be alive.
    Tell,
    /// Wait until they are free.
    Wait,
}

/// Entries that are appended together, until the store has said what became of them.
#[derive(Default)]
struct Batch {
    entries: Vec<Vec<u8>>,
    reports: Vec<Report>,
}

/// How many entries go in one batch at most, so that none takes the store long.
const MOST_ENTRIES: usize = 500;
/// How soon a store that did not answer is asked again.
const ASKS_AGAIN_AFTER: Duration = Duration::from_millis(50);
/// For how long entries are still tried when no caller waits for them any more.
const CLOSES_WITHIN: Duration = Duration::from_secs(3);

impl Keeper {
    /// Takes the orders, then keeps them until the last job is done.
    pub(crate) async fn run(
        mut self,
        policy: Policy,
        begun: oneshot::Sender<Result<Begun, OrdersError>>,
        mut jobs: UnboundedReceiver<Job>,
    ) {
        let taken = self.take(policy, &begun).await;
        let owns = matches!(taken, Ok(Begun::Own(..)));
        // If its future was dropped, no caller waits for it.
        if begun.send(taken).is_ok() && owns {
            self.keep(&mut jobs).await;
        }
        if let Some(fence) = self.seat.fence() {
            // If the store does not hear of it, the lease ends by itself.
            let _ = self.book.release(&fence).await;
        }
    }

    async fn take(
        &mut self,
        policy: Policy,
        begun: &oneshot::Sender<Result<Begun, OrdersError>>,
    ) -> Result<Begun, OrdersError> {
        let mut first: Option<Lease> = None;
        while !begun.is_closed() {
            let sent = self.now();
            let (own, dead) = self
                .seat
                .change(|ownership| (ownership.own().to_owned(), ownership.dead_lease(sent).cloned()));
            let heard = self.seat.turns();
            match self.book.take(dead.as_ref(), &own, &self.name, &self.mark, heard).await {
                Ok(((taken, salt), turns)) => {
                    let received = self.now();
                    // Before the orders are its own.
                    self.seat.hear(turns);
                    self.confirmed = turns;
                    self.seat.change(|ownership| ownership.taken(&taken, sent, received));
                    match taken {
                        Taken::Yes { entries, .. } => {
                            self.entries = entries;
                            self.renews_at = Instant::now() + micros(RENEWS_EVERY);
                            return Ok(Begun::Own(self.read().await?, salt));
                        }
                        Taken::MayLack(mark) => {
                            let store = self.book.store().name().into();
                            return Err(OrdersError::MayLackEntries { store, mark: mark.into() });
                        }
                        Taken::Owned(lease) => {
                            let is_alive = first.get_or_insert_with(|| lease.clone()) != &lease;
                            if is_alive && policy == Policy::Tell {
                                return Ok(Begun::Others);
                            }
                        }
                    }
                }
                Err(error) if policy == Policy::Tell => return Err(error.into()),
                Err(_) => {}
            }
            sleep(micros(LOOKS_EVERY)).await;
        }
        Ok(Begun::Others)
    }

    /// Reads the whole journal. No other process can write it.
    async fn read(&mut self) -> Result<Vec<Entry>, OrdersError> {
        let (mut entries, mut last) = (Vec::new(), "0".to_owned());
        while let Some(id) = self.book.read(&last, &mut entries).await? {
            last = id;
            self.renew_if_due().await;
        }
        Ok(Entry::still_matter(entries))
    }

    async fn keep(&mut self, jobs: &mut UnboundedReceiver<Job>) {
        let mut batch = Batch::default();
        let mut closes_at = None;
        loop {
            self.renew_if_due().await;
            if batch.is_empty() {
                tokio::select! {
                    job = jobs.recv() => match job {
                        Some(job) => batch.fill(job, jobs),
                        None => return,
                    },
                    () = sleep_until(self.renews_at) => {}
                    // Without the orders none leaves.
                    () = sleep_until(self.looks_at), if self.seat.fence().is_some() => self.look().await,
                }
                continue;
            }
            self.write(&mut batch).await;
            if !batch.is_empty() {
                if jobs.is_closed()
                    && *closes_at.get_or_insert_with(|| Instant::now() + CLOSES_WITHIN) < Instant::now()
                {
                    return;
                }
                sleep(ASKS_AGAIN_AFTER).await;
            }
        }
    }

    /// Appends a batch. It stays, as it is, if the store does not say what became of it.
    async fn write(&mut self, batch: &mut Batch) {
        let Some(fence) = self.seat.fence() else {
            let not_owner = self.seat.owned().err().unwrap_or_else(|| NotOwner::new(None, Duration::ZERO));
            return batch.end(&Err(JournalError::NotOwner(not_owner)));
        };
        if batch.entries.is_empty() {
            return batch.end(&Ok(()));
        }
        let Ok((told, turns)) = self.book.append(&fence, self.entries, &batch.entries).await else { return };
        // Before those are told that wait: an order of which the entry was written during a halt does not leave.
        self.hear(turns);
        self.seat.change(|ownership| ownership.appended(&told));
        if self.seat.fence().is_some() {
            self.entries += batch.entries.len() as u64;
            batch.end(&Ok(()));
        } else {
            tracing::error!(?told, "orders are not this process's any more");
        }
    }

    async fn renew_if_due(&mut self) {
        if Instant::now() < self.renews_at {
            return;
        }
        self.renews_at = Instant::now() + micros(RENEWS_EVERY);
        let sent = self.now();
        let heard = self.seat.turns();
        let asked = self.seat.change(|ownership| ownership.fence().zip(ownership.renewal(sent, heard)));
        let Some((fence, renewal)) = asked else { return };
        match self.book.renew(&fence, self.entries, renewal).await {
            Ok((told, turns)) => {
                self.confirmed = heard;
                self.hear(turns);
                self.seat.change(|ownership| ownership.renewed(&told, sent));
                if self.seat.fence().is_none() {
                    tracing::error!(?told, "orders are not this process's any more");
                }
            }
            Err(error) => {
                self.renews_at = Instant::now() + micros(LOOKS_EVERY);
                tracing::warn!(%error, "lease of the orders is not renewed");
            }
        }
    }

    /// Asks whether the kill switch was turned.
    async fn look(&mut self) {
        match self.book.turn(Turn::Look(self.seat.turns())).await {
            Ok(state) => self.hear(state.turns),
            // The lease ends by itself if that goes on.
            Err(_) => self.looks_at = Instant::now() + micros(LOOKS_EVERY),
        }
    }

    /// Takes in the turns of the kill switch. Of new ones the next renewal, at once, says that they are heard.
    fn hear(&mut self, turns: u64) {
        self.looks_at = Instant::now() + micros(LOOKS_EVERY);
        self.seat.hear(turns);
        if turns > self.confirmed {
            self.renews_at = Instant::now();
            let what = if turns.is_multiple_of(2) { "resumed" } else { "halted" };
            tracing::warn!(turns, "orders of all processes are {what}");
        }
    }

    fn now(&self) -> Micros {
        self.book.store().now()
    }
}

impl Batch {
    fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.reports.is_empty()
    }

    /// Takes the job, and those behind it that wait already.
    fn fill(&mut self, first: Job, jobs: &mut UnboundedReceiver<Job>) {
        let mut next = Some(first);
        while let Some(job) = next {
            match job {
                Job::Append(entry) => self.entries.push(entry.encode()),
                Job::Sync(entry, report) => {
                    self.entries.extend(entry.map(|entry| entry.encode()));
                    self.reports.push(report);
                }
            }
            next = if self.entries.len() < MOST_ENTRIES { jobs.try_recv().ok() } else { None };
        }
    }

    fn end(&mut self, result: &Result<(), JournalError>) {
        self.entries.clear();
        self.reports.drain(..).for_each(|report| report.tell(result.clone()));
    }
}

fn micros(micros: Micros) -> Duration {
    Duration::from_micros(micros.unsigned_abs())
}
