//! What is said beside the answer: one line on stderr. That nobody can hear it (it is closed, or its disk is full) changes
//! neither the answer nor the exit status.

use std::io::Write;

/// Say a line.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
