//! Long recordings of perf and trace-cmd, and texts of `perf script`, made by repeating a short one: its records again
//! and again, each time later.
//!
//! Little-endian files alone: a perf.data whose samples have IDENTIFIER, IP and TID before their time, and an
//! uncompressed trace.dat of version 6.
#![allow(dead_code, clippy::unwrap_used)]

/// Types of records.
const SAMPLE: u32 = 9;
const FINISHED_ROUND: u32 = 68;
/// Between two repetitions, in ns.
const GAP: u64 = 1_000_000;
const PAGE: usize = 4096;

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn half(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn set(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// A time stamp and its place.
struct Stamp {
    at: usize,
    time: u64,
}

/// The ns from one repetition to the next.
fn period(stamps: &[Stamp]) -> u64 {
    let times = || stamps.iter().map(|stamp| stamp.time);
    times().max().unwrap_or(0) - times().min().unwrap_or(0) + GAP
}

/// A perf.data with at least this many bytes of records.
pub fn perf_data(file: &[u8], least: usize) -> Vec<u8> {
    let (data, size) = (word(file, 40) as usize, word(file, 48) as usize);
    let sample_type = word(file, word(file, 24) as usize + 24);
    let parts = |parts: &[u64]| 8 * parts.iter().filter(|part| sample_type & **part != 0).count();
    let in_sample = 8 + parts(&[0x10000, 1, 2]);
    let from_end = parts(&[4, 0x40, 0x200, 0x80, 0x10000]);
    let (mut once, mut again, mut stamps) = (Vec::new(), Vec::new(), Vec::new());
    let mut at = data;
    while at < data + size {
        let (kind, length) = (half(file, at), usize::from(file[at + 6]) | usize::from(file[at + 7]) << 8);
        let record = &file[at..at + length];
        let time = match kind {
            SAMPLE => in_sample,
            _ => length.saturating_sub(from_end),
        };
        match kind {
            FINISHED_ROUND => again.extend(record),
            // perf made it up at the start.
            64.. => once.extend(record),
            _ if word(record, time) == 0 => once.extend(record),
            _ => {
                stamps.push(Stamp { at: again.len() + time, time: word(record, time) });
                again.extend(record);
            }
        }
        at += length;
    }
    let period = period(&stamps);
    for n in 0..(least.saturating_sub(once.len())).div_ceil(again.len()) as u64 {
        stamps.iter().for_each(|Stamp { at, time }| set(&mut again, *at, time + n * period));
        once.extend(&again);
    }
    let (mut begin, mut end) = (file[..data].to_vec(), file[data + size..].to_vec());
    set(&mut begin, 48, once.len() as u64);
    // The table of features behind the data.
    let features: u32 = (0..4).map(|n| word(file, 72 + 8 * n).count_ones()).sum();
    for n in 0..features as usize {
        let place = word(&end, 16 * n);
        if place >= (data + size) as u64 {
            set(&mut end, 16 * n, place + once.len() as u64 - size as u64);
        }
    }
    [begin, once, end].concat()
}

/// The absolute times in a page.
fn absolute(page: &[u8]) -> Vec<Stamp> {
    let end = 16 + (word(page, 8) & 0x7ff_ffff) as usize;
    let (mut at, mut found) = (16, Vec::new());
    while at < end {
        let (kind, delta) = (half(page, at) & 31, u64::from(half(page, at) >> 5));
        match kind {
            31 => found.push(Stamp { at, time: delta | u64::from(half(page, at + 4)) << 27 }),
            29 if delta == 0 => break,
            _ => {}
        }
        at += match kind {
            30 | 31 => 8,
            29 => 4 + half(page, at + 4) as usize,
            0 => 4 + half(page, at + 4).next_multiple_of(4) as usize,
            words => 4 + 4 * words as usize,
        };
    }
    found
}

/// A trace.dat with at least this many bytes of pages.
pub fn trace_dat(file: &[u8], least: usize) -> Vec<u8> {
    let find = |text: &[u8]| file.windows(text.len()).position(|bytes| bytes == text).unwrap();
    let (options, table) = (find(b"options  \0"), find(b"flyrecord\0") + 10);
    let cpus = half(file, options - 4) as usize;
    let places: Vec<(usize, usize)> =
        (0..cpus).map(|n| (word(file, table + 16 * n) as usize, word(file, table + 16 * n + 8) as usize)).collect();
    let pages = |(at, size): (usize, usize)| (at..at + size).step_by(PAGE);
    let stamps: Vec<Stamp> =
        places.iter().flat_map(|p| pages(*p)).map(|at| Stamp { at, time: word(file, at) }).collect();
    let period = period(&stamps) + 1000 * GAP;
    let times = least.div_ceil(places.iter().map(|(_, size)| size).sum()) as u64;
    let mut out = file[..places.iter().map(|(at, _)| *at).min().unwrap()].to_vec();
    for (n, (at, size)) in places.iter().enumerate() {
        let begin = out.len() as u64;
        set(&mut out, table + 16 * n, begin);
        set(&mut out, table + 16 * n + 8, *size as u64 * times);
        for later in (0..times).map(|n| n * period) {
            for page in file[*at..at + size].chunks_exact(PAGE) {
                let mut page = page.to_vec();
                for Stamp { at, time } in absolute(&page) {
                    let time = (time + later) & ((1 << 59) - 1);
                    let words = (time & 0x7ff_ffff) << 5 | 31 | (time >> 27) << 32;
                    set(&mut page, at, words);
                }
                let time = word(&page, 0);
                set(&mut page, 0, time + later);
                out.extend(page);
            }
        }
    }
    out
}

/// The places of the whole seconds of a text's times: digits before six decimals and a colon.
fn seconds(text: &[u8]) -> Vec<std::ops::Range<usize>> {
    let mut places = Vec::new();
    for point in (0..text.len()).filter(|at| text[*at] == b'.') {
        let is_time = text
            .get(point + 1..point + 8)
            .is_some_and(|behind| behind[..6].iter().all(u8::is_ascii_digit) && behind[6] == b':');
        let digits = text[..point].iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        if is_time && digits > 0 {
            places.push(point - digits..point);
        }
    }
    places
}

/// A text of `perf script` of at least this many bytes.
pub fn perf_script(text: &[u8], least: usize) -> Vec<u8> {
    let places = seconds(text);
    let number =
        |place: &std::ops::Range<usize>| -> u64 { std::str::from_utf8(&text[place.clone()]).unwrap().parse().unwrap() };
    let numbers: Vec<u64> = places.iter().map(number).collect();
    let later = numbers.iter().max().unwrap() - numbers.iter().min().unwrap() + 1;
    let mut all = Vec::new();
    for repetition in 0.. {
        if all.len() >= least {
            break;
        }
        let mut at = 0;
        for (place, number) in places.iter().zip(&numbers) {
            all.extend(&text[at..place.start]);
            all.extend((number + repetition * later).to_string().bytes());
            at = place.end;
        }
        all.extend(&text[at..]);
        all.push(b'\n');
    }
    all
}
