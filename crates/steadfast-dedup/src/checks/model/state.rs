//! Decides when two worlds are the same, and when one is wrong.

use super::{Found, Model, Record, Served, world::World};
use crate::{
    numbers::{IntentNo, LogicalTime, Session},
    protocol::{
        attempt::AttemptState,
        listed_orders::confirming::Unconfirmed,
        phase::{Finding, Phase},
    },
};

impl World {
    /// Returns everything that can matter later, with positions replaced by their ranks.
    pub(super) fn key(&self, model: &Model) -> Box<[u8]> {
        let mut stamps: Vec<LogicalTime> = Vec::new();
        let mut text = Vec::new();
        let mut parts: Vec<(usize, LogicalTime)> = Vec::new();
        let mut stamp = |seq: LogicalTime, text: &mut Vec<u8>| {
            parts.push((text.len(), seq));
            stamps.push(seq);
            text.push(0);
        };
        for (n, served) in self.served.iter().enumerate() {
            let intent = self.intent(n as u64);
            text.push(match intent.phase() {
                Phase::Idle => 0,
                Phase::Sending => 1,
                Phase::Doubt => 2,
                Phase::Granted => 3,
                Phase::Finished(Finding::Unresolved(_)) => 4,
                Phase::Refused(_) => 6,
                Phase::Cleared => 7,
                Phase::Finished(Finding::Refused) => 8,
                Phase::Finished(Finding::Rejected) => 9,
                Phase::Finished(_) => 5,
            });
            if let Phase::Refused(check) = intent.phase() {
                stamp(check.from, &mut text);
            }
            text.push(intent.order_id().map_or(255, |id| id.parse().unwrap()));
            text.push(u8::from(intent.was_resend_rejected()) * 2 + u8::from(intent.has_caller()));
            text.push(self.told[n].map_or(255, |order| u8::try_from(order).unwrap()));
            if let Some(doubt) =
                intent.doubt().filter(|_| intent.is_open() || *intent.phase() == Phase::Sending)
            {
                stamp(doubt.from, &mut text);
                text.push(doubt.here.reads.min(self.protocol.rules().negatives));
                stamp(doubt.here.latest, &mut text);
                text.push(doubt.elsewhere.reads.min(self.protocol.rules().negatives));
                stamp(doubt.elsewhere.latest, &mut text);
            }
            let blocks = self.protocol.all_keys().any(|key| key.blockers().contains(&IntentNo(n as u64)));
            text.push(u8::try_from(intent.late()).unwrap() * 2 + u8::from(blocks));
            for (attempt, served) in intent.attempts().iter().zip(served) {
                text.push(match served {
                    Served::Pending => 254,
                    Served::Dropped => 253,
                    Served::Applied(order) => u8::try_from(*order).unwrap(),
                });
                text.push(u8::from(attempt.session() != Session::default()));
                match attempt.state() {
                    AttemptState::Open => text.push(0),
                    AttemptState::Void => text.push(1),
                    AttemptState::Refused(sent) => {
                        text.push(9);
                        stamp(sent.seq, &mut text);
                    }
                    AttemptState::InFlight(sent) => {
                        text.push(2);
                        stamp(sent.seq, &mut text);
                    }
                    AttemptState::Acknowledged(sent) => {
                        text.push(3);
                        stamp(sent.seq, &mut text);
                    }
                    AttemptState::Doubt { sent, settled, never } => {
                        // A finished intent is not sent again anyway.
                        let never = never.filter(|_| intent.finding().is_none());
                        text.push(never.map_or(4, |never| 5 + never as u8));
                        stamp(sent.seq, &mut text);
                        stamp(settled.unwrap_or_default(), &mut text);
                    }
                }
            }
            text.push(250);
        }
        for (order, owner) in self.orders.iter().enumerate() {
            text.push(owner.map_or(249, |owner| u8::try_from(owner).unwrap()));
            let (first_seen, owner, fresh) = self.protocol.listed_orders().known(&order.to_string());
            stamp(first_seen, &mut text);
            text.push(owner.map_or(248, |owner| u8::try_from(owner.0).unwrap()));
            let shown = self.protocol.listed_orders().shown_by(&order.to_string());
            let shown = u8::from(shown.is_some_and(|session| session != Session::default()));
            text.push(shown * 4 + u8::from(fresh) * 2 + u8::from(self.flagged.contains(&order.to_string())));
            text.push(u8::from(self.of_new_session[order]));
            if model.echo.is_some() {
                text.push(u8::from(self.protocol.tags().is_kept(&order.to_string())));
            }
        }
        if model.echo.is_some() {
            for session in [Session::default(), Session::hashed(1)] {
                text.push(self.protocol.tags().echoed(session));
            }
        }
        text.push(247);
        for (read, seen) in &self.reads {
            let started = self.protocol.read_start(*read).unwrap();
            stamp(started.seq, &mut text);
            text.push(seen.map_or(246, |seen| u8::try_from(seen).unwrap()));
            text.push(u8::from(started.session != Session::default()));
        }
        if let Some(key) = self.protocol.all_keys().next() {
            stamp(key.last_settled(), &mut text);
            stamp(key.blocked_since().unwrap_or_default(), &mut text);
        }
        text.push(u8::try_from(self.crashes).unwrap() * 2 + u8::from(self.renewed));
        text.push(u8::from(!self.protocol.has_readable()));
        // The records that a crash may lose; after the last crash they make no difference.
        if self.crashes < model.crashes {
            for record in &self.journal[self.durable()..] {
                text.extend(record.bytes());
            }
        }
        stamps.sort_unstable();
        stamps.dedup();
        for (at, seq) in parts {
            text[at] = u8::try_from(stamps.binary_search(&seq).unwrap()).unwrap();
        }
        text.into_boxed_slice()
    }

