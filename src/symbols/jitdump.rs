//! Names of compiled functions with their times, from a runtime's dump of its code (`jit-PID.dump`).
//!
//! In: the bytes of the file; on the other hand the offset of the recording's time line from the monotonic clock,
//! where that is known. Out: the functions, added to a [`CodeBuilder`]. A dump has a header and records, each with its
//! type, size and time: code that was loaded (with a copy of it, which is passed over), and code that moved. Without a
//! common clock the order of the file is all that is known: the last function at an address counts. The file is read
//! to its first record that makes no sense: a process that is killed leaves one cut off.
//! perf's `tools/perf/Documentation/jitdump-specification.txt`.

use super::compiled::CodeBuilder;
use crate::base::cursor::{ByteOrder, Bytes};
use crate::base::mapped::Mapped;
use crate::base::text::copied;
use crate::base::time::{Ns, Timestamp};
use foldhash::HashMap;
use std::io;
use std::path::Path;

/// The number at the beginning, `JiTD` in the order of bytes of the machine.
const MAGIC: u32 = 0x4a69_5444;
/// Flag of the header: times are those of a counter of the CPU.
const ARCH_TIMESTAMP: u64 = 1;
/// Bytes of the header that all versions have, and of the head of a record.
const HEADER: usize = 40;
const RECORD: usize = 16;
/// Types of records.
const CODE_LOAD: u32 = 0;
const CODE_MOVE: u32 = 1;
const CODE_CLOSE: u32 = 3;

/// Read a file, see [`read`].
pub fn read_file(path: &Path, monotonic: Option<Ns>, code: &mut CodeBuilder) -> io::Result<()> {
    let file = Mapped::open(path)?;
    read(file.bytes(), monotonic, code).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "not a jitdump"))
}

/// Add the functions of a dump. `monotonic` is what the time line of the recording adds to the monotonic clock; `None`
/// where that is not known. `None` where the bytes are no dump.
pub fn read(bytes: &[u8], monotonic: Option<Ns>, code: &mut CodeBuilder) -> Option<()> {
    let magic: [u8; 4] = bytes.first_chunk().copied()?;
    let byte_order = match (u32::from_le_bytes(magic), u32::from_be_bytes(magic)) {
        (MAGIC, _) => ByteOrder::Little,
        (_, MAGIC) => ByteOrder::Big,
        _ => return None,
    };
    let mut header = Bytes::new(bytes.get(8..HEADER)?);
    let size = usize::try_from(header.u32(byte_order)?).ok().filter(|size| *size >= HEADER)?;
    header.take(HEADER - 20)?;
    let flags = header.u64(byte_order)?;
    let offset = monotonic.filter(|_| flags & ARCH_TIMESTAMP == 0);
    let mut names: HashMap<u64, String> = HashMap::default();
    let mut rest = bytes.get(size..)?;
    while let Some(record) = record(&mut rest, byte_order)
        && record.kind != CODE_CLOSE
        && !code.is_full()
    {
        let since =
            offset.map_or(Timestamp::MIN, |offset| Timestamp::clamped(i128::from(record.time) + i128::from(offset)));
        let Some((start, size, name)) = function(&record, byte_order, &mut names) else { continue };
        code.add(start..start.saturating_add(size), since, &name);
    }
    Some(())
}

struct Record<'a> {
    kind: u32,
    time: u64,
    body: &'a [u8],
}

/// The next record; `None` at the end, and where the rest is none.
fn record<'a>(rest: &mut &'a [u8], byte_order: ByteOrder) -> Option<Record<'a>> {
    let mut head = Bytes::new(rest.get(..RECORD)?);
    let kind = head.u32(byte_order)?;
    let size = usize::try_from(head.u32(byte_order)?).ok()?;
    let time = head.u64(byte_order)?;
    let body = rest.get(RECORD..size)?;
    *rest = rest.get(size..)?;
    Some(Record { kind, time, body })
}

