//! Archives made for each wait state, and for what a tracer does itself, each with its truth: written by `otf2`, read back, and
//! added up.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "../otf2/mod.rs"]
mod otf2;

use otf2::{Events, Paradigm, Role, Value, Writer};
use std::collections::BTreeMap;
use std::path::PathBuf;
use tempfile::TempDir;
use whyslow::analysis::patterns::Mined;
use whyslow::analysis::patterns::measure::Settings;
use whyslow::base::ctx::{Cancel, Ctx};
use whyslow::base::names::NameId;
use whyslow::event::mpi;
use whyslow::input::otf2::Archive;
use whyslow::model::build::iterations::iterations;
use whyslow::model::metric::{ABSENT, Metric};
use whyslow::model::pattern::Anomalies;
use whyslow::view::archive::dump;

const MS: u64 = 1_000_000;
const US: u64 = 1_000;

/// An archive of ranks whose calls stand in `main`.
struct Recording {
    folder: TempDir,
    writer: Writer,
    regions: BTreeMap<&'static str, u32>,
    ranks: Vec<u64>,
    world: u32,
    events: BTreeMap<u64, Events>,
}

impl Recording {
    fn new(ranks: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = Writer::new(folder.path());
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

    /// A call, with what is recorded in it.
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

    fn mined(self) -> Mined {
        let (_folder, path) = self.finish();
        let (archive, work) = (Archive::open(&path).unwrap(), Ctx::new(1));
        let run = mpi::read(&archive, &work).unwrap();
        assert!(run.notices.is_empty(), "{:?}", run.notices.sentences());
        Mined::new(run.into_operations(&archive), &work).unwrap()
    }

    fn analyse(self) -> Anomalies {
        Anomalies::new(&self.mined(), &Settings::default(), &Ctx::new(1)).unwrap()
    }

    /// Waiting by kind in microseconds, completion apart.
    fn totals(self) -> BTreeMap<&'static str, i64> {
        let mined = self.mined();
        let states = mined.waiting.map_or_else(Vec::new, |w| w.states);
        let total = |s: &whyslow::analysis::mpi::State| (s.kind.name(), s.ns / 1_000);
        states.iter().map(total).filter(|(kind, _)| *kind != "completion").collect()
    }
}

// ---- between ranks -------------------------------------------------------------------------------------------------

#[test]
fn a_late_sender() {
    let mut run = Recording::new(2);
    let (world, sent, came) = (run.world, 5 * MS, 5 * MS + 20 * US);
    run.work(0, "assemble", MS, sent);
    run.call(0, "MPI_Send", sent, sent + 10 * US, |e| e.send(sent + US, 1, world, 7, 64));
    run.call(1, "MPI_Recv", 2 * MS, came, |e| e.recv(came - US, 0, world, 7, 64));
    assert_eq!(run.totals(), [("late_sender", 3_000)].into());
}

#[test]
fn the_latest_of_several_senders_that_one_call_waits_for() {
    let mut run = Recording::new(3);
    let world = run.world;
    for (rank, at) in [(1, 4 * MS), (2, 6 * MS)] {
        run.work(rank, "assemble", MS, at);
        run.call(rank, "MPI_Isend", at, at + 5 * US, |e| e.isend(at + US, 0, world, 1, 64, 9));
        run.call(rank, "MPI_Wait", at + 6 * US, at + 8 * US, |e| e.isend_complete(at + 7 * US, 9));
    }
    for request in [1, 2] {
        let at = MS + request * 10 * US;
        run.call(0, "MPI_Irecv", at, at + 5 * US, |e| e.irecv_request(at + US, request));
    }
    run.call(0, "MPI_Waitall", 2 * MS, 6 * MS + 30 * US, |e| {
        e.irecv(6 * MS + 28 * US, 1, world, 1, 64, 1);
        e.irecv(6 * MS + 29 * US, 2, world, 1, 64, 2);
    });
    assert_eq!(run.totals(), [("late_sender", 4_000)].into());
}

