//! Flight recordings (`perf record --overwrite`): the kernel fills such a ring from its end to its beginning, so that
//! perf finds the newest record first, and writes the records of each CPU in that order.
//!
//! They are copied in ascending order of time into a temporary file, which is then read as the data. Cost: reading each
//! record's header and CPU, and eight bytes of memory for each record of the longest run of one CPU.

use super::header::{RecordHeader, bytes_behind, record};
use super::sample::TimeAndCpu;
use super::walk::{SAMPLE, USER, WalkRules};
use crate::base::mapped::Mapped;
use std::io::{self, BufWriter, Write};
use std::ops::Range;

/// The data with the records of each CPU in order of time. Bytes from a record that passes the end on are copied
/// unchanged.
pub fn reversed(rules: &WalkRules, bytes: &[u8], data: Range<usize>) -> io::Result<Mapped> {
    let mut file = tempfile::NamedTempFile::new()?;
    let mut out = BufWriter::new(file.as_file_mut());
    let data = bytes.get(data).unwrap_or(&[]);
    // The beginnings of the records of the current CPU.
    let (mut run, mut of, mut at): (Vec<usize>, Option<u32>, usize) = (Vec::new(), None, 0);
    loop {
        let rest = data.get(at..).unwrap_or(&[]);
        let whole = record(rest, rules.byte_order).and_then(|RecordHeader { kind, size, .. }| {
            let body = rest.get(8..size)?;
            Some((cpu(rules, kind, body), size.checked_add(bytes_behind(kind, body, rules.byte_order)?)?))
        });
        let (cpu, size) = whole.unwrap_or((None, rest.len()));
        if cpu.is_none() || cpu != of {
            write_reversed(&mut run, data, at, &mut out)?;
            of = cpu;
        }
        if cpu.is_some() {
            run.push(at);
        } else {
            out.write_all(rest.get(..size).unwrap_or(rest))?;
        }
        if rest.len() <= size {
            write_reversed(&mut run, data, data.len(), &mut out)?;
            break;
        }
        at += size;
    }
    out.flush()?;
    drop(out);
    // The mapping keeps the bytes when the name is gone.
    Mapped::open(file.path())
}

/// Write the records that begin at `run`, the last of which ends at `end`, in reversed order.
fn write_reversed(run: &mut Vec<usize>, data: &[u8], end: usize, out: &mut impl Write) -> io::Result<()> {
    let mut end = end;
    for begin in run.drain(..).rev() {
        out.write_all(data.get(begin..end).unwrap_or(&[]))?;
        end = begin;
    }
    Ok(())
}

/// The CPU in whose ring a record was; `None` for records that perf itself added.
fn cpu(rules: &WalkRules, kind: u32, body: &[u8]) -> Option<u32> {
    if kind == SAMPLE {
        return rules.attrs.layouts.get(rules.attrs.of_sample(body)?)?.cpu(body);
    }
    let layout = rules.attrs.of_record(body).filter(|_| kind < USER)?;
    let TimeAndCpu { time, cpu } = layout.time_and_cpu(body);
    cpu.filter(|_| time != Some(0))
}
