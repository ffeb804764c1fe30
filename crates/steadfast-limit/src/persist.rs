//! The spent slots beyond the end of a process: what counts as spent at the start, and the window journal.

pub(crate) mod clocks;
pub(crate) mod cold_start;
pub(crate) mod journal;
mod keeper;
mod pending;
pub(crate) mod record;
pub(crate) mod restart;
pub(crate) mod spent;
