//! The spent slots beyond the end of a process: what counts as spent at the start, and the window journal.

pub(crate) mod cold_start;
pub(crate) mod journal;
pub(crate) mod journal_clocks;
mod pending;
pub(crate) mod record;
pub(crate) mod resume;
pub(crate) mod spent;
