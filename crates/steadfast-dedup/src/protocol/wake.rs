use std::time::Duration;

/// The purpose of the next read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// To learn what the list holds before an order is sent.
    Baseline,
    /// To find an order in doubt.
    Verification,
    /// To notice orders that appear late.
    Watch,
    /// To find an order in doubt, or one that appears late, in the list of its own session, which is over.
    OwnSession,
    /// To check that acknowledged orders are listed.
    Audit,
}

/// The next action if no event comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// Read the list at this time.
    Read(Duration, Purpose),
    /// Step with [`Event::Tick`](crate::protocol::event::Event::Tick) at this time.
    Tick(Duration),
}
