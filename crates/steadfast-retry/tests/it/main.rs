//! The layers of this crate, alone and stacked, against services that follow a script.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod buffer;
mod classify;
mod ending;
mod oracle;
mod retry;
mod span;
mod support;
mod timeout;
mod traps;
mod wire;