#[test]
fn messages_in_wrong_order() {
    let mut run = Recording::new(3);
    let world = run.world;
    run.call(0, "MPI_Send", MS, MS + 5 * US, |e| e.send(MS + US, 2, world, 1, 64));
    run.work(1, "assemble", MS, 7 * MS);
    run.call(1, "MPI_Send", 7 * MS, 7 * MS + 5 * US, |e| e.send(7 * MS + US, 2, world, 1, 64));
    run.call(2, "MPI_Recv", 2 * MS, 7 * MS + 20 * US, |e| e.recv(7 * MS + 19 * US, 1, world, 1, 64));
    run.call(2, "MPI_Recv", 7 * MS + 30 * US, 7 * MS + 40 * US, |e| e.recv(7 * MS + 39 * US, 0, world, 1, 64));
    assert_eq!(run.totals(), [("wrong_order", 5_000)].into());
}

#[test]
fn a_late_receiver() {
    let mut run = Recording::new(2);
    let (world, left) = (run.world, 6 * MS + 50 * US);
    run.call(0, "MPI_Ssend", 2 * MS, left, |e| e.send(2 * MS + US, 1, world, 3, 1 << 20));
    run.work(1, "assemble", MS, 6 * MS);
    run.call(1, "MPI_Recv", 6 * MS, left + 10 * US, |e| e.recv(left, 0, world, 3, 1 << 20));
    assert_eq!(run.totals(), [("late_receiver", 4_000)].into());
}

#[test]
fn a_receiver_that_is_late_for_a_send_completed_later() {
    let mut run = Recording::new(2);
    let (world, left) = (run.world, 6 * MS + 50 * US);
    run.call(0, "MPI_Isend", MS, MS + 10 * US, |e| e.isend(MS + US, 1, world, 3, 1 << 20, 5));
    run.work(0, "smooth", MS + 10 * US, 3 * MS);
    run.call(0, "MPI_Wait", 3 * MS, left, |e| e.isend_complete(left - US, 5));
    run.work(1, "assemble", MS, 6 * MS);
    run.call(1, "MPI_Recv", 6 * MS, left + 10 * US, |e| e.recv(left, 0, world, 3, 1 << 20));
    assert_eq!(run.totals(), [("late_receiver", 3_000)].into());
}

#[test]
fn collectives() {
    let came = [2 * MS, 4 * MS, 7 * MS];
    // OTF2's number, root, who leaves only after whom, and what that is called.
    let late = |name, number, root: Option<u32>, waits: [u64; 3]| {
        let mut run = Recording::new(3);
        for (rank, at) in came.into_iter().enumerate() {
            run.work(rank as u64, "assemble", MS, at);
        }
        let times: Vec<(u64, u64)> =
            came.iter().zip(waits).map(|(at, until)| (*at, until.max(*at) + 10 * US)).collect();
        run.meet(name, number, root, &times);
        run.totals()
    };
    let all = [7 * MS; 3];
    assert_eq!(late("MPI_Barrier", 0, None, all), [("barrier", 8_000)].into());
    assert_eq!(late("MPI_Allreduce", 11, None, all), [("n_to_n", 8_000)].into());
    assert_eq!(late("MPI_Alltoall", 8, None, all), [("n_to_n", 8_000)].into());
    assert_eq!(late("MPI_Bcast", 1, Some(1), [4 * MS; 3]), [("late_broadcast", 2_000)].into());
    assert_eq!(late("MPI_Scatter", 4, Some(2), all), [("late_broadcast", 8_000)].into());
    assert_eq!(late("MPI_Reduce", 12, Some(0), [7 * MS, 0, 0]), [("early_reduce", 5_000)].into());
    // The second needs what the first has, which came before; the third needs both.
    assert_eq!(late("MPI_Scan", 14, None, [0, 0, 0]), BTreeMap::new());
}

