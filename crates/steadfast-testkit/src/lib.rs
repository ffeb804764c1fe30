//! Layer probes and brute-force checkers for steadfast's own tests.
//!
//! [`Strict`] is a service that insists on tower's readiness contract, [`drop_at_every_poll`] ends a call at each
//! point at which it can be ended, and [`densest_window`] recounts what a gateway saw without trusting anybody's
//! arithmetic. Every layer passes the first two, and so does the whole stack of them. [`invariants`] checks what a run
//! with orders in doubt has left behind.

mod densest;
mod dropping;
pub mod invariants;
mod strict;

pub use crate::{
    densest::{accountings, densest_window},
    dropping::drop_at_every_poll,
    strict::{Strict, Uses},
};
