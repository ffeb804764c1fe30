mod effective;

use std::time::Duration;

use crate::store::BUDGET;

/// Settings of token renewal: when it happens, and how many failed logins are allowed.
///
/// | setting | default |
/// |---|---|
/// | advisory: renew in the background | 60 min before the end, up to 5 min earlier by jitter |
/// | mandatory: requests wait for the renewal | 60 s before the end |
/// | daily time | 08:00 at +05:30, unless the token is younger than 4 h |
/// | failure budget | 2 for each set of credentials, 3 for the account |
/// | requests that may wait for a token | 4,096 |
///
/// Tokens that live shorter than 24 hours have proportionally shorter margins: at most a quarter (advisory) and a tenth
/// (mandatory) of their life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Renewal {
    advisory: Duration,
    mandatory: Duration,
    daily: Option<DailyAt>,
    jitter: u64,
    pub(crate) budget: u32,
    pub(crate) waiting: usize,
}

/// A time of day in a zone without daylight saving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DailyAt {
    minute_of_day: i64,
    utc_offset_minutes: i64,
}

const DAY_MS: i64 = 86_400_000;
const MINUTE_MS: i64 = 60_000;
/// A token younger than this at the daily time is not renewed: it outlives the trading day, and its renewal an hour
/// before its end falls before tomorrow's daily time. If this were less than the advisory hour and its jitter, each
/// renewal before the daily time would be followed by a second one at the daily time, every day.
const YOUNG_MS: i64 = 4 * 60 * MINUTE_MS;
const LARGEST_JITTER_MS: i64 = 5 * MINUTE_MS;

impl DailyAt {
    /// `hour:minute` at an offset from UTC in minutes; values beyond a day wrap around.
    #[must_use]
    pub const fn new(hour: u8, minute: u8, utc_offset_minutes: i16) -> Self {
        let minute_of_day = hour as i64 * 60 + minute as i64;
        Self { minute_of_day, utc_offset_minutes: utc_offset_minutes as i64 }
    }

    /// Returns the first occurrence at or after `ms` since the Unix epoch.
    fn next(self, ms: i64) -> i64 {
        let phase = (self.minute_of_day - self.utc_offset_minutes) * MINUTE_MS;
        ms + (phase - ms).rem_euclid(DAY_MS)
    }
}

impl Renewal {
    /// Creates the defaults.
    pub const fn new() -> Self {
        Self {
            advisory: Duration::from_secs(3_600),
            mandatory: Duration::from_secs(60),
            daily: Some(DailyAt::new(8, 0, 330)),
            jitter: 0,
            budget: BUDGET,
            waiting: 4_096,
        }
    }

    /// Sets how long before the end of a token the background renewal starts.
    pub const fn advisory(self, advisory: Duration) -> Self {
        Self { advisory, ..self }
    }

    /// Sets how long before the end of a token requests wait for its successor.
    pub const fn mandatory(self, mandatory: Duration) -> Self {
        Self { mandatory, ..self }
    }

    /// Sets the daily time of a renewal, so that no token ends in market hours; `None` for never.
    pub const fn daily(self, daily: Option<DailyAt>) -> Self {
        Self { daily, ..self }
    }

    /// Seeds the jitter of the background renewal; without it the seed is random.
    pub const fn jitter_seed(self, seed: u64) -> Self {
        // Zero stands for "not chosen".
        Self { jitter: if seed == 0 { 1 } else { seed }, ..self }
    }

    /// Sets how many wrong logins with the same credentials latch these; at least one. One more, with any credentials,
    /// latches the account, because a service locks the account.
    ///
    /// Both are counted over all programs that share a store. A successful login restores the budgets of the account
    /// and of its credentials; a reset restores all. Changed credentials have a budget of their own, within what is
    /// left of the account's.
    ///
    /// A login that left and has an unknown end (5xx, a redirect, a page, a lost answer), or was denied (403), may have
    /// been wrong, because a proxy may have replaced a 401. Two with the same credentials and three of the account
    /// leave at once. Then the next ones wait 1 h, 4 h, 8 h and from then on 24 h after the last, until a success or a
    /// reset. They latch nothing, because a service that was down for a night needs no person
    /// ([`UnknownEnds`](crate::UnknownEnds), [`Summary::unknown`](crate::Summary::unknown)). After a refused login an
    /// unknown end counts as another refusal: the service may have counted it, and an account that it locks stays
    /// locked.
    pub const fn failure_budget(self, budget: u32) -> Self {
        Self { budget: if budget == 0 { 1 } else { budget }, ..self }
    }

    /// Sets how many requests may wait for a token at once.
    pub const fn max_waiting(self, waiting: usize) -> Self {
        Self { waiting, ..self }
    }

