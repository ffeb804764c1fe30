//! Passes clock readings to the protocol.

use std::{path::Path, sync::Arc, time::Duration};

use http::{HeaderMap, header};
use steadfast_call::{Moment, ext};
use tokio::time::{Instant, sleep_until};

use super::Account;
use crate::{
    error::OrderWithheld,
    numbers::TradingDay,
    protocol::event::Event,
    settings::Settings,
    tracker::{
        cached::is_out_of_a_cache,
        shared_protocol::{Effects, State},
    },
};

/// How often the list is read to learn the day, and for how long if the caller sets no deadline.
const SETTLING_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_SETTLING: Duration = Duration::from_secs(30);

impl State {
    /// Passes the time to the protocol: its decisions must precede all others.
    pub(crate) fn tell_time(&mut self, settings: &Settings, now: Duration, effects: &mut Effects) {
        let events = self.time.read(settings, &settings.moment());
        self.tell(events, now, effects);
    }

    fn tell(&mut self, events: impl Iterator<Item = Event>, now: Duration, effects: &mut Effects) {
        for event in events {
            effects.extend(self.protocol.step(now, event));
        }
    }
}

impl Account {
    /// Withholds an order if the trading day cannot be trusted.
    ///
    /// Either the journal has a day that is more than one ahead of the service's clock, so that today's names and
    /// identifiers cannot be told from others; or the machine's clock and the service's disagree about the day, and
    /// the settings forbid that.
    pub(crate) fn check_day(&self) -> Result<(), OrderWithheld> {
        let (ahead, disputed) = self.shared.look(|state| {
            let is_disputed = self.settings.refuse_disputed_day && self.is_disputed(state);
            (state.time.is_journal_ahead(&self.settings), is_disputed)
        });
        if disputed {
            return Err(OrderWithheld::DayDisputed);
        }
        if !ahead {
            return Ok(());
        }
        let path = self.recorder.as_ref().and_then(|recorder| recorder.path()).map(Path::to_owned);
        Err(OrderWithheld::JournalAhead(path))
    }

    /// As [`check_day`](Self::check_day), by the clocks of this moment: no order has read them just before.
    pub(crate) fn check_day_now(self: &Arc<Self>) -> Result<(), OrderWithheld> {
        self.today();
        self.check_day()
    }

    /// True if it is another day only by the service's clock, or only by the machine's, and midnight is not near.
    pub(super) fn is_disputed(&self, state: &State) -> bool {
        let is_other = || state.protocol.day() != self.settings.today() && !state.protocol.is_midnight_near();
        state.time.is_denied() || is_other()
    }

    /// Learns the day from the service, by reading the list, where a name's meaning depends on this machine's clock.
    ///
    /// That is so where the name stood for an order on another day: the clock may have been set while no process ran. And
    /// where the clock was set since the last `Date`: the day of an order of this name may be over.
    /// Returns false if the day is still unknown at the deadline. If answers have no `Date`, the machine's clock
    /// decides, unless it was seen to be set.
    pub(crate) async fn settle_day(
        self: &Arc<Self>,
        name: &ext::IntentId,
        deadline: Option<Instant>,
    ) -> bool {
        if !self.shared.look(|state| state.protocol.has_named(name)) {
            return true;
        }
        self.today();
        let end = deadline.unwrap_or_else(|| Instant::now() + LONGEST_SETTLING);
        let is_settled = || {
            self.shared.look(|state| {
                let is_known = state.time.is_confirmed() || !state.protocol.was_named_before(name);
                is_known && !state.time.is_stepped()
            })
        };
        loop {
            if is_settled() {
                return true;
            }
            self.baseline().await;
            // A date may also be missing because the answer came from a cache or was too slow.
            let is_left_to_the_clock = |state: &mut State| {
                state.protocol.knows_list() && state.time.is_left_to_the_clock(&self.settings)
            };
            if is_settled() || self.shared.look(is_left_to_the_clock) {
                return true;
            }
            let next = Instant::now() + self.settings.read_spacing.max(SETTLING_PAUSE);
            if next >= end {
                return false;
            }
            sleep_until(next).await;
        }
    }

    /// True if lists are of another day, by the service's last date: they say nothing about ours.
    pub(crate) fn are_lists_of_another_day(&self) -> bool {
        self.shared.look(|state| state.protocol.are_lists_of_another_day())
    }

    /// Returns the order id that a name stood for on another day, if it was placed.
    pub(crate) fn placed_before(&self, name: &ext::IntentId) -> Option<String> {
        self.shared.look(|state| state.protocol.placed_before(name).map(ToString::to_string))
    }

    /// Takes in the `Date` of an answer to a request that was sent at `asked`.
    ///
    /// Each is compared: a machine that stood still over midnight has no other clock that says so.
    pub(crate) fn hear_date(self: &Arc<Self>, asked: &Moment, headers: &HeaderMap) {
        if is_out_of_a_cache(headers) {
            return;
        }
        let now = self.settings.moment();
        let is_known = self.shared.look(|state| state.time.is_dated(&now));
        let date = headers.get(header::DATE).and_then(|date| date.to_str().ok());
        let Some(date) = date.and_then(|date| httpdate::parse_http_date(date).ok()) else {
            if !is_known && !self.shared.look(|state| state.time.is_undated()) {
                self.with(|state, _, _| state.time.note_undated());
            }
            return;
        };
        let took = i64::try_from(asked.elapsed_at_most(&now).as_millis()).unwrap_or(i64::MAX / 4);
        let date = self.settings.local_millis(date);
        if is_known && self.shared.look(|state| state.time.expects(&self.settings, &now, date)) {
            return;
        }
        self.with(|state, at, effects| {
            state.tell_time(&self.settings, at, effects);
            let events = state.time.date(&self.settings, &now, date, took);
            state.tell(events, at, effects);
        });
    }

    /// Returns how much of the trading day is left.
    pub(super) fn day_left(&self, state: &State) -> Duration {
        state.time.left(&self.settings)
    }

    /// Returns the current trading day.
    pub(crate) fn today(self: &Arc<Self>) -> TradingDay {
        self.with(|state, now, effects| {
            state.tell_time(&self.settings, now, effects);
            state.time.today()
        })
    }
}
