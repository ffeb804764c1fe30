//! Tests of the limiter's public interface.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test may panic, and so may what it is made of"
)]

mod absent;
mod adaptive;
mod admission;
mod cancels;
mod cold_start;
mod drive;
mod dropped_anywhere;
mod drops;
mod gateways;
mod invalid;
mod lanes;
mod layer;
mod losses;
mod lowered;
mod memory;
mod mismatches;
mod moved_routes;
mod other_service;
mod pauses;
mod permits;
mod reqwest;
mod restart;
mod rush;
mod scopes;
mod shared_count;
mod spread;
mod tampered;
mod windows;
mod wire;
mod world;
