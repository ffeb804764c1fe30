use crate::core::{
    time::Nanos,
    trust::{circuit_breaker::Freeze, trust_level::Ladder},
};

/// The state that the 429s of one key leave: its pause, its ladder and its restrictions.
///
/// Boxed, because most keys never meet a 429. Such a key holds one pointer instead of a whole freeze, and one
/// comparison shows that nothing holds it back.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Caution {
    pub(crate) freeze: Freeze,
    pub(crate) ladder: Ladder,
    /// When the bulk lane may have its next slot, where it takes only every second.
    pub(crate) bulk_opens: Nanos,
    /// Until when the long windows count as spent, for the lanes that can wait.
    pub(crate) full_until: Nanos,
}

impl Caution {
    /// True if nothing is left to remember at `now`, in a zone that allows `limit`.
    pub(crate) fn is_over(&self, limit: u32, now: Nanos) -> bool {
        self.freeze.is_over(now) && self.ladder.is_over(limit, now) && self.full_until <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_lasts_as_long_as_the_longest_of_its_parts() {
        let full = Caution { full_until: 7, ..Caution::default() };
        assert!(!full.is_over(10, 6));
        assert!(full.is_over(10, 7));
        let mut stopped = Caution::default();
        stopped.freeze.refused(0, false, None, 1);
        assert!(!stopped.is_over(10, 7));
        let mut taught = Caution::default();
        taught.ladder.mismatch(false, 10, 1);
        assert!(!taught.is_over(10, 7));
    }
}
