//! Writes the OTF2 archive of a large MPI run, for measuring: a two-dimensional stencil in which every rank exchanges
//! with its four neighbours in each step and all meet in an allreduce every tenth step. Five ranks are late once each.
//!
//! ```text
//! cargo run --release --example stencil -- FOLDER [RANKS [STEPS]]
//! ```
//! 1,024 ranks and 534 steps (the defaults) are 21 million records. The same numbers give the same bytes.

#[path = "../tests/support/otf2/mod.rs"]
mod otf2;

use otf2::{ArchiveWriter, Events};
use std::path::Path;

/// Rank and step of each delay, as parts of all in thousandths, and its length in ns.
const DELAYS: [(u64, u64, u64); 5] =
    [(100, 150, 8_000_000), (317, 330, 6_000_000), (511, 500, 9_000_000), (700, 680, 7_000_000), (930, 850, 5_000_000)];
/// Steps between two collective operations.
const MEET: u64 = 10;
/// The time of a rank's computation in a step, and of a message.
const COMPUTE: u64 = 400_000;
const FLIGHT: u64 = 4_000;

/// A number that depends on its arguments and looks like chance.
fn chance(a: u64, b: u64) -> u64 {
    let mut z = (a << 32 | b).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z ^ (z >> 31)
}

struct Regions {
    main: u32,
    step: u32,
    smooth: u32,
    irecv: u32,
    isend: u32,
    waitall: u32,
    allreduce: u32,
}

/// When each rank began its step, had computed, sent, and left its calls.
#[derive(Clone, Copy, Default)]
struct Times {
    begin: u64,
    computed: u64,
    waiting: u64,
    received: u64,
    end: u64,
}

fn neighbours(rank: u64, side: u64) -> [u64; 4] {
    let (x, y) = (rank % side, rank / side);
    let at = |x: u64, y: u64| y * side + x;
    [at((x + 1) % side, y), at((x + side - 1) % side, y), at(x, (y + 1) % side), at(x, (y + side - 1) % side)]
}

/// The times of all ranks in all steps, rank by rank.
fn simulate(ranks: u64, steps: u64, side: u64) -> Vec<Vec<Times>> {
    let mut all = vec![Vec::with_capacity(steps as usize); ranks as usize];
    let mut now = vec![1_000_000_u64; ranks as usize];
    for step in 0..steps {
        let mut times: Vec<Times> = (0..ranks)
            .map(|rank| {
                let late = |(r, s, ns): &(u64, u64, u64)| {
                    if r * ranks / 1000 == rank && s * steps / 1000 == step { *ns } else { 0 }
                };
                let begin = now[rank as usize];
                let computed = begin + COMPUTE + chance(rank, step) % 20_000 + DELAYS.iter().map(late).sum::<u64>();
                Times { begin, computed, waiting: computed + 12_000, ..Times::default() }
            })
            .collect();
        let sent: Vec<u64> = times.iter().map(|t| t.computed + 6_000).collect();
        for (rank, t) in times.iter_mut().enumerate() {
            let last = neighbours(rank as u64, side).iter().map(|n| sent[*n as usize] + FLIGHT).max();
            t.received = last.unwrap_or(0).max(t.waiting) + 1_000 + chance(step, rank as u64) % 500;
        }
        let meets = step % MEET == MEET - 1;
        let came = times.iter().map(|t| t.received).max().unwrap_or(0);
        for (rank, t) in times.iter_mut().enumerate() {
            t.end = if meets { came + 12_000 + chance(rank as u64, step) % 3_000 } else { t.received + 500 };
            now[rank] = t.end;
            all[rank].push(*t);
        }
    }
    all
}

fn events(rank: u64, side: u64, times: &[Times], r: &Regions, world: u32) -> Events {
    let mut e = Events::default();
    let around = neighbours(rank, side);
    e.enter(500_000 + rank, r.main);
    for (step, t) in times.iter().enumerate() {
        e.enter(t.begin, r.step);
        e.enter(t.begin + 50, r.smooth);
        e.leave(t.computed, r.smooth);
        let request = |k: u64| 8 * (step as u64 % 1000) + k;
        for k in 0..4 {
            let at = t.computed + 1_000 * k;
            e.enter(at + 100, r.irecv);
            e.irecv_request(at + 300, request(k));
            e.leave(at + 600, r.irecv);
        }
        for k in 0..4 {
            let at = t.computed + 5_000 + 1_000 * k;
            e.enter(at + 100, r.isend);
            // A message to the right neighbour arrives there from the left.
            e.isend(at + 300, around[k as usize] as u32, world, k as u32, 8_192, request(4 + k));
            e.leave(at + 600, r.isend);
        }
        e.enter(t.waiting, r.waitall);
        for k in 0..4 {
            e.irecv(t.received - 500 + k, around[k as usize ^ 1] as u32, world, k as u32, 8_192, request(k));
        }
        for k in 0..4 {
            e.isend_complete(t.received - 400 + k, request(4 + k));
        }
        e.leave(t.received, r.waitall);
        if step as u64 % MEET == MEET - 1 {
            e.enter(t.received + 100, r.allreduce);
            e.collective_begin(t.received + 100);
            e.collective_end(t.end - 100, 11, world, None);
            e.leave(t.end - 50, r.allreduce);
        }
        e.leave(t.end, r.step);
    }
    e.leave(e.last + 1_000, r.main);
    e
}

fn main() {
    let mut words = std::env::args().skip(1);
    let Some(folder) = words.next() else {
        eprintln!("name a folder for the archive");
        std::process::exit(2);
    };
    let mut number = |otherwise: u64| words.next().and_then(|w| w.parse().ok()).unwrap_or(otherwise);
    let (ranks, steps): (u64, u64) = (number(1_024), number(534));
    let side = ranks.isqrt().max(1);
    let ranks = side * side;
    let mut writer = ArchiveWriter::new(Path::new(&folder));
    let regions = Regions {
        main: writer.region("main"),
        step: writer.region("step"),
        smooth: writer.region("smooth"),
        irecv: writer.region("MPI_Irecv"),
        isend: writer.region("MPI_Isend"),
        waitall: writer.region("MPI_Waitall"),
        allreduce: writer.region("MPI_Allreduce"),
    };
    let locations: Vec<u64> = (0..ranks).map(|_| writer.rank()).collect();
    let world = writer.world();
    let mut records = 0;
    for (rank, times) in simulate(ranks, steps, side).into_iter().enumerate() {
        let events = events(rank as u64, side, &times, &regions, world);
        records += events.records;
        writer.write_events(locations[rank], events);
    }
    let anchor = writer.finish();
    println!("{}: {records} records of {ranks} ranks", anchor.display());
}
