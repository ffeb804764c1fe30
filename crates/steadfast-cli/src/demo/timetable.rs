use std::time::Duration;

use super::{dice::Dice, scenario::STANDARD};

/// When orders, polls and cancels are asked for, and when the token dies.
#[derive(Clone, Debug)]
pub(crate) struct Timetable {
    waves: Vec<Wave>,
    /// How many of the waves come before the night.
    evening: usize,
    /// The quiet time between the two sessions, in which lists are read and orders cancelled.
    lull: (Duration, Duration),
    cancels: usize,
    night: Option<Duration>,
}

/// So many orders asked for at one instant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wave {
    pub(crate) at: Duration,
    pub(crate) orders: usize,
}

/// Between two reads of the list: four a second at most.
const BETWEEN_POLLS: Duration = Duration::from_millis(250);
/// Orders cancelled at one instant.
const FLURRY: usize = 3;
const LULL: Duration = Duration::from_secs(18);
/// From the end of the lull to the death of the token.
const DUSK: Duration = Duration::from_secs(2);

impl Timetable {
    /// Six waves, a lull, the death of the token and three waves.
    ///
    /// Three fifths of the orders come before the night. A session lasts as long as its orders need under the quota
    /// of ten a second, and as long as those of the standard run at least.
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

    /// One wave, and nothing after it: for tests that last a few seconds.
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

    /// How many orders come before the night.
    pub(crate) fn before_night(&self) -> usize {
        self.waves.iter().take(self.evening).map(|wave| wave.orders).sum()
    }

    /// When all tokens die.
    pub(crate) fn night(&self) -> Option<Duration> {
        self.night
    }

    /// When the list is read.
    pub(crate) fn polls(&self) -> impl Iterator<Item = Duration> + use<> {
        let (from, to) = self.lull;
        let mut at = from;
        std::iter::from_fn(move || {
            let poll = at;
            at += BETWEEN_POLLS;
            (poll < to).then_some(poll)
        })
    }

    /// When orders are cancelled: half in flurries, as when a strategy is stopped, half one by one between them.
    ///
    /// Reads of the list, those included that look for orders in doubt, leave the general quota room for four more
    /// requests in any second. No second asks for more, so that a cancel that waits does so for its client's sake and
    /// not for arithmetic's.
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

/// Some part of a span.
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
