use super::Client;

/// Stopping trade at once.
impl Client {
    /// The kill switch: from its return until [`resume`](Self::resume), no order and no change of an order leaves,
    /// including queued ones and resends.
    ///
    /// They end as [`ErrorKind::Halted`](crate::ErrorKind::Halted). Cancels, reads and the search for orders in doubt
    /// go on. A [raw](Self::raw) request to a path in no table is not known to be an order, and leaves. See
    /// [`OrderTracker::halt`](steadfast_dedup::OrderTracker::halt).
    pub fn halt(&self) {
        self.tracker.halt();
    }

    /// Lets orders leave that are placed from now on, and none that was placed before.
    pub fn resume(&self) {
        self.tracker.resume();
    }

    /// Returns true between [`halt`](Self::halt) and [`resume`](Self::resume).
    #[must_use]
    pub fn is_halted(&self) -> bool {
        self.tracker.is_halted()
    }
}
