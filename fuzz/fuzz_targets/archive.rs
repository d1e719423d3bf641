//! An OTF2 archive: the first byte says which of its files the rest is, the others are those of a sound one.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| whyslow_fuzz::ask_archive(bytes));
