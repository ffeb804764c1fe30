//! Passes clock readings to the protocol.

use std::{path::Path, sync::Arc, time::Duration};

use http::{HeaderMap, header};
use steadfast_call::{Moment, ext};
use tokio::time::{Instant, sleep_until};

use super::Account;
use crate::{
    error::OrderRefused,
    numbers::TradingDay,
    protocol::{
        day_clock::{Change, DayClock, Reading, agree},
        event::Event,
        order_protocol::OrderProtocol,
    },
    settings::Settings,
    tracker::{
        poller::is_out_of_a_cache,
        shared_protocol::{Effects, State},
    },
};

/// Two clocks that are read one after the other differ by less than this.
const NOISE: Duration = Duration::from_millis(50);

/// How often an answer's `Date` is checked while nothing is wrong.
const DATED_EVERY: Duration = Duration::from_secs(60);

/// How often the list is read to learn the day, and for how long if the caller sets no deadline.
const SETTLING_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_SETTLING: Duration = Duration::from_secs(30);

/// The clocks of an account: the trading day, and how long the machine slept.
pub(crate) struct Timekeeper {
    start: Moment,
    last: Moment,
    pub(super) day: DayClock,
    dated: Option<Moment>,
    /// An answer of the service came without a date.
    undated: bool,
    /// By the wall clock, where there is no boot clock.
    slept_by_wall: Duration,
    slept: Duration,
    near: bool,
    /// The latest day in the journal of an earlier process.
    written: Option<TradingDay>,
}

impl Timekeeper {
    pub(crate) fn new(settings: &Settings) -> Self {
        let start = settings.moment();
        let day = DayClock::new(settings.reading(&start, &start));
        Self {
            start,
            last: start,
            day,
            dated: None,
            undated: false,
            slept_by_wall: Duration::ZERO,
            slept: Duration::ZERO,
            near: false,
            written: None,
        }
    }

    /// Returns how long the machine slept since the start.
    fn slept(&mut self, now: &Moment) -> Duration {
        let by_wall = self.last.aged_at_most(now).saturating_sub(self.last.elapsed_at_most(now));
        // Clocks are read one after the other and differ a little, and a slewed clock drifts.
        if by_wall >= Duration::from_secs(1) {
            self.slept_by_wall = self.slept_by_wall.saturating_add(by_wall);
        }
        self.last = *now;
        let by_boot = self.start.elapsed_at_most(now).saturating_sub(self.start.elapsed_at_least(now));
        by_boot.saturating_add(self.slept_by_wall)
    }

    /// Goes on with the latest day in the journal: days do not go back over a restart either.
    ///
    /// A day further ahead than a clock that was set back explains is left to the service's clock.
    pub(super) fn resume(&mut self, written: Option<TradingDay>) -> TradingDay {
        self.written = written;
        let latest = TradingDay(self.today().0.saturating_add(1));
        if let Some(written) = written.filter(|&written| written <= latest) {
            self.day.at_least(written);
        }
        self.today()
    }

    fn events(&mut self, settings: &Settings, now: &Moment, change: Change) -> impl Iterator<Item = Event> {
        let slept = self.slept(now);
        let woke = slept >= self.slept.saturating_add(NOISE);
        if woke {
            self.slept = slept;
        }
        let near = self.day.is_midnight_near(settings.reading(&self.start, now));
        let turned = std::mem::replace(&mut self.near, near) != near;
        let Change { stepped, corrected } = change;
        let stepped = stepped
            .map(|by| Event::ClockStepped { by: Duration::from_millis(by.unsigned_abs()), forward: by > 0 });
        woke.then_some(Event::Slept(slept))
            .into_iter()
            .chain(stepped)
            .chain(turned.then_some(Event::MidnightNear(near)))
            .chain(corrected.map(Event::EpochCorrected))
            .chain([Event::EpochBegan(self.day.day())])
    }

    /// Returns how much of the day is left.
    fn left(&self, settings: &Settings) -> Duration {
        self.day.left(settings.reading(&self.start, &settings.moment()))
    }

    /// Returns the current day without reading any clock.
    pub(crate) fn today(&self) -> TradingDay {
        self.day.day()
    }
}

impl Settings {
    pub(crate) fn moment(&self) -> Moment {
        self.clocks.at(Instant::now().into_std())
    }

    fn reading(&self, start: &Moment, now: &Moment) -> Reading {
        let millis = |elapsed: Duration| i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX / 4);
        let wall = self.local_millis(now.wall());
        let passed = wall - self.local_millis(start.wall());
        // In a test, paused time may run ahead of the machine's clocks. Those then agree without it.
        let by_boot = start.elapsed_by_boot(now).map(millis).filter(|&boot| agree(boot, passed));
        Reading { wall, carried: by_boot.unwrap_or_else(|| millis(start.elapsed_at_most(now))) }
    }
}

