//! As a file that gzip or zstd packed. Seed: `fixtures/texts/waits.txt.gz`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| whyslow_fuzz::ask_packed(bytes));
