use rand_chacha::rand_core::Rng;

use super::{End, MS, Nanos};

/// The time of one leg and the failures, with probabilities in millionths.
#[derive(Debug)]
pub(super) struct Law {
    /// The share of the legs that take at most this many microseconds; linear in between.
    legs: &'static [(u64, u64)],
    /// Legs that lose a packet.
    retransmitted: u64,
    reset: u64,
    unanswered: u64,
}

const MILLION: u64 = 1_000_000;

/// The first retransmission's delay; each further one takes twice as long.
const FIRST_RETRANSMISSION: Nanos = 200 * MS;

/// Of the retransmitted packets, one in this many is lost again.
const LOST_AGAIN: u64 = 8;

const MOST_RETRANSMISSIONS: u32 = 4;

impl Law {
    pub(super) const CONST: Self = Self::lossless(&[(0, 20_000), (MILLION, 20_000)]);

    pub(super) const LAN: Self =
        Self::lossless(&[(0, 50), (500_000, 120), (990_000, 300), (999_000, 1_500), (MILLION, 5_000)]);

    pub(super) const CLOUD: Self =
        Self::lossless(&[(0, 400), (500_000, 900), (900_000, 2_000), (990_000, 8_000), (MILLION, 40_000)]);

    pub(super) const INTERNET: Self = Self {
        retransmitted: 4_000,
        ..Self::lossless(&[
            (0, 14_000),
            (500_000, 19_000),
            (900_000, 32_000),
            (990_000, 80_000),
            (MILLION, 160_000),
        ])
    };

    pub(super) const BAD: Self = Self {
        legs: &[(0, 30_000), (500_000, 60_000), (900_000, 140_000), (990_000, 400_000), (MILLION, 900_000)],
        retransmitted: 20_000,
        reset: 5_000,
        unanswered: 1_000,
    };

    const fn lossless(legs: &'static [(u64, u64)]) -> Self {
        Self { legs, retransmitted: 0, reset: 0, unanswered: 0 }
    }

    /// Draws the time of one leg.
    pub(super) fn leg(&self, rng: &mut impl Rng) -> Nanos {
        let mut time = self.quantile(below(rng, MILLION * MILLION));
        if below(rng, MILLION) < self.retransmitted {
            time += FIRST_RETRANSMISSION;
            let mut again = 1;
            while again < MOST_RETRANSMISSIONS && below(rng, LOST_AGAIN) == 0 {
                time += FIRST_RETRANSMISSION << again;
                again += 1;
            }
        }
        time
    }

    /// Draws how the request ends for the client.
    pub(super) fn loss(&self, rng: &mut impl Rng) -> End {
        let draw = below(rng, MILLION);
        if draw < self.reset {
            End::Reset
        } else if draw < self.reset + self.unanswered {
            End::GivenUp
        } else {
            End::Answered
        }
    }

    /// Returns the time that 99 of 100 legs do not exceed.
    pub(super) fn slow(&self) -> Nanos {
        self.quantile(990_000 * MILLION)
    }

    /// Returns the time that a share of the legs, in millionths of a millionth, does not exceed.
    fn quantile(&self, share: u64) -> Nanos {
        let above = self.legs.iter().position(|(edge, _)| edge * MILLION > share).unwrap_or(0).max(1);
        let ((from, low), (to, high)) = (self.legs[above - 1], self.legs[above]);
        let within = (share - from * MILLION) / (to - from);
        // A share of a million, and microseconds: their product is in picoseconds.
        low * 1_000 + (high - low) * within / 1_000
    }
}

/// Returns a number below `n`, which is not zero, uniform except for one part in 2⁶⁴ ⁄ n.
pub(crate) fn below(rng: &mut impl Rng, n: u64) -> u64 {
    ((u128::from(rng.next_u64()) * u128::from(n)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_on_straight_lines_between_the_points() {
        let at = |share: u64| Law::INTERNET.quantile(share * MILLION);
        assert_eq!(at(0), 14_000_000);
        assert_eq!(at(250_000), 16_500_000);
        assert_eq!(at(500_000), 19_000_000);
        assert_eq!(at(999_999) / MS, 159);
        assert_eq!(Law::CONST.quantile(123), 20 * MS);
    }
}
