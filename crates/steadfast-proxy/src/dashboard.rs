//! The page that an operator keeps open beside the terminal, and the stream behind it.
//!
//! The [`board`] is a pure model. This shell reads the client into it once a second, hears of calls and orders from the
//! way that they go, and hands out its state.

mod access;
mod board;
mod calls;
mod orders;
mod page;
mod reading;
mod state;
mod stream;
mod strips;
mod watched;
mod words;

use std::{
    sync::{Arc, OnceLock},
    time::{Duration, UNIX_EPOCH},
};

use parking_lot::Mutex;
use steadfast::{BaseUrl, call::WallClock};
use tokio::{
    sync::{Semaphore, broadcast::error::RecvError, watch},
    time::{Instant, MissedTickBehavior, interval},
};

pub(crate) use self::{
    access::{Access, cookie_name, set_cookie},
    orders::End as OrderEnd,
    page::{DASHBOARD, DOOR, Page, protect},
    stream::Stream,
    watched::WatchedOrder,
};
use self::{
    board::{Board, Now},
    reading::{Reading, millis},
    state::{SharingState, State},
};
use crate::{current::Current, front::Scope, orders::Orders, sharing::SharedOrders};

/// The most streams at once.
const VIEWERS: usize = 16;
/// The time between two readings.
const SAMPLE: Duration = Duration::from_secs(1);

/// The model with its clock and its sources, and those who may see it.
pub(crate) struct Dashboard {
    board: Mutex<Board>,
    sources: Sources,
    clock: WallClock,
    began: Instant,
    pub(crate) access: Access,
    viewers: Arc<Semaphore>,
    /// Held by the one who takes the samples.
    sampler: tokio::sync::Mutex<()>,
}

/// The sources of the readings.
pub(crate) struct Sources {
    pub(crate) client: Current,
    pub(crate) orders: Arc<Orders>,
    /// False once the sidecar was told to end.
    pub(crate) running: watch::Receiver<bool>,
    /// The orders, where several sidecars share them.
    pub(crate) shared: Arc<OnceLock<Arc<dyn SharedOrders>>>,
}

impl Sources {
    fn read(&self) -> Reading {
        let sharing = self.shared.get().map(|shared| SharingState::of(&shared.now()));
        Reading { sharing, ..Reading::of(&self.client.get(), self.orders.running(), *self.running.borrow()) }
    }
}

impl Dashboard {
    pub(crate) fn new(base: &BaseUrl, sources: Sources) -> Self {
        let clock = WallClock::system();
        let board = Board::new(base.to_string(), Now { at: wall(&clock), ran: 0 }, sources.read());
        Self {
            board: Mutex::new(board),
            sources,
            clock,
            began: Instant::now(),
            access: Access::default(),
            viewers: Arc::new(Semaphore::new(VIEWERS)),
            sampler: tokio::sync::Mutex::default(),
        }
    }

    pub(crate) fn name_account(&self, account: String) {
        self.board.lock().name_account(account);
    }

    /// Takes a sample a second, and hears of orders, as long as it is polled. A second caller waits for the first one's
    /// end.
    pub(crate) async fn watch(&self) {
        let _alone = self.sampler.lock().await;
        let mut clients = self.sources.client.changes();
        let mut events = clients.borrow_and_update().tracker().events();
        let mut ticks = interval(SAMPLE);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut is_told = true;
        loop {
            tokio::select! {
                _ = ticks.tick() => {
                    let reading = self.sources.read();
                    self.board.lock().sample(self.now(), reading);
                }
                Ok(()) = clients.changed() => {
                    events = clients.borrow_and_update().tracker().events();
                    is_told = true;
                }
                event = events.recv(), if is_told => match event {
                    Ok(event) => self.board.lock().order_event(self.now(), &event),
                    Err(RecvError::Lagged(count)) => self.board.lock().events_missed(self.now(), count),
                    Err(RecvError::Closed) => is_told = false,
                },
            }
        }
    }

    /// Enters a request that was refused from its head.
    pub(crate) fn refused(&self, reason: &'static str) {
        self.board.lock().refused(reason);
    }

    /// Enters a person's ruling on an order: placed as this id, or not.
    pub(crate) fn ruled(&self, name: &str, order_id: Option<String>) {
        self.board.lock().order_ruled(self.now(), name, order_id);
    }

    /// Returns everything as it is now.
    pub(crate) fn state(&self, scope: Scope) -> State {
        let reading = self.sources.read();
        let (mut board, now) = (self.board.lock(), self.now());
        board.read(now, reading);
        board.state(now, scope == Scope::Trade)
    }

    /// Begins a stream that ends with `stop`; `None` if there are too many.
    pub(crate) fn stream(self: &Arc<Self>, scope: Scope, stop: watch::Receiver<()>) -> Option<Stream> {
        let place = self.viewers.clone().try_acquire_owned().ok()?;
        Some(Stream::new(self.clone(), scope, place, stop))
    }

    fn now(&self) -> Now {
        Now { at: wall(&self.clock), ran: millis(self.began.elapsed()) }
    }
}

fn wall(clock: &WallClock) -> u64 {
    clock.now().duration_since(UNIX_EPOCH).map_or(0, millis)
}

#[cfg(test)]
mod tests;
