use std::collections::HashMap;

use crate::core::time::Nanos;

/// The routes counted under a stricter zone than their own, because the gateway seems to do so.
#[derive(Debug, Default)]
pub(crate) struct MovedRoutes {
    routes: HashMap<u64, Route>,
}

#[derive(Clone, Copy, Debug)]
enum Route {
    /// The instants of its last mismatches.
    Watched([Option<Nanos>; MovedRoutes::MISMATCHES - 1]),
    /// Counted under the other zone until this instant.
    Moved(Nanos),
}

/// Under which zone a route is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Its own.
    Own,
    /// The other one.
    Moved,
    /// Its own again, from now on.
    Returned,
}

impl MovedRoutes {
    /// This many mismatches within a minute move a route.
    const MISMATCHES: usize = 3;
    const WITHIN: Nanos = 60_000_000_000;
    /// How long a route stays moved.
    const LASTS: Nanos = 30 * 60_000_000_000;
    /// More routes than a service has. Invented paths cannot grow the table beyond it.
    const MOST_ROUTES: usize = 1_024;

    /// Returns the standing of `route` at `now`.
    pub(crate) fn standing(&mut self, route: u64, now: Nanos) -> Standing {
        match self.routes.get(&route) {
            // ## Moved => Own
            //
            // The gateway may have been wrong, or repaired.
            Some(Route::Moved(until)) if *until <= now => {
                self.routes.remove(&route);
                Standing::Returned
            }
            Some(Route::Moved(_)) => Standing::Moved,
            Some(Route::Watched(_)) | None => Standing::Own,
        }
    }

    /// Records that `route` was refused within its zone's limits. True if that moves it.
    pub(crate) fn mismatch(&mut self, route: u64, now: Nanos) -> bool {
        if self.routes.len() >= Self::MOST_ROUTES && !self.routes.contains_key(&route) {
            self.routes.retain(|_, route| !route.is_over(now));
            if self.routes.len() >= Self::MOST_ROUTES {
                return false;
            }
        }
        let known = self.routes.entry(route).or_insert(Route::Watched([None; Self::MISMATCHES - 1]));
        let Route::Watched(mismatches) = known else { return false };
        if mismatches[0].is_some_and(|first| now < first + Self::WITHIN) {
            // ## Own => Moved
            *known = Route::Moved(now + Self::LASTS);
            return true;
        }
        mismatches.rotate_left(1);
        mismatches[Self::MISMATCHES - 2] = Some(now);
        false
    }
}

impl Route {
    fn is_over(self, now: Nanos) -> bool {
        match self {
            Self::Watched(mismatches) => {
                mismatches.iter().flatten().all(|at| at + MovedRoutes::WITHIN <= now)
            }
            Self::Moved(until) => until <= now,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Nanos = 1_000_000_000;

    #[test]
    fn the_third_mismatch_within_a_minute_moves_a_route_for_half_an_hour() {
        let mut routes = MovedRoutes::default();
        assert!(!routes.mismatch(1, S));
        assert!(!routes.mismatch(1, 30 * S));
        assert!(!routes.mismatch(2, 30 * S), "another route");
        assert!(routes.mismatch(1, 61 * S - 1));
        assert_eq!(routes.standing(1, 61 * S), Standing::Moved);
        assert_eq!(routes.standing(2, 61 * S), Standing::Own);
        let end = 61 * S - 1 + 1_800 * S;
        assert_eq!(routes.standing(1, end - 1), Standing::Moved);
        assert_eq!(routes.standing(1, end), Standing::Returned);
        assert_eq!(routes.standing(1, end), Standing::Own);
    }

    #[test]
    fn mismatches_further_apart_move_nothing() {
        let mut routes = MovedRoutes::default();
        for n in 0..100 {
            assert!(!routes.mismatch(1, S + n * 31 * S), "three never fall within a minute");
        }
    }

    #[test]
    fn made_up_routes_do_not_grow_the_table() {
        let mut routes = MovedRoutes::default();
        for route in 0..5_000 {
            routes.mismatch(route, S);
        }
        assert_eq!(routes.routes.len(), MovedRoutes::MOST_ROUTES);
        routes.mismatch(5_000, 120 * S);
        assert_eq!(routes.routes.len(), 1, "those that are over make room");
    }
}
