use std::time::Duration;

use crate::event::{Effect, Event};

/// One step of a registry: an event, its time, and its effects.
///
/// A registry's history is a list of steps. Stepping a new registry through it gives the same effects.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Step {
    /// The time since the registry's start.
    pub now: Duration,
    /// The event.
    pub event: Event,
    /// The effects.
    pub effects: Vec<Effect>,
}
