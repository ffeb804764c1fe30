//! The end of a send that takes too long.

pub(crate) mod layer;
pub(crate) mod timed_body;
