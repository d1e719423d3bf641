//! Any bytes as a file of another platform. Seeds: those of `fixtures/other-platforms`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| whyslow_fuzz::ask_translated(bytes));
