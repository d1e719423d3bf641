//! Databases and history files whose checksums are right, so that a changed byte is one of a value.

use std::ops::Range;

/// Bytes of a file's header.
const HEADER: usize = 40;
/// Bytes of a section in its table.
const ENTRY: usize = 40;

/// Eight bytes as a number; 0 where there are none.
fn number(bytes: &[u8], at: usize) -> usize {
    bytes.get(at..at + 8).map_or(0, |n| n.iter().rev().fold(0u64, |n, b| n << 8 | u64::from(*b)) as usize)
}

/// The entries of the table of a file and the bytes of the section of each, where they are before it.
fn sections(bytes: &[u8]) -> impl Iterator<Item = (usize, Range<usize>)> {
    let table = number(bytes, 24).min(bytes.len());
    let entries = (table..bytes.len().saturating_sub(ENTRY - 1)).step_by(ENTRY);
    entries.filter_map(move |at| {
        let (offset, length) = (number(bytes, at + 16), number(bytes, at + 24));
        Some((at, offset..offset.checked_add(length).filter(|end| *end <= table)?))
    })
}

/// A database or history file whose length, and checksums of header, table, values and leaves are right.
pub fn put_right(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if bytes.len() < HEADER {
        return bytes;
    }
    let length = (bytes.len() as u64).to_le_bytes();
    bytes[16..24].copy_from_slice(&length);
    for (at, section) in sections(&bytes).collect::<Vec<_>>() {
        match bytes[at..at + 8].starts_with(b"leaves") {
            true => put_leaves_right(&mut bytes[section]),
            false => put_block_right(&mut bytes[section]),
        }
    }
    let table = number(&bytes, 24).min(bytes.len());
    let sum = crc32fast::hash(&[&bytes[..HEADER - 4], &bytes[table..]].concat()).to_le_bytes();
    bytes[HEADER - 4..HEADER].copy_from_slice(&sum);
    bytes
}

/// Make the checksum of a block fit.
fn put_block_right(block: &mut [u8]) {
    if let Some((block, sum)) = block.split_last_chunk_mut::<4>() {
        *sum = crc32fast::hash(block).to_le_bytes();
    }
}

/// A database or history file whose values are not deflated, so that a changed byte is one of a value; its checksums
/// are wrong.
pub fn unpacked(bytes: &[u8]) -> Vec<u8> {
    let (mut file, mut table) = (bytes[..HEADER].to_vec(), Vec::new());
    for (at, section) in sections(bytes) {
        let (begin, value, mut block) = (file.len() as u64, number(bytes, at + 32), bytes[section].to_vec());
        if value > 0 && value + 4 != block.len() {
            let mut whole = Vec::with_capacity(value + 4);
            let mut inflate = flate2::Decompress::new(false);
            inflate.decompress_vec(&block, &mut whole, flate2::FlushDecompress::Finish).expect("a deflated block");
            whole.resize(value + 4, 0);
            block = whole;
        }
        table.extend(&bytes[at..at + 16]);
        table.extend([begin, block.len() as u64, value as u64].map(u64::to_le_bytes).concat());
        file.extend(block);
    }
    let begin = (file.len() as u64).to_le_bytes();
    file[24..32].copy_from_slice(&begin);
    file.extend(table);
    file
}

/// Make the checksum of each leaf fit.
fn put_leaves_right(mut leaves: &mut [u8]) {
    while let Some(&[a, b, c, d]) = leaves.get(4..8) {
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        if length < 8 || length > leaves.len() {
            return;
        }
        let (leaf, rest) = leaves.split_at_mut(length);
        put_block_right(leaf);
        leaves = rest;
    }
}
