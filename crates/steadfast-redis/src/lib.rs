//! Shares the rate limits of one account between processes and machines, through Redis or Valkey.
//!
//! Each process that trades on an account counts only what it sends itself. Two of them on one token send twice the
//! quota, and the service answers 429. Here they count together: the windows of every zone lie in a store that all of
//! them reach, and one script decides about each request.
//!
//! - [`SharedWindows`] is the rule, as a plain value: instants and events in, decisions out.
//! - [`Script`] is the same rule for the store. A test drives both with the same history on a real server.
//! - [`Rule`] takes the limits of a zone from a [`ZoneLimiter`](steadfast_limit::ZoneLimiter).
//!
//! # Not here yet
//!
//! The client that asks the store, the seam to the limiter, the shared token, and the ownership of orders. Until they
//! are, one account belongs to one process.

mod rule;
mod script;
mod windows;

#[doc(hidden)]
pub use self::script::{acquire_arguments, settle_arguments};
pub use self::{
    rule::{Micros, Rule},
    script::Script,
    windows::{Ask, Decision, SharedWindows},
};
