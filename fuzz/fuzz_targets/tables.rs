//! Any bytes in place of one of the exported tables: Parquet that others may have written.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| whyslow_fuzz::ask_tables(bytes));
