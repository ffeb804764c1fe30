use std::time::Duration;

use steadfast_call::Lane;
use steadfast_limit::{Profile, WindowSettings, ZoneSettings};
use steadfast_spec::{Scope, Zone};

/// An instant or a time of the store's clock in whole microseconds, the unit of its `TIME`.
pub type Micros = i64;

/// How long a permit may be held before its request leaves.
const LONGEST_HOLD: Duration = Duration::from_secs(5);

/// How long cancels and verification wait for another process's request that has no answer.
const PATIENCE: Micros = 3_000_000;

/// How long a server that has lost its replicas may go on granting while one of them was promoted: the default of
/// `min-replicas-max-lag`.
const PROMOTION_LAG: Micros = 10_000_000;

/// How many slots of a window are lent to no process.
const LEFT_TO_ALL: u32 = 5;

/// How far a lent slot's stamp is beyond those of requests on their way.
const BESIDE_LENT: Micros = 1_000_000;

/// The difference of clocks besides their rate: the rounding of timers, and that of stamps.
const ROUNDING: Micros = 2_000;

/// The limits of one zone, as all processes of an account ask the store to keep them.
///
/// Every process must be given the same settings: the store keeps stamps, and not the rule.
///
/// # Example
///
/// ```
/// use steadfast_limit::{Quota, SECOND, Scope, Zone, ZoneLimiter};
/// use steadfast_redis::Rule;
///
/// # fn main() -> Result<(), steadfast_limit::InvalidLimiter> {
/// let orders = Quota::new(Zone::PLACE_ORDER, Scope::AuthToken).limit(10, SECOND);
/// let limiter = ZoneLimiter::builder().zone(orders).build()?;
/// let rule = Rule::new(&limiter.settings()[0]);
/// assert_eq!(rule.zone(), Zone::PLACE_ORDER);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    zone: Zone,
    scope: Scope,
    /// The shortest first.
    windows: Box<[Window]>,
    interpolates: bool,
    hold: Micros,
    arrives_within: Micros,
    settle: Micros,
    shares: bool,
}

/// One window of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// How many slots each lane may fill.
    ceilings: [u32; Lane::ALL.len()],
    /// As long as a stamp fills a slot.
    pub(crate) period: Micros,
}

impl Window {
    /// Returns the window that lets no more than `burst` requests through back to back, and the rest of the limit evenly.
    ///
    /// With B in each stretch of B / R, any stretch t holds B + R·t at most. So a leaky bucket of that burst never
    /// overflows; and with R = (N − B) / T neither does any window of `window`.
    fn of_burst(burst: u32, window: &WindowSettings) -> Self {
        let evenly = Micros::from(window.limit.saturating_sub(burst).max(1));
        // Leaky buckets may be coarse by one thousandth.
        let stretch = micros(window.period) * 1_001 / 1_000 * Micros::from(burst) / evenly + 1;
        Self { ceilings: [burst; Lane::ALL.len()], period: held(stretch) }
    }

    /// Returns how many slots requests of `lane` may fill. While the window counts as full, that is the reserve of
    /// cancels, which no other lane has touched; other lanes have nothing then.
    pub(crate) fn most(&self, lane: Lane, is_full: bool) -> u32 {
        let own = self.ceilings[lane as usize];
        if is_full { own.saturating_sub(self.ceilings[Lane::Trading as usize]).max(1) } else { own }
    }

    /// Returns how many slots there are.
    pub(crate) fn limit(&self) -> u32 {
        self.ceilings[Lane::Critical as usize]
    }
}

impl Rule {
    /// Takes the limits of a zone, with the reserves of its lanes.
    ///
    /// A zone of [`Profile::WindowLog`] is kept by the log, one of [`Profile::Paced`] by its burst and the log, and every
    /// other one by the universal rule.
    #[must_use]
    pub fn new(settings: &ZoneSettings) -> Self {
        let mut windows: Vec<_> = settings
            .windows
            .iter()
            .map(|window| Window { ceilings: window.ceilings, period: held(micros(window.period)) })
            .collect();
        if let Profile::Paced { burst } = settings.profile {
            windows.extend(settings.windows.iter().map(|window| Window::of_burst(burst.get(), window)));
        }
        windows.sort_by_key(|window| window.period);
        Self {
            zone: settings.zone,
            scope: settings.scope,
            windows: windows.into(),
            interpolates: !matches!(settings.profile, Profile::WindowLog | Profile::Paced { .. }),
            hold: micros(LONGEST_HOLD),
            arrives_within: 30_000_000,
            settle: micros(settings.settle),
            shares: false,
        }
    }

    /// Sets how long after it has left a request may still be counted, if its process died. Default: 30 s, which holds
    /// where nothing but the client's own transport ends the connection.
    #[must_use]
    pub fn arrives_within(mut self, arrives_within: Duration) -> Self {
        self.arrives_within = micros(arrives_within);
        self
    }

    /// Lends every process one slot of each window, for cancels that the store does not let through, or that cannot ask it.
    /// The store takes it from the limit for as long as it is lent, and lends no slot that leaves fewer than five.
    #[must_use]
    pub fn emergency_share(mut self) -> Self {
        self.shares = true;
        self
    }

    /// Returns the rule by which a process uses the slot that is lent to it.
    #[doc(hidden)]
    #[must_use]
    pub fn of_share(&self) -> Self {
        let windows = self.windows.iter().map(|window| Window { ceilings: [1; Lane::ALL.len()], ..*window });
        Self { windows: windows.collect(), shares: false, ..self.clone() }
    }