/// The begin, size and name of the code that a record puts somewhere. `names` are those of code by its number.
fn function(
    record: &Record<'_>,
    byte_order: ByteOrder,
    names: &mut HashMap<u64, String>,
) -> Option<(u64, u64, String)> {
    // Process and thread come first.
    let mut body = Bytes::new(record.body.get(8..)?);
    let mut word = || body.u64(byte_order);
    match record.kind {
        CODE_LOAD => {
            let (_linked, start, size, number) = (word()?, word()?, word()?, word()?);
            let name = copied(body.text()?);
            names.insert(number, name.clone());
            Some((start, size, name))
        }
        CODE_MOVE => {
            let (_linked, _old, start, size, number) = (word()?, word()?, word()?, word()?, word()?);
            Some((start, size, names.get(&number)?.clone()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A dump with its records: type, time, body after process and thread.
    fn dump(flags: u64, records: &[(u32, u64, Vec<u8>)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for word in [MAGIC, 1, HEADER as u32, 62, 0, 7] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(1u64.to_le_bytes());
        bytes.extend(flags.to_le_bytes());
        for (kind, time, body) in records {
            bytes.extend(kind.to_le_bytes());
            bytes.extend((RECORD as u32 + 8 + body.len() as u32).to_le_bytes());
            bytes.extend(time.to_le_bytes());
            bytes.extend([0; 8]);
            bytes.extend(body);
        }
        bytes
    }

    fn load(start: u64, size: u64, number: u64, name: &str) -> Vec<u8> {
        let words = [start, start, size, number].into_iter().flat_map(u64::to_le_bytes);
        words.chain(name.bytes()).chain([0]).chain(std::iter::repeat_n(0x90, size as usize)).collect()
    }

    fn moved(start: u64, size: u64, number: u64) -> Vec<u8> {
        [0, 0, start, size, number].into_iter().flat_map(u64::to_le_bytes).collect()
    }

    fn example(flags: u64) -> Vec<u8> {
        dump(
            flags,
            &[
                (CODE_LOAD, 100, load(0x1000, 0x40, 0, "parse")),
                (2, 110, vec![1; 40]),
                (CODE_MOVE, 200, moved(0x2000, 0x40, 0)),
                (CODE_LOAD, 300, load(0x1000, 0x20, 1, "render")),
                (CODE_MOVE, 310, moved(0x3000, 0x40, 9)),
                (CODE_CLOSE, 400, Vec::new()),
                (CODE_LOAD, 500, load(0x1000, 0x20, 2, "after the end")),
            ],
        )
    }

    #[test]
    fn read_gives_each_function_its_time() {
        let names = |flags, monotonic| {
            let mut code = CodeBuilder::default();
            read(&example(flags), monotonic, &mut code).unwrap();
            let code = code.finish();
            [(0x1000, 1_100), (0x1000, 1_300), (0x1030, 1_300), (0x2000, 1_300), (0x3000, 1_300)]
                .map(|(address, time)| code.at(address, Timestamp::new(time)).unwrap_or("-").to_owned())
        };
        assert_eq!(names(0, Some(1_000)), ["parse", "render", "parse", "parse", "-"]);
        // On another clock, or on none that is known, the last function counts.
        for (flags, monotonic) in [(0, None), (ARCH_TIMESTAMP, Some(1_000))] {
            assert_eq!(names(flags, monotonic), ["render", "render", "parse", "parse", "-"]);
        }
    }

    #[test]
    fn read_takes_what_is_whole() {
        let whole = example(0);
        for end in 0..whole.len() {
            let mut code = CodeBuilder::default();
            assert_eq!(read(&whole[..end], None, &mut code).is_some(), end >= HEADER, "{end}");
        }
        let mut swapped = whole;
        swapped[..4].reverse();
        assert!(read(&swapped, None, &mut CodeBuilder::default()).is_none(), "a header of another size");
        assert!(read(b"\x7fELF and more, but no dump of any code", None, &mut CodeBuilder::default()).is_none());
    }
}
