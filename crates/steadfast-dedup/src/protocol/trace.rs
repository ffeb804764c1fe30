use std::time::Duration;

use crate::protocol::{effect::Effect, event::Event};

/// One step of a protocol: an event, its time, and its effects.
///
/// A protocol's history is a list of steps. Stepping a new protocol through it gives the same effects.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Step {
    /// The time since the protocol's start.
    pub now: Duration,
    /// The event.
    pub event: Event,
    /// The effects.
    pub effects: Vec<Effect>,
}
