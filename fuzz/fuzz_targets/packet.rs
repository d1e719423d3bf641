//! Any bytes as a stream of a fixed schema that has every kind of field, in CTF 1.8 or CTF 2 as the first bit says.
#![no_main]

use libfuzzer_sys::fuzz_target;

const TEXT: &[u8] = include_bytes!("../schemas/every-field.tsdl");
const JSON: &[u8] = include_bytes!("../schemas/every-field.json");

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, stream)) = bytes.split_first() else { return };
    whyslow_fuzz::ask(if choice & 1 == 0 { TEXT } else { JSON }, Some(stream));
});
