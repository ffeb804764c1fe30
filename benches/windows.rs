//! The windows of the zone `general`, as the service has them and wider, and a limiter's core that keeps them.

use std::num::NonZeroU32;

use steadfast::{
    BoxError,
    limit::{Ask, Lane, Limiter, MINUTE, Quota, SECOND, Zone, ZoneId, ZoneLimiter},
};

pub(crate) const TEN: NonZeroU32 = NonZeroU32::MIN.saturating_add(9);
pub(crate) const FOUR_HUNDRED: NonZeroU32 = NonZeroU32::MIN.saturating_add(399);
/// A limit that no bench reaches: what is measured is the way to a permit, not the wait for it.
pub(crate) const MANY: NonZeroU32 = NonZeroU32::MIN.saturating_add(15_000_000 - 1);

/// The core with the service's own zones, general's windows apart.
pub(crate) fn core(second: NonZeroU32, minute: NonZeroU32) -> Result<Limiter, BoxError> {
    let windows =
        |general: Quota| general.clear_limits().limit(second.get(), SECOND).limit(minute.get(), MINUTE);
    Ok(ZoneLimiter::builder().preset().adjust(Zone::GENERAL, windows).build_core()?)
}

pub(crate) fn general(core: &Limiter) -> Result<ZoneId, BoxError> {
    core.zone_id(Zone::GENERAL).ok_or_else(|| "the preset has no such zone".into())
}

pub(crate) fn ask(zones: &[(ZoneId, u64)], lane: Lane) -> Ask<'_> {
    Ask { zones, lane, deadline: None, head_of_lane: false }
}

