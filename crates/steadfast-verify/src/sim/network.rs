//! Lines between a client and the gateway, as probability laws.
//!
//! A request travels one leg, is counted on arrival, and its answer travels the other. Legs are drawn independently, so
//! a later request may arrive first. Everything is whole nanoseconds and a pure function of the generator.

pub(crate) mod law;

use rand_chacha::rand_core::Rng;

use self::law::{Law, below};

/// Nanoseconds of virtual time.
pub type Nanos = u64;

/// One millisecond.
pub const MS: Nanos = 1_000_000;

/// One second.
pub const S: Nanos = 1_000 * MS;

/// How long the client waits for an answer, and the most that the gateway works on one.
pub const PATIENCE: Nanos = 30 * S;

/// How long after the end of a connection the gateway may still count what it had received.
pub(crate) const AFTER_RESET: Nanos = S;

/// How long after the client stopped waiting a request may still arrive, on a connection without a known end.
pub(crate) const ORPHANED: Nanos = 120 * S;

/// A line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Network {
    /// 20 ms each way, always.
    Const,
    /// A local network: 0.05 to 5 ms each way.
    Lan,
    /// Two machines of one data centre: 0.4 to 40 ms each way.
    Cloud,
    /// 14 to 160 ms each way; one leg in 250 loses a packet and is retransmitted.
    Internet,
    /// 30 to 900 ms each way; one leg in 50 is retransmitted, one connection in 200 is reset, and one answer in 1,000
    /// never comes.
    Bad,
}

/// The course of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Journey {
    /// When it reaches the gateway's counters, if it does.
    pub counted: Option<Nanos>,
    /// When the client learns how it ended.
    pub at: Nanos,
    /// How it ended for the client.
    pub end: End,
}

/// How a request ends for the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// The head of an answer is back.
    Answered,
    /// The connection ended without one.
    Reset,
    /// The client stopped waiting.
    GivenUp,
}

impl Network {
    /// Every line, the best first.
    pub const ALL: [Self; 5] = [Self::Const, Self::Lan, Self::Cloud, Self::Internet, Self::Bad];

    /// Returns the name for tables and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Const => "const",
            Self::Lan => "lan",
            Self::Cloud => "cloud",
            Self::Internet => "internet",
            Self::Bad => "bad",
        }
    }

    /// Draws the course of a request that leaves at `sent`.
    pub fn journey(self, sent: Nanos, rng: &mut impl Rng) -> Journey {
        let law = self.law();
        let arrives = sent + law.leg(rng);
        let back = arrives + law.leg(rng);
        match law.loss(rng) {
            End::Answered => Journey { counted: Some(arrives), at: back, end: End::Answered },
            End::Reset => {
                // The connection ends at any time of the journey. A request that had arrived may wait inside the
                // gateway.
                let at = sent + below(rng, back - sent + 1);
                let counted = received(rng).then(|| sent + below(rng, at + AFTER_RESET - sent));
                Journey { counted, at, end: End::Reset }
            }
            End::GivenUp => {
                let counted = received(rng).then(|| sent + below(rng, PATIENCE));
                Journey { counted, at: sent + PATIENCE, end: End::GivenUp }
            }
        }
    }

    /// Returns a slow round trip, such as one in a hundred, without retransmissions.
    #[must_use]
    pub fn slow_round_trip(self) -> Nanos {
        2 * self.law().slow()
    }

    const fn law(self) -> &'static Law {
        match self {
            Self::Const => &Law::CONST,
            Self::Lan => &Law::LAN,
            Self::Cloud => &Law::CLOUD,
            Self::Internet => &Law::INTERNET,
            Self::Bad => &Law::BAD,
        }
    }
}

/// Returns whether a request without an answer had reached the gateway: two in three.
fn received(rng: &mut impl Rng) -> bool {
    below(rng, 3) > 0
}

#[cfg(test)]
mod tests {
    use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

    use super::*;

    fn journeys(network: Network) -> Vec<(Nanos, Journey)> {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        (0..100_000_u64).map(|k| (k * MS, network.journey(k * MS, &mut rng))).collect()
    }

    #[test]
    fn requests_are_counted_after_their_send_and_within_the_bound() {
        for network in Network::ALL {
            for (sent, journey) in journeys(network) {
                let latest = match journey.end {
                    End::Answered => journey.at,
                    End::Reset => journey.at + AFTER_RESET - 1,
                    End::GivenUp => sent + PATIENCE - 1,
                };
                assert!(journey.counted.is_none_or(|at| (sent..=latest).contains(&at)), "{journey:?}");
            }
        }
    }

    #[test]
    fn lines_reorder_and_only_the_bad_one_loses() {
        for network in Network::ALL {
            let all = journeys(network);
            let overtaken = all.windows(2).any(|pair| pair[1].1.counted < pair[0].1.counted);
            assert_eq!(overtaken, network != Network::Const, "{network:?}");
            let lost = all.iter().filter(|(_, journey)| journey.end != End::Answered).count();
            assert_eq!(lost > 0, network == Network::Bad, "{network:?}");
        }
    }

    #[test]
    fn bad_line_resets_and_never_answers_as_often_as_it_says() {
        let all = journeys(Network::Bad);
        let share = |end| all.iter().filter(|(_, journey)| journey.end == end).count();
        assert!((400..600).contains(&share(End::Reset)));
        assert!((60..140).contains(&share(End::GivenUp)));
    }

    #[test]
    fn same_seed_gives_the_same_journeys() {
        assert_eq!(journeys(Network::Internet), journeys(Network::Internet));
    }
}
