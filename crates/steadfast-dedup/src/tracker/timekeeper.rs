use std::time::Duration;

use steadfast_call::Moment;
use tokio::time::Instant;

use crate::{
    numbers::TradingDay,
    protocol::{
        day_clock::{Change, DayClock, Reading, agree},
        event::Event,
    },
    settings::Settings,
};

/// Two clocks that are read one after the other differ by less than this.
const NOISE: Duration = Duration::from_millis(50);

/// How often an answer's `Date` is checked while nothing is wrong.
const DATED_EVERY: Duration = Duration::from_secs(60);

/// The clocks of an account: the trading day, and how long the machine slept.
pub(crate) struct Timekeeper {
    start: Moment,
    last: Moment,
    day: DayClock,
    dated: Option<Moment>,
    /// The wall clock was set, and no date came since.
    stepped: bool,
    /// An answer of the service came without a date.
    undated: bool,
    /// By the wall clock, where there is no boot clock.
    slept_by_wall: Duration,
    slept: Duration,
    near: bool,
    /// The latest day in the journal of an earlier process.
    journal_day: Option<TradingDay>,
}

impl Timekeeper {
    pub(crate) fn new(settings: &Settings) -> Self {
        let start = settings.moment();
        let day = DayClock::new(settings.reading(&start, &start), settings.refuse_disputed_day);
        Self {
            start,
            last: start,
            day,
            dated: None,
            stepped: false,
            undated: false,
            slept_by_wall: Duration::ZERO,
            slept: Duration::ZERO,
            near: false,
            journal_day: None,
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
    pub(crate) fn resume(&mut self, journal_day: Option<TradingDay>) -> TradingDay {
        self.journal_day = journal_day;
        let latest = TradingDay(self.today().0.saturating_add(1));
        if let Some(journal_day) = journal_day.filter(|&journal_day| journal_day <= latest) {
            self.day.at_least(journal_day);
        }
        self.today()
    }

    fn events(
        &mut self,
        now: &Moment,
        reading: Reading,
        change: Change,
    ) -> impl Iterator<Item = Event> + use<> {
        let slept = self.slept(now);
        let woke = slept >= self.slept.saturating_add(NOISE);
        if woke {
            self.slept = slept;
        }
        let near = self.day.is_midnight_near(reading);
        let turned = std::mem::replace(&mut self.near, near) != near;
        let Change { stepped, corrected, dated } = change;
        let stepped = stepped
            .map(|by| Event::ClockStepped { by: Duration::from_millis(by.unsigned_abs()), forward: by > 0 });
        woke.then_some(Event::Slept(slept))
            .into_iter()
            .chain(stepped)
            .chain(turned.then_some(Event::MidnightNear(near)))
            .chain(corrected.map(Event::DayRenamed))
            // Before the day that it may begin: it concerns what was sent on the one before.
            .chain(dated.map(Event::Dated))
            .chain([Event::DayBegan(self.day.day())])
    }

    /// Takes in a reading of the clocks.
    pub(crate) fn read(&mut self, settings: &Settings, now: &Moment) -> impl Iterator<Item = Event> + use<> {
        let reading = settings.reading(&self.start, now);
        let change = self.day.read(reading);
        self.stepped |= change.stepped.is_some();
        self.events(now, reading, change)
    }

    /// Takes in the `Date` of an answer that took so many milliseconds and arrived now.
    pub(crate) fn date(
        &mut self,
        settings: &Settings,
        now: &Moment,
        date: i64,
        took: i64,
    ) -> impl Iterator<Item = Event> + use<> {
        self.dated = Some(*now);
        self.stepped = false;
        let reading = settings.reading(&self.start, now);
        let change = self.day.date(reading, date, took);
        self.events(now, reading, change)
    }

    /// True if this date is where the last one, carried on, says that it is, and names no other day.
    pub(crate) fn expects(&self, settings: &Settings, now: &Moment, date: i64) -> bool {
        self.day.expects(settings.reading(&self.start, now), date)
    }

    /// True if the service's date says that it is another day, and no other clock does.
    pub(crate) fn is_denied(&self) -> bool {
        self.day.is_denied()
    }

    /// Notes that an order is sent under the day.
    pub(crate) fn pin(&mut self) {
        self.day.pin();
    }

    /// True if the service's clock was heard of lately, and nothing contradicts it.
    pub(crate) fn is_dated(&self, now: &Moment) -> bool {
        let known = self.dated.is_some_and(|dated| dated.elapsed_at_most(now) < DATED_EVERY);
        known && !self.day.is_doubted()
    }

    /// True if the wall clock was set, and no date came since.
    pub(crate) fn is_stepped(&self) -> bool {
        self.stepped
    }

    /// Notes that an answer of the service came without a date.
    pub(crate) fn note_undated(&mut self) {
        self.undated = true;
    }

    pub(crate) fn is_undated(&self) -> bool {
        self.undated
    }

    /// True once the service has confirmed the time.
    pub(crate) fn is_confirmed(&self) -> bool {
        self.day.is_confirmed()
    }

    /// True if answers have no date, and the machine's clock was not seen to be set.
    ///
    /// A day of the journal that has not begun by the machine's clock shows that it was set while no process ran.
    pub(crate) fn is_left_to_the_clock(&self, settings: &Settings) -> bool {
        let now = settings.reading(&self.start, &settings.moment());
        self.undated && !self.day.is_doubted() && !self.day.is_ahead_of_clock(now)
    }

    /// True if the journal of an earlier process has a day that is more than one ahead of the service's clock.
    pub(crate) fn is_journal_ahead(&self, settings: &Settings) -> bool {
        self.journal_day.is_some_and(|journal_day| {
            let now = settings.reading(&self.start, &settings.moment());
            self.day.is_ahead_of_date(journal_day, now)
        })
    }

    /// Returns how much of the day is left.
    pub(crate) fn left(&self, settings: &Settings) -> Duration {
        self.day.left(settings.reading(&self.start, &settings.moment()))
    }

    /// Returns the day for the journal: the latest that it may be.
    ///
    /// If the machine's clock was behind when the process began, and was set right since, the next process begins with
    /// the right day. It must not take these orders for those of the day before, whose names are free.
    pub(crate) fn latest_day(&self, settings: &Settings) -> TradingDay {
        self.day.latest(settings.reading(&self.start, &settings.moment()))
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
