use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    time::Duration,
};

use http::{Response, StatusCode};
use serde::de::IgnoredAny;
use steadfast::spec::PlacedOrder;
use tokio::time::Instant;

use super::{
    acks::{Acks, Told},
    body::Body,
    broken::Broken,
    contains,
    exchange::{Call, Ended, Exchange},
    fault::{Fault, Kind},
};
use crate::sim::{axes::Axis, chooser::Site};

/// All that has happened on a wire, and what its next faults depend on.
#[derive(Debug, Default)]
pub(super) struct WireLog {
    seen: Seen,
    /// How often each order was sent, by its number.
    sends: Vec<u64>,
    lists: u64,
    cancels: u64,
    others: u64,
    /// True while a fault of an earlier request may still wait in the gateway.
    armed: bool,
    acks: Acks,
    /// Sends of orders that left and were not refused.
    standing: BTreeSet<(u64, u64)>,
    /// The orders that an earlier process had sent.
    inherited: BTreeSet<u64>,
    /// How often one of them was sent again.
    sent_again: u64,
    /// Every token, in order of appearance.
    sessions: Vec<String>,
    /// The tokens with which the living process has read a non-empty list: an empty one is then a contradiction.
    listed: BTreeSet<usize>,
}

/// A request on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbered {
    pub(super) kind: Kind,
    pub(super) of: u64,
    pub(super) nth: u64,
}

/// A send of an order whose end is unknown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loss {
    pub(crate) order: u64,
    /// When it left.
    pub(crate) at: Instant,
}

/// The record of a wire, as its judges read it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// Orders with a send whose end is unknown.
    pub(crate) doubted: BTreeSet<u64>,
    /// The sends with an unknown end, in order of sending.
    pub(crate) losses: Vec<Loss>,
    /// Orders that were placed and answered by a refusal.
    pub(crate) refused: BTreeSet<u64>,
    /// Those of them after whose refusal no search is made (403).
    pub(crate) refused_for_good: BTreeSet<u64>,
    /// Orders that may have got the answer to another one.
    pub(crate) misled: BTreeSet<u64>,
    /// Sends of orders that left.
    pub(crate) attempts: u64,
    pub(crate) attempts_in_doubt: u64,
    /// How often each fault struck.
    pub(crate) struck: Vec<(&'static str, u64)>,
    /// A hash of every request, its time, its fault and its answer.
    pub(crate) trace: u64,
    /// Every send, in order of sending.
    pub(crate) exchanges: Vec<Exchange>,
    /// How many requests of each call arrived whole at the gateway's end of a pipe.
    pub(crate) arrivals: BTreeMap<Call, u64>,
}

impl WireLog {
    pub(super) fn seen(&self) -> &Seen {
        &self.seen
    }

    /// Begins another process, and returns the orders that have left and were not refused.
    pub(super) fn cut(&mut self) -> BTreeSet<u64> {
        // The next process may have lost the acknowledgements of this one, and then cannot notice a contradiction.
        self.acks = Acks::default();
        self.listed.clear();
        self.inherited = self.standing.iter().map(|&(of, _)| of).collect();
        self.inherited.clone()
    }

    /// Returns how many sends of orders have left, and how many of them were of orders that an earlier process had
    /// sent.
    pub(super) fn sends(&self) -> (u64, u64) {
        (self.seen.attempts, self.sent_again)
    }

    /// Counts a request that is about to be sent.
    pub(super) fn number(&mut self, of: &Call) -> Numbered {
        let next = |count: &mut u64| {
            *count += 1;
            *count
        };
        match *of {
            Call::Order(of) => {
                let index = usize::try_from(of).unwrap_or_default().min(100_000);
                if self.sends.len() <= index {
                    self.sends.resize(index + 1, 0);
                }
                Numbered { kind: Kind::Place, of, nth: next(&mut self.sends[index]) }
            }
            Call::Look(_) | Call::Verification => {
                Numbered { kind: Kind::List, of: next(&mut self.lists), nth: 0 }
            }
            Call::Cancel(_) => Numbered { kind: Kind::Cancel, of: next(&mut self.cancels), nth: 0 },
            Call::Other => Numbered { kind: Kind::Other, of: next(&mut self.others), nth: 0 },
        }
    }

    /// True if the client can notice that a list lacks what this fault hides, because it has seen more with the same
    /// token: `noticed_after` is the age from which an acknowledged order must be listed.
    pub(super) fn contradicts(&self, fault: &str, session: &str, noticed_after: Duration) -> bool {
        let old = self.acks.old(session, noticed_after);
        match fault {
            "list.empty" if self.listed.iter().any(|&index| self.sessions[index] == session) => true,
            "list.partial" => old.windows(2).any(|pair| pair[0].0 + 1 == pair[1].0),
            "list.open-only" => old.iter().any(|(_, completed)| *completed),
            _ => !old.is_empty(),
        }
    }