#[test]
fn who_stays_in_a_barrier_when_others_have_left() {
    let mut run = Recording::new(2);
    run.meet("MPI_Barrier", 0, None, &[(MS, 2 * MS), (MS, 5 * MS)]);
    let mined = run.mined();
    let states = &mined.waiting.as_ref().unwrap().states;
    let completion = states.iter().find(|s| s.kind.name() == "completion").unwrap();
    assert_eq!((completion.waits, completion.ns / 1_000), (1, 3_000));
}

// ---- inside a rank -------------------------------------------------------------------------------------------------

/// A rank with threads: its locations and their team.
fn team(run: &mut Recording, threads: usize) -> (Vec<u64>, u32) {
    let mut members = vec![0];
    members.extend((1..threads).map(|_| run.writer.thread(0)));
    let team = run.writer.teams(&[members.clone()])[0];
    (members, team)
}

#[test]
fn threads_of_a_team_wait_for_work_and_for_each_other() {
    let mut run = Recording::new(1);
    let (members, team) = team(&mut run, 3);
    let parallel = run.region_of("!$omp parallel", Role::Function, Paradigm::OpenMp);
    let barrier = run.region_of("!$omp implicit barrier", Role::ImplicitBarrier, Paradigm::OpenMp);
    for (begin, ends) in [(2 * MS, [3, 4, 6]), (10 * MS, [11, 11, 12])] {
        run.on(0).fork(begin, Paradigm::OpenMp, 3);
        for (location, end) in members.iter().zip(ends.map(|ms| ms * MS)) {
            run.on(*location).team_begin(begin, team);
            run.on(*location).enter(begin, parallel);
            run.work(*location, "smooth", begin, end);
            let last = ends[2] * MS;
            let e = run.on(*location);
            e.enter(end, barrier);
            e.leave(last, barrier);
            e.leave(last, parallel);
            e.team_end(last, team);
        }
        run.on(0).join(ends[2] * MS, Paradigm::OpenMp);
    }
    // 3 + 2 and 1 + 1 ms in barriers; two workers from 6 to 10 ms.
    assert_eq!(run.totals(), [("thread_barrier", 7_000), ("idle_threads", 8_000)].into());
}

#[test]
fn a_team_in_a_team() {
    let mut run = Recording::new(1);
    let workers: Vec<u64> = (0..3).map(|_| run.writer.thread(0)).collect();
    let (other, inner_worker, inner_of_other) = (workers[0], workers[1], workers[2]);
    let teams = run.writer.teams(&[vec![0, other], vec![0, inner_worker], vec![other, inner_of_other]]);
    let parallel = run.region_of("!$omp parallel", Role::Function, Paradigm::OpenMp);
    let barrier = run.region_of("!$omp implicit barrier", Role::ImplicitBarrier, Paradigm::OpenMp);
    run.on(0).fork(MS, Paradigm::OpenMp, 2);
    // Each of the outer team has a team of its own, whose members come to its barrier 1 ms apart.
    for (master, worker, inner, end) in [(0, inner_worker, teams[1], 4 * MS), (other, inner_of_other, teams[2], 6 * MS)]
    {
        let e = run.on(master);
        e.team_begin(MS, teams[0]);
        e.enter(MS, parallel);
        e.fork(2 * MS, Paradigm::OpenMp, 2);
        for (location, came) in [(master, end - MS), (worker, end)] {
            run.on(location).team_begin(2 * MS, inner);
            run.on(location).enter(2 * MS, parallel);
            run.work(location, "smooth", 2 * MS, came);
            let e = run.on(location);
            e.enter(came, barrier);
            e.leave(end, barrier);
            e.leave(end, parallel);
            e.team_end(end, inner);
        }
        let e = run.on(master);
        e.join(end, Paradigm::OpenMp);
        e.enter(end, barrier);
        e.leave(6 * MS, barrier);
        e.leave(6 * MS, parallel);
        e.team_end(6 * MS, teams[0]);
    }
    run.on(0).join(6 * MS, Paradigm::OpenMp);
    // 1 + 1 in the inner barriers, 2 in the outer one.
    assert_eq!(run.totals(), [("thread_barrier", 4_000)].into());
}

