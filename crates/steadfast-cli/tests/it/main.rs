//! The `steadfast` command as a user sees it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod command;
mod demo;
mod interruption;
mod readme;
mod replay;
mod sandbox;