impl State {
    /// Passes the time to the protocol: its decisions must precede all others.
    pub(crate) fn tell_time(&mut self, settings: &Settings, now: Duration, effects: &mut Effects) {
        let moment = settings.moment();
        let change = self.time.day.read(settings.reading(&self.time.start, &moment));
        self.tell_change(settings, &moment, change, now, effects);
    }

    fn tell_change(
        &mut self,
        settings: &Settings,
        moment: &Moment,
        change: Change,
        now: Duration,
        effects: &mut Effects,
    ) {
        for event in self.time.events(settings, moment, change) {
            effects.extend(self.protocol.step(now, event));
        }
    }
}

impl Account {
    /// Refuses an order if the trading day cannot be trusted.
    ///
    /// Either the journal has a day that is more than one ahead of the service's clock, so that today's names and
    /// identifiers cannot be told from others; or the machine's clock and the service's disagree about the day, and
    /// the settings forbid that.
    pub(crate) fn check_day(&self) -> Result<(), OrderRefused> {
        let (ahead, disputed) = self.monitor.look(|state| {
            let time = &state.time;
            let now = self.settings.reading(&time.start, &self.settings.moment());
            let ahead = time.written.is_some_and(|written| time.day.is_ahead_of_date(written, now));
            (ahead, self.is_disputed(&state.protocol))
        });
        if disputed && self.settings.refuse_disputed_day {
            return Err(OrderRefused::DayDisputed);
        }
        if !ahead {
            return Ok(());
        }
        let path = self.recorder.as_ref().and_then(|recorder| recorder.path()).map(Path::to_owned);
        Err(OrderRefused::JournalAhead(path))
    }

    /// True if it is another day only by the machine's clock, and midnight is not near.
    pub(super) fn is_disputed(&self, protocol: &OrderProtocol) -> bool {
        !protocol.is_midnight_near() && protocol.day() != self.settings.today()
    }

    /// Learns the day from the service, by reading the list, where a name's meaning depends on this machine's clock.
    ///
    /// That is so where the name stood for an order on another day: the clock may have been set while no process ran.
    /// Returns false if the day is still unknown at the deadline. If answers have no `Date`, the machine's clock
    /// decides, unless it was seen to be set.
    pub(crate) async fn settle_day(
        self: &Arc<Self>,
        name: &ext::IntentId,
        deadline: Option<Instant>,
    ) -> bool {
        let end = deadline.unwrap_or_else(|| Instant::now() + LONGEST_SETTLING);
        let is_settled = || {
            self.monitor.look(|state| state.time.day.is_confirmed() || !state.protocol.was_named_before(name))
        };
        loop {
            if is_settled() {
                return true;
            }
            self.baseline().await;
            // A date may also be missing because the answer came from a cache or was too slow.
            let is_left_to_the_clock = |state: &mut State| {
                let time = &state.time;
                state.protocol.knows_list() && time.undated && !time.day.is_doubted()
            };
            if is_settled() || self.monitor.look(is_left_to_the_clock) {
                return true;
            }
            let next = Instant::now() + self.settings.read_spacing.max(SETTLING_PAUSE);
            if next >= end {
                return false;
            }
            sleep_until(next).await;
        }
    }

    /// Returns the order id that a name stood for on another day, if it was placed.
    pub(crate) fn placed_before(&self, name: &ext::IntentId) -> Option<String> {
        self.monitor.look(|state| state.protocol.placed_before(name).map(ToString::to_string))
    }

    /// Takes in the `Date` of an answer to a request that was sent at `asked`.
    pub(crate) fn hear_date(self: &Arc<Self>, asked: &Moment, headers: &HeaderMap) {
        let now = self.settings.moment();
        let fresh = self.monitor.look(|state| {
            let time = &state.time;
            let known = time.dated.is_some_and(|dated| dated.elapsed_at_most(&now) < DATED_EVERY);
            known && !time.day.is_doubted()
        });
        if fresh || is_out_of_a_cache(headers) {
            return;
        }
        let date = headers.get(header::DATE).and_then(|date| date.to_str().ok());
        let Some(date) = date.and_then(|date| httpdate::parse_http_date(date).ok()) else {
            if !self.monitor.look(|state| state.time.undated) {
                self.with(|state, _, _| state.time.undated = true);
            }
            return;
        };
        let took = i64::try_from(asked.elapsed_at_most(&now).as_millis()).unwrap_or(i64::MAX / 4);
        let date = self.settings.local_millis(date);
        self.with(|state, at, effects| {
            let reading = self.settings.reading(&state.time.start, &now);
            let change = state.time.day.date(reading, date, took);
            state.time.dated = Some(now);
            state.tell_change(&self.settings, &now, change, at, effects);
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
