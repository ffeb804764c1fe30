//! The inner layer: it records each send and decides at the first poll of the body whether the order leaves.

pub(crate) mod future;
pub(crate) mod guarded_body;
pub(crate) mod layer;
pub(crate) mod open_send;
pub(crate) mod send_guard;
mod service;
