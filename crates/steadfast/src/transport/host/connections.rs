use std::{
    future::Future,
    mem,
    pin::Pin,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use steadfast_call::BoxError;
use tokio::{
    runtime::Handle,
    sync::oneshot,
    time::{Instant, sleep_until},
};

use super::{
    connection::Connection,
    pool::{Choice, Limits, Need, Pool},
};

type Made<B> = Result<Connection<B>, BoxError>;
type Waiter<B> = oneshot::Sender<Made<B>>;
pub(super) type Dialling<B> = Pin<Box<dyn Future<Output = Made<B>> + Send>>;
type Dial<B> = Box<dyn Fn(Slot<B>) -> Dialling<B> + Send + Sync>;

/// The connections to one host: the [`Pool`] behind a lock, with tasks that make and close connections.
///
/// A connection is always made by a task of its own. So it is of use to another send if the one that asked for it is
/// dropped, or is served sooner by a connection that was given back.
pub(super) struct Connections<B: Send + 'static> {
    state: Mutex<State<B>>,
    dial: Dial<B>,
}

/// A connection that one send has to itself.
pub(super) struct Taken<B> {
    pub(super) connection: Connection<B>,
    /// True if it was made for a send that waited, and no request has used it.
    pub(super) is_new: bool,
}

struct State<B> {
    pool: Pool<Connection<B>, Waiter<B>>,
    /// True while a task watches over the connections.
    is_watched: bool,
}

impl<B: Send + 'static> Connections<B> {
    pub(super) fn new(limits: Limits, dial: Dial<B>) -> Arc<Self> {
        let state = State { pool: Pool::new(limits), is_watched: false };
        Arc::new(Self { state: Mutex::new(state), dial })
    }

    /// Returns a connection for one send.
    pub(super) async fn take(self: &Arc<Self>, need: Need) -> Result<Taken<B>, BoxError> {
        let answer = loop {
            let (choice, answer) = {
                let mut state = self.state.lock();
                match state.pool.choose(Instant::now(), need) {
                    Choice::Take(connection) => {
                        drop(state);
                        let is_fit =
                            if need.is_order { connection.is_quiet() } else { connection.is_usable() };
                        if is_fit {
                            return Ok(Taken { connection, is_new: false });
                        }
                        continue;
                    }
                    choice => {
                        // Under the same lock, so that a connection that is given back meanwhile comes here.
                        let (waiter, answer) = oneshot::channel();
                        state.pool.wait(waiter, need);
                        (choice, answer)
                    }
                }
            };
            if let Choice::Dial { closes } = choice {
                drop(closes);
                self.make();
            }
            break answer;
        };
        let mut waiting = Waiting { answer, connections: self };
        match (&mut waiting.answer).await {
            Ok(Ok(connection)) => Ok(Taken { connection, is_new: true }),
            Ok(Err(error)) => Err(error),
            Err(_) => Err("no connection was made".into()),
        }
    }

    /// Takes a connection that is ready for the next send.
    pub(super) fn give(self: &Arc<Self>, mut connection: Connection<B>) {
        let mut state = self.state.lock();
        while let Some((waiter, unused)) = state.pool.give(connection, Instant::now()) {
            match waiter.send(Ok(unused)) {
                Err(Ok(unused)) => connection = unused,
                _ => return,
            }
        }
        if !mem::replace(&mut state.is_watched, true) {
            drop(state);
            let watch = Watch(Arc::downgrade(self));
            if Handle::try_current().is_ok() {
                tokio::spawn(watch.until_none_is_open());
            }
        }
    }

    /// Makes a connection in a task of its own.
    fn make(self: &Arc<Self>) {
        let (slot, dialling) = (Slot(Arc::downgrade(self)), Outcome(Some(self.clone())));
        if Handle::try_current().is_err() {
            return;
        }
        let made = (self.dial)(slot);
        tokio::spawn(async move { dialling.is(made.await) });
    }

    fn made(self: &Arc<Self>, made: Made<B>) {
        self.state.lock().pool.dialed();
        match made {
            Ok(connection) => self.give(connection),
            Err(error) => {
                let mut unsent = Err(error);
                while let Some(waiter) = self.state.lock().pool.refuse() {
                    match waiter.send(unsent) {
                        Ok(()) => break,
                        Err(again) => unsent = again,
                    }
                }
            }
        }
        self.make_another();
    }

    fn make_another(self: &Arc<Self>) {
        while self.state.lock().pool.needs_another() {
            self.make();
        }
    }
}

/// A send that waits for a connection. Dropped, it passes on the connection that it was just given.
struct Waiting<'a, B: Send + 'static> {
    answer: oneshot::Receiver<Made<B>>,
    connections: &'a Arc<Connections<B>>,
}

impl<B: Send + 'static> Drop for Waiting<'_, B> {
    fn drop(&mut self) {
        self.answer.close();
        if let Ok(Ok(connection)) = self.answer.try_recv() {
            self.connections.give(connection);
        }
    }
}

/// The attempt to make a connection. Dropped with its runtime, it has failed.
struct Outcome<B: Send + 'static>(Option<Arc<Connections<B>>>);

impl<B: Send + 'static> Outcome<B> {
    fn is(mut self, made: Made<B>) {
        if let Some(connections) = self.0.take() {
            connections.made(made);
        }
    }
}

impl<B: Send + 'static> Drop for Outcome<B> {
    fn drop(&mut self) {
        if let Some(connections) = self.0.take() {
            connections.made(Err("the runtime that made the connection has ended".into()));
        }
    }
}

/// The place of one connection, from the attempt to make it to its end.
pub(super) struct Slot<B: Send + 'static>(Weak<Connections<B>>);

impl<B: Send + 'static> Drop for Slot<B> {
    fn drop(&mut self) {
        if let Some(connections) = self.0.upgrade() {
            connections.state.lock().pool.ended(Connection::is_usable);
            connections.make_another();
        }
    }
}

/// Marks that a task closes connections that are unused for too long. It stays while any is open: another task for each
/// exchange would cost more than the exchange's place in the pool.
struct Watch<B: Send + 'static>(Weak<Connections<B>>);

impl<B: Send + 'static> Watch<B> {
    async fn until_none_is_open(mut self) {
        while let Some(next) = self.expire() {
            sleep_until(next).await;
        }
    }

    /// Closes what has been unused for too long. Returns when to look again.
    fn expire(&mut self) -> Option<Instant> {
        let connections = self.0.upgrade()?;
        let mut state = connections.state.lock();
        let (old, next) = state.pool.expire(Instant::now());
        if next.is_none() {
            // ## Watched => Unwatched
            //
            // Under the same lock, so that the next connection that is given back starts another task.
            state.is_watched = false;
            self.0 = Weak::new();
        }
        drop(state);
        drop(old);
        next
    }
}

impl<B: Send + 'static> Drop for Watch<B> {
    fn drop(&mut self) {
        // Its runtime has ended before.
        if let Some(connections) = self.0.upgrade() {
            connections.state.lock().is_watched = false;
        }
    }
}
