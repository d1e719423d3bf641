//! Messages beside the answer: one line on stderr. If it cannot be written (stderr is closed, or its disk is full),
//! neither the answer nor the exit status changes.

use std::io::Write;

/// Write a line.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
