//! `whyslow` without arguments on a terminal: the recordings that were open, to choose one by its number.
//!
//! In: the state folder, a line typed. Out: the words that the command line lacked. Without such recordings, or where
//! no number is typed, there is no choice, and the usual message follows.

use super::state_folder::{self, OpenedTrace, RecentRecording};
use crate::view::stderr::say;
use std::ffi::OsString;
use std::io::{BufRead, IsTerminal};

/// Recordings that are listed.
const LISTED: usize = 9;

/// Ask for a recent recording.
pub fn choose() -> Option<Vec<OsString>> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return None;
    }
    let mut recent = state_folder::recent(&state_folder::folder()?);
    recent.truncate(LISTED);
    if recent.is_empty() {
        return None;
    }
    let listing = state_folder::listing(&recent);
    say(&format!("Recent recordings:\n{listing}\nNumber to open, Enter to leave (whyslow TRACE opens another):"));
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).ok()?;
    words(&recent, &line)
}

/// The words of the recording whose number was typed.
fn words(recent: &[RecentRecording], line: &str) -> Option<Vec<OsString>> {
    let number: usize = line.trim().parse().ok()?;
    let recording = recent.get(number.checked_sub(1)?)?;
    Some(recording.traces.iter().map(OpenedTrace::word).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn words_are_those_of_the_chosen_recording() {
        let trace = |label: Option<&str>, path: &str| OpenedTrace {
            label: label.map(str::to_owned),
            path: PathBuf::from(path),
        };
        let recent = [
            RecentRecording { traces: vec![trace(None, "/t/one")], opened_s: 2 },
            RecentRecording { traces: vec![trace(Some("old"), "/t/a"), trace(Some("new"), "/t/b")], opened_s: 1 },
        ];
        assert_eq!(words(&recent, "2\n").unwrap(), ["old=/t/a", "new=/t/b"]);
        for line in ["", "\n", "0", "3", "x", "-1"] {
            assert!(words(&recent, line).is_none(), "{line:?}");
        }
    }
}
