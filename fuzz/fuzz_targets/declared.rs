//! Any text as each of the files that options name: tasks, handlers, themes.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| whyslow_fuzz::ask_declared(bytes));
