//! Packed files and standard input, as plain files that the readers map.
//!
//! In: the path of a file that gzip or zstd packed, or `-`. Out: a temporary file without a name, by its path among
//! the open files of the process; it is gone when the last reader has unmapped it. A file may unpack to [`RATIO`]
//! times its size and some more, and standard input may have [`MOST_INPUT`] bytes; what passes these bounds is refused.
//! Standard input is read once in a process, and every later question gets the same file. When it was a pipe, the
//! terminal takes its place, so that the interface has the user's keys.

use super::argument::Argument;
use super::error::{NotARecording, OpenError, Unreadable};
use super::formats;
use crate::base::{mapped, temporary};
use flate2::read::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The name of standard input.
const INPUT: &str = "-";
/// The largest number of plain bytes for each packed byte: texts with much repetition reach a fifth of it.
const RATIO: u64 = 250;
/// Plain bytes that are allowed in addition.
const BESIDES: u64 = 16 << 20;
/// Bytes of standard input.
const MOST_INPUT: u64 = 16 << 30;

const GZIP: &[u8] = b"\x1f\x8b";
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";
/// The place of the magic bytes of a tar archive.
const TAR: std::ops::Range<usize> = 257..262;

/// True for an argument that is read through a temporary file.
pub(super) fn is_needed(path: &Path) -> bool {
    path.as_os_str() == INPUT || is_packed(path)
}

/// A packed file that no reader takes as it is.
fn is_packed(path: &Path) -> bool {
    let mut begin = [0; 4];
    let read = mapped::open_regular(path).and_then(|mut file| file.read_exact(&mut begin));
    read.is_ok()
        && (begin.starts_with(GZIP) || begin == ZSTD)
        && !formats::at(path).is_some_and(|known| known.is_file())
}

/// A file in place of an argument's; it must live until the readers have opened it.
#[derive(Debug)]
pub(super) struct PlainFile {
    /// Where the readers find it.
    pub path: PathBuf,
    _open: Option<File>,
}

impl PlainFile {
    /// The plain file of an argument: its own, where that is plain.
    pub fn of(argument: &Argument) -> Result<PlainFile, OpenError> {
        let path = &argument.path;
        let at = |reason: Unreadable| reason.at(path);
        if path.as_os_str() == INPUT {
            let input = standard_input().map_err(|e| at(Unreadable::Input(e)))?;
            // It may be packed itself.
            return match is_packed(&input) {
                true => unpacked(&input).map_err(at),
                false => Ok(PlainFile { path: input, _open: None }),
            };
        }
        if is_packed(path) {
            return unpacked(path).map_err(at);
        }
        Ok(PlainFile { path: path.clone(), _open: None })
    }
}

/// The path of an open file.
fn path_of(file: &File) -> PathBuf {
    PathBuf::from(format!("/dev/fd/{}", file.as_raw_fd()))
}

/// Standard input as a file, read at the first call.
fn standard_input() -> Result<PathBuf, String> {
    static READ: OnceLock<Result<File, String>> = OnceLock::new();
    let read = READ.get_or_init(|| {
        if io::stdin().is_terminal() {
            return Err(
                "standard input is the terminal; pipe a recording into it: `perf script | whyslow -`".to_owned()
            );
        }
        let mut file = temporary::take().map_err(|e| e.to_string())?;
        copied(&mut io::stdin().lock(), &mut file, MOST_INPUT).map_err(|e| e.to_string())?;
        take_keys_from_terminal();
        Ok(file)
    });
    read.as_ref().map(path_of).map_err(Clone::clone)
}

/// The terminal takes the place of a standard input that was read to its end. Without one the interface says that it
/// needs a terminal; other commands need none.
fn take_keys_from_terminal() {
    if let Ok(terminal) = OpenOptions::new().read(true).write(true).open("/dev/tty") {
        // Where this fails there is no terminal, as before.
        let _ = rustix::stdio::dup2_stdin(&terminal);
    }
}

