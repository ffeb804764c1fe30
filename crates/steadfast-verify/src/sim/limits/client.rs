use std::{collections::VecDeque, time::Duration};

use steadfast::limit::Lane;

use crate::sim::network::{End, Nanos};

/// A request of a session, by its index there.
pub(super) type RequestId = usize;

/// The end of a request that had left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ending {
    pub(super) end: End,
    /// True if the answer is a 429.
    pub(super) refused: bool,
    /// How long that answer asks to wait.
    pub(super) retry_after: Option<Duration>,
    /// When the request left.
    pub(super) sent: Nanos,
}

/// A limiter in a session. It is told each event with its time, and decides what may leave.
pub(super) trait Client {
    /// A caller wants to send a request.
    fn ask(&mut self, id: RequestId, lane: Lane, now: Nanos);

    /// Returns the next request that may leave now.
    fn leave(&mut self, now: Nanos) -> Option<RequestId>;

    /// Returns when to look again if nothing happens until then.
    fn alarm(&self) -> Option<Nanos>;

    /// Called at the alarm's instant.
    fn wake(&mut self, now: Nanos);

    /// A request that had left has ended.
    fn ended(&mut self, id: RequestId, ending: Ending, now: Nanos);

    /// The process ends and forgets all requests, except what it stores.
    fn die(&mut self, _now: Nanos) {}

    /// A process starts, with the state that the former one stored or with none.
    fn start(&mut self, _remembers: bool, _now: Nanos) {}
}

/// A limiter that ignores the kind and the end of requests.
pub(super) trait Gate {
    /// Spends a slot now, or returns when to ask again.
    fn pass(&mut self, now: Nanos) -> Result<(), Nanos>;
}

/// Requests behind a gate, first come, first served.
#[derive(Debug)]
pub(super) struct Queue<G> {
    gate: G,
    waiting: VecDeque<RequestId>,
    again: Option<Nanos>,
}

impl<G> Queue<G> {
    pub(super) fn new(gate: G) -> Self {
        Self { gate, waiting: VecDeque::new(), again: None }
    }
}

impl<G: Gate> Client for Queue<G> {
    fn ask(&mut self, id: RequestId, _lane: Lane, _now: Nanos) {
        self.waiting.push_back(id);
    }

    fn leave(&mut self, now: Nanos) -> Option<RequestId> {
        if self.waiting.is_empty() || self.again.is_some_and(|again| again > now) {
            return None;
        }
        match self.gate.pass(now) {
            Ok(()) => {
                self.again = None;
                self.waiting.pop_front()
            }
            Err(again) => {
                self.again = Some(again.max(now + 1));
                None
            }
        }
    }

    fn alarm(&self) -> Option<Nanos> {
        self.again.filter(|_| !self.waiting.is_empty())
    }

    fn wake(&mut self, _now: Nanos) {}

    fn ended(&mut self, _id: RequestId, _ending: Ending, _now: Nanos) {}

    fn die(&mut self, _now: Nanos) {
        self.waiting.clear();
    }
}
