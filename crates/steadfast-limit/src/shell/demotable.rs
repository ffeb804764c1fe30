use std::hash::BuildHasher;

use steadfast_spec::{Endpoint, Lane, Scope, Zone};
use tokio::time::Instant;

use crate::{
    core::{event::Event, trust::demotion::Standing},
    request::keys::ScopeKeys,
    shell::{acquire::Acquire, zone_limiter::ZoneLimiter},
};

/// A route that may be demoted, for the duration of one of its requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watched {
    route: u64,
    endpoint: Option<Endpoint>,
    /// The zone that it may be moved from.
    pub(crate) zone: Zone,
}

/// Routes that may be counted under another zone than their own.
impl ZoneLimiter {
    /// Does the same as `acquire` for a request of the route `watched`, which may be counted under another zone.
    pub(crate) fn acquire_watched(
        &self,
        zones: &[Zone],
        keys: ScopeKeys,
        lane: Lane,
        watched: Option<Watched>,
    ) -> Acquire {
        let zones = match watched.and_then(|watched| self.moved(watched)) {
            Some((from, to)) => {
                self.resolve(zones.iter().map(|zone| if *zone == from { to } else { *zone }), keys)
            }
            None => self.resolve(zones.iter().copied(), keys),
        };
        Acquire::new(self.clone(), zones, lane)
    }

    /// Returns the request's route, if that may be demoted.
    pub(crate) fn watch(
        &self,
        zones: &[Zone],
        keys: ScopeKeys,
        endpoint: Option<Endpoint>,
        path: &str,
    ) -> Option<Watched> {
        let zone = self.shared.demotions.as_ref()?.lock().from;
        if !zones.contains(&zone) {
            return None;
        }
        let path = if endpoint.is_some() { "" } else { path };
        // The service counts a route alike for all users, so it is watched per gateway, not per account.
        let server = keys.of(Scope::ClientIp);
        Some(Watched { route: self.shared.seed.hash_one((server, endpoint, path)), endpoint, zone })
    }

    /// Returns the zone that a demoted route is moved from, and the zone it is moved to.
    fn moved(&self, watched: Watched) -> Option<(Zone, Zone)> {
        let now = self.nanos(Instant::now());
        let mut demotions = self.shared.demotions.as_ref()?.lock();
        let (from, to) = (demotions.from, demotions.to);
        let standing = demotions.standing(watched.route, now);
        drop(demotions);
        match standing {
            Standing::Own => None,
            Standing::Demoted => Some((from, to)),
            Standing::Restored => {
                self.report(&Event::Restored { endpoint: watched.endpoint, zone: from });
                None
            }
        }
    }

    /// Records that a request of the route was refused and the limiter's own log does not explain it.
    pub(crate) fn unexplained(&self, watched: Watched) {
        let Some(demotions) = &self.shared.demotions else { return };
        let now = self.nanos(Instant::now());
        let mut demotions = demotions.lock();
        let (from, to) = (demotions.from, demotions.to);
        let demoted = demotions.unexplained(watched.route, now);
        drop(demotions);
        if demoted {
            self.report(&Event::Demoted { endpoint: watched.endpoint, from, to });
        }
    }
}
