//! As a profile of the Firefox profiler. Seed: `fixtures/texts/firefox.json`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| whyslow_fuzz::ask_firefox(bytes));
