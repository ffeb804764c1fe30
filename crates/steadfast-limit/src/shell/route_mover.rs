use std::hash::BuildHasher;

use parking_lot::Mutex;
use steadfast_spec::{Endpoint, Scope, Zone};
use tokio::time::Instant;

use crate::{
    core::{
        event::Event,
        trust::moved_routes::{MovedRoutes, Standing},
    },
    request::keys::ScopeKeys,
    shell::shared::Shared,
};

/// Moves routes that the gateway refuses within their zone's limits to a stricter zone.
#[derive(Debug)]
pub(crate) struct RouteMover {
    from: Zone,
    to: Zone,
    routes: Mutex<MovedRoutes>,
}

/// A route that may be moved, for the duration of one of its requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WatchedRoute {
    route: u64,
    endpoint: Option<Endpoint>,
    zone: Zone,
}

impl RouteMover {
    pub(crate) fn new(from: Zone, to: Zone) -> Self {
        Self { from, to, routes: Mutex::default() }
    }
}

impl WatchedRoute {
    /// Returns the zone that it may be moved from.
    pub(crate) fn zone(&self) -> Zone {
        self.zone
    }
}

/// Routes that may be counted under another zone than their own.
impl Shared {
    /// Returns the request's route, if that may be moved.
    pub(crate) fn watch(
        &self,
        zones: &[Zone],
        keys: ScopeKeys,
        endpoint: Option<Endpoint>,
        path: &str,
    ) -> Option<WatchedRoute> {
        let zone = self.route_mover()?.from;
        if !zones.contains(&zone) {
            return None;
        }
        let path = if endpoint.is_some() { "" } else { path };
        // The service counts a route alike for all users, so it is watched per gateway, not per account.
        let server = keys.of(Scope::ClientIp);
        Some(WatchedRoute { route: self.seed().hash_one((server, endpoint, path)), endpoint, zone })
    }

    /// Returns the zone that a moved route is moved from, and the zone it is moved to.
    pub(crate) fn moved(&self, watched: WatchedRoute) -> Option<(Zone, Zone)> {
        let RouteMover { from, to, routes } = self.route_mover()?;
        let now = self.nanos(Instant::now());
        let standing = routes.lock().standing(watched.route, now);
        match standing {
            Standing::Own => None,
            Standing::Moved => Some((*from, *to)),
            Standing::Returned => {
                self.report(&Event::RouteReturned { endpoint: watched.endpoint, zone: *from });
                None
            }
        }
    }

    /// Records that a request of the route was refused and the limiter's own log does not explain it.
    pub(crate) fn mismatch(&self, watched: WatchedRoute) {
        let Some(RouteMover { from, to, routes }) = self.route_mover() else { return };
        let now = self.nanos(Instant::now());
        let is_moved = routes.lock().mismatch(watched.route, now);
        if is_moved {
            self.report(&Event::RouteMoved { endpoint: watched.endpoint, from: *from, to: *to });
        }
    }
}
