//! Plans the next read of the list.

use std::time::Duration;

use crate::{
    numbers::{LogicalTime, ReadNo},
    protocol::{
        intent::Intent,
        order_protocol::OrderProtocol,
        phase::Finding,
        reads::{BaselineRead, Pace, Read},
        schedule,
        wake::{Purpose, Wake},
    },
    settings::policy::Baseline,
};

impl OrderProtocol {
    /// True if the list must be read before an order that is asked for now is sent.
    #[must_use]
    pub fn needs_baseline(&self, now: Duration) -> bool {
        // A failed baseline read is repeated at growing intervals.
        if self.baseline_again().is_some_and(|at| at <= now) {
            return true;
        }
        let Some(session) = self.sessions.current().and_then(|session| self.listed.lists.session(session))
        else {
            return self.reads.baseline() == BaselineRead::Unknown;
        };
        if !session.is_asked() {
            return true;
        }
        let aging = now.saturating_add(self.time.slept());
        let fresh = session.complete_at().is_some_and(|at| self.settings.is_fresh(at, aging));
        self.settings.baseline != Baseline::Cold && !fresh
    }

    /// Returns when a failed baseline read is repeated, for orders that are to be compared with it.
    pub(crate) fn baseline_again(&self) -> Option<Duration> {
        let (failed @ 1.., at) = self.reads.failed_baselines() else { return None };
        let pause = Duration::from_secs(1 << (failed - 1).min(5));
        (!self.knows_list()).then(|| at.saturating_add(pause.max(self.settings.read_spacing)))
    }

    /// Returns since when a baseline read is awaited, if one is.
    #[must_use]
    pub fn baseline_wanted(&self) -> Option<LogicalTime> {
        match self.reads.baseline() {
            BaselineRead::Wanted(since) => Some(since),
            BaselineRead::Unknown | BaselineRead::Tried => None,
        }
    }

    /// True once a read that started after `since` has ended, with any result.
    #[must_use]
    pub fn has_tried(&self, since: LogicalTime) -> bool {
        self.reads.has_tried(since) || !self.awaits_baseline()
    }

    /// True while the baseline read is awaited.
    #[must_use]
    pub fn awaits_baseline(&self) -> bool {
        matches!(self.reads.baseline(), BaselineRead::Wanted(_))
    }

    /// True while the list is watched for orders that ended without certainty.
    #[must_use]
    pub fn is_watching(&self) -> bool {
        !self.watches.is_empty()
    }

    /// Sets when the trading day ends, by the wall clock's current reading. This plans a read and decides nothing.
    pub fn end_day_at(&mut self, at: Duration) {
        self.time.end_day_at(at);
    }

    /// Returns when the day's last watch is due, shortly before lists start again at midnight.
    pub(crate) fn day_end(&self, last: Option<Duration>) -> Option<Duration> {
        let look = self
            .time
            .day_ends()
            .filter(|_| !self.watches.is_empty())?
            .saturating_sub(schedule::BEFORE_DAY_END);
        last.is_none_or(|last| last < look).then_some(look)
    }

    /// Returns from when on a list shows all orders that were placed despite a refusal that was returned: lists lag.
    pub(crate) fn refusals_show(&self) -> Duration {
        let refused = self.watches.iter().filter(|(number, _)| {
            let intent = self.intents.get(number);
            intent.and_then(Intent::finding) == Some(&Finding::Refused)
        });
        let last = refused.map(|(_, since)| since.saturating_add(self.refusal_lag())).max();
        last.unwrap_or_default().max(self.rejections_show().unwrap_or_default())
    }

    /// True for a read that no call and no shutdown waits for.
    pub(crate) fn can_wait(&self, purpose: Purpose) -> bool {
        let awaited = self.awaits_baseline()
            || self.doubts().next().is_some()
            || self.awaits_checks()
            || self.awaits_last_look();
        matches!(purpose, Purpose::Watch | Purpose::OwnSession | Purpose::Audit) && !awaited
    }

    /// True if a read could wait when it was opened, so that it goes in the slowest lane.
    pub(crate) fn is_patient(&self, read: ReadNo) -> bool {
        self.reads.get(read).is_some_and(|read| read.can_wait)
    }

    /// True for a read that could wait when it was opened, has not left, and now delays one that cannot wait.
    pub(crate) fn is_overtaken(&self, read: ReadNo) -> bool {
        let waits = |read: &Read| read.can_wait && !read.on_wire;
        self.reads.get(read).is_some_and(waits) && !self.can_wait(Purpose::Watch)
    }

    /// Returns when a list is next due for an order in doubt, by a look at all of them.
    fn next_verification(&self) -> Option<Duration> {
        let (last, lateness) = (self.reads.last_pace().last, self.settings.lateness);
        self.doubts().map(|doubt| schedule::next_verification(doubt.since, last, lateness)).min()
    }

