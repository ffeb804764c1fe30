//! Tests on a real server.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test may panic, and says what it counted"
)]

mod client;
mod cold;
mod differential;
mod failover;
mod faults;
mod gateways;
mod kept;
mod owner;
mod owner_differential;
mod processes;
mod relay;
mod server;
mod tls;
mod token_store;
mod world;

// The tests of shared state that `steadfast-auth` has, with the store of this crate.
#[path = "../../../steadfast-auth/tests/it/shared_store.rs"]
mod shared_store;
#[expect(dead_code, reason = "other tests of `steadfast-auth` use the rest")]
#[path = "../../../steadfast-auth/tests/it/support.rs"]
mod support;
