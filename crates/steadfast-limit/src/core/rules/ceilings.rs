use steadfast_call::Lane;

/// The number of lanes.
pub(crate) const LANES: usize = Lane::ALL.len();

/// How many slots of each window a zone withholds from a lane, so that the lanes above it always find some.
///
/// Priority alone does not keep a cancel from waiting. Uncontested polls can spend a whole minute's quota within 40
/// seconds, and the next cancel then waits for the rest of the minute.
///
/// # Example
///
/// ```
/// use steadfast_limit::{Ceilings, Lane, Reserve};
///
/// // Of 10 per second, polls leave 2 alone and orders 1; of 400 per minute, 20 and 10.
/// let standard = Ceilings::standard();
/// assert_eq!(standard.ceiling(Lane::Bulk, 10), 8);
/// assert_eq!(standard.ceiling(Lane::Bulk, 400), 380);
/// assert_eq!(standard.ceiling(Lane::Trading, 400), 390);
/// assert_eq!(standard.ceiling(Lane::Critical, 400), 400);
///
/// // A window of fewer than four slots has none to withhold.
/// assert_eq!(standard.ceiling(Lane::Bulk, 3), 3);
///
/// let strict = standard.withhold(Lane::Bulk, Reserve::slots(5));
/// assert_eq!(strict.ceiling(Lane::Bulk, 10), 5);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ceilings {
    reserves: [Reserve; LANES],
}

impl Ceilings {
    /// Below this limit a window is too small to withhold anything.
    const SMALLEST: u32 = 4;

    /// Withholds nothing: for zones that one lane uses alone.
    #[must_use]
    pub const fn none() -> Self {
        Self { reserves: [Reserve::slots(0); LANES] }
    }

    /// Returns the ceilings for zones that several lanes share.
    ///
    /// Bulk and normal leave two slots or a twentieth of each window, whichever is more. Trading and verification
    /// leave one slot or a fortieth. Critical may use all.
    #[must_use]
    pub const fn standard() -> Self {
        let below_critical = Reserve::slots(1).or_one_in(40);
        let below_trading = Reserve::slots(2).or_one_in(20);
        Self { reserves: [Reserve::slots(0), below_critical, below_critical, below_trading, below_trading] }
    }

    /// Replaces the reserve withheld from `lane`.
    #[must_use]
    pub const fn withhold(mut self, lane: Lane, reserve: Reserve) -> Self {
        self.reserves[lane as usize] = reserve;
        self
    }

    /// True if a window of `limit` is too small to withhold anything.
    pub(crate) fn vanish(limit: u32) -> bool {
        limit < Self::SMALLEST
    }

    /// Returns how many slots of a window of `limit` the requests of `lane` may fill.
    #[must_use]
    pub fn ceiling(&self, lane: Lane, limit: u32) -> u32 {
        if Self::vanish(limit) {
            return limit;
        }
        limit.saturating_sub(self.reserves[lane as usize].of(limit))
    }
}

impl Default for Ceilings {
    fn default() -> Self {
        Self::none()
    }
}

/// The slots withheld from a lane: a fixed number or a share of the window, whichever is more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserve {
    slots: u32,
    one_in: u32,
}

impl Reserve {
    /// Withholds `slots` of every window.
    #[must_use]
    pub const fn slots(slots: u32) -> Self {
        Self { slots, one_in: 0 }
    }

    /// Adds the alternative of one slot in `n`, rounded up, which applies where it is more; `n` = 0 adds nothing.
    #[must_use]
    pub const fn or_one_in(mut self, n: u32) -> Self {
        self.one_in = n;
        self
    }

    fn of(self, limit: u32) -> u32 {
        let share = if self.one_in == 0 { 0 } else { limit.div_ceil(self.one_in) };
        self.slots.max(share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standard_ceilings_are_those_of_the_general_zone() {
        let at = |limit| Lane::ALL.map(|lane| Ceilings::standard().ceiling(lane, limit));
        assert_eq!(at(10), [10, 9, 9, 8, 8]);
        assert_eq!(at(400), [400, 390, 390, 380, 380]);
        assert_eq!(at(100), [100, 97, 97, 95, 95]);
        assert_eq!(at(4), [4, 3, 3, 2, 2]);
        assert_eq!(at(3), [3; 5]);
    }

    #[test]
    fn without_ceilings_every_lane_may_use_everything() {
        assert_eq!(Lane::ALL.map(|lane| Ceilings::none().ceiling(lane, 10)), [10; 5]);
    }
}
