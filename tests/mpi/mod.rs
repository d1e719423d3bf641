//! OTF2 archives: written here byte by byte (both byte orders, chunks, id maps, clocks, rare records), read back;
//! damaged in every way, read without harm; and the recorded corpus against its oracle, where it is unpacked.

mod damage;
mod once;
mod raw;
mod reading;
mod recorded;

use crate::support::{corpus, otf2, random};
use std::path::Path;
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::event::mpi::{self, MpiRun};
use whyslow::parts::input::otf2::Archive;

fn read(path: &Path) -> (Archive, MpiRun) {
    let archive = Archive::open(path).unwrap();
    let run = mpi::read(&archive, &Ctx::new(1)).unwrap();
    (archive, run)
}

/// Positions of matched records: sending location, record, receiving location, record.
fn pairs(run: &MpiRun) -> Vec<(u32, u32, u32, u32)> {
    let mut all: Vec<_> = run
        .pairs
        .iter()
        .map(|p| {
            let send = run.locations[p.send.location as usize].sends[p.send.position as usize];
            let receive = run.locations[p.receive.location as usize].receives[p.receive.position as usize];
            (p.send.location, send.record, p.receive.location, receive.record)
        })
        .collect();
    all.sort_unstable();
    all
}
