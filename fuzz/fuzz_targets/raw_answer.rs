//! Raw bytes of an HTTP/1 answer to a place-order, through hyper and the whole client.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| steadfast_fuzz::raw_answer(data));
