//! Raw bytes of HTTP/1 answers, through the transport to one host.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| steadfast_fuzz::host_answer(data));
