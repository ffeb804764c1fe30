//! The limiter as its users see it.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test may panic, and so may what it is made of"
)]

mod admission;
mod bench;
mod drive;
mod drops;
mod freeze;
mod lanes;
mod layer;
mod losses;
mod memory;
mod permits;
mod restart;
mod rush;
mod windows;