#[test]
fn locks() {
    let mut run = Recording::new(1);
    let (members, team) = team(&mut run, 2);
    let parallel = run.region_of("!$omp parallel", Role::Function, Paradigm::OpenMp);
    let critical = run.region_of("!$omp critical", Role::Critical, Paradigm::OpenMp);
    let set = run.region_of("omp_set_lock", Role::Function, Paradigm::OpenMp);
    run.on(0).fork(MS, Paradigm::OpenMp, 2);
    for location in &members {
        run.on(*location).team_begin(MS, team);
        run.on(*location).enter(MS, parallel);
    }
    // A critical section: 1 ms to 4 ms by the first, from 4 ms by the second, which came at 2 ms.
    for (location, came, got, gone, order) in [(0, MS, MS, 4 * MS, 1), (members[1], 2 * MS, 4 * MS, 5 * MS, 2)] {
        let e = run.on(location);
        e.enter(came, critical);
        e.acquire(got, Paradigm::OpenMp, 3, order);
        e.release(gone, Paradigm::OpenMp, 3, order);
        e.leave(gone, critical);
    }
    // A lock: 6 ms to 9 ms by the first; the second asks for it at 8 ms.
    for (location, came, got, gone, order) in [(0, 6 * MS, 6 * MS, 9 * MS, 1), (members[1], 8 * MS, 9 * MS, 10 * MS, 2)]
    {
        let e = run.on(location);
        e.enter(came, set);
        e.acquire(got, Paradigm::OpenMp, 4, order);
        e.leave(got + US, set);
        run.on(location).release(gone, Paradigm::OpenMp, 4, order);
    }
    run.work(0, "smooth", 9 * MS, 11 * MS);
    for location in &members {
        run.on(*location).leave(11 * MS, parallel);
        run.on(*location).team_end(11 * MS, team);
    }
    assert_eq!(run.totals(), [("lock", 3_000)].into());
}

#[test]
fn tasks_that_others_run() {
    let mut run = Recording::new(1);
    let (members, team) = team(&mut run, 2);
    let parallel = run.region_of("!$omp parallel", Role::Function, Paradigm::OpenMp);
    let create = run.region_of("!$omp create task", Role::TaskCreate, Paradigm::OpenMp);
    let task = run.region_of("!$omp task", Role::Task, Paradigm::OpenMp);
    let wait = run.region_of("!$omp taskwait", Role::TaskWait, Paradigm::OpenMp);
    let barrier = run.region_of("!$omp implicit barrier", Role::ImplicitBarrier, Paradigm::OpenMp);
    run.on(0).fork(MS, Paradigm::OpenMp, 2);
    for location in &members {
        run.on(*location).team_begin(MS, team);
        run.on(*location).enter(MS, parallel);
    }
    // The master makes two tasks, runs one of them while it waits for both, and waits for the other, which takes 5 ms.
    let e = run.on(0);
    for number in [1, 2] {
        let at = MS + u64::from(number) * 10 * US;
        e.enter(at, create);
        e.task_create(at + US, team, 0, number);
        e.leave(at + 2 * US, create);
    }
    e.enter(2 * MS, wait);
    e.task_switch(2 * MS, team, 0, 1);
    e.enter(2 * MS, task);
    e.leave(4 * MS, task);
    e.task_complete(4 * MS, team, 0, 1);
    e.task_switch(4 * MS, team, 0, 0);
    e.leave(7 * MS, wait);
    e.enter(7 * MS, barrier);
    e.leave(8 * MS, barrier);
    // The worker runs the other one in its barrier.
    let e = run.on(members[1]);
    e.enter(MS + 5 * US, barrier);
    e.task_switch(2 * MS, team, 0, 2);
    e.enter(2 * MS, task);
    e.leave(7 * MS, task);
    e.task_complete(7 * MS, team, 0, 2);
    e.task_switch(7 * MS, team, 1, 0);
    e.leave(8 * MS, barrier);
    for location in &members {
        run.on(*location).leave(8 * MS, parallel);
        run.on(*location).team_end(8 * MS, team);
    }
    // 4 to 7 ms; both come to the barrier at 7 ms.
    assert_eq!(run.totals(), [("tasks", 3_000)].into());
}

