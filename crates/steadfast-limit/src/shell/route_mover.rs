use std::hash::BuildHasher;

use parking_lot::Mutex;
use steadfast_spec::{Endpoint, Scope, Zone};

use crate::{
    core::{
        event::Event,
        time::Nanos,
        trust::moved_routes::{MovedRoutes, Standing},
    },
    request::keys::ScopeKeys,
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

    /// Returns the route of a request in `zones`, if that may be moved.
    pub(crate) fn watch(
        &self,
        zones: &[Zone],
        keys: ScopeKeys,
        endpoint: Option<Endpoint>,
        path: &str,
        hasher: &impl BuildHasher,
    ) -> Option<WatchedRoute> {
        if !zones.contains(&self.from) {
            return None;
        }
        let path = if endpoint.is_some() { "" } else { path };
        // The service counts a route alike for all users, so it is watched per gateway, not per account.
        let server = keys.of(Scope::ClientIp);
        Some(WatchedRoute { route: hasher.hash_one((server, endpoint, path)), endpoint, zone: self.from })
    }

    /// Returns the zones under which a request of the route in `zones` is counted, and the event of its return to its
    /// own zone, if that was due.
    pub(crate) fn zones_of(
        &self,
        watched: WatchedRoute,
        zones: &[Zone],
        now: Nanos,
    ) -> (Vec<Zone>, Option<Event>) {
        let standing = self.routes.lock().standing(watched.route, now);
        let is_moved = |zone: Zone| standing == Standing::Moved && zone == self.from;
        let zones = zones.iter().map(|zone| if is_moved(*zone) { self.to } else { *zone }).collect();
        let returned = Event::RouteReturned { endpoint: watched.endpoint, zone: self.from };
        (zones, (standing == Standing::Returned).then_some(returned))
    }

    /// Records that a request of the route was refused and the limiter's own log does not explain it. Returns the
    /// event of its move, if that is the consequence.
    pub(crate) fn mismatch(&self, watched: WatchedRoute, now: Nanos) -> Option<Event> {
        let is_moved = self.routes.lock().mismatch(watched.route, now);
        is_moved.then_some(Event::RouteMoved { endpoint: watched.endpoint, from: self.from, to: self.to })
    }
}

impl WatchedRoute {
    /// Returns the zone that it may be moved from.
    pub(crate) fn zone(&self) -> Zone {
        self.zone
    }
}
