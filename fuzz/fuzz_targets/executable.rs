//! Any bytes as an executable with symbols, unwind tables and DWARF.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| whyslow_fuzz::ask_executable(bytes));