#[test]
fn a_task_that_goes_on_on_another_thread() {
    let mut run = Recording::new(1);
    let (members, team) = team(&mut run, 2);
    let task = run.region_of("!$omp task", Role::Task, Paradigm::OpenMp);
    let barrier = run.region_of("!$omp barrier", Role::Barrier, Paradigm::OpenMp);
    run.on(0).fork(MS, Paradigm::OpenMp, 2);
    for location in &members {
        run.on(*location).team_begin(MS, team);
        run.on(*location).enter(MS, barrier);
    }
    let e = run.on(0);
    e.task_switch(2 * MS, team, 1, 1);
    e.enter(2 * MS, task);
    e.task_switch(5 * MS, team, 0, 0);
    e.leave(9 * MS, barrier);
    let e = run.on(members[1]);
    e.task_switch(5 * MS, team, 1, 1);
    e.leave(9 * MS, task);
    e.task_complete(9 * MS, team, 1, 1);
    e.task_switch(9 * MS, team, 1, 0);
    e.leave(9 * MS, barrier);
    for location in &members {
        run.on(*location).team_end(9 * MS, team);
    }
    let mined = run.mined();
    let operations = &mined.operations;
    let of = |stream: usize| -> Vec<(&str, i64)> {
        let all = operations.sequences[stream].operations.iter();
        all.map(|o| (operations.names.get(o.symbol), (o.end - o.start) / 1_000_000)).collect()
    };
    assert_eq!(of(0), [("!$omp task", 3), ("!$omp barrier", 4)], "3 ms here");
    assert_eq!(of(1), [("(idle)", 0), ("!$omp task", 4), ("!$omp barrier", 0)], "and 4 there");
    let barrier = mined.waiting.unwrap().states[0].clone();
    assert_eq!((barrier.kind.name(), barrier.ns / 1_000), ("thread_barrier", 4_000), "for the second half");
}

#[test]
fn an_accelerator_and_its_host() {
    let mut run = Recording::new(1);
    let queue = run.writer.queue(0, "CUDA[0:7]");
    let launch = run.region_of("cuLaunchKernel", Role::Function, Paradigm::Cuda);
    let wait = run.region_of("cuStreamSynchronize", Role::Function, Paradigm::Cuda);
    let kernel = run.region_of("stencil_kernel", Role::Function, Paradigm::Cuda);
    for (launched, began, ended) in [(2 * MS, 2 * MS + 10 * US, 5 * MS), (9 * MS, 9 * MS + 10 * US, 12 * MS)] {
        let e = run.on(0);
        e.enter(launched, launch);
        e.leave(launched + 5 * US, launch);
        e.enter(launched + MS, wait);
        e.leave(ended, wait);
        let e = run.on(queue);
        e.enter(began, kernel);
        e.leave(ended, kernel);
    }
    // The host waits 2 ms twice; the queue has nothing to do from 5 ms until the second launch has arrived.
    assert_eq!(run.totals(), [("accelerator", 4_000), ("idle_accelerator", 4_010)].into());
}

// ---- one-sided communication -----------------------------------------------------------------------------------------

