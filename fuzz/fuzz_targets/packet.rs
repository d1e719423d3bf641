//! Any bytes as a stream of a fixed schema that has every kind of field, in CTF 1.8 or CTF 2 as the first bit says.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| whyslow_fuzz::ask_packet(bytes));
