//! Tests on a real server.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test may panic, and says what it counted")]

mod client;
mod differential;
mod gateways;
mod processes;
mod server;
