//! The specification, tested sentence by sentence against the client.
//!
//! Each test is named after the section that it tests. Time is tokio's and paused, except in [`served`], where the
//! typed client talks to a socket.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod section_1;
mod section_1_envelope;
mod section_2;
mod section_3;
mod section_4_1;
mod section_4_2;
mod section_4_3;
mod section_4_4;
mod section_4_5;
mod section_5;
mod section_7;
mod section_7_orders;
mod section_8;
mod section_9;
mod served;
mod wire;
mod world;
