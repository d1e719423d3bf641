//! The names of threads, and the files that processes have mapped: what a trace.dat says of threads that began before
//! the recording.
//!
//! In: a folder like `/proc`, when the recording begins and when it ends. Out: one name for each thread, the first one
//! that was seen, and the text of option `PROCMAPS` for each process. Cost: one small file for each thread and the maps
//! of each process, of at most [`MOST_MAPS`] bytes in all.

use crate::record::processes::numbers;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// Bytes of mapped files that are kept, of all processes.
const MOST_MAPS: usize = 16 << 20;

/// The processes and threads of the machine.
#[derive(Debug, Default)]
pub struct ProcessTable {
    names: BTreeMap<u32, Vec<u8>>,
    maps: BTreeMap<u32, String>,
    map_bytes: usize,
}

impl ProcessTable {
    /// Add those that live now and are not known yet.
    pub fn add_living(&mut self, proc: &Path) {
        for pid in numbers(proc) {
            let folder = proc.join(pid.to_string());
            for tid in numbers(&folder.join("task")) {
                if let Ok(name) = std::fs::read(folder.join(format!("task/{tid}/comm"))) {
                    self.names.entry(tid).or_insert_with(|| name.trim_ascii_end().to_vec());
                }
            }
            if self.maps.contains_key(&pid) || self.map_bytes >= MOST_MAPS {
                continue;
            }
            let text = std::fs::read(folder.join("maps")).unwrap_or_default();
            let name = String::from_utf8_lossy(self.names.get(&pid).map_or(&[][..], Vec::as_slice)).into_owned();
            if let Some(option) = mapped_files(pid, &name, &String::from_utf8_lossy(&text)) {
                self.map_bytes += option.len();
                self.maps.insert(pid, option);
            }
        }
    }

    /// Add the names that the kernel has saved of threads that have ended.
    pub fn add_saved_names(&mut self, tracefs: &Path) {
        let text = std::fs::read(tracefs.join("saved_cmdlines")).unwrap_or_default();
        for line in text.split(|byte| *byte == b'\n') {
            let Some(space) = memchr::memchr(b' ', line) else { continue };
            let (tid, name) = line.split_at(space);
            let tid = std::str::from_utf8(tid).ok().and_then(|tid| tid.parse().ok());
            if let (Some(tid), Some(name)) = (tid, name.get(1..)) {
                self.names.entry(tid).or_insert_with(|| name.to_vec());
            }
        }
    }

    /// A line `TID NAME` for each thread.
    pub fn names(&self) -> Vec<u8> {
        let mut text = Vec::new();
        for (tid, name) in &self.names {
            text.extend(tid.to_string().as_bytes());
            text.push(b' ');
            text.extend(name);
            text.push(b'\n');
        }
        text
    }

    /// The text of option `PROCMAPS` for each process that has mapped a file.
    pub fn maps(&self) -> impl Iterator<Item = &str> {
        self.maps.values().map(String::as_str)
    }
}

/// `PID COUNT NAME`, and a line `START END FILE` for each mapped part of a file; all numbers are hexadecimal. `None`
/// without mapped files.
fn mapped_files(pid: u32, name: &str, maps: &str) -> Option<String> {
    let parts: Vec<(&str, &str, &str)> = maps
        .lines()
        .filter_map(|line| {
            // `START-END RIGHTS OFFSET DEVICE INODE   FILE`
            let (range, rest) = line.split_once(' ')?;
            let (start, end) = range.split_once('-')?;
            let file = rest.splitn(5, ' ').nth(4)?.trim_start();
            (file.starts_with('/') || file == "[vdso]").then_some((start, end, file))
        })
        .collect();
    if parts.is_empty() {
        return None;
    }
    let mut text = format!("{pid:x} {:x} {name}\n", parts.len());
    for (start, end, file) in parts {
        let _ = writeln!(text, "{start} {end} {file}");
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_known_by_their_first_names_and_mapped_files() {
        let proc = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| {
            let path = proc.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("10/task/10/comm", "server\n");
        write("10/task/12/comm", "a b\n");
        let maps = "5581-5590 r-xp 00000000 fe:00 12                  /opt/a b\n7f00-7f10 rw-p 00000000 00:00 0 \n";
        write("10/maps", maps);
        write("11/task/11/comm", "kthread\n");
        write("11/maps", "");
        let mut table = ProcessTable::default();
        table.add_living(proc.path());
        write("10/task/10/comm", "renamed\n");
        write("saved_cmdlines", "10 other\n14 gone one\n");
        table.add_living(proc.path());
        table.add_saved_names(proc.path());
        assert_eq!(String::from_utf8(table.names()).unwrap(), "10 server\n11 kthread\n12 a b\n14 gone one\n");
        assert_eq!(table.maps().collect::<Vec<_>>(), ["a 1 server\n5581 5590 /opt/a b\n"]);
    }
}
