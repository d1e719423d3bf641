//! The files that processes had mapped (`trace-cmd record --proc-map`), one option for each process.
//!
//! ```text
//! PID COUNT COMMAND
//! START END PATH          COUNT lines, in order of addresses
//! ```
//! In: that text; all numbers are hexadecimal. Out: the mapped files. A file is mapped in several parts, each with a
//! line, without their offsets in the file; together they extend from its first loaded page to its last.

use crate::base::text::{copied, copied_exactly};

/// A file that a process had mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedFile {
    /// The process.
    pub pid: i32,
    /// First address.
    pub base: u64,
    /// Bytes, in whole pages.
    pub size: u64,
    /// The file.
    pub path: String,
}

fn hex(digits: &[u8]) -> Option<u64> {
    u64::from_str_radix(&copied_exactly(digits)?, 16).ok()
}

/// The files of an option; lines that cannot be parsed, and memory without a file, are left out.
pub fn parse(option: &[u8]) -> Vec<MappedFile> {
    let mut lines = option.split(|byte| matches!(byte, b'\n' | 0));
    let first = lines.next().unwrap_or(&[]);
    let Some(pid) = first.split(|byte| *byte == b' ').next().and_then(hex) else { return Vec::new() };
    let Ok(pid) = i32::try_from(pid) else { return Vec::new() };
    let mut files: Vec<MappedFile> = Vec::new();
    for line in lines {
        let mut words = line.splitn(3, |byte| *byte == b' ');
        let mut next = || words.next();
        let (Some(start), Some(end), Some(path)) = (next().and_then(hex), next().and_then(hex), next()) else {
            continue;
        };
        let Some(size) = end.checked_sub(start).filter(|size| *size > 0) else { continue };
        if !path.starts_with(b"/") && path != b"[vdso]" {
            continue;
        }
        let path = copied(path);
        match files.last_mut() {
            Some(last) if last.path == path && start >= last.base => last.size = last.size.max(end - last.base),
            _ => files.push(MappedFile { pid, base: start, size, path }),
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_joins_the_parts_of_a_file() {
        let text = "1f4 5 server\n400000 401000 /srv/my server\n401000 405000 /srv/my server\n\
            7f0000000000 7f0000002000 /lib/libc.so.6\n7f0000005000 7f0000006000 /lib/libc.so.6\n\
            7ffe00000000 7ffe00001000 [stack]\n7ffe00002000 7ffe00004000 [vdso]\n9 8 /x\nz y /x\n\0";
        let file = |base, size, path: &str| MappedFile { pid: 500, base, size, path: path.to_owned() };
        let expected = [
            file(0x40_0000, 0x5000, "/srv/my server"),
            file(0x7f00_0000_0000, 0x6000, "/lib/libc.so.6"),
            file(0x7ffe_0000_2000, 0x2000, "[vdso]"),
        ];
        assert_eq!(parse(text.as_bytes()), expected);
        assert_eq!((parse(b""), parse(b"ffffffff 1 x\n1 2 /x\n")), (Vec::new(), Vec::new()));
    }
}
