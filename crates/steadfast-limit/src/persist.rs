//! The spent slots beyond the end of a process: what counts as spent at the start, and the window journal.

pub(crate) mod clocks;
pub(crate) mod cold_start;
pub(crate) mod journal;
mod pending;
pub(crate) mod record;
pub(crate) mod resume;
pub(crate) mod spent;
