//! The layers, the source and the logins together, with services that answer from memory, on paused time.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "what these tests set up must not fail")]

mod browser;
mod canary;
mod contract;
mod defects;
mod file_store;
mod header;
mod kept;
mod login;
mod month;
mod recovery;
mod refresh;
mod renewal;
mod runtimes;
mod shared_store;
mod support;
mod threads;
