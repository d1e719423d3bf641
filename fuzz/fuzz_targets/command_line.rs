//! Any bytes as the words of a command line, each behind a zero, and each word as a filter, a task and a condition.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| whyslow_fuzz::ask_command_line(bytes));