/// The plain bytes of a packed file.
fn unpacked(path: &Path) -> Result<PlainFile, Unreadable> {
    let packed = mapped::open_regular(path)?;
    let most = packed.metadata()?.len().saturating_mul(RATIO).saturating_add(BESIDES);
    let mut plain = temporary::take()?;
    let mut from = io::BufReader::with_capacity(1 << 18, packed);
    let is_gzip = io::BufRead::fill_buf(&mut from)?.starts_with(GZIP);
    let wrong = |e: io::Error| Unreadable::Packed(format!("it cannot be unpacked: {e}"));
    match is_gzip {
        true => copied(&mut MultiGzDecoder::new(from), &mut plain, most).map_err(wrong)?,
        false => {
            let decoder = StreamingDecoder::new(from).map_err(|e| wrong(io::Error::other(e.to_string())))?;
            copied(&mut { decoder }, &mut plain, most).map_err(wrong)?;
        }
    }
    let mut begin = Vec::new();
    plain.rewind()?;
    Read::by_ref(&mut plain).take(512).read_to_end(&mut begin)?;
    if begin.get(TAR) == Some(b"ustar") {
        return Err(Unreadable::NotARecording(NotARecording::Packed { command: "tar xf", file: path.to_owned() }));
    }
    plain.rewind()?;
    Ok(PlainFile { path: path_of(&plain), _open: Some(plain) })
}

/// Copy at most some bytes; more are an error.
fn copied(from: &mut impl Read, to: &mut File, most: u64) -> io::Result<()> {
    let mut buffer = vec![0u8; 1 << 18];
    let mut left = most;
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => return to.flush(),
            Ok(read) => read,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        left = left.checked_sub(read as u64).ok_or_else(|| {
            io::Error::new(io::ErrorKind::FileTooLarge, format!("it has more than {} MiB", most >> 20))
        })?;
        to.write_all(buffer.get(..read).unwrap_or(&[]))?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;

    fn packed(plain: &[u8]) -> Vec<u8> {
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        packed.write_all(plain).unwrap();
        packed.finish().unwrap()
    }

    fn argument(folder: &Path, bytes: &[u8]) -> Argument {
        let path = folder.join("recording");
        std::fs::write(&path, bytes).unwrap();
        Argument::new(path)
    }

    #[test]
    fn plain_file_holds_what_was_packed() {
        let folder = tempfile::tempdir().unwrap();
        let text = b"work 1/1 1.000000: 1 cycles:\n".repeat(100);
        let plain = PlainFile::of(&argument(folder.path(), &packed(&text))).unwrap();
        assert_eq!(std::fs::read(&plain.path).unwrap(), text);
        let own = argument(folder.path(), &text);
        assert_eq!(PlainFile::of(&own).unwrap().path, own.path);
    }

    #[test]
    fn what_passes_its_bound_or_is_damaged_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |bytes: &[u8]| PlainFile::of(&argument(folder.path(), bytes)).unwrap_err().to_string();
        let bomb = refused(&packed(&vec![b'a'; 64 << 20]));
        assert!(bomb.contains("cannot be unpacked: it has more than 31 MiB"), "{bomb}");
        let zeros = ruzstd::encoding::compress_to_vec(&*vec![0; 32 << 20], ruzstd::encoding::CompressionLevel::Fastest);
        let bomb = refused(&zeros);
        assert!(bomb.contains("cannot be unpacked: it has more than 16 MiB"), "{bomb}");
        let whole = packed(b"some text that is cut off");
        assert!(refused(&whole[..whole.len() - 9]).contains("cannot be unpacked"));
        assert!(refused(b"\x28\xb5\x2f\xfd\xff\xff\xff\xff").contains("cannot be unpacked"));
        let mut tar = vec![0; 512];
        tar[TAR].copy_from_slice(b"ustar");
        assert!(refused(&packed(&tar)).contains("tar xf"));
    }
}
