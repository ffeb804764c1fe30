//! Pages to read before using this crate.

#[doc = include_str!("guide/adopting.md")]
pub mod adopting {}

#[doc = include_str!("guide/defaults.md")]
pub mod defaults {}

#[doc = include_str!("guide/unspecified.md")]
pub mod unspecified {}
