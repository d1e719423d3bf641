//! Makes a long LTTng recording of a short one, for measuring: each copy of its packets follows the one before it in
//! the same streams, with all clock values later by one multiple of 2^32, so that only packet headers, index entries
//! and the full time stamps of extended event headers change.
//!
//! ```text
//! cargo run --release --example lengthen -- FOLDER OUTPUT COPIES
//! ```
//! FOLDER is searched for traces (folders with a `metadata` file); they keep their places below OUTPUT. The packets
//! must be little-endian, with LTTng's packet context and event headers; index files are needed.

use anyhow::{Context, bail};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use whyslow::parts::input::Trace;
use whyslow::parts::input::record::StreamId;

/// Bytes of an LTTng packet header: magic, UUID, stream, stream instance.
const HEADER: usize = 32;
/// In an index file: bytes before the entries.
const INDEX_HEADER: usize = 16;

/// Where the clock values of a packet are that a copy changes, in bytes from its beginning.
struct PacketClocks {
    bytes: Vec<u8>,
    extended: Vec<usize>,
}

/// One stream file, read whole.
struct StreamFile {
    path: PathBuf,
    packets: Vec<PacketClocks>,
    index: Vec<u8>,
    entry: usize,
}

fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [folder, output, copies] = words.as_slice() else { bail!("usage: lengthen FOLDER OUTPUT COPIES") };
    let copies = copies.parse::<u64>()?;
    let later = lengthen(Path::new(folder), Path::new(output), copies)?;
    println!("{copies} copies, each {} s behind the one before it at 1 GHz", later / 1_000_000_000);
    Ok(())
}

/// Write the traces below a folder this many times, one after the other; by how many cycles each is later.
pub fn lengthen(folder: &Path, output: &Path, copies: u64) -> anyhow::Result<u64> {
    let mut traces = Vec::new();
    find(folder, &mut traces)?;
    let mut all = Vec::new();
    let (mut first, mut last) = (u64::MAX, 0);
    for trace in &traces {
        let (streams, begin, end) = read(trace)?;
        (first, last) = (first.min(begin), last.max(end));
        all.push(streams);
    }
    let shift = ((last - first) >> 32) + 1;
    for (trace, streams) in traces.iter().zip(&all) {
        let to = output.join(trace.strip_prefix(folder)?);
        fs::create_dir_all(to.join("index"))?;
        fs::copy(trace.join("metadata"), to.join("metadata"))?;
        for stream in streams {
            write(stream, &to, copies, shift << 32).with_context(|| stream.path.display().to_string())?;
        }
    }
    Ok(shift << 32)
}

/// How LTTng marks an event header that has a full time stamp.
#[derive(Clone, Copy)]
enum ExtendedHeader {
    /// Five bits of ones, then an id of 32 bits.
    Compact,
    /// Sixteen bits of ones, then an id of 32 bits.
    Large,
}

impl ExtendedHeader {
    /// The header of all streams, by the text of the metadata.
    fn of(metadata: &[u8]) -> anyhow::Result<ExtendedHeader> {
        let text = String::from_utf8_lossy(metadata);
        let has = |name| text.contains(&format!("event.header := struct {name}"));
        match (has("event_header_compact"), has("event_header_large")) {
            (true, false) => Ok(ExtendedHeader::Compact),
            (false, true) => Ok(ExtendedHeader::Large),
            _ => bail!("the metadata declares other event headers than LTTng's, or both of them"),
        }
    }

    /// The place of the full time stamp of the event header at `at`, if it has one.
    fn clock(self, packet: &[u8], at: usize) -> Option<usize> {
        let head = packet.get(at..at + 2)?;
        match self {
            ExtendedHeader::Compact => (head[0] & 31 == 31).then_some(at + 5),
            ExtendedHeader::Large => (head == [255, 255]).then_some(at + 6),
        }
    }
}

/// The folders below `folder` that are traces.
fn find(folder: &Path, traces: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    if folder.join("metadata").exists() {
        traces.push(folder.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, traces)?;
        }
    }
    traces.sort();
    Ok(())
}

