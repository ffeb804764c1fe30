//! The inner layer: it records each send and decides at the first poll of the body whether the order leaves.

pub(crate) mod guarded_body;
pub(crate) mod send_guard;
