//! The `steadfast` command as a user sees it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod account;
mod command;
mod demo;
mod interruption;
mod leaks;
mod lock_out;
mod login;
mod readme;
mod replay;
mod resume;
mod sandbox;
#[cfg(target_os = "linux")]
mod terminal;
