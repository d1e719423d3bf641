//! Any bytes typed into the interface, at any size of the screen.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| whyslow_fuzz::ask_interface(bytes));
