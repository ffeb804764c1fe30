//! Texts against the three forms of instrument identifiers.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| steadfast_fuzz::sym_id(data));
