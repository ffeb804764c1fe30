//! The outcome that an answer proves, and the span of its send.

pub(crate) mod layer;
pub(crate) mod peek;
pub(crate) mod peeked_body;
pub(crate) mod span;
