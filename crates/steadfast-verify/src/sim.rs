//! Simulates trading days against the sandbox gateway, and judges the clients by its books.
//!
//! Everything runs in virtual time and from seeds: the same seed gives the same figures on every machine.
//!
//! | module | question |
//! |---|---|
//! | [`limits`] | how many 429s does each limiter get from each way of counting, behind each network? |
//! | [`orders`] | how many orders are placed twice, lost or wrongly claimed while answers get lost? |
//!
//! [`chooser`] makes all random choices of `orders`. [`network`] holds the lines between client and gateway in
//! `limits`.

mod axes;
pub mod chooser;
mod console;
pub mod limits;
pub mod network;
pub mod orders;
mod wire;

pub use self::{axes::Axes, console::complain};
