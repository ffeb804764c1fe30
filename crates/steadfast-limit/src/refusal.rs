use std::{error::Error, fmt, time::Duration};

use steadfast_spec::{Lane, Zone};

/// The limiter refused a request: nothing was sent or spent, and an immediate retry is useless.
///
/// The layer returns it inside a refused [`Failure`](steadfast_spec::Failure), which no layer retries.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The zone cannot admit the request before the instant by which it must have left.
    WouldMissDeadline {
        /// The zone that would admit it last.
        zone: Zone,
        /// The time from the refusal until the zone could admit it at the earliest. Zero if only the deadline
        /// prevents it.
        earliest: Duration,
    },
    /// The request was granted, but the inner service was not ready before the instant by which it must have left.
    NotReadyInTime,
    /// The lane's queue in that zone is full.
    QueueFull {
        /// The zone.
        zone: Zone,
        /// The lane.
        lane: Lane,
    },
    /// The limiter holds its maximum number of keys, and all of them are in use.
    TooManyKeys {
        /// The zone of the new key.
        zone: Zone,
    },
    /// The limiter has no such zone.
    UnknownZone(Zone),
    /// The request has no zone, so there is no limit to keep.
    NoZone,
    /// The request has more zones than one request may fall under.
    TooManyZones {
        /// The maximum.
        most: usize,
    },
}

impl Refusal {
    /// Returns the zone that refused, if one did.
    #[must_use]
    pub fn zone(&self) -> Option<Zone> {
        match self {
            Self::WouldMissDeadline { zone, .. }
            | Self::QueueFull { zone, .. }
            | Self::TooManyKeys { zone }
            | Self::UnknownZone(zone) => Some(*zone),
            Self::NotReadyInTime | Self::NoZone | Self::TooManyZones { .. } => None,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WouldMissDeadline { earliest, .. } if earliest.is_zero() => {
                f.write_str("deadline of the request passed before it could be sent")
            }
            Self::WouldMissDeadline { zone, earliest } => {
                write!(
                    f,
                    "zone {zone} admits the request only after its deadline, in {earliest:?} at the earliest"
                )
            }
            Self::NotReadyInTime => {
                f.write_str("deadline of the request passed before its transport was ready")
            }
            Self::QueueFull { zone, lane } => write!(f, "queue of lane {lane} in zone {zone} is full"),
            Self::TooManyKeys { zone } => write!(f, "no room for another key in zone {zone}"),
            Self::UnknownZone(zone) => write!(f, "zone {zone} is not configured"),
            Self::NoZone => f.write_str("request falls under no zone"),
            Self::TooManyZones { most } => write!(f, "request falls under more than {most} zones"),
        }
    }
}

steadfast_spec::debug_in_one_line!(Refusal);

impl Error for Refusal {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c06_debug_of_refusals_reads_like_display() {
        let refusal = Refusal::QueueFull { zone: Zone::GENERAL, lane: Lane::Bulk };
        assert_eq!(format!("{refusal:?}"), "queue of lane bulk in zone general is full");
        let invalid = crate::InvalidLimiter::ZeroQueue(Lane::Bulk);
        assert_eq!(format!("{invalid:?}"), "queue of lane bulk holds nothing");
    }

    #[test]
    fn a_refusal_says_why_and_names_the_zone_that_refused_if_one_did() {
        let (zone, lane) = (Zone::GENERAL, Lane::Bulk);
        let late = |seconds| Refusal::WouldMissDeadline { zone, earliest: Duration::from_secs(seconds) };
        for (refusal, says, of) in [
            (late(0), "deadline of the request passed", Some(zone)),
            (late(7), "in 7s at the earliest", Some(zone)),
            (Refusal::QueueFull { zone, lane }, "queue of lane bulk in zone general is full", Some(zone)),
            (Refusal::TooManyKeys { zone }, "no room for another key in zone general", Some(zone)),
            (Refusal::UnknownZone(zone), "zone general is not configured", Some(zone)),
            (Refusal::NotReadyInTime, "before its transport was ready", None),
            (Refusal::NoZone, "falls under no zone", None),
            (Refusal::TooManyZones { most: 4 }, "more than 4 zones", None),
        ] {
            assert!(refusal.to_string().contains(says), "{refusal}");
            assert_eq!(refusal.zone(), of, "{refusal}");
        }
    }
}
