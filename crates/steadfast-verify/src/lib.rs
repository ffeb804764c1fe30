//! Checks of steadfast that no user needs: probes of layers, checkers of finished runs, and simulated trading days.
//!
//! | module | holds | used by |
//! |---|---|---|
//! | [`probes`] | a service that insists on tower's readiness contract, a drop at every poll, a count of windows | the tests of every layer and of the whole stack |
//! | [`invariants`] | the invariants I1 to I24, each as a checker of a finished run | the tests of `steadfast-dedup`, and every simulated session |
//! | [`noon`] | settings of a trading day in the middle of which it is now | tests of `steadfast-dedup` and `steadfast` that wait for a resend |
//! | `peers` | limiters, retries and timeouts of other crates, set up for the same limits | the benches, and the simulation of limits |
//! | `sim` | simulated trading days, judged by the gateway's books | `cargo xtask sim` and CI |
//!
//! Beside them, `planted/` holds the bugs that these checks must find, one file each; `cargo xtask planted` turns them on.
//!
//! # Features
//!
//! `peers` needs those other crates. `sim`, on by default, needs them and the facade. Layers take this crate with neither, so
//! that their own tests compile no other layer than `steadfast-dedup`, whose history the invariants read.

pub mod invariants;
pub mod noon;
#[cfg(feature = "peers")]
pub mod peers;
pub mod probes;
#[cfg(feature = "sim")]
pub mod sim;
