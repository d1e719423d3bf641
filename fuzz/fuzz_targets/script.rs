//! As the text of `perf script`. Seeds: those of `fixtures/texts`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| whyslow_fuzz::ask_script(bytes));
