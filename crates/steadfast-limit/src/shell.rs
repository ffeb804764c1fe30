//! The core in a program: its lock, its clock, and the futures that wait for it.

pub(crate) mod acquire;
pub(crate) mod builder;
pub(crate) mod hand_off;
mod open_calls;
pub(crate) mod permit;
mod restart;
pub(crate) mod route_mover;
pub(crate) mod shared;
pub(crate) mod shared_count;
pub(crate) mod sync;
mod wakers;
mod writer;
pub(crate) mod zone_keys;
pub(crate) mod zone_limiter;
pub(crate) mod zone_settings;
