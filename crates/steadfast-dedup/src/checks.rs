//! Exhaustive checks of the protocol, for tests only.

mod model;
