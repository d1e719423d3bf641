//! Recordings of the past (`perf record --overwrite`): the kernel fills such a ring from its end to its begin, so that
//! perf finds the newest record first, and writes the records of each CPU in that order.
//!
//! They are written the right way round into a temporary file, which is then read as the data. Cost: one look at each
//! record's header and CPU, and eight bytes for each record of the longest run of one CPU.

use super::header::{outside, record};
use super::walk::{SAMPLE, USER, WalkRules};
use crate::base::mapped::Mapped;
use std::io::{self, BufWriter, Write};
use std::ops::Range;

/// The data with the records of each CPU in order of time. What follows a record that passes the end is left as it is.
pub fn turned(ways: &WalkRules, bytes: &[u8], data: Range<usize>) -> io::Result<Mapped> {
    let mut file = tempfile::NamedTempFile::new()?;
    let mut out = BufWriter::new(file.as_file_mut());
    let data = bytes.get(data).unwrap_or(&[]);
    // The first and the end of the last record of the CPU that is being read.
    let (mut run, mut of, mut at): (Vec<usize>, Option<u32>, usize) = (Vec::new(), None, 0);
    loop {
        let rest = data.get(at..).unwrap_or(&[]);
        let whole = record(rest, ways.byte_order).and_then(|(kind, _, size)| {
            let body = rest.get(8..size)?;
            Some((cpu(ways, kind, body), size.checked_add(outside(kind, body, ways.byte_order)?)?))
        });
        let (cpu, size) = whole.unwrap_or((None, rest.len()));
        if cpu.is_none() || cpu != of {
            turn(&mut run, data, at, &mut out)?;
            of = cpu;
        }
        if cpu.is_some() {
            run.push(at);
        } else {
            out.write_all(rest.get(..size).unwrap_or(rest))?;
        }
        if rest.len() <= size {
            turn(&mut run, data, data.len(), &mut out)?;
            break;
        }
        at += size;
    }
    out.flush()?;
    drop(out);
    // The mapping keeps the bytes when the name is gone.
    Mapped::open(file.path())
}

/// Write the records that begin at `run`, the last of which ends at `end`, the last one first.
fn turn(run: &mut Vec<usize>, data: &[u8], end: usize, out: &mut impl Write) -> io::Result<()> {
    let mut end = end;
    for begin in run.drain(..).rev() {
        out.write_all(data.get(begin..end).unwrap_or(&[]))?;
        end = begin;
    }
    Ok(())
}

/// The CPU in whose ring a record was; none of what perf itself put into the file.
fn cpu(ways: &WalkRules, kind: u32, body: &[u8]) -> Option<u32> {
    if kind == SAMPLE {
        return ways.attrs.layouts.get(ways.attrs.of_sample(body)?)?.cpu(body);
    }
    let layout = ways.attrs.of_record(body).filter(|_| kind < USER)?;
    let (time, cpu) = layout.trailer(body);
    cpu.filter(|_| time != Some(0))
}
