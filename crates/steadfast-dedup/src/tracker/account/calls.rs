//! Tells the protocol what happens to a call with an order, from its intent to its verdict.

use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use steadfast_call::{Outcome, ext};
use steadfast_spec::OrderRequest;

use super::Account;
use crate::{
    error::OrderWithheld,
    numbers::{AttemptNo, IntentNo, Session, TradingDay},
    protocol::{
        event::{Answer, Event},
        resolution::Verdict,
    },
    settings::{
        order_tag::{OrderTag, with_field},
        policy::OrdersScope,
    },
    tracker::{halt::HaltEpoch, joined::Rejected, polled_calls::Opener, shared_protocol::State},
};

/// The kind of a call with an order.
pub(crate) enum Opening {
    /// The first call for this order, or one that repeats it after a refusal.
    New(IntentNo, Opener),
    /// A repeated call for an order that an earlier one asked for under the same name.
    Attached(IntentNo, Rejected),
}

impl Account {
    /// Opens an intent for a call, or finds the one of its name. A call that opened one ends by
    /// [`end_call`](Self::end_call).
    pub(crate) fn open(
        self: &Arc<Self>,
        order: &Arc<OrderRequest>,
        name: Option<ext::IntentId>,
    ) -> Result<Opening, OrderWithheld> {
        self.with(|state, now, effects| {
            state.tell_time(&self.settings, now, effects);
            let named = name.as_ref().and_then(|name| Some((name, state.protocol.named(name)?)));
            if let Some((name, (number, earlier))) = named {
                let same = earlier == order;
                return if same && state.protocol.can_reopen(number) {
                    // A caller's repeat is sent no sooner than ours: once a list agrees with the refusal.
                    effects.extend(state.protocol.step(now, Event::Reopened(number)));
                    // An earlier process gave it a tag, and this one sends none.
                    let sends_tags = self.settings.tag.as_ref().is_some_and(OrderTag::is_sent);
                    if !sends_tags && state.protocol.tag_of(number).is_some() {
                        effects.extend(state.protocol.step(now, Event::Untagged(number)));
                    }
                    Ok(Opening::New(number, state.calls.open(number, now)))
                } else if same {
                    Ok(Opening::Attached(number, state.joined.join(number)))
                } else {
                    Err(OrderWithheld::IntentMismatch(name.clone()))
                };
            }
            let intent = state.new_intent();
            let opened = Event::Opened { intent, order: order.clone(), name };
            effects.extend(state.protocol.step(now, opened));
            let free = |tag| state.protocol.is_free(tag);
            if let Some(tag) = self.settings.tag.as_ref().and_then(|tag| tag.draw(order, free)) {
                effects.extend(state.protocol.step(now, Event::Tagged { intent, tag }));
            }
            Ok(Opening::New(intent, state.calls.open(intent, now)))
        })
    }

    /// Returns the form of an intent's sends: its caller's, with the tag of the intent if it has one.
    ///
    /// An intent that is asked for again carries the tag of its first send.
    pub(crate) fn form_of(&self, intent: IntentNo, form: Bytes) -> Bytes {
        let Some(setting) = &self.settings.tag else { return form };
        match self.shared.look(|state| state.protocol.tag_of(intent)) {
            Some(tag) => with_field(&form, setting.name(), setting.text(tag)),
            None => form,
        }
    }

    /// True if an order would be the first to leave in this session, before its list was asked for.
    ///
    /// Keeps the request's token, to read this session's list when the session is over.
    pub(crate) fn meets<B>(self: &Arc<Self>, session: Session, request: &Request<B>) -> bool {
        let keeps_tokens = self.settings.orders_scope == OrdersScope::Session;
        let is_known = |state: &mut State| {
            let has_token = !keeps_tokens || state.tokens.knows(state.protocol.scoped(session));
            has_token && !state.protocol.is_new(session)
        };
        // As nearly every session is: then there is nothing to record.
        if self.shared.look(is_known) {
            return false;
        }
        self.with(|state, now, effects| {
            let own = state.protocol.scoped(session);
            if keeps_tokens && state.tokens.keep(own, request.headers(), request.extensions()) {
                effects.extend(state.protocol.step(now, Event::SessionKept(session)));
            }
            let new = state.protocol.is_new(session);
            if new {
                effects.extend(state.protocol.step(now, Event::SessionMet(session)));
            }
            new
        })
    }

    /// Decides, at the first poll of the body, whether an order leaves.
    ///
    /// `in_time`: the caller's deadlines permit it; `epoch`: the time between halts in which the order was asked for;
    /// `journal_day`: the trading day that its journal entry has. It leaves on that day only: otherwise the next process
    /// would take its name for one of a day that is over, and free.
    pub(crate) fn send(
        self: &Arc<Self>,
        attempt: AttemptNo,
        in_time: bool,
        epoch: HaltEpoch,
        journal_day: Option<TradingDay>,
    ) -> Result<(), OrderWithheld> {
        self.with(|state, now, effects| {
            // Apply the time first: its decisions must precede the question.
            state.tell_time(&self.settings, now, effects);
            let refusal = match (in_time, state.protocol.may_send(attempt)) {
                (_, false) if state.protocol.is_too_old(attempt.intent) => Some(OrderWithheld::TooOld),
                (_, false) => Some(OrderWithheld::NotWanted),
                // The last look at the halt and at the owner before it leaves.
                (_, true) if let Err(refusal) = self.halt.check(Some(epoch)) => Some(refusal),
                (false, true) => Some(OrderWithheld::SendByPassed),
                (true, true)
                    if journal_day.is_some_and(|day| day != state.time.latest_day(&self.settings)) =>
                {
                    Some(OrderWithheld::DayTurned)
                }
                (true, true) => None,
            };
            let event = if refusal.is_none() { Event::Sent(attempt) } else { Event::Withheld(attempt) };
            effects.extend(state.protocol.step(now, event));
            refusal.map_or(Ok(()), Err)
        })
    }

