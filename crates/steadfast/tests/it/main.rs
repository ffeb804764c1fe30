//! The whole stack against the sandbox, in virtual time and over TCP.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod adapters;
mod answering;
mod client;
mod connecting;
mod deadlines;
mod defaults;
mod describe;
mod dropping;
mod http2;
mod kept_limits;
mod lengths;
mod order;
mod permits;
mod probes;
mod redirects;
mod renewal;
#[path = "../spec/served.rs"]
#[allow(dead_code, reason = "the tests of the spec use the rest of it")]
mod served;
mod settings;
mod spoiled_lists;
mod stored;
mod storm;
mod tcp;
mod transport;
mod traps;
mod typed;
mod virtual_time;
mod wire_faults;
mod world;
