//! Metadata and a stream together: the bytes before the first zero byte are metadata, the rest is the stream.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| whyslow_fuzz::ask_schema_and_packet(bytes));
