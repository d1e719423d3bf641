//! How many files the process may have open: as many as the system allows it, where a command names many.
//!
//! Shells start programs with room for 1,024 (256 on macOS), which is a default and not the limit.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files that any process may have open.
const USUAL: usize = 128;

/// Make room for so many files, if the limit allows it; where it does not, opening one of them says so.
pub fn make_room(files: usize) {
    let limit = getrlimit(Resource::Nofile);
    if files > USUAL && limit.current != limit.maximum {
        // Without it the file that cannot be opened is named.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn make_room_takes_what_the_system_allows() {
        make_room(USUAL + 1);
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
    }
}
