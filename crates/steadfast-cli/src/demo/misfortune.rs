use std::time::Duration;

use steadfast_sandbox::Fault;

/// The fault for the first send of an order that the gateway admits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Misfortune {
    pub(crate) fault: Fault,
    /// How much later the order comes into existence, if it is applied late.
    pub(crate) late_by: Option<Duration>,
}
