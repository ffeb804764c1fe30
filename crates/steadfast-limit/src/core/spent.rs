//! The slots that one key has spent: of requests on their way, answered, and lost.

pub(crate) mod in_flight;
pub(crate) mod log;
pub(crate) mod lost;
pub(crate) mod stamps;