#[test]
fn fences_posts_completes_and_locks_of_a_window() {
    let mut run = Recording::new(2);
    let world = run.world;
    let window = run.writer.window("halo", world);
    let (first, second) = (run.writer.group(5, Paradigm::Mpi, &[0]), run.writer.group(5, Paradigm::Mpi, &[1]));
    // A fence: the second comes 2 ms later.
    for (rank, came) in [(0, MS), (1, 3 * MS)] {
        run.call(rank, "MPI_Win_fence", came, 3 * MS + 10 * US, |e| {
            e.rma_collective_begin(came);
            e.rma_collective_end(3 * MS + 9 * US, 0, window);
        });
    }
    assert_eq!(run.totals(), [("barrier", 2_000)].into());

    let mut run = Recording::new(2);
    let world = run.world;
    let window = run.writer.window("halo", world);
    let groups = (run.writer.group(5, Paradigm::Mpi, &[0]), run.writer.group(5, Paradigm::Mpi, &[1]));
    assert_eq!(groups, (first, second), "the same definitions");
    // Rank 0 accesses what rank 1 opens 3 ms after it was asked, and completes 4 ms after rank 1 waits for it.
    run.call(0, "MPI_Win_start", 2 * MS, 5 * MS + 10 * US, |e| e.rma_group_sync(5 * MS, window, second));
    run.call(0, "MPI_Put", 5 * MS + 20 * US, 5 * MS + 30 * US, |e| e.rma_put(5 * MS + 21 * US, window, 1, 64, 1));
    run.work(0, "assemble", 5 * MS + 30 * US, 10 * MS);
    run.call(0, "MPI_Win_complete", 10 * MS, 10 * MS + 10 * US, |e| e.rma_group_sync(10 * MS, window, second));
    run.work(1, "smooth", MS, 5 * MS);
    run.call(1, "MPI_Win_post", 5 * MS, 5 * MS + 5 * US, |e| e.rma_group_sync(5 * MS, window, first));
    run.call(1, "MPI_Win_wait", 6 * MS, 10 * MS + 20 * US, |e| e.rma_group_sync(10 * MS + 19 * US, window, first));
    assert_eq!(run.totals(), [("late_post", 3_000), ("late_complete", 4_000)].into());

    let mut run = Recording::new(3);
    let world = run.world;
    let window = run.writer.window("halo", world);
    // Ranks 1 and 2 lock rank 0's part: from 1 to 5 ms, and from then on, 3 ms after it was asked for.
    for (rank, asked, got, gone) in [(1, MS, MS + US, 5 * MS), (2, 2 * MS, 5 * MS, 6 * MS)] {
        run.call(rank, "MPI_Win_lock", asked, got + 10 * US, |e| {
            e.rma_request_lock(asked, window, 0, 1);
            e.rma_acquire_lock(got, window, 0, 1);
        });
        run.call(rank, "MPI_Win_unlock", gone - 10 * US, gone, |e| e.rma_release_lock(gone, window, 0, 1));
    }
    run.work(0, "smooth", MS, 8 * MS);
    assert_eq!(run.totals(), [("lock", 3_000)].into());
}

// ---- what was measured ---------------------------------------------------------------------------------------------

