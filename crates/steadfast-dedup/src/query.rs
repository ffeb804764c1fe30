use std::sync::Arc;

use steadfast_spec::{OrderRequest, ext};

use crate::{
    attempt::AttemptState,
    intent::{Finding, Phase},
    key::Key,
    registry::{Baseline, Purpose, Registry, Wake},
    resolution::Verdict,
    schedule,
    stamp::{AttemptNo, IntentNo, Session},
};

impl Registry {
    /// The number that the next send of an intent gets, or `None` if nothing may be sent for it.
    ///
    /// While it is in doubt, nothing sends it again; a resend stays within its session and its trading day.
    #[must_use]
    pub fn next_attempt(&self, intent: IntentNo, session: Session) -> Option<AttemptNo> {
        let found = self.intents.get(&intent)?;
        let allowed = match found.phase {
            Phase::Idle => true,
            Phase::Granted => found.session() == Some(self.scoped(session)) && found.epoch == self.epoch,
            _ => false,
        };
        allowed.then_some(AttemptNo { intent, index: found.attempts.len() })
    }

    /// True if the list of this session is not known, and nobody has asked for it yet or the answer is awaited.
    #[must_use]
    pub fn is_new(&self, session: Session) -> bool {
        let book = self.book.session(self.scoped(session));
        book.is_none_or(|book| !book.has_baseline && (!book.asked || self.awaits_baseline()))
    }

    /// True if a send that was begun is still wanted, now that the transport polls its body.
    #[must_use]
    pub fn may_send(&self, attempt: AttemptNo) -> bool {
        let Some(intent) = self.intents.get(&attempt.intent) else { return false };
        let open = intent.attempts.get(attempt.index).is_some_and(|a| matches!(a.state, AttemptState::Open));
        open && intent.caller_waits
            && match intent.phase {
                Phase::Idle => true,
                // The verdict may be old: between it and this poll lie queues, in which evidence can arrive.
                Phase::Granted => {
                    self.is_absent(intent) && self.is_young(intent) && intent.epoch == self.epoch
                }
                _ => false,
            }
    }

    /// True if a send has left and is not answered.
    #[must_use]
    pub fn has_left(&self, attempt: AttemptNo) -> bool {
        let intent = self.intents.get(&attempt.intent);
        intent.and_then(|intent| intent.attempts.get(attempt.index)).is_some_and(|a| a.in_flight().is_some())
    }

    /// The intent that goes by a caller's name in this epoch, and its order.
    #[must_use]
    pub fn named(&self, name: &ext::IntentId) -> Option<(IntentNo, &Arc<OrderRequest>)> {
        let intent = *self.names.get(name)?;
        Some((intent, &self.intents.get(&intent)?.order))
    }

    /// An unnamed intent for this same order that nobody waits for and that is not decided.
    #[must_use]
    pub fn orphaned_twin(&self, order: &OrderRequest) -> Option<IntentNo> {
        let live = &self.keys.get(&Key::of_order(order))?.live;
        live.iter().copied().find(|number| {
            self.intents.get(number).is_some_and(|intent| {
                intent.name.is_none() && !intent.caller_waits && *intent.order == *order
            })
        })
    }

    /// What the resolution of an intent has come to; an intent that left nothing behind is not remembered.
    #[must_use]
    pub fn verdict(&self, intent: IntentNo) -> Verdict {
        let Some(intent) = self.intents.get(&intent) else { return Verdict::NotPlaced };
        match &intent.phase {
            Phase::Idle | Phase::Sending | Phase::Doubt => Verdict::Pending,
            Phase::Granted => Verdict::Resend,
            Phase::Finished(Finding::Acknowledged { order_id }) => {
                Verdict::Acknowledged { order_id: order_id.to_string() }
            }
            Phase::Finished(Finding::Recovered { order_id, status }) => {
                Verdict::Recovered { order_id: order_id.to_string(), status: status.clone() }
            }
            Phase::Finished(Finding::Unresolved(unresolved)) => Verdict::Unresolved(unresolved.clone()),
        }
    }

