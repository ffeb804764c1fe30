use std::time::Duration;

use crate::event::{Effect, Event};

/// One step of a registry: what it was told, when, and what it answered.
///
/// A registry's whole history is the list of these, and stepping a new one through it gives the same answers.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Step {
    /// The time since the registry's start.
    pub now: Duration,
    /// What it was told.
    pub event: Event,
    /// What it wanted done.
    pub effects: Vec<Effect>,
}
