//! Connections whose callers have not shown a token yet.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::sync::Notify;

/// The strangers of a listener. The oldest has to leave for a new one, so that no program without a token keeps those
/// with one out.
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
}

impl Strangers {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, state: Mutex::default() })
    }

    /// Enters a new connection.
    pub(crate) fn enter(self: &Arc<Self>) -> Arc<Stranger> {
        let mut state = self.state.lock();
        let (number, notice) = (state.next, Arc::new(Notify::new()));
        state.next += 1;
        state.all.insert(number, notice.clone());
        if state.all.len() > self.most {
            state.dismiss();
        }
        Arc::new(Stranger { strangers: self.clone(), number, notice, is_known: AtomicBool::new(false) })
    }

    /// Tells the oldest to leave.
    pub(crate) fn dismiss(&self) {
        self.state.lock().dismiss();
    }
}

impl State {
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
    number: u64,
    notice: Arc<Notify>,
    is_known: AtomicBool,
}

impl Stranger {
    /// Its caller has shown a token. From now on it does not have to leave.
    pub(crate) fn know(&self) {
        if !self.is_known.swap(true, Ordering::Relaxed) {
            self.strangers.state.lock().all.remove(&self.number);
        }
    }

    /// Completes when the connection has to leave. Poll it in the task that serves the connection: then no request has
    /// begun.
    pub(crate) async fn dismissed(&self) {
        loop {
            self.notice.notified().await;
            if !self.is_known.load(Ordering::Relaxed) {
                return;
            }
        }
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
        strangers.dismiss();
        assert!(leaves(&fourth));
        // Known just after it was told to leave: its request has begun.
        let fifth = strangers.enter();
        strangers.dismiss();
        fifth.know();
        assert!(!leaves(&fifth));
        assert!(strangers.state.lock().all.is_empty());
    }
}
