//! Any bytes as the metadata of a CTF 1.8 trace, and a short stream so that what was understood is also run.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| whyslow_fuzz::ask_metadata_text(bytes));
