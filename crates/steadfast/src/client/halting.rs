use super::Client;

/// What stops trading at once.
impl Client {
    /// The kill switch: from when this returns until [`resume`](Self::resume), no order and no change of an order leaves,
    /// queued and resent ones included. They end as [`ErrorKind::Halted`](crate::ErrorKind::Halted); cancels, reads and the
    /// search for orders in doubt go on. A [request of one's own](Self::raw) to a path in no table is not known to be an order,
    /// and leaves. See [`Ledger::halt`](steadfast_dedup::Ledger::halt).
    pub fn halt(&self) {
        self.ledger.halt();
    }

    /// Lets orders out again that are placed from now on; none that was placed before.
    pub fn resume(&self) {
        self.ledger.resume();
    }

    /// True between [`halt`](Self::halt) and [`resume`](Self::resume).
    #[must_use]
    pub fn is_halted(&self) -> bool {
        self.ledger.is_halted()
    }
}
