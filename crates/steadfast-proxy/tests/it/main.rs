//! The sidecar as programs see it: over real sockets, in front of a sandbox.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stderr, reason = "a test says why it is not run")]

mod admin;
#[cfg(unix)]
mod browser;
mod dashboard;
mod echo;
mod heard;
mod local;
mod orders;
mod passing;
mod smuggling;
mod token;
mod world;
