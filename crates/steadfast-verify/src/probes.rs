//! Probes of a single layer: [`Strict`] is a service that insists on tower's readiness contract, [`drop_at_every_poll`]
//! drops a call at each possible point, and [`densest_window`] independently recounts the requests that a gateway saw.
//!
//! Every layer passes the first two, and so does the whole stack.

mod densest;
mod dropping;
mod strict;

pub use self::{
    densest::{accountings, densest_window},
    dropping::drop_at_every_poll,
    strict::{Strict, Uses},
};
