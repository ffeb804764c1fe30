//! The limiter as its users see it.

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
mod windows;