#[test]
fn metrics_are_columns_parameters_are_types_and_dumps_have_names() {
    let mut run = Recording::new(2);
    let instructions = run.writer.metric("PAPI_TOT_INS", "#", true, false);
    let temperature = run.writer.metric("temperature", "C", false, true);
    let level = run.writer.parameter("level", 1);
    run.writer.handle(7, "restart.dat");
    let mut now = MS;
    for step in 0..30_u64 {
        for rank in 0..2 {
            let region = run.region("smooth");
            let e = run.on(rank);
            e.enter(now, region);
            e.parameter_int(now, level, (step % 3) as i64);
            e.metric(now + 400 * US, instructions, &[Value::U64(1_000 * (step + 1) * (step + 1))]);
            e.metric(now + 400 * US, temperature, &[Value::F64(40.4 + step as f64)]);
            e.leave(now + 400 * US, region);
        }
        run.meet("MPI_Allreduce", 11, None, &[(now + 400 * US, now + 420 * US); 2]);
        now += 500 * US;
    }
    let e = run.on(0);
    e.io_begin(now, 7, 1, 4_096, 1);
    e.io_complete(now + US, 7, 4_096, 1);
    let (_folder, path) = run.finish();
    let (archive, work) = (Archive::open(&path).unwrap(), Ctx::new(1));
    let (operations, notices) = mpi::operations(&archive, &work).unwrap();
    let mined = Mined::new(operations, &work).unwrap();
    let model = iterations(&mined, 0, "run", "host", &notices, &work).unwrap();
    let column = |metric: &Metric| &model.executions.column(metric).unwrap().values;
    let turn = column(&Metric::Field("turn".into()));
    let grown = column(&Metric::Perf("PAPI_TOT_INS".into()));
    let warm = column(&Metric::Field("temperature".into()));
    let kinds = column(&Metric::Type);
    let mut seen = 0;
    for at in 0..model.executions.len() {
        let n = turn[at];
        if grown[at] != ABSENT {
            assert_eq!(grown[at], 1_000 * (2 * n + 1), "turn {n}");
            seen += 1;
        }
        assert_eq!(warm[at], 40 + n, "turn {n}");
        assert_eq!(model.names.get(NameId::from_raw(kinds[at] as u32)), format!("level={}", n % 3));
    }
    assert!(seen >= 50, "{seen} of {}", model.executions.len());
    let mut dumped = Vec::new();
    dump(&archive, &Cancel::default(), &mut dumped).unwrap();
    let dumped = String::from_utf8(dumped).unwrap();
    for text in [
        "PAPI_TOT_INS 1000\n",
        "temperature 40\n",
        "level=2\n",
        "write 1, restart.dat\n",
        ", 4096 bytes, restart.dat\n",
    ] {
        assert!(dumped.contains(text), "{text}");
    }
}

// ---- what the tracer does itself -----------------------------------------------------------------------------------

#[test]
fn a_tracer_that_writes_out_its_buffer_is_named_and_no_region_is_blamed() {
    let mut run = Recording::new(4);
    let flushed = 17;
    let mut now = 2 * MS;
    for step in 0..40 {
        let mut came = [now; 4];
        for rank in 0..4 {
            let (from, mut to) = (now, now + 800 * US + rank * 3 * US);
            if step == flushed && rank == 2 {
                to += 30 * MS;
                let region = run.region("smooth");
                let e = run.on(rank);
                e.enter(from, region);
                e.flush(from + 100 * US, from + 100 * US + 30 * MS);
                e.leave(to, region);
            } else {
                run.work(rank, "smooth", from, to);
            }
            came[rank as usize] = to;
        }
        let last = came.into_iter().max().unwrap();
        let times: Vec<(u64, u64)> = came.iter().map(|at| (*at, last + 20 * US)).collect();
        run.meet("MPI_Allreduce", 11, None, &times);
        now = last + 30 * US;
    }
    let found = run.analyse();
    let first = &found.paths[0].steps[0];
    let noise = first.noise.map(|n| n.name());
    assert_eq!((first.stream, first.what.as_str(), noise), (2, "TRACE BUFFER FLUSH", Some("tracer")), "{first:?}");
    let waiting = found.waiting.unwrap();
    let smooth = waiting.regions.iter().find(|r| r.function == "smooth").unwrap();
    assert!(smooth.max_ns < 40 * 900_000, "the flush is taken out of the region: {smooth:?}");
    assert_eq!((waiting.costs[0].label.as_str(), waiting.costs[0].function.as_str()), ("rank 2", "TRACE BUFFER FLUSH"));
    assert!(waiting.imbalances.is_empty(), "{:?}", waiting.imbalances);
}
