//! Any bytes as a dump and as a map of compiled code. Seeds: those of `fixtures/recorders/compiled`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| whyslow_fuzz::ask_jitdump(bytes));
