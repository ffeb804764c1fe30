//! Requests against the in-process gateway.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| steadfast_fuzz::gateway_request(data));
