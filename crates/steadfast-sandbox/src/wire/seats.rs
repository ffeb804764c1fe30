use std::{
    collections::BTreeMap,
    future::{Future, pending},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::patience::HEAD_TIMEOUT;

/// The connections that a server serves at once. Idle ones are closed for new ones.
///
/// # Clone
///
/// Clones share the seats.
#[derive(Clone, Debug)]
pub(crate) struct Seats(Arc<Hall>);

#[derive(Debug)]
struct Hall {
    most: usize,
    taken: Mutex<Taken>,
    /// A seat was freed, or became idle.
    changed: Notify,
}

#[derive(Debug, Default)]
struct Taken {
    count: usize,
    /// How often a seat has become idle so far.
    clock: u64,
    /// The idle seats with their exits, the longest idle first.
    idle: BTreeMap<u64, Arc<Exit>>,
}

/// Tells a connection to close.
#[derive(Debug, Default)]
struct Exit {
    is_told: AtomicBool,
    told: Notify,
}

/// The seat of one connection, busy until it is marked idle. The seat of a connection without a server is never
/// taken.
#[derive(Debug)]
pub(crate) struct Seat {
    held: Option<Arc<Held>>,
    patience: Duration,
}

#[derive(Debug)]
struct Held {
    hall: Arc<Hall>,
    exit: Arc<Exit>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Exchanges under way.
    busy: usize,
    /// Its number while idle.
    idle: Option<u64>,
}

/// Keeps a seat from being taken until it is dropped.
#[derive(Debug)]
pub(crate) struct Busy(Option<Arc<Held>>);

impl Seats {
    pub(crate) fn new(most: usize) -> Self {
        Self(Arc::new(Hall { most, taken: Mutex::default(), changed: Notify::new() }))
    }

    /// Waits for a free or idle seat. The connection that has been idle longest closes.
    ///
    /// # Cancellation
    ///
    /// If it is dropped before it returns, no seat is taken and no connection closed.
    pub(crate) async fn take(&self) -> Seat {
        loop {
            let changed = self.0.changed.notified();
            if let Some(seat) = self.try_take() {
                return seat;
            }
            changed.await;
        }
    }

    fn try_take(&self) -> Option<Seat> {
        let mut taken = self.0.taken.lock();
        if taken.count < self.0.most {
            taken.count += 1;
        } else {
            // The seat is handed over: the closing connection frees none.
            let (_, exit) = taken.idle.pop_first()?;
            exit.is_told.store(true, Ordering::Relaxed);
            exit.told.notify_one();
        }
        let held = Held { hall: self.0.clone(), exit: Arc::default(), state: Mutex::default() };
        Some(Seat { held: Some(Arc::new(held)), patience: HEAD_TIMEOUT })
    }
}

impl Default for Seat {
    fn default() -> Self {
        Self::patient(HEAD_TIMEOUT)
    }
}

impl Seat {
    /// Creates the seat of a connection without a server, which may be idle for `patience`.
    pub(crate) fn patient(patience: Duration) -> Self {
        Self { held: None, patience }
    }

    /// Returns how long the connection may be idle.
    pub(crate) fn patience(&self) -> Duration {
        self.patience
    }

    /// Completes when the connection has to close.
    pub(crate) fn left(&self) -> impl Future<Output = ()> + use<> {
        let exit = self.held.as_ref().map(|held| held.exit.clone());
        async move {
            match exit {
                Some(exit) => exit.told.notified().await,
                None => pending().await,
            }
        }
    }

    /// Marks the connection as waiting for its first request.
    pub(crate) fn idle(&self) {
        if let Some(held) = &self.held {
            held.rest(&mut held.state.lock());
        }
    }

    /// Marks the connection busy for a request, until the returned value is dropped. `None` if it was told to close
    /// a moment ago: the request must then be ignored.
    pub(crate) fn busy(&self) -> Option<Busy> {
        if let Some(held) = &self.held {
            let mut state = held.state.lock();
            let mut taken = held.hall.taken.lock();
            if held.exit.is_told.load(Ordering::Relaxed) {
                return None;
            }
            state.busy += 1;
            if let Some(number) = state.idle.take() {
                taken.idle.remove(&number);
            }
        }
        Some(Busy(self.held.clone()))
    }
}

impl Held {
    fn rest(&self, state: &mut State) {
        let mut taken = self.hall.taken.lock();
        taken.clock += 1;
        let number = taken.clock;
        taken.idle.insert(number, self.exit.clone());
        state.idle = Some(number);
        self.hall.changed.notify_one();
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        if let Some(held) = &self.0 {
            let mut state = held.state.lock();
            state.busy -= 1;
            if state.busy == 0 {
                held.rest(&mut state);
            }
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut taken = self.hall.taken.lock();
        if let Some(number) = self.state.get_mut().idle {
            taken.idle.remove(&number);
        }
        if !self.exit.is_told.load(Ordering::Relaxed) {
            taken.count -= 1;
            self.hall.changed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_that_is_idle_longest_yields_and_a_busy_one_never() {
        let seats = Seats::new(2);
        let (first, second) = (seats.try_take().unwrap(), seats.try_take().unwrap());
        assert!(seats.try_take().is_none(), "both are busy from the beginning");
        second.idle();
        first.idle();
        drop(second.busy().unwrap());
        let third = seats.try_take().unwrap();
        assert!(first.busy().is_none(), "it was idle longer");
        let busy = second.busy().unwrap();
        assert!(seats.try_take().is_none());
        drop(first);
        assert!(seats.try_take().is_none(), "its seat was taken already");
        drop(third);
        let fourth = seats.try_take().unwrap();
        drop((busy, fourth));
        assert!(seats.try_take().is_some() && seats.try_take().is_some());
    }
}
