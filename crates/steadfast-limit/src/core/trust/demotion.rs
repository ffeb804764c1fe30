use std::collections::HashMap;

use steadfast_spec::Zone;

use crate::core::time::Nanos;

/// The routes counted under a stricter zone than their own, because the gateway seems to do so.
#[derive(Debug)]
pub(crate) struct Demotions {
    pub(crate) from: Zone,
    pub(crate) to: Zone,
    routes: HashMap<u64, Route>,
}

#[derive(Clone, Copy, Debug)]
enum Route {
    /// The instants of its last unexplained refusals.
    Watched([Option<Nanos>; Demotions::REFUSALS - 1]),
    /// Counted under the other zone until this instant.
    Demoted(Nanos),
}

/// Under which zone a route is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Its own.
    Own,
    /// The other one.
    Demoted,
    /// Its own again, from now on.
    Restored,
}

impl Demotions {
    /// This many refusals within a minute demote a route.
    const REFUSALS: usize = 3;
    const WITHIN: Nanos = 60_000_000_000;
    /// How long a route stays demoted.
    const LASTS: Nanos = 30 * 60_000_000_000;
    /// More routes than a service has. Invented paths cannot grow the table beyond it.
    const MOST_ROUTES: usize = 1_024;

    pub(crate) fn new(from: Zone, to: Zone) -> Self {
        Self { from, to, routes: HashMap::new() }
    }

    /// Returns the standing of `route` at `now`.
    pub(crate) fn standing(&mut self, route: u64, now: Nanos) -> Standing {
        match self.routes.get(&route) {
            // ## Demoted => Own
            //
            // The gateway may have been wrong, or repaired.
            Some(Route::Demoted(until)) if *until <= now => {
                self.routes.remove(&route);
                Standing::Restored
            }
            Some(Route::Demoted(_)) => Standing::Demoted,
            Some(Route::Watched(_)) | None => Standing::Own,
        }
    }

    /// Records that `route` was refused within its zone's limits. True if that demotes it.
    pub(crate) fn unexplained(&mut self, route: u64, now: Nanos) -> bool {
        if self.routes.len() >= Self::MOST_ROUTES && !self.routes.contains_key(&route) {
            self.routes.retain(|_, route| !route.is_over(now));
            if self.routes.len() >= Self::MOST_ROUTES {
                return false;
            }
        }
        let known = self.routes.entry(route).or_insert(Route::Watched([None; Self::REFUSALS - 1]));
        let Route::Watched(refusals) = known else { return false };
        if refusals[0].is_some_and(|first| now < first + Self::WITHIN) {
            // ## Own => Demoted
            *known = Route::Demoted(now + Self::LASTS);
            return true;
        }
        refusals.rotate_left(1);
        refusals[Self::REFUSALS - 2] = Some(now);
        false
    }
}

impl Route {
    fn is_over(self, now: Nanos) -> bool {
        match self {
            Self::Watched(refusals) => refusals.iter().flatten().all(|at| at + Demotions::WITHIN <= now),
            Self::Demoted(until) => until <= now,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Nanos = 1_000_000_000;

    fn demotions() -> Demotions {
        Demotions::new(Zone::DATA, Zone::GENERAL)
    }

    #[test]
    fn the_third_refusal_within_a_minute_demotes_a_route_for_half_an_hour() {
        let mut demotions = demotions();
        assert!(!demotions.unexplained(1, S));
        assert!(!demotions.unexplained(1, 30 * S));
        assert!(!demotions.unexplained(2, 30 * S), "another route");
        assert!(demotions.unexplained(1, 61 * S - 1));
        assert_eq!(demotions.standing(1, 61 * S), Standing::Demoted);
        assert_eq!(demotions.standing(2, 61 * S), Standing::Own);
        let end = 61 * S - 1 + 1_800 * S;
        assert_eq!(demotions.standing(1, end - 1), Standing::Demoted);
        assert_eq!(demotions.standing(1, end), Standing::Restored);
        assert_eq!(demotions.standing(1, end), Standing::Own);
    }

    #[test]
    fn refusals_further_apart_demote_nothing() {
        let mut demotions = demotions();
        for n in 0..100 {
            assert!(!demotions.unexplained(1, S + n * 31 * S), "three never fall within a minute");
        }
    }

    #[test]
    fn made_up_routes_do_not_grow_the_table() {
        let mut demotions = demotions();
        for route in 0..5_000 {
            demotions.unexplained(route, S);
        }
        assert_eq!(demotions.routes.len(), Demotions::MOST_ROUTES);
        demotions.unexplained(5_000, 120 * S);
        assert_eq!(demotions.routes.len(), 1, "those that are over make room");
    }
}
