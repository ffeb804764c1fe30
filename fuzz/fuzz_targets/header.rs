//! API keys and tokens against the `Authorization` header.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| steadfast_fuzz::header(data));
