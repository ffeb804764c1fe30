//! The fuzz targets, as plain functions that panic if a promise is broken.
//!
//! The fuzzer calls them with generated inputs (`fuzz/run 5 envelope`); `cargo test` calls them with every file
//! of `corpus/`, and needs no fuzzer.

mod envelope;
mod form;
mod gateway_request;
mod header;
mod host_answer;
mod journal;
mod raw_answer;
mod sym_id;

pub use crate::{
    envelope::envelope, form::form, gateway_request::gateway_request, header::header,
    host_answer::host_answer, journal::journal, raw_answer::raw_answer, sym_id::sym_id,
};
