//! As folded stacks. Seed: `fixtures/texts/folded.txt`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| whyslow_fuzz::ask_folded(bytes));
