//! Metadata and a stream together: what stands before the first zero byte is metadata, the rest the stream.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| whyslow_fuzz::ask_schema_and_packet(bytes));
