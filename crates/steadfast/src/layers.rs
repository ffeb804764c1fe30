//! The layers of this crate that stand around a whole call, outside of those that send.

pub mod deadline;
pub mod route;
pub mod span;
