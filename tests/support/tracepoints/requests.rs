//! Events of a small server.

use super::{Given, Happened};

/// A switch on a CPU from a thread, with its state, to another; the tid of each.
pub fn switch(time: u64, cpu: u32, prev: (&'static str, i32, i64), next: (&'static str, i32)) -> Happened {
    use Given::{Number, Text};
    Happened {
        time,
        cpu,
        tid: prev.1,
        format: super::SWITCH,
        values: vec![
            Text(prev.0),
            Number(prev.1.into()),
            Number(120),
            Number(prev.2),
            Text(next.0),
            Number(next.1.into()),
            Number(120),
        ],
        ..Happened::default()
    }
}

/// Ten requests: `worker` (100) reads, is woken by `indexer` (200) after 1 ms, or 3 ms every fourth time, and writes
/// two nested spans into `trace_marker`.
pub fn requests() -> Vec<Happened> {
    use Given::{Number, Numbers, Text};
    let mut events = Vec::new();
    let mut at = 1_000_000_000_000u64;
    let (worker, indexer, idle) = (("worker", 100), ("indexer", 200), ("swapper", 0));
    events.push(switch(at, 0, (idle.0, 0, 0), worker));
    events.push(switch(at, 1, (idle.0, 0, 0), indexer));
    for n in 0..10u64 {
        let wait = if n % 4 == 3 { 3_000_000 } else { 1_000_000 };
        let mut happens = |time, cpu, tid, format, values| {
            events.push(Happened { time, cpu, tid, format, values, ..Happened::default() })
        };
        let print = |text| vec![Number(0x1234), Text(text)];
        happens(at + 1000, 0, 100, 4, print("B|100|request\n"));
        happens(at + 2000, 0, 100, 4, print("B|100|read page\n"));
        happens(at + 3000, 0, 100, 2, vec![Number(0), Numbers(vec![3, 0x7fff, 64, 0, 0, 0])]);
        happens(at + 3500, 0, 100, 4, print("S|100|fetch|7\n"));
        events.push(switch(at + 4000, 0, ("worker", 100, 1), idle));
        let mut happens = |time, cpu, tid, format, values| {
            events.push(Happened { time, cpu, tid, format, values, ..Happened::default() })
        };
        happens(at + wait, 1, 200, 1, vec![Text("worker"), Number(100), Number(120), Number(0)]);
        happens(at + wait + 500, 1, 200, 4, print("F|100|fetch|7\n"));
        events.push(switch(at + wait + 1000, 0, (idle.0, 0, 0), worker));
        let mut happens = |time, cpu, tid, format, values| {
            events.push(Happened { time, cpu, tid, format, values, ..Happened::default() })
        };
        happens(at + wait + 2000, 0, 100, 3, vec![Number(0), Number(64)]);
        happens(at + wait + 3000, 0, 100, 4, print("E|100\n"));
        happens(at + wait + 4000, 0, 100, 4, print("E|100\n"));
        happens(at + wait + 4500, 0, 100, 4, print("other text\n"));
        // More than 27 bits of ns.
        at += 200_000_000;
    }
    // So that all CPUs were recorded to the end.
    events.push(switch(at, 0, ("worker", 100, 1), idle));
    events.push(switch(at, 1, ("indexer", 200, 1), idle));
    events
}
