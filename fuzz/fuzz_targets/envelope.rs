//! Response bodies against the readers of envelopes, placements, order lists and token records.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| steadfast_fuzz::envelope(data));
