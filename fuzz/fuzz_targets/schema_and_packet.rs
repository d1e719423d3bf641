//! Metadata and a stream together: what stands before the first zero byte is metadata, the rest the stream.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let cut = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    let (metadata, stream) = bytes.split_at(cut);
    whyslow_fuzz::ask(metadata, Some(stream.get(1..).unwrap_or(&[])));
});
