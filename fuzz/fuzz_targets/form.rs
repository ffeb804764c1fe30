//! Form bodies and queries against the strict reader of forms.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| steadfast_fuzz::form(data));
