//! Any bytes as a trace.dat. Seeds: those of `fixtures/recorders`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| whyslow_fuzz::ask_trace_dat(bytes));
