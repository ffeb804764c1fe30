//! The layers, the source and the logins together, over services that answer from memory and on paused time.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "what these tests set up must not fail")]

mod canary;
mod contract;
mod defects;
mod header;
mod login;
mod refresh;
mod renewal;
mod support;
mod threads;
