use std::time::Duration;

use steadfast_sandbox::State;
use steadfast_spec::Zone;

/// Returns the instants, in nanoseconds, at which a gateway counted the admitted requests of one zone and owner.
///
/// Requests that the zone refused are left out. A gateway that counts those too is stricter than its limits.
#[must_use]
pub fn accountings(state: &State, zone: Zone, owner: &str) -> Vec<u64> {
    let mut instants: Vec<u64> = state
        .arrivals
        .iter()
        .filter(|arrival| arrival.zone_refused.is_none() && arrival.status != 401)
        .filter(|arrival| arrival.zones.contains(&zone.as_str()) && arrival.owner.as_deref() == Some(owner))
        .map(|arrival| arrival.accounted_ns)
        .collect();
    instants.sort_unstable();
    instants
}

/// Returns the largest number of instants in any half-open stretch of `period`, by brute force.
#[must_use]
pub fn densest_window(instants: &[u64], period: Duration) -> usize {
    let period = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
    // The densest stretch can be moved to begin at an instant.
    let held = |from: u64| instants.iter().filter(|&&at| at >= from && at - from < period).count();
    instants.iter().map(|&from| held(from)).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_is_half_open() {
        let second = Duration::from_secs(1);
        assert_eq!(densest_window(&[0, 999_999_999], second), 2);
        assert_eq!(densest_window(&[0, 1_000_000_000], second), 1);
        assert_eq!(densest_window(&[], second), 0);
    }
}