    /// Returns the zone.
    #[must_use]
    pub fn zone(&self) -> Zone {
        self.zone
    }

    /// Returns how long after it was asked for a permit may be used.
    #[must_use]
    pub fn hold(&self) -> Duration {
        Duration::from_micros(self.hold.unsigned_abs())
    }

    /// Returns what the zone counts the requests of.
    pub(crate) fn scope(&self) -> Scope {
        self.scope
    }

    pub(crate) fn windows(&self) -> &[Window] {
        &self.windows
    }

    pub(crate) fn interpolates(&self) -> bool {
        self.interpolates
    }

    /// How long after its permit a request without an answer may be counted.
    pub(crate) fn on_its_way(&self) -> Micros {
        self.hold + self.arrives_within
    }

    /// Returns the stamp of a request that is granted at `now`. It is odd: a stamp in the future may also be an answer,
    /// told to the store by a process whose clock allows a later instant than the next caller's.
    pub(crate) fn stamp_on_its_way(&self, now: Micros) -> Micros {
        (now + self.on_its_way()) | 1
    }

    /// Returns the stamp of a request that is answered at `now`. It is even.
    pub(crate) fn stamp_answered(&self, now: Micros) -> Micros {
        let latest = now + self.settle;
        latest + (latest & 1)
    }

    /// How long after its permit a request counts in no window any more, if nothing is heard of it.
    pub(crate) fn frees_itself_after(&self) -> Duration {
        Duration::from_micros((self.on_its_way() + self.longest()).unsigned_abs())
    }

    /// How much earlier than others `lane` gives up a request without an answer.
    pub(crate) fn given_up_earlier(&self, lane: Lane) -> Micros {
        if lane <= Lane::Verification { (self.on_its_way() - PATIENCE).max(0) } else { 0 }
    }

    /// How long the windows count as full after the store has lost its memory: as long as what was on its way may be
    /// counted, and as that fills the longest window. If a replica was promoted, the former server may not know yet.
    pub(crate) fn full_after_loss(&self) -> Micros {
        PROMOTION_LAG + self.on_its_way() + self.longest()
    }

    /// How many slots may be lent.
    pub(crate) fn most_lent(&self) -> u32 {
        let least = self.windows.iter().map(Window::limit).min().unwrap_or(0);
        if self.shares { least.saturating_sub(LEFT_TO_ALL) } else { 0 }
    }

    /// Returns the instant after which no stamp lies but those of lent slots.
    pub(crate) fn lent_from(&self, now: Micros) -> Micros {
        now + self.on_its_way() + BESIDE_LENT
    }

    /// How long a slot stays taken after its process may have used it last.
    pub(crate) fn after_share(&self) -> Micros {
        self.on_its_way() + 2 * self.longest() + BESIDE_LENT
    }

    /// How long a stamp is kept.
    pub(crate) fn kept(&self) -> Micros {
        2 * self.longest()
    }

    /// How long after its answer a request may still be counted.
    pub(crate) fn settle(&self) -> Micros {
        self.settle
    }

    fn longest(&self) -> Micros {
        self.windows.last().map_or(0, |window| window.period)
    }
}

/// Returns how long a stamp fills a slot of a window of `period`: the gateway's clock may run slower than the store's.
fn held(period: Micros) -> Micros {
    period + (period * 500 + 999_999) / 1_000_000 + ROUNDING
}

fn micros(duration: Duration) -> Micros {
    Micros::try_from(duration.as_micros()).unwrap_or(Micros::MAX / 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_held_longer_than_by_one_process_alone() {
        assert_eq!(held(1_000_000), 1_000_000 + 500 + 2_000);
        assert_eq!(held(60_000_000), 60_000_000 + 30_000 + 2_000);
    }

    #[test]
    fn a_paced_zone_has_a_window_for_its_burst() {
        let quota = steadfast_limit::Quota::new(Zone::PLACE_ORDER, Scope::AuthToken)
            .limit(10, steadfast_limit::SECOND)
            .profile(Profile::Paced { burst: std::num::NonZeroU32::new(2).unwrap() });
        let limiter = steadfast_limit::ZoneLimiter::builder().zone(quota).build().unwrap();
        let rule = Rule::new(&limiter.settings()[0]);
        assert!(!rule.interpolates());
        let windows: Vec<_> =
            rule.windows().iter().map(|window| (window.most(Lane::Bulk, false), window.period)).collect();
        assert_eq!(windows, [(2, held(250_251)), (10, held(1_000_000))]);
    }

    #[test]
    fn after_a_loss_cancels_keep_what_other_lanes_leave_them() {
        let general = steadfast_limit::ZoneLimiter::preset()
            .settings()
            .into_iter()
            .find(|settings| settings.zone == Zone::GENERAL)
            .unwrap();
        let rule = Rule::new(&general);
        let most = |lane, is_full| [0, 1].map(|place: usize| rule.windows()[place].most(lane, is_full));
        assert_eq!(most(Lane::Critical, false), [10, 400]);
        assert_eq!(most(Lane::Critical, true), [1, 10]);
        assert_eq!(most(Lane::Bulk, false), [8, 380]);
        assert_eq!(rule.full_after_loss(), 10_000_000 + 35_000_000 + held(60_000_000));
    }
}
