use std::{path::Path, sync::Arc};

use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderMap, header};
use sha1::Sha1;
use steadfast_call::ext;
use steadfast_spec::{OrderRequest, Tag};

use super::{Durable, Entry, Journal, Record};
use crate::{
    numbers::{AttemptNo, IntentNo, Session, TradingDay},
    protocol::{
        effect::Effect, event::Event, order_event::OrderEvent, order_protocol::OrderProtocol,
        resolution::Reason, ruling::Ruling,
    },
};

/// Identifiers in one entry, so that no entry grows with the list, nor beyond what the journal reads again.
const IDS: usize = 500;

/// Writes the events of one account to the journal.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    journal: Arc<dyn Journal>,
    account: ext::Account,
}

impl Recorder {
    pub(crate) fn new(journal: Arc<dyn Journal>, account: ext::Account) -> Self {
        Self { journal, account }
    }

    pub(crate) fn session_of(&self, headers: &HeaderMap) -> Session {
        session_of(&self.journal.salt(), headers)
    }

    pub(crate) fn path(&self) -> Option<&Path> {
        self.journal.path()
    }

    pub(crate) fn begun(
        &self,
        attempt: AttemptNo,
        session: Session,
        day: TradingDay,
        name: Option<ext::IntentId>,
        order: Arc<OrderRequest>,
        tag: Option<Tag>,
    ) -> Durable {
        self.journal.append_durably(self.entry(Record::Begun { attempt, session, day, name, order, tag }))
    }

    /// Writes that the caller of an order has its answer.
    pub(crate) fn heard(&self, intent: IntentNo) {
        self.journal.append(self.entry(Record::Heard { intent }));
    }

    /// Makes everything durable that was written.
    pub(crate) fn flush(&self) -> Durable {
        self.journal.flush()
    }

    pub(crate) fn event(&self, event: &Event) {
        let record = match event {
            Event::Closed { attempt, outcome, answer } => {
                Record::Closed { attempt: *attempt, outcome: outcome.clone(), answer: *answer }
            }
            Event::Ruled { intent, ruling } => Record::Ruled {
                intent: *intent,
                order_id: match ruling {
                    Ruling::Placed { order_id } => Some(order_id.clone()),
                    Ruling::NotPlaced => None,
                },
            },
            Event::Changed => Record::Changed,
            _ => return,
        };
        self.journal.append(self.entry(record));
    }

    /// Writes those conclusions of `protocol` that must outlive the process.
    pub(crate) fn effect(&self, effect: &Effect, protocol: &OrderProtocol, day: impl Fn() -> TradingDay) {
        match effect {
            Effect::Seen { session, order_ids, complete } => {
                let day = day();
                let mut chunks = order_ids.chunks(IDS).peekable();
                // A complete list that is empty is news too.
                if chunks.peek().is_none() {
                    self.seen(*session, day, &[], *complete);
                }
                while let Some(ids) = chunks.next() {
                    self.seen(*session, day, ids, *complete && chunks.peek().is_none());
                }
            }
            Effect::Report(OrderEvent::Unresolved { intent, unresolved, .. }) => {
                let reason = unresolved.reason.as_str().to_owned();
                let candidates = unresolved.candidates.clone();
                self.journal.append(self.entry(Record::Unresolved { intent: *intent, reason, candidates }));
            }
            // The entry of its answer says that it was placed. The reason here is that of any success without an
            // identifier.
            Effect::Report(
                OrderEvent::Conflict { intent, .. }
                | OrderEvent::AckNotListed { intent, .. }
                | OrderEvent::AckMismatch { intent, .. },
            ) => {
                let other = match effect {
                    Effect::Report(OrderEvent::Conflict { other, .. }) => *other,
                    _ => None,
                };
                for intent in [Some(*intent), other].into_iter().flatten() {
                    let reason = Reason::AcceptedUnknownId.as_str().to_owned();
                    let candidates = Vec::new();
                    self.journal.append(self.entry(Record::Unresolved { intent, reason, candidates }));
                }
            }
            Effect::Report(report) => {
                if let Some((intent, order_id)) = protocol.found_late(report) {
                    let order_id = order_id.to_owned();
                    self.journal.append(self.entry(Record::Found { intent, order_id, status: None }));
                } else if let OrderEvent::RefusedButPlaced { intent, order_id, kept: None, .. } = report {
                    let (reason, candidates) =
                        (Reason::NearMatch.as_str().to_owned(), vec![order_id.clone()]);
                    self.journal.append(self.entry(Record::Unresolved {
                        intent: *intent,
                        reason,
                        candidates,
                    }));
                }
            }
            Effect::Confirmed(intent) => {
                self.journal.append(self.entry(Record::Confirmed { intent: *intent }));
            }
            Effect::DayRenamed { from, day, intents } => self.renamed(*from, *day, intents),
            // As soon as possible: until then the name is free for the next process.
            Effect::NamedUntil { intent, day } => {
                let record = Record::NamedUntil { intent: *intent, day: *day };
                drop(self.journal.append_durably(self.entry(record)));
            }
            Effect::Decided(_) => {}
        }
    }

    fn seen(&self, session: Session, day: TradingDay, order_ids: &[Arc<str>], complete: bool) {
        let order_ids = order_ids.iter().map(ToString::to_string).collect();
        self.journal.append(self.entry(Record::Seen { session, day, order_ids, complete }));
    }

    /// Writes the right day of orders and lists, as soon as possible: until then their names are free for the next
    /// process.
    fn renamed(&self, from: TradingDay, day: TradingDay, intents: &[IntentNo]) {
        let mut chunks = intents.chunks(IDS).peekable();
        let write = |intents: &[IntentNo]| {
            let intents = intents.iter().copied().collect();
            drop(self.journal.append_durably(self.entry(Record::Renamed { from, day, intents })));
        };
        // Lists have a day, too.
        if chunks.peek().is_none() {
            write(&[]);
        }
        chunks.for_each(write);
    }

    fn entry(&self, record: Record) -> Entry {
        Entry { account: self.account.clone(), record }
    }
}

/// Returns the session of a request, under a name that is the same in every process that uses the journal.
pub(crate) fn session_of(salt: &[u8], headers: &HeaderMap) -> Session {
    let Some(token) = headers.get(header::AUTHORIZATION) else { return Session::default() };
    // A key of any length is accepted.
    let Ok(mut hash) = Hmac::<Sha1>::new_from_slice(salt) else { return Session::default() };
    hash.update(token.as_bytes());
    let hash = hash.finalize().into_bytes();
    hash.first_chunk().map_or_else(Session::default, |hash| Session::hashed(u64::from_le_bytes(*hash)))
}

#[cfg(test)]
mod tests {
    use super::{super::frame::MAX_PAYLOAD, *};

    #[test]
    fn the_longest_identifiers_fit_into_an_entry() {
        let order_ids = vec!["\u{1}".repeat(256); IDS];
        let record =
            Record::Seen { session: Session::default(), day: TradingDay(0), order_ids, complete: true };
        let entry = Entry { account: ext::Account::default(), record };
        assert!(entry.encode().len() <= MAX_PAYLOAD);
    }
}
