//! Tests of what the sandbox promises beyond the specification: its faults by name, its admin API, its
//! server on real sockets, its switches, and that no request brings it down.
#![expect(clippy::expect_used, reason = "a harness fails by panicking")]

mod client;
mod wire;
mod world;

mod admin;
mod axes;
mod faults;
mod interpretations;
mod openapi;
mod published;
mod robustness;
mod secrets;
mod site;
mod tcp;
mod throughput;
