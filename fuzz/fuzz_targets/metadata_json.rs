//! Any bytes as the fragments of a CTF 2 trace after a sound preamble, and a short stream.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let mut metadata = b"\x1e{\"type\": \"preamble\", \"version\": 2}\n".to_vec();
    metadata.extend_from_slice(text);
    whyslow_fuzz::ask(&metadata, Some(&[0xc1, 0x1f, 0xfc, 0xc1, 0, 0, 0, 0, 1, 2, 3, 0x80, 0xff, 0, 0, 0]));
});
