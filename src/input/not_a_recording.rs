//! The reason why a path is not a recording, and the remedy.
//!
//! In: a path that no reader accepts. Out: the reason, from the file's first bytes, or from the recordings below or
//! around it ([`search`]).

use super::error::{NotARecording, Unreadable};
use super::foreign::{self, ForeignFormat};
use super::{formats, search};
use crate::base::mapped;
use std::io::Read;
use std::path::Path;

/// Bytes at the begin of a file that show its format.
const BEGIN: u64 = 4096;

/// The largest `info` of a recording of uftrace.
const UFTRACE_INFO: u64 = 1 << 20;

/// A format of packed files.
struct PackedFormat {
    /// Offset of the magic bytes.
    at: usize,
    magic: &'static [u8],
    /// The command that unpacks it.
    unpack: &'static str,
}

const PACKED: [PackedFormat; 6] = [
    PackedFormat { at: 0, magic: b"\xfd7zXZ\0", unpack: "xz -dk" },
    PackedFormat { at: 0, magic: b"\x1f\x8b", unpack: "gunzip -k" },
    PackedFormat { at: 0, magic: b"BZh", unpack: "bunzip2 -k" },
    PackedFormat { at: 0, magic: b"\x28\xb5\x2f\xfd", unpack: "zstd -d" },
    PackedFormat { at: 257, magic: b"ustar", unpack: "tar xf" },
    PackedFormat { at: 0, magic: b"PK\x03\x04", unpack: "unzip" },
];

/// The reason why a file is not a recording.
pub(super) fn for_file(path: &Path) -> Unreadable {
    let mut begin = Vec::new();
    let read = mapped::open_regular(path).and_then(|file| file.take(BEGIN).read_to_end(&mut begin));
    match read {
        Ok(_) => Unreadable::NotARecording(by_content(path, &begin)),
        Err(error) => Unreadable::Io(error),
    }
}

/// The reason, by the file's first bytes, why a file is not a recording.
fn by_content(path: &Path, begin: &[u8]) -> NotARecording {
    if path.file_name().is_some_and(|name| name == "metadata") {
        let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        return NotARecording::Metadata { folder: parent.to_owned() };
    }
    if begin.starts_with(b"PERFFILE") {
        return NotARecording::OldPerfData;
    }
    let packed = |format: &&PackedFormat| begin.get(format.at..).is_some_and(|b| b.starts_with(format.magic));
    if let Some(PackedFormat { unpack, .. }) = PACKED.iter().find(packed) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_tar = name.contains(".tar") || name.ends_with(".tgz") || name.ends_with(".txz");
        let command = if is_tar { "tar xf" } else { *unpack };
        return NotARecording::Packed { command, file: path.to_owned() };
    }
    if let Some(whole) = search::recording_around(path) {
        return NotARecording::Part { whole };
    }
    match foreign::format(begin) {
        Some(ForeignFormat { name, remedy, .. }) => NotARecording::Foreign { name, remedy },
        None => NotARecording::OtherFile { known: formats::listed() },
    }
}

/// The reason why a folder without a CTF trace is not a recording.
pub(super) fn for_folder(path: &Path) -> NotARecording {
    let below = search::other_recordings_below(path);
    let info = path.join("info");
    if mapped::read_small(&info, UFTRACE_INFO).is_ok_and(|info| info.starts_with(b"Ftrace!\0")) {
        return NotARecording::Foreign { name: "a recording of uftrace", remedy: foreign::UFTRACE };
    }
    match search::recording_around(path) {
        _ if !below.is_empty() => NotARecording::OtherRecordings { below },
        Some(whole) => NotARecording::Part { whole },
        None => NotARecording::NoRecordings,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn for_folder_names_recordings_of_other_kinds() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
        let for_folder = |path: &Path| for_folder(path).to_string();
        let recorders = for_folder(&root.join("recorders"));
        assert!(recorders.contains("name one below it") && recorders.contains("java.data, "), "{recorders}");
        assert!(for_folder(&root.join("archives")).contains("traces.otf2"));
        assert!(for_folder(&root.join("ctf")).contains("no recording in this folder"));
    }

    #[test]
    fn parts_name_their_recording() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
        let kernel = root.join("traces/lock-contention/kernel");
        for part in ["kchan_0", "index/kchan_0.idx"] {
            assert!(for_file(&kernel.join(part)).to_string().ends_with(&format!("whole, {}", kernel.display())));
        }
        assert!(for_folder(&kernel.join("index")).to_string().ends_with(&format!("whole, {}", kernel.display())));
        let archive = root.join("archives/hybrid/trace");
        let events = for_file(&archive.join("traces/0.evt")).to_string();
        assert!(events.ends_with(&format!("whole, {}", archive.join("traces.otf2").display())), "{events}");
    }

    #[test]
    fn for_file_says_how_to_unpack() {
        let folder = tempfile::tempdir().unwrap();
        let packed = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            for_file(&path).to_string()
        };
        assert!(packed("a.tar.xz", b"\xfd7zXZ\0...").contains("`tar xf "));
        assert!(packed("perf.data.xz", b"\xfd7zXZ\0...").contains("`xz -dk "));
        assert!(packed("a.zip", b"PK\x03\x04...").contains("`unzip "));
        let mut tar = vec![0; 512];
        tar[257..262].copy_from_slice(b"ustar");
        assert!(packed("a.tar", &tar).contains("`tar xf "));
        assert!(packed("a.txt", b"hello").contains("not a recording"));
        assert!(packed("server", b"\x7fELF...").contains("whyslow record -- PROGRAM"));
        assert!(packed("a.pcap", b"\xd4\xc3\xb2\xa1...").contains("a packet capture; it does not say"));
        assert!(packed("trace", b"# tracer: nop\n").contains("trace-cmd record"));
        assert!(packed("metadata", b"").contains("name its directory"));
    }
}
