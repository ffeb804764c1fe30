//! The inner layer: it records each send and decides at the first poll of the body whether the order leaves.
//!
//! A request passes through [`service`], [`send_guard`], which writes the send down, and [`guarded_body`], whose first
//! poll is the send. Its answer comes back through [`future`] to [`open_send`], which tells the protocol.

pub(crate) mod future;
pub(crate) mod guarded_body;
mod held;
pub(crate) mod layer;
pub(crate) mod open_send;
pub(crate) mod send_guard;
mod service;
