//! Checks of steadfast that no user needs: probes of layers, checkers of finished runs, and simulated trading days.
//!
//! | module | holds | used by |
//! |---|---|---|
//! | [`probes`] | a service that insists on tower's readiness contract, a drop at every poll, a count of windows | the tests of every layer and of the whole stack |
//! | [`invariants`] | the invariants I1 to I23, each as a checker of a finished run | the tests of `steadfast-dedup`, and every simulated session |
//! | `sim` | simulated trading days, judged by the gateway's books | `cargo xtask sim` and CI |
//!
//! Beside them, `planted/` holds the bugs that these checks must find, one file each; `cargo xtask planted` turns them on.
//!
//! # Features
//!
//! `sim`, on by default, needs the facade. Layers take this crate without it, so that their own tests compile no other layer
//! than `steadfast-dedup`, whose history the invariants read.

pub mod invariants;
pub mod probes;
#[cfg(feature = "sim")]
pub mod sim;