    /// True if an order of this intent may exist.
    #[must_use]
    pub fn is_sent(&self, intent: IntentNo) -> bool {
        self.intents.get(&intent).is_some_and(|intent| intent.first_sent().is_some())
    }

    /// How many intents are being looked for.
    #[must_use]
    pub fn in_doubt(&self) -> usize {
        self.open_intents().count()
    }

    /// How many sends have not been answered.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.live_intents().filter(|(_, intent)| intent.phase == Phase::Sending).count()
    }

    /// The identifiers of listed orders that could be an intent's.
    #[must_use]
    pub fn candidates(&self, intent: IntentNo) -> Vec<String> {
        self.intents.get(&intent).map_or_else(Vec::new, |intent| self.candidates_of(intent))
    }

    /// True if the list must be asked for before an order is sent.
    #[must_use]
    pub fn needs_baseline(&self) -> bool {
        match self.session.and_then(|session| self.book.session(session)) {
            Some(session) => !session.asked && !session.has_baseline,
            None => self.baseline == Baseline::Unknown,
        }
    }

    /// True while the read that learns the list is awaited.
    #[must_use]
    pub fn awaits_baseline(&self) -> bool {
        self.baseline == Baseline::Wanted
    }

    /// True while a last look at orders that ended without certainty is due.
    #[must_use]
    pub fn awaits_last_look(&self) -> bool {
        self.last_look
    }

    /// What to do next, and when.
    #[must_use]
    pub fn next_wake(&self) -> Option<Wake> {
        let urgent = (self.baseline == Baseline::Wanted).then_some((self.now, Purpose::Baseline));
        let last = self.last_look.then_some((self.now, Purpose::Watch));
        let verify = self.doubts().map(|doubt| {
            let due = schedule::next_verification(doubt.since, self.last_read, self.settings.lateness);
            (due, Purpose::Verification)
        });
        let watch =
            self.watches.values().map(|&since| (schedule::next_watch(since, self.last_read), Purpose::Watch));
        let read = urgent.into_iter().chain(last).chain(verify).chain(watch).min();
        let spaced = read.map(|(due, purpose)| {
            let earliest = self.last_paced.map_or(due, |last| last.saturating_add(schedule::SPACING));
            (due.max(earliest), purpose)
        });
        let tick = self.doubts().map(|doubt| doubt.until).min();
        match (spaced, tick) {
            (Some((at, purpose)), tick) if tick.is_none_or(|tick| at < tick) => Some(Wake::Read(at, purpose)),
            (_, Some(tick)) => Some(Wake::Tick(tick)),
            (_, None) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        error::ReadFault,
        event::Event,
        settings::Settings,
        stamp::{Epoch, ReadNo},
    };

    #[test]
    fn a_session_is_new_until_its_list_is_read_or_could_not_be() {
        for (list, what) in [(Ok(Vec::new()), "read"), (Err(ReadFault::Failed), "tried once")] {
            let mut registry = Registry::new(Arc::new(Settings::default()), Epoch(0));
            let session = Session::new(Some(ext::TokenGeneration(7)));
            let step = |registry: &mut Registry, event| drop(registry.step(Duration::ZERO, event));
            assert!(registry.is_new(session));
            step(&mut registry, Event::SessionMet(session));
            assert!(registry.is_new(session) && registry.needs_baseline());
            step(&mut registry, Event::BaselineWanted);
            step(&mut registry, Event::ReadOpened { read: ReadNo(1), purpose: Purpose::Baseline });
            step(&mut registry, Event::ReadStarted { read: ReadNo(1), session });
            assert!(registry.is_new(session), "its list is on the way");
            step(&mut registry, Event::ReadEnded { read: ReadNo(1), list });
            assert!(!registry.is_new(session), "{what}");
        }
    }
}