/// The streams of a trace, and the first and last clock value.
fn read(folder: &Path) -> anyhow::Result<(Vec<StreamFile>, u64, u64)> {
    let trace = Trace::open(folder)?;
    let extended = ExtendedHeader::of(&fs::read(folder.join("metadata"))?)?;
    let plan = trace.compile_whole();
    let (mut streams, mut first, mut last) = (Vec::new(), u64::MAX, 0);
    for (number, stream) in trace.streams().iter().enumerate() {
        let path = folder.join(&stream.name);
        let bytes = fs::read(&path)?;
        let index = fs::read(folder.join("index").join(format!("{}.idx", stream.name)))?;
        let entry = u32_at(&index, 12, u32::from_be_bytes)? as usize;
        let mut packets = Vec::new();
        for (packet, fields) in index[INDEX_HEADER..].chunks_exact(entry).enumerate() {
            let be = |at| u64_at(fields, at, u64::from_be_bytes);
            let (offset, size, begin, end) = (be(0)? as usize, be(8)? as usize / 8, be(24)?, be(32)?);
            (first, last) = (first.min(begin), last.max(end));
            let bytes = bytes.get(offset..offset + size).context("an index entry points out of its file")?.to_vec();
            let mut reader = trace.reader(&plan, StreamId::at(number), packet..packet + 1);
            let mut clocks = Vec::new();
            while reader.step().is_some() {
                let at = (reader.began().at as usize).div_ceil(8);
                clocks.extend(extended.clock(&bytes, at));
            }
            packets.push(PacketClocks { bytes, extended: clocks });
        }
        streams.push(StreamFile { path, packets, index, entry });
    }
    Ok((streams, first, last))
}

/// Write all copies of a stream and its index.
fn write(stream: &StreamFile, folder: &Path, copies: u64, shift: u64) -> anyhow::Result<()> {
    let name = stream.path.file_name().context("a stream without a name")?;
    let mut data = BufWriter::new(File::create(folder.join(name))?);
    let mut index_name = name.to_owned();
    index_name.push(".idx");
    let mut index = BufWriter::new(File::create(folder.join("index").join(index_name))?);
    index.write_all(&stream.index[..INDEX_HEADER])?;
    let entries = || stream.index[INDEX_HEADER..].chunks_exact(stream.entry);
    let lost = entries().last().map_or(Ok(0), |entry| u64_at(entry, 40, u64::from_be_bytes))?;
    let (count, mut offset) = (stream.packets.len() as u64, 0);
    for copy in 0..copies {
        for (packet, entry) in stream.packets.iter().zip(entries()) {
            let mut bytes = packet.bytes.clone();
            for at in packet.extended.iter().copied().chain([HEADER, HEADER + 8]) {
                add(&mut bytes, at, copy * shift, u64::from_le_bytes, u64::to_le_bytes)?;
            }
            add(&mut bytes, HEADER + 32, copy * count, u64::from_le_bytes, u64::to_le_bytes)?;
            add(&mut bytes, HEADER + 40, copy * lost, u64::from_le_bytes, u64::to_le_bytes)?;
            data.write_all(&bytes)?;
            let mut entry = entry.to_vec();
            let place = u64::wrapping_sub(offset, u64_at(&entry, 0, u64::from_be_bytes)?);
            let changes = [(0, place), (24, copy * shift), (32, copy * shift), (40, copy * lost), (64, copy * count)];
            for (at, more) in changes.into_iter().filter(|(at, _)| at + 8 <= stream.entry) {
                add(&mut entry, at, more, u64::from_be_bytes, u64::to_be_bytes)?;
            }
            index.write_all(&entry)?;
            offset += bytes.len() as u64;
        }
    }
    data.flush()?;
    Ok(index.flush()?)
}

/// Add to the number at a place.
fn add(
    bytes: &mut [u8],
    at: usize,
    more: u64,
    read: fn([u8; 8]) -> u64,
    write: fn(u64) -> [u8; 8],
) -> anyhow::Result<()> {
    let new = u64_at(bytes, at, read)?.wrapping_add(more);
    bytes[at..at + 8].copy_from_slice(&write(new));
    Ok(())
}

fn u64_at(bytes: &[u8], at: usize, read: fn([u8; 8]) -> u64) -> anyhow::Result<u64> {
    Ok(read(bytes.get(at..at + 8).context("a packet or an index entry is too short")?.try_into()?))
}

fn u32_at(bytes: &[u8], at: usize, read: fn([u8; 4]) -> u32) -> anyhow::Result<u32> {
    Ok(read(bytes.get(at..at + 4).context("an index is too short")?.try_into()?))
}
