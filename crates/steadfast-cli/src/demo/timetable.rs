use std::time::Duration;

use super::dice::Dice;

/// The number of orders for which the minimum counts of faults hold; more orders meet more faults.
pub(crate) const STANDARD: usize = 300;

/// When orders are placed, lists read and orders cancelled, and when the token dies.
#[derive(Clone, Debug)]
pub(crate) struct Timetable {
    waves: Vec<Wave>,
    /// How many waves come before the night.
    evening: usize,
    /// The quiet time between the sessions, in which lists are read and orders cancelled.
    lull: (Duration, Duration),
    cancels: usize,
    night: Option<Duration>,
}

/// A number of orders placed at one instant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wave {
    pub(crate) at: Duration,
    pub(crate) orders: usize,
}

/// A dashboard reads the list for each of its panels, twice a second. That is more than the general quota admits, so that
/// reads wait at every client, and cancels wait behind them at those that have one queue.
const PANELS: usize = 6;
const BETWEEN_REFRESHES: Duration = Duration::from_millis(500);
/// Orders cancelled at one instant: as many as this stack keeps free for cancels in a zone of ten a second.
const FLURRY: usize = 2;
const LULL: Duration = Duration::from_secs(18);
/// The time from the end of the lull to the death of the token.
const DUSK: Duration = Duration::from_secs(2);

impl Timetable {
    /// Creates six waves, a lull, the death of the token and three waves.
    ///
    /// Three fifths of the orders come before the night. A session lasts as long as its orders need at ten a second,
    /// and at least as long as in the standard run.
    pub(crate) fn standard(orders: usize) -> Self {
        let stretch = (orders as f64 / STANDARD as f64).max(1.0);
        let first = orders * 3 / 5;
        let lull_from = Duration::from_secs(18).mul_f64(stretch);
        let night = lull_from + LULL + DUSK;
        let mut waves = waves(Duration::ZERO, Duration::from_secs(3).mul_f64(stretch), 6, first);
        waves.extend(waves_after_night(night, stretch, orders - first));
        Self {
            waves,
            evening: 6,
            lull: (lull_from, lull_from + LULL),
            cancels: (orders / 8).min(40),
            night: Some(night),
        }
    }

    /// Creates a single wave, for tests of a few seconds.
    #[cfg(test)]
    pub(crate) fn brief(orders: usize) -> Self {
        Self {
            waves: waves(Duration::ZERO, Duration::from_secs(1), 1, orders),
            evening: 1,
            lull: (Duration::from_secs(1), Duration::from_secs(2)),
            cancels: 2,
            night: None,
        }
    }

    pub(crate) fn waves(&self) -> &[Wave] {
        &self.waves
    }

    pub(crate) fn orders(&self) -> usize {
        self.waves.iter().map(|wave| wave.orders).sum()
    }

    /// Counts the orders before the night.
    pub(crate) fn before_night(&self) -> usize {
        self.waves.iter().take(self.evening).map(|wave| wave.orders).sum()
    }

    /// Returns when all tokens die.
    pub(crate) fn night(&self) -> Option<Duration> {
        self.night
    }

    /// Returns when the list is read.
    pub(crate) fn polls(&self) -> impl Iterator<Item = Duration> + use<> {
        let (from, to) = self.lull;
        let refreshes =
            (0..).map(move |count| from + BETWEEN_REFRESHES * count).take_while(move |at| *at < to);
        refreshes.flat_map(|at| std::iter::repeat_n(at, PANELS))
    }

    /// Returns when orders are cancelled: half in flurries, as when a strategy is stopped, half one by one between
    /// them. In any second they are fewer than the quota admits, so a cancel that waits does so because of its client.
    pub(crate) fn cancels(&self, dice: &mut Dice) -> Vec<Duration> {
        let (from, to) = self.lull;
        let flurries = self.cancels.div_ceil(2 * FLURRY).max(1);
        let part = (to - from) / flurries as u32;
        let single = self.cancels.saturating_sub(flurries * FLURRY);
        let mut instants = Vec::with_capacity(self.cancels);
        for flurry in 0..flurries {
            let start = from + part * flurry as u32;
            let at = start + part / 10 + share(part / 20, dice);
            instants.extend(std::iter::repeat_n(at, FLURRY.min(self.cancels)));
            let own = single * (flurry + 1) / flurries - single * flurry / flurries;
            let (start, rest) = (start + part * 9 / 20, part * 7 / 20);
            instants.extend((0..own as u32).map(|place| {
                let room = rest / own as u32;
                start + room * place + share(room, dice)
            }));
        }
        instants
    }
}

/// Returns a random part of a span.
fn share(span: Duration, dice: &mut Dice) -> Duration {
    Duration::from_millis(dice.below(span.as_millis() as usize) as u64)
}

fn waves(from: Duration, apart: Duration, count: usize, orders: usize) -> Vec<Wave> {
    let size = |wave: usize| orders * (wave + 1) / count - orders * wave / count;
    (0..count).map(|wave| Wave { at: from + apart * wave as u32, orders: size(wave) }).collect()
}

fn waves_after_night(night: Duration, stretch: f64, orders: usize) -> Vec<Wave> {
    waves(night, Duration::from_millis(4_500).mul_f64(stretch), 3, orders)
}
