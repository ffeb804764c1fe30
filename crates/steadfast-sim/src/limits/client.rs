use std::collections::VecDeque;

use steadfast::limit::Lane;

use crate::network::{End, Nanos};

/// A request of a session, by the place where the session keeps it.
pub(super) type RequestId = usize;

/// What becomes of a request that has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ending {
    pub(super) end: End,
    /// True if the answer is a 429.
    pub(super) refused: bool,
    /// When the request left.
    pub(super) sent: Nanos,
}

/// A limiter in a session: it is told what happens and when, and says what may leave.
pub(super) trait Client {
    /// Somebody wants to send a request.
    fn ask(&mut self, id: RequestId, lane: Lane, now: Nanos);

    /// The next request that may leave now.
    fn leave(&mut self, now: Nanos) -> Option<RequestId>;

    /// When to look again if nothing happens until then.
    fn alarm(&self) -> Option<Nanos>;

    /// The alarm's instant has come.
    fn wake(&mut self, now: Nanos);

    /// A request that had left has ended.
    fn ended(&mut self, id: RequestId, ending: Ending, now: Nanos);

    /// The process ends and forgets all requests; what is returned is what it leaves behind.
    fn die(&mut self, _now: Nanos) {}

    /// A process starts, with what the former one left behind or with nothing.
    fn start(&mut self, _remembers: bool, _now: Nanos) {}
}

/// A limiter that does not care what a request is nor how it ends.
pub(super) trait Gate {
    /// Spends a slot now, or says when to ask again.
    fn pass(&mut self, now: Nanos) -> Result<(), Nanos>;
}

/// Requests in the order in which they came, behind a gate.
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
