//! Runs reads of the list for an account.

use std::{sync::Arc, time::Duration};

use steadfast_call::Lane;
use steadfast_spec::OrderRecord;

use super::Account;
use crate::{
    numbers::{ReadNo, Session},
    protocol::{event::Event, read_fault::ReadFault, wake::Purpose},
    tracker::{
        shared_protocol::{Plan, State},
        tokens::OwnToken,
    },
};

impl Account {
    /// Waits, for at most a second, until the list is known before the first order of a day or session.
    pub(crate) async fn baseline(self: &Arc<Self>) {
        let is_known = |state: &mut State| {
            let now = self.shared.clock().now();
            !state.protocol.needs_baseline(now) && state.protocol.baseline_wanted().is_none()
        };
        // As it nearly always is: then there is nothing to record.
        if self.shared.look(is_known) {
            return;
        }
        let wanted = self.with(|state, now, effects| {
            if state.protocol.needs_baseline(now) {
                effects.extend(state.protocol.step(now, Event::BaselineWanted));
            }
            state.protocol.baseline_wanted()
        });
        if let Some(since) = wanted {
            let tried = self.until(|protocol| protocol.has_tried(since));
            if self.within(Duration::from_secs(1), tried).await.is_none() {
                tracing::warn!(account = self.name.as_str(), "order list not known before the first order");
            }
        }
    }

    /// Returns what the poller does next.
    pub(crate) fn plan(&self) -> Plan {
        self.shared.plan(|state| self.day_left(state))
    }

    /// Sleeps until `at`, or until something else is due.
    pub(crate) async fn sleep_until(&self, at: Duration) {
        self.shared.sleep_until(at).await;
    }

    /// Notes that the poller was dropped. The next step of any kind starts another one, and so does anyone who waits.
    pub(crate) fn poller_dropped(&self) {
        self.shared.poller_dropped();
    }

    /// Opens a read; returns its lane, and its token if that is not the current one.
    pub(crate) fn open_read(self: &Arc<Self>, purpose: Purpose) -> (ReadNo, Lane, Option<OwnToken>) {
        self.with(|state, now, effects| {
            state.tell_time(&self.settings, now, effects);
            let own = match purpose {
                Purpose::Verification => state.own_token(),
                Purpose::OwnSession => state.watch_token(),
                Purpose::Baseline | Purpose::Watch | Purpose::Audit => None,
            };
            let purpose = match purpose {
                _ if own.is_some() => Purpose::OwnSession,
                Purpose::OwnSession => Purpose::Watch,
                _ => purpose,
            };
            let read = state.new_read();
            effects.extend(state.protocol.step(now, Event::ReadOpened { read, purpose }));
            let lane = if state.protocol.is_patient(read) { Lane::Bulk } else { Lane::Verification };
            (read, lane, own)
        })
    }

    /// Notes that the token of a past session was refused.
    pub(crate) fn lose_token(self: &Arc<Self>, session: Session) {
        self.with(|state, now, effects| state.lose_token(session, now, effects));
    }

    pub(crate) fn start_read(self: &Arc<Self>, read: ReadNo, session: Session) {
        self.step(Event::ReadStarted { read, session });
    }

    /// Waits until a read is [overtaken](crate::OrderProtocol::is_overtaken).
    pub(crate) async fn overtaken(self: &Arc<Self>, read: ReadNo) {
        self.until(|protocol| protocol.is_overtaken(read)).await;
    }

    /// Notes that a send of a read brought no list.
    pub(crate) fn turn_away_read(self: &Arc<Self>, read: ReadNo) {
        self.step(Event::ReadTurnedAway(read));
    }

    /// Gives up a read that has not left.
    pub(crate) fn withdraw_read(self: &Arc<Self>, read: ReadNo) {
        self.step(Event::ReadWithdrawn(read));
    }

    /// Takes in a part of a read's list; the rest comes with its end.
    pub(crate) fn part_of_read(self: &Arc<Self>, read: ReadNo, records: Vec<OrderRecord>) {
        if self.halt.owned().is_err() {
            return;
        }
        self.with(|state, now, effects| {
            state.tell_time(&self.settings, now, effects);
            effects.extend(state.protocol.step(now, Event::ReadPart { read, records }));
        });
    }

    pub(crate) fn end_read(
        self: &Arc<Self>,
        read: ReadNo,
        purpose: Purpose,
        list: Result<Vec<OrderRecord>, ReadFault>,
    ) {
        match &list {
            Ok(records) => tracing::debug!(?purpose, records = records.len(), "order list read"),
            Err(fault) => tracing::debug!(?purpose, ?fault, "order list not read"),
        }
        // It may hold orders of the next owner, which would pass for this one's.
        let list = if self.halt.owned().is_err() { Err(ReadFault::Failed) } else { list };
        self.with(|state, now, effects| {
            // A list asked for on the day before may be that day's, or a new one: the protocol must know the day.
            state.tell_time(&self.settings, now, effects);
            effects.extend(state.protocol.step(now, Event::ReadEnded { read, list }));
        });
    }
}

#[cfg(test)]
mod tests {
    use steadfast_call::ext;
    use tokio::sync::broadcast;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_sleep_beyond_the_clock_lasts_until_something_is_due() {
        let (events, _) = broadcast::channel(1);
        let account = Arc::new(Account::new(ext::Account::default(), Arc::default(), Arc::default(), events));
        // The test is the poller, so the starter starts nothing.
        account.start_with(|| Some(Arc::new(|_| true)));
        account.step(Event::BaselineWanted);
        let Plan::Read(purpose) = account.plan() else { panic!("a read is due") };
        let (read, ..) = account.open_read(purpose);
        account.end_read(read, purpose, Ok(Vec::new()));
        assert_eq!(account.plan(), Plan::End);
        let mut sleep = std::pin::pin!(account.sleep_until(Duration::MAX));
        // It returns at once: it does not sleep by a plan that is out of date.
        sleep.as_mut().await;
    }
}
