//! Connections that can make room for another one: those of strangers, and of known callers that ask for nothing now.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::sync::Notify;

/// The connections of a listener whose callers have not shown a token yet, and those that are idle. The oldest stranger has to
/// leave for a new one, so that no program without a token keeps those with one out.
#[derive(Debug)]
pub(crate) struct Strangers {
    most: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    /// Each with the notice to leave, the oldest first.
    all: BTreeMap<u64, Arc<Notify>>,
    /// Known callers without an open request.
    idle: BTreeMap<u64, Arc<Notify>>,
}

impl Strangers {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, state: Mutex::default() })
    }

    /// Enters a new connection.
    pub(crate) fn enter(self: &Arc<Self>) -> Arc<Stranger> {
        let mut state = self.state.lock();
        let (number, notice) = (state.next(), Arc::new(Notify::new()));
        state.all.insert(number, notice.clone());
        if state.all.len() > self.most {
            state.dismiss();
        }
        let (number, is_known) = (AtomicU64::new(number), AtomicBool::new(false));
        Arc::new(Stranger { strangers: self.clone(), number, notice, retirement: Arc::default(), is_known })
    }

    /// Tells the caller that has been idle for the longest time to leave, or the oldest stranger if none is idle. A stranger
    /// may be about to show its token, and to cancel an order.
    pub(crate) fn make_room(&self) {
        let mut state = self.state.lock();
        match state.idle.pop_first() {
            Some((_, retirement)) => retirement.notify_one(),
            None => state.dismiss(),
        }
    }
}

impl State {
    fn next(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn dismiss(&mut self) {
        if let Some((_, notice)) = self.all.pop_first() {
            notice.notify_one();
        }
    }
}

/// One connection, a stranger until it is known.
#[derive(Debug)]
pub(crate) struct Stranger {
    strangers: Arc<Strangers>,
    /// Its place among the strangers or the idle ones.
    number: AtomicU64,
    notice: Arc<Notify>,
    retirement: Arc<Notify>,
    is_known: AtomicBool,
}

impl Stranger {
    /// Its caller has shown a token with a request. Until that is answered, it does not have to leave.
    pub(crate) fn know(&self) {
        let mut state = self.strangers.state.lock();
        let number = self.number.load(Ordering::Relaxed);
        self.is_known.store(true, Ordering::Relaxed);
        state.all.remove(&number);
        state.idle.remove(&number);
    }

    /// Its request is answered.
    pub(crate) fn rest(&self) {
        if self.is_known.load(Ordering::Relaxed) {
            let mut state = self.strangers.state.lock();
            state.idle.remove(&self.number.load(Ordering::Relaxed));
            let number = state.next();
            self.number.store(number, Ordering::Relaxed);
            state.idle.insert(number, self.retirement.clone());
        }
    }

    /// Completes when a stranger has to leave. Poll it in the task that serves the connection: then no request has
    /// begun.
    pub(crate) async fn dismissed(&self) {
        loop {
            self.notice.notified().await;
            if !self.is_known.load(Ordering::Relaxed) {
                return;
            }
        }
    }

    /// Completes when a known caller has to leave, once what it may have begun meanwhile is answered.
    pub(crate) async fn retired(&self) {
        self.retirement.notified().await;
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.know();
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use super::*;

    #[test]
    fn the_oldest_stranger_leaves_and_a_known_caller_never() {
        let leaves = |stranger: &Stranger| {
            let left = std::pin::pin!(stranger.dismissed());
            left.poll(&mut Context::from_waker(Waker::noop())).is_ready()
        };
        let strangers = Strangers::new(2);
        let (first, second) = (strangers.enter(), strangers.enter());
        first.know();
        let third = strangers.enter();
        assert!(!leaves(&first) && !leaves(&second) && !leaves(&third));
        let fourth = strangers.enter();
        assert!(leaves(&second) && !leaves(&first) && !leaves(&third));
        drop(third);
        strangers.make_room();
        assert!(leaves(&fourth));
        // Known just after it was told to leave: its request has begun.
        let fifth = strangers.enter();
        strangers.make_room();
        fifth.know();
        assert!(!leaves(&fifth));
        assert!(strangers.state.lock().all.is_empty());
    }

    #[test]
    fn the_longest_idle_caller_makes_room_and_no_other() {
        let leaves = |caller: &Stranger| {
            let left = std::pin::pin!(caller.retired());
            left.poll(&mut Context::from_waker(Waker::noop())).is_ready()
        };
        let strangers = Strangers::new(2);
        let [first, second, third] = [(); 3].map(|()| strangers.enter());
        for caller in [&first, &second, &third] {
            caller.know();
            caller.rest();
        }
        // It asks again, and waits for its answer.
        first.know();
        strangers.make_room();
        assert!(!leaves(&first) && leaves(&second) && !leaves(&third));
        first.rest();
        strangers.make_room();
        assert!(!leaves(&first) && leaves(&third));
        let stranger = strangers.enter();
        strangers.make_room();
        assert!(leaves(&first) && strangers.state.lock().all.len() == 1);
        strangers.make_room();
        assert!(strangers.state.lock().all.is_empty(), "nobody is idle");
        second.rest();
        drop((stranger, second));
        assert!(strangers.state.lock().idle.is_empty());
    }
}
