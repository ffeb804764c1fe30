/// The builds that only some stages need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Build {
    /// Shuttle's, and the fuzz targets.
    Searches,
    /// A copy with planted bugs.
    Planted,
    /// The benches that count.
    Counts,
    /// Optimised tests.
    Tests,
}

impl Build {
    /// Those that CI has time for, one at each commit. The tests do a part of their work in a plain run.
    const IN_TURN: [Self; 3] = [Self::Searches, Self::Planted, Self::Counts];

    /// The build of the commit that has so many before it.
    pub(super) fn in_turn(commits: usize) -> Self {
        Self::IN_TURN[commits % Self::IN_TURN.len()]
    }
}
