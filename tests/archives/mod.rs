//! Archives made for each wait state, and for the tracer's own work, each with its expected answer: written by `otf2`,
//! read back, and added up.

mod beside;
mod facts;
mod growing;
mod libraries;
mod lines;
mod noise;
mod polling;
mod ranks;
mod sizes;
mod threads;

use crate::support::{ask, otf2};
use otf2::{ArchiveWriter, Events, Paradigm, Role, Value};
use std::collections::BTreeMap;
use std::path::PathBuf;
use tempfile::TempDir;
use whyslow::parts::analysis::patterns::PatternAnalysis;
use whyslow::parts::base::ctx::{Cancel, Ctx};
use whyslow::parts::base::names::NameId;
use whyslow::parts::delays::anomalies;
use whyslow::parts::dump::archive::dump;
use whyslow::parts::event::mpi;
use whyslow::parts::explain::iterations::iterations;
use whyslow::parts::input::otf2::Archive;
use whyslow::parts::model::anomalies::Anomalies;
use whyslow::parts::model::metric::{ABSENT, Metric};
use whyslow::parts::model::settings::Settings;

const MS: u64 = 1_000_000;

const US: u64 = 1_000;

/// An archive of ranks that make their calls in `main`.
struct Recording {
    folder: TempDir,
    writer: ArchiveWriter,
    regions: BTreeMap<&'static str, u32>,
    ranks: Vec<u64>,
    world: u32,
    events: BTreeMap<u64, Events>,
}

impl Recording {
    fn new(ranks: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = ArchiveWriter::new(folder.path());
        let ranks: Vec<u64> = (0..ranks).map(|_| writer.rank()).collect();
        let world = writer.world();
        let mut made = Recording { folder, writer, regions: BTreeMap::new(), ranks, world, events: BTreeMap::new() };
        for rank in made.ranks.clone() {
            let main = made.region("main");
            made.on(rank).enter(0, main);
        }
        made
    }

    fn region(&mut self, name: &'static str) -> u32 {
        let writer = &mut self.writer;
        *self.regions.entry(name).or_insert_with(|| writer.region(name))
    }

    fn region_of(&mut self, name: &'static str, role: Role, paradigm: Paradigm) -> u32 {
        let writer = &mut self.writer;
        *self.regions.entry(name).or_insert_with(|| writer.region_of(name, role, paradigm))
    }

    fn on(&mut self, location: u64) -> &mut Events {
        self.events.entry(location).or_default()
    }

    /// A call, with the records inside of it.
    fn call(&mut self, location: u64, name: &'static str, from: u64, to: u64, inside: impl FnOnce(&mut Events)) {
        let region = self.region(name);
        let events = self.on(location);
        events.enter(from, region);
        inside(events);
        events.leave(to, region);
    }

    fn work(&mut self, location: u64, name: &'static str, from: u64, to: u64) {
        self.call(location, name, from, to, |_| {});
    }

    /// All ranks meet: when each comes and leaves.
    fn meet(&mut self, name: &'static str, number: u8, root: Option<u32>, times: &[(u64, u64)]) {
        let world = self.world;
        for (rank, (from, to)) in self.ranks.clone().into_iter().zip(times) {
            self.call(rank, name, *from, *to, |e| {
                e.collective_begin(*from);
                e.collective_end(*to, number, world, root);
            });
        }
    }

    fn finish(mut self) -> (TempDir, PathBuf) {
        let main = self.region("main");
        for rank in self.ranks.clone() {
            let end = self.on(rank).last + MS;
            self.on(rank).leave(end, main);
        }
        for (location, events) in std::mem::take(&mut self.events) {
            self.writer.write_events(location, events);
        }
        (self.folder, self.writer.finish())
    }

    fn mined(self) -> PatternAnalysis {
        let (_folder, path) = self.finish();
        let (archive, work) = (Archive::open(&path).unwrap(), Ctx::new(1));
        let run = mpi::read(&archive, &work).unwrap();
        assert!(run.notices.is_empty(), "{:?}", run.notices.sentences());
        PatternAnalysis::new(run.into_operations(&archive), &work).unwrap()
    }

    fn analyse(self) -> Anomalies {
        anomalies::of_patterns(&self.mined(), &Settings::default(), &Ctx::new(1)).unwrap()
    }

    /// Waiting by kind in microseconds, completion apart.
    fn totals(self) -> BTreeMap<&'static str, i64> {
        let mined = self.mined();
        let states = mined.waiting(&Ctx::new(1)).unwrap().map_or(&[][..], |w| &w.states);
        let total = |s: &whyslow::parts::analysis::mpi::WaitStateRows| (s.kind.name(), s.ns / 1_000);
        states.iter().map(total).filter(|(kind, _)| *kind != "completion").collect()
    }
}