    /// Chooses a random seed for the jitter if none was set.
    pub(crate) fn seeded(self) -> Self {
        use std::hash::{BuildHasher, RandomState};
        if self.jitter == 0 { self.jitter_seed(RandomState::new().hash_one(0_u8)) } else { self }
    }

    /// Returns when the background renewal of a token starts.
    pub(crate) fn advisory_at(&self, issued: i64, expires: i64, generation: u64) -> i64 {
        let life = expires - issued;
        let jitter = (LARGEST_JITTER_MS.min(life / 20) as i128 * self.fraction(generation)) >> 32;
        let before_the_end =
            expires - ms(self.advisory).min(life / 4) - i64::try_from(jitter).unwrap_or_default();
        match self.daily {
            Some(daily) => before_the_end.min(daily.next(issued + YOUNG_MS)),
            None => before_the_end,
        }
    }

    /// Returns from when on requests wait for the renewal of a token.
    pub(crate) fn mandatory_at(&self, issued: i64, expires: i64) -> i64 {
        expires - ms(self.mandatory).min((expires - issued) / 10)
    }

    /// Returns a number of [0, 2^32) that differs between processes and from token to token.
    fn fraction(&self, generation: u64) -> i128 {
        // The finalizer of SplitMix64.
        let mut z = self.jitter.wrapping_add(generation.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        i128::from((z ^ (z >> 31)) >> 32)
    }
}

impl Default for Renewal {
    fn default() -> Self {
        Self::new()
    }
}

fn ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 60 * MINUTE_MS;
    // A Monday, 00:00 UTC.
    const MIDNIGHT: i64 = 1_699_833_600_000;

    #[test]
    fn the_background_renewal_starts_an_hour_before_the_end_and_up_to_five_minutes_earlier() {
        let mut earliest = 0;
        for generation in 0..200 {
            let renewal = Renewal::new().daily(None).jitter_seed(7);
            let early = 23 * HOUR - renewal.advisory_at(0, 24 * HOUR, generation);
            assert!((0..LARGEST_JITTER_MS).contains(&early), "{early}");
            earliest = earliest.max(early);
        }
        assert!(earliest > 4 * MINUTE_MS, "jitter uses its range");
    }

    #[test]
    fn a_token_of_11_o_clock_is_renewed_at_8_and_does_not_end_in_market_hours() {
        // 11:00 at +05:30 is 05:30 UTC.
        let issued = MIDNIGHT + 5 * HOUR + 30 * MINUTE_MS;
        let at = Renewal::new().advisory_at(issued, issued + 24 * HOUR, 1);
        assert_eq!(at, MIDNIGHT + DAY_MS + 2 * HOUR + 30 * MINUTE_MS);
    }

    #[test]
    fn a_token_minutes_old_at_the_daily_time_is_left_alone() {
        let issued = MIDNIGHT + 2 * HOUR;
        let at = Renewal::new().advisory_at(issued, issued + 24 * HOUR, 1);
        assert!(at > issued + 22 * HOUR);
    }

    #[test]
    fn tokens_renewed_on_time_need_little_more_than_one_login_a_day() {
        let renewal = Renewal::new().jitter_seed(7);
        let (mut at, mut logins) = (MIDNIGHT + 2 * HOUR + 30 * MINUTE_MS, 0);
        while at < MIDNIGHT + 30 * DAY_MS {
            at = renewal.advisory_at(at, at + 24 * HOUR, logins);
            logins += 1;
        }
        assert!((30..=42).contains(&logins), "{logins} in 30 days");
    }

    #[test]
    fn short_lives_have_short_margins() {
        let renewal = Renewal::new().jitter_seed(7);
        assert_eq!(renewal.mandatory_at(0, 1_000), 900);
        let advisory = renewal.advisory_at(0, 1_000, 1);
        assert!((700..=750).contains(&advisory), "{advisory}");
        assert_eq!(
            renewal.advisory_at(MIDNIGHT, MIDNIGHT + 1_000, 1),
            MIDNIGHT + advisory,
            "whenever it is issued"
        );
        assert_eq!(renewal.mandatory_at(0, 24 * HOUR), 24 * HOUR - MINUTE_MS);
    }

    /// Compares with the published outputs of SplitMix64 with seed 0, from the second one on.
    #[test]
    fn jitter_is_drawn_as_evenly_as_a_known_generator_draws_it() {
        let renewal = Renewal::new().jitter_seed(0x9e37_79b9_7f4a_7c15);
        let published =
            [0x6e78_9e6a_a1b9_65f4_u64, 0x06c4_5d18_8009_454f, 0xf88b_b8a8_724c_81ec, 0x1b39_896a_51a8_749b];
        for (generation, published) in (1..).zip(published) {
            assert_eq!(renewal.fraction(generation), i128::from(published >> 32));
        }
    }
}
