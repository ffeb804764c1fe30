use std::hash::BuildHasher;

use steadfast_spec::{Endpoint, Scope, Zone};
use tokio::time::Instant;

use crate::{
    core::{event::Event, trust::demotion::Standing},
    request::keys::ScopeKeys,
    shell::shared::Shared,
};

/// A route that may be demoted, for the duration of one of its requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WatchedRoute {
    route: u64,
    endpoint: Option<Endpoint>,
    zone: Zone,
}

impl WatchedRoute {
    /// Returns the zone that it may be moved from.
    pub(crate) fn zone(&self) -> Zone {
        self.zone
    }
}

/// Routes that may be counted under another zone than their own.
impl Shared {
    /// Returns the request's route, if that may be demoted.
    pub(crate) fn watch(
        &self,
        zones: &[Zone],
        keys: ScopeKeys,
        endpoint: Option<Endpoint>,
        path: &str,
    ) -> Option<WatchedRoute> {
        let zone = self.demotions()?.lock().from;
        if !zones.contains(&zone) {
            return None;
        }
        let path = if endpoint.is_some() { "" } else { path };
        // The service counts a route alike for all users, so it is watched per gateway, not per account.
        let server = keys.of(Scope::ClientIp);
        Some(WatchedRoute { route: self.seed().hash_one((server, endpoint, path)), endpoint, zone })
    }

    /// Returns the zone that a demoted route is moved from, and the zone it is moved to.
    pub(crate) fn moved(&self, watched: WatchedRoute) -> Option<(Zone, Zone)> {
        let now = self.nanos(Instant::now());
        let mut demotions = self.demotions()?.lock();
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
    pub(crate) fn unexplained(&self, watched: WatchedRoute) {
        let Some(demotions) = self.demotions() else { return };
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
