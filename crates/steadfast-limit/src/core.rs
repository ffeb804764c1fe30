//! The admission of requests as a pure state machine: instants and answers go in, decisions come out.
//!
//! No clock, no lock, no timer and no task. Nothing here knows the shell around it.

pub(crate) mod count;
pub(crate) mod decision;
pub(crate) mod event;
pub(crate) mod key_record;
pub(crate) mod key_set;
pub(crate) mod key_state;
pub(crate) mod lanes;
pub(crate) mod limiter;
pub(crate) mod queue;
pub(crate) mod rules;
pub(crate) mod settings;
pub(crate) mod snapshot;
pub(crate) mod spent;
pub(crate) mod start;
pub(crate) mod time;
pub(crate) mod trust;