    pub(crate) fn close(self: &Arc<Self>, attempt: AttemptNo, outcome: Outcome, answer: Answer) {
        self.with(|state, now, effects| {
            // Refused by its head alone: nothing of the order has left, and no list need confirm that.
            let is_unsent = outcome == Outcome::NotExecuted && !state.protocol.has_left(attempt);
            let outcome = if is_unsent { Outcome::NotSent } else { outcome };
            let closed = self.noted(Event::Closed { attempt, outcome, answer });
            effects.extend(state.protocol.step(now, closed));
        });
    }

    /// Closes an attempt that has no response; true if it had left.
    ///
    /// One step decides both, so no poll of the body falls between: after it, nothing of this attempt leaves.
    pub(crate) fn close_failed(
        self: &Arc<Self>,
        attempt: AttemptNo,
        outcome: Outcome,
        answer: Answer,
    ) -> bool {
        self.with(|state, now, effects| {
            let left = state.protocol.has_left(attempt);
            let outcome = if left { outcome } else { Outcome::NotSent };
            let closed = self.noted(Event::Closed { attempt, outcome, answer });
            effects.extend(state.protocol.step(now, closed));
            left
        })
    }

    /// Notes that a change of an order is about to be sent.
    pub(crate) fn hear_change(self: &Arc<Self>) {
        self.with(|state, now, effects| {
            // Written here, so that it stands among the sends where it happened; once for all changes between two sends.
            let is_news = state.protocol.is_change_news();
            let changed = if is_news { self.noted(Event::Changed) } else { Event::Changed };
            effects.extend(state.protocol.step(now, changed));
        });
    }

    /// Ends a call that has opened an intent; one that it has concluded does not change. Nor does one that another call has
    /// opened since, after a refusal: that one still waits to repeat it.
    pub(crate) fn end_call(self: &Arc<Self>, intent: IntentNo, opener: Opener) {
        self.with(|state, now, effects| {
            if state.calls.end(intent, opener) {
                effects.extend(state.protocol.step(now, Event::Concluded(intent)));
            }
        });
    }

    /// Ends the call through the stack, with the service's rejection or not; returns the intent's verdict.
    pub(crate) fn conclude(self: &Arc<Self>, intent: IntentNo, is_rejected: bool) -> Verdict {
        self.with(|state, now, effects| {
            effects.extend(state.protocol.step(now, Event::Concluded(intent)));
            let verdict = state.protocol.verdict(intent);
            if is_rejected && verdict == Verdict::NotPlaced {
                state.joined.reject(intent);
            }
            verdict
        })
    }

    /// Does the same for an acknowledged answer: true if the protocol agrees. Then the call has ended, and nothing is left
    /// to do.
    pub(crate) fn conclude_acknowledged(self: &Arc<Self>, intent: IntentNo, opener: Opener) -> bool {
        self.with(|state, _, _| {
            // The end of a call changes nothing for an intent that is decided.
            let acknowledged = state.protocol.is_acknowledged(intent);
            if acknowledged {
                state.calls.end(intent, opener);
            }
            acknowledged
        })
    }

    /// Returns the verdict on the listed order whose name an unsent intent repeats, after it had been refused. A call that asked
    /// for another order is withheld: that one is not its own.
    pub(crate) fn displaced(&self, unsent: IntentNo) -> Option<Result<Verdict, OrderWithheld>> {
        self.shared.look(|state| {
            let holder = state.protocol.displaced_by(unsent)?;
            // The unsent intent is there and has a name: its name has another holder.
            let (Some(name), order) = state.protocol.asked(unsent)? else { return None };
            let is_same = state.protocol.asked(holder).is_some_and(|(_, listed)| listed == order);
            Some(if is_same {
                Ok(state.protocol.verdict(holder))
            } else {
                Err(OrderWithheld::IntentMismatch(name))
            })
        })
    }

    /// True if the intent was refused without having been executed, and its caller is told so.
    pub(crate) fn is_refused(&self, intent: IntentNo) -> bool {
        self.shared.look(|state| state.protocol.is_refused(intent))
    }

    /// Returns the status of the refusal that an intent ended with, and whether a list agrees with it.
    pub(crate) fn refusal(&self, intent: IntentNo) -> Option<(u16, bool)> {
        self.shared.look(|state| state.protocol.refusal(intent))
    }

    pub(crate) fn verdict(&self, intent: IntentNo) -> Verdict {
        self.shared.look(|state| state.protocol.verdict(intent))
    }

    /// Notes that the intent's caller is gone; true if an order of it may exist.
    pub(crate) fn abandon(self: &Arc<Self>, intent: IntentNo) -> bool {
        self.with(|state, now, effects| {
            effects.extend(state.protocol.step(now, Event::Abandoned(intent)));
            state.protocol.is_sent(intent)
        })
    }

    pub(crate) fn candidates(&self, intent: IntentNo) -> Vec<String> {
        self.shared.look(|state| state.protocol.candidates(intent))
    }
}
