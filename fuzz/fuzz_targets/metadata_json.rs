//! Any bytes as the fragments of a CTF 2 trace after a sound preamble, and a short stream.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| whyslow_fuzz::ask_metadata_json(bytes));
