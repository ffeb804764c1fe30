//! A limiter whose zone `general` has the windows that a bench chooses.

use std::num::NonZeroU32;

use steadfast::{
    BoxError,
    limit::{Ask, Builder, Lane, Limiter, MINUTE, Quota, SECOND, Zone, ZoneId, ZoneLimiter},
};

pub(crate) const TEN: NonZeroU32 = NonZeroU32::MIN.saturating_add(9);
pub(crate) const FOUR_HUNDRED: NonZeroU32 = NonZeroU32::MIN.saturating_add(399);

/// Returns a limiter with the service's own zones, but these limits for `general`.
pub(crate) fn zones(second: NonZeroU32, minute: NonZeroU32) -> Builder {
    let windows =
        |general: Quota| general.clear_limits().limit(second.get(), SECOND).limit(minute.get(), MINUTE);
    ZoneLimiter::builder().preset().adjust(Zone::GENERAL, windows)
}

pub(crate) fn general(core: &Limiter) -> Result<ZoneId, BoxError> {
    core.zone_id(Zone::GENERAL).ok_or_else(|| "the preset has no such zone".into())
}

pub(crate) fn ask(zones: &[(ZoneId, u64)], lane: Lane) -> Ask<'_> {
    Ask { zones, lane, send_by: None, head_of_lane: false }
}
