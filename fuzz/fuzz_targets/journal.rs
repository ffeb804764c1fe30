//! Raw bytes as a journal, and damaged journals.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| steadfast_fuzz::journal(data));