    /// Returns what to do next, and when.
    #[must_use]
    pub fn next_wake(&self) -> Option<Wake> {
        let pace = self.reads.last_pace();
        let urgent = self.awaits_baseline().then_some((self.time.now(), Purpose::Baseline));
        let last = self.next_last_look().map(|due| (due, Purpose::Watch));
        debug_assert_eq!(self.searches.next_due(), self.next_verification());
        let verify = self.searches.next_due().map(|due| (due, Purpose::Verification));
        let check = self.next_check().map(|due| (due, Purpose::Verification));
        let Pace { current, failed, .. } = pace;
        let watches = self.watches.iter().map(|(_, since)| schedule::next_watch(since, current, failed));
        let watch = watches.chain(self.day_end(current)).chain(self.next_late_look()).min();
        let watch = watch.map(|due| (due, Purpose::Watch));
        let own = self.next_own_look().map(|(due, _)| (due, Purpose::OwnSession));
        let audit = self.next_audit(current).map(|due| (due, Purpose::Audit));
        // Unsent orders wait. Those that leave after this read can be compared with it.
        let again = self.baseline_again().filter(|_| self.intents.has_unsent());
        let again = again.map(|at| (at, Purpose::Baseline));
        let read = [urgent, again, last, verify, check, watch, own, audit].into_iter().flatten().min();
        let spaced = read.map(|(due, purpose)| {
            let spacing = self.settings.read_spacing;
            let earliest = pace.spaced.map_or(due, |last| last.saturating_add(spacing));
            (due.max(earliest), purpose)
        });
        let tick = self.searches.next_end().into_iter().chain(self.rejected.held_until()).min();
        match (spaced, tick) {
            (Some((at, purpose)), tick) if tick.is_none_or(|tick| at < tick) => Some(Wake::Read(at, purpose)),
            (_, Some(tick)) => Some(Wake::Tick(tick)),
            (_, None) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use steadfast_call::ext;

    use super::*;
    use crate::{
        numbers::{IntentNo, Session, TradingDay},
        protocol::{event::Event, read_fault::ReadFault},
        settings::Settings,
    };

    #[test]
    fn a_session_is_new_until_its_list_is_read_or_could_not_be() {
        for (list, what) in [(Ok(Vec::new()), "read"), (Err(ReadFault::Failed), "tried once")] {
            let mut protocol = OrderProtocol::new(Arc::new(Settings::default()), TradingDay(0));
            let session = Session::new(Some(ext::TokenGeneration(7)));
            let step = |protocol: &mut OrderProtocol, event| drop(protocol.step(Duration::ZERO, event));
            assert!(protocol.is_new(session));
            step(&mut protocol, Event::SessionMet(session));
            assert!(protocol.is_new(session) && protocol.needs_baseline(Duration::ZERO));
            step(&mut protocol, Event::BaselineWanted);
            step(&mut protocol, Event::ReadOpened { read: ReadNo(1), purpose: Purpose::Baseline });
            step(&mut protocol, Event::ReadStarted { read: ReadNo(1), session });
            assert!(protocol.is_new(session), "its list is on the way");
            step(&mut protocol, Event::ReadEnded { read: ReadNo(1), list });
            assert!(!protocol.is_new(session), "{what}");
        }
    }

    #[test]
    fn a_list_of_a_session_that_is_over_is_no_look_for_what_may_appear_late() {
        for (purpose, next) in [(Purpose::OwnSession, 30), (Purpose::Verification, 60)] {
            let mut protocol = OrderProtocol::new(Arc::new(Settings::default()), TradingDay(0));
            protocol.watches.watch(IntentNo(1), Duration::ZERO);
            let (at, read) = (Duration::from_secs(29), ReadNo(1));
            protocol.step(at, Event::ReadOpened { read, purpose });
            protocol.step(at * 2, Event::ReadStarted { read, session: Session::default() });
            protocol.step(at * 2, Event::ReadEnded { read, list: Ok(Vec::new()) });
            let due = Duration::from_secs(next).max(at * 2 + protocol.settings.read_spacing);
            assert_eq!(protocol.next_wake(), Some(Wake::Read(due, Purpose::Watch)), "{purpose:?}");
        }
    }

    #[test]
    fn a_look_that_shows_no_list_is_soon_made_again() {
        let mut protocol = OrderProtocol::new(Arc::new(Settings::default()), TradingDay(0));
        protocol.watches.watch(IntentNo(1), Duration::ZERO);
        let mut looks = |list: Result<(), ReadFault>, at, purpose| {
            let (at, read) = (Duration::from_secs(at), ReadNo(at));
            protocol.step(at, Event::ReadOpened { read, purpose });
            protocol.step(at, Event::ReadStarted { read, session: Session::default() });
            protocol.step(at, Event::ReadEnded { read, list: list.map(|()| Vec::new()) });
            match protocol.next_wake() {
                Some(Wake::Read(due, Purpose::Watch)) => due.as_secs(),
                other => panic!("{other:?}"),
            }
        };
        let watch = Purpose::Watch;
        assert_eq!(looks(Ok(()), 900, watch), 2_700);
        assert_eq!(looks(Err(ReadFault::Failed), 2_700, watch), 2_730);
        assert_eq!(looks(Err(ReadFault::Forbidden), 2_730, watch), 2_760);
        assert_eq!(looks(Ok(()), 2_750, Purpose::OwnSession), 2_760, "one session's list is not everybody's");
        assert_eq!(looks(Ok(()), 2_760, watch), 4_500);
        assert_eq!(looks(Err(ReadFault::Failed), 4_480, watch), 4_500, "one is due before");
    }
}
