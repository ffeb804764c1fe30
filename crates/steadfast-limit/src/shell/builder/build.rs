use steadfast_call::Lane;

use super::Builder;
use crate::{
    core::{limiter::Limiter, rules::Rules, settings::Settings, start::Assumed, time::nanos},
    error::InvalidLimiter,
    persist::{cold_start::ColdStart, journal_clocks::JournalClocks},
    shell::{route_mover::RouteMover, zone_limiter::ZoneLimiter},
};

/// The check of the settings.
impl Builder {
    /// The most zones of one limiter.
    const MOST_ZONES: usize = 64;

    /// Builds the limiter. Reads and writes the [journal](ColdStart::Journal), if it has one.
    ///
    /// # Errors
    ///
    /// [`InvalidLimiter`] names the first zone, window or lane whose settings cannot be kept, or the journal.
    pub fn build(mut self) -> Result<ZoneLimiter, InvalidLimiter> {
        let observer = self.observer.take();
        let clocks = JournalClocks::new(self.wall_clock.clone(), self.boot_clock.clone());
        let mut cold = std::mem::take(&mut self.cold_start);
        let shared_count = self.shared_count.take();
        if shared_count.is_some() {
            cold = ColdStart::Empty;
        }
        let arrives_within = self.arrives_within;
        let route_mover = self.moved_routes.map(|(from, to)| RouteMover::new(from, to));
        let limiter = ZoneLimiter::open(self.build_core()?, observer, route_mover, cold, clocks)?;
        Ok(match shared_count {
            Some(shared_count) => limiter.counting_with(shared_count, arrives_within),
            None => limiter,
        })
    }

    /// Builds only the pure core, for simulations with instants of their own. It has no observer:
    /// [`Limiter::take_events`] returns the events.
    ///
    /// # Errors
    ///
    /// As [`build`](Self::build).
    pub fn build_core(self) -> Result<Limiter, InvalidLimiter> {
        if let Some(zone) = self.unknown {
            return Err(InvalidLimiter::UnknownZone(zone));
        }
        if self.quotas.is_empty() {
            return Err(InvalidLimiter::NoZones);
        }
        if self.quotas.len() > Self::MOST_ZONES {
            return Err(InvalidLimiter::TooManyZones { most: Self::MOST_ZONES });
        }
        if let Some(lane) = Lane::ALL.into_iter().find(|lane| self.queue_bounds[*lane as usize] == 0) {
            return Err(InvalidLimiter::ZeroQueue(lane));
        }
        if self.most_keys == 0 {
            return Err(InvalidLimiter::ZeroKeys);
        }
        let arrives_within = nanos(self.arrives_within).ok_or(InvalidLimiter::ArrivalTooLong)?;
        for (index, quota) in self.quotas.iter().enumerate() {
            if self.quotas[..index].iter().any(|earlier| earlier.zone == quota.zone) {
                return Err(InvalidLimiter::DuplicateZone(quota.zone));
            }
        }
        if let Some((from, to)) = self.moved_routes {
            let is_known = |zone| self.quotas.iter().any(|quota| quota.zone == zone);
            if let Some(zone) = [from, to].into_iter().find(|zone| !is_known(*zone) || from == to) {
                return Err(InvalidLimiter::InvalidMove(zone));
            }
        }
        if matches!(self.cold_start, ColdStart::Journal(_)) {
            return Err(InvalidLimiter::JournalInCore);
        }
        let pessimistic = self.cold_start == ColdStart::Pessimistic;
        let rules = self.quotas.iter().map(Rules::new).collect::<Result<_, _>>()?;
        let settings = Settings {
            arrives_within,
            ends_with_process: self.ends_with_process,
            queue_bounds: self.queue_bounds,
            most_keys: self.most_keys.min(u32::MAX as usize),
            strict_critical: self.strict_critical,
        };
        let mut core = Limiter::new(rules, settings);
        if pessimistic {
            core.assume(Assumed::All, 0);
        }
        Ok(core)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use steadfast_spec::{Scope, Zone};

    use super::*;
    use crate::core::rules::quota::{Quota, SECOND};

    fn error(builder: Builder) -> InvalidLimiter {
        builder.build_core().unwrap_err()
    }

    #[test]
    fn the_preset_is_valid_and_holds_the_zones_of_the_service() {
        let core = Builder::new().preset().build_core().unwrap();
        for zone in Zone::ALL {
            assert!(core.zone_id(zone).is_some(), "{zone}");
        }
    }

    #[test]
    fn every_setting_that_cannot_be_kept_is_refused_by_name() {
        use InvalidLimiter as E;
        let zone = Zone::new("mine");
        let quota = || Quota::new(zone, Scope::ApiKey).limit(1, SECOND);
        assert_eq!(error(Builder::new()), E::NoZones);
        assert_eq!(error(Builder::new().preset().preset()), E::DuplicateZone(Zone::OTP));
        assert_eq!(error(Builder::new().preset().adjust(zone, |q| q)), E::UnknownZone(zone));
        assert_eq!(error(Builder::new().zone(quota()).max_keys(0)), E::ZeroKeys);
        assert_eq!(error(Builder::new().zone(quota()).queue_bound(Lane::Bulk, 0)), E::ZeroQueue(Lane::Bulk));
        assert_eq!(error(Builder::new().zone(quota()).arrives_within(Duration::MAX)), E::ArrivalTooLong);
        let many = (0..65).fold(Builder::new(), |builder, _| builder.zone(quota()));
        assert_eq!(error(many), E::TooManyZones { most: 64 });
        assert_eq!(error(Builder::new().zone(quota().clear_limits())), E::NoWindows(zone));
    }
}
