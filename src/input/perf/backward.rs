//! Flight recordings (`perf record --overwrite`): the kernel fills such a ring from its end to its beginning, so that
//! perf finds the newest record first, and writes the records of each CPU in that order.
//!
//! They are copied in ascending order of time into a temporary file, which is then read as the data. Cost: reading each
//! record's header and CPU, and eight bytes of memory for each record of the longest run of one CPU.

use super::header::{RecordHeader, bytes_after, record};
use super::record_types::{SAMPLE, USER};
use super::sample::TimeAndCpu;
use super::walk_rules::WalkRules;
use crate::base::mapped::Mapped;
use crate::base::temporary;
use std::io::{self, Write};
use std::ops::Range;

/// The data with the records of each CPU in order of time. Bytes from a record that passes the end on are copied
/// unchanged.
pub fn reversed(rules: &WalkRules, bytes: &[u8], data: Range<usize>) -> io::Result<Mapped> {
    temporary::mapped(|out| write_all_reversed(rules, bytes.get(data).unwrap_or(&[]), out))
}

fn write_all_reversed(rules: &WalkRules, data: &[u8], out: &mut dyn Write) -> io::Result<()> {
    // The beginnings of the records of the current CPU.
    let (mut run, mut of, mut at): (Vec<usize>, Option<u32>, usize) = (Vec::new(), None, 0);
    loop {
        let rest = data.get(at..).unwrap_or(&[]);
        let whole = record(rest, rules.byte_order).and_then(|RecordHeader { kind, size, .. }| {
            let body = rest.get(8..size)?;
            Some((cpu(rules, kind, body), size.checked_add(bytes_after(kind, body, rules.byte_order)?)?))
        });
        let (cpu, size) = whole.unwrap_or((None, rest.len()));
        if cpu.is_none() || cpu != of {
            write_reversed(&mut run, data, at, out)?;
            of = cpu;
        }
        if cpu.is_some() {
            run.push(at);
        } else {
            out.write_all(rest.get(..size).unwrap_or(rest))?;
        }
        if rest.len() <= size {
            return write_reversed(&mut run, data, data.len(), out);
        }
        at += size;
    }
}

/// Write the records that begin at `run`, the last of which ends at `end`, in reversed order.
fn write_reversed(run: &mut Vec<usize>, data: &[u8], end: usize, out: &mut dyn Write) -> io::Result<()> {
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