    pub(super) fn judge(&self, model: &Model, found: &mut Found) -> Option<&'static str> {
        let mut wrong = None;
        if self.has_duplicate(model) {
            found.duplicates += 1;
            wrong = Some("duplicate");
        }
        if self.has_wrong_claim(model) {
            found.wrong_claims += 1;
            wrong = Some("wrong claim");
        }
        if self.double {
            found.double_claims += 1;
            wrong = Some("double claim");
        }
        let intents = || self.protocol.all_intents();
        let ended = intents().all(|(_, intent)| intent.finding().is_some() || *intent.phase() == Phase::Idle);
        // A report is held back while a list is to show an acknowledged order.
        let listed = self.protocol.listed_orders();
        let seen = (0..self.orders.len()).map(|order| order.to_string()).all(|order| {
            listed.known(&order).0 > LogicalTime(0)
                && listed.unconfirmed(&order) != Some(Unconfirmed::Awaited)
        });
        let served = self.served.iter().flatten().all(|served| *served != Served::Pending);
        if ended && seen && served && self.reads.is_empty() {
            // I10: listed orders are owned or flagged, except candidates that a caller was told of.
            if self.has_duplicate(model) {
                found.flagged += 1;
                if !self.ever_flagged {
                    found.undetected += 1;
                    wrong = Some("undetected duplicate");
                }
            }
            if self.is_swapped() {
                found.swapped += 1;
            }
            let placed = intents().filter(|(_, intent)| intent.order_id().is_some()).count() as u64;
            if placed > self.own() {
                found.lost += 1;
            }
        }
        wrong
    }

    /// True if two callers were told of one order, one of them before a crash.
    fn is_swapped(&self) -> bool {
        let now = |n: usize| self.protocol.intent(IntentNo(n as u64)).and_then(|intent| intent.order_id());
        self.told.iter().enumerate().any(|(n, told)| {
            let Some(told) = told.map(|order| order.to_string()) else { return false };
            (0..self.told.len()).any(|other| other != n && now(other).is_some_and(|id| **id == *told))
        })
    }
}

impl Record {
    fn bytes(self) -> [u8; 4] {
        let byte = |number: usize| u8::try_from(number).unwrap();
        let (kind, n, k, order) = match self {
            Self::Begin(n, k) => (0, n, k, 0),
            Self::Seen(shown) => (1, 0, 0, shown),
            Self::Acknowledged(n, k, order) => (2, n, k, order),
            Self::Refused(n, k) => (3, n, k, 0),
            Self::Limited(n, k) => (4, n, k, 0),
            Self::Found(n, order) => (5, n, 0, order),
        };
        [kind, byte(super::at(n)), byte(k), byte(order)]
    }
}
