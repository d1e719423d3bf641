//! Any bytes as a history file; the checksums that it claims are put right, so that what they guard is reached.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| whyslow_fuzz::ask_history_file(bytes));