    /// Records a send, and returns its number.
    pub(super) fn begins(&mut self, of: Call, token: &str, sent_by_boot: Duration) -> usize {
        let known = self.sessions.iter().position(|known| known == token);
        let session = known.unwrap_or_else(|| {
            self.sessions.push(token.to_owned());
            self.sessions.len() - 1
        });
        let sent = Instant::now();
        self.seen.exchanges.push(Exchange { of, session, sent, sent_by_boot, ended: None });
        self.seen.exchanges.len() - 1
    }

    /// Records how a send ended, or a later finding about that.
    pub(super) fn ended(&mut self, exchange: usize, at: Instant, ended: Ended) {
        if let Some(exchange) = self.seen.exchanges.get_mut(exchange) {
            exchange.ended = Some((at, ended));
        }
    }

    /// Records that a request has arrived whole.
    pub(super) fn arrives(&mut self, of: Call) {
        *self.seen.arrivals.entry(of).or_default() += 1;
    }

    /// Records that the body of a request was sent.
    pub(super) fn left(&mut self, call: Numbered, fault: Fault, in_doubt: bool) {
        let seen = &mut self.seen;
        if call.kind == Kind::Place {
            seen.attempts += 1;
            // A list may have assigned the order of a refused send to an equal one that was truly refused. Then this
            // one is sent once more, and the number of orders is still right; that is counted elsewhere.
            let untrue = seen.refused.contains(&call.of);
            self.sent_again += u64::from(!untrue && self.inherited.contains(&call.of));
            self.standing.insert((call.of, call.nth));
            if fault.axis == Some(Axis::StrayAnswers) {
                seen.misled.insert(call.of);
            }
            if in_doubt {
                seen.attempts_in_doubt += 1;
                seen.doubted.insert(call.of);
                seen.losses.push(Loss { order: call.of, at: Instant::now() });
            }
        }
        self.struck(fault.name);
    }

    /// Counts a fault; none has an empty name.
    pub(super) fn struck(&mut self, fault: &'static str) {
        if fault.is_empty() {
            return;
        }
        match self.seen.struck.iter_mut().find(|(name, _)| *name == fault) {
            Some((_, times)) => *times += 1,
            None => self.seen.struck.push((fault, 1)),
        }
    }

    /// Notes whether a fault waits in the gateway from now on, and returns whether one did before.
    pub(super) fn arms(&mut self, armed: bool) -> bool {
        mem::replace(&mut self.armed, armed)
    }

    /// Records the gateway's answer. `placed_all_the_same`: the order was placed although the answer refuses it.
    pub(super) fn answered(
        &mut self,
        call: Numbered,
        fault: Fault,
        status: u16,
        placed_all_the_same: bool,
        at: Duration,
    ) {
        if placed_all_the_same {
            self.seen.refused.insert(call.of);
            if fault.name == "placement.403-applied" {
                self.seen.refused_for_good.insert(call.of);
            }
        } else if matches!(status, 401 | 429) {
            self.standing.remove(&(call.of, call.nth));
        }
        let at = u64::try_from(at.as_nanos()).unwrap_or(u64::MAX);
        for number in [at, call.of, call.nth, u64::from(status)] {
            let site = Site::new(fault.name).of(call.kind as u64).nth(number);
            self.seen.trace = site.mixed(self.seen.trace);
        }
    }

    /// Records how a send ended for the client. The results of a dead process do not count, nor those at the other end
    /// of a pipe.
    pub(super) fn ends(
        &mut self,
        call: Numbered,
        exchange: Option<usize>,
        answer: &mut Result<Response<Body>, Broken>,
        is_dead: bool,
    ) {
        let exchanges = &mut self.seen.exchanges;
        let Some(exchange) = exchange.and_then(|exchange| exchanges.get_mut(exchange)) else { return };
        exchange.ended = Some((Instant::now(), Ended::of(answer)));
        let reads_in = (exchange.of == Call::Verification && !is_dead).then_some(exchange.session);
        let Ok(response) = answer else { return };
        if let Some(session) = reads_in.filter(|session| !self.listed.contains(session))
            && response.status() == StatusCode::OK
            && response.body().whole().is_some_and(lists_orders)
            // The client ignores a list that a cache marks as its own.
            && !["age", "x-cache"].iter().any(|&name| response.headers().contains_key(name))
        {
            self.listed.insert(session);
        }
        let told = response.extensions_mut().remove::<Told>();
        if call.kind == Kind::Place
            && !is_dead
            // An identifier of another order proves nothing.
            && !self.seen.misled.contains(&call.of)
            && response.status() == StatusCode::OK
            && let (Some(told), Some(body)) = (told, response.body().whole())
            && let Ok(placed) = PlacedOrder::parse(body)
        {
            self.acks.push(told, &placed.order_id);
        }
    }
}

/// True for a readable list that is not empty.
fn lists_orders(body: &[u8]) -> bool {
    contains(body, b"orderId") && serde_json::from_slice::<IgnoredAny>(body).is_ok()
}
