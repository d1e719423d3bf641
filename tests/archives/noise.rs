//! What a long call is: noise of the system, work of the tracer, or a wait for something that the archive may not show.

use super::*;

const RANKS: usize = 4;
/// The step and the rank in which something takes 30 ms.
const SLOW_STEP: u64 = 17;
const SLOW_RANK: u64 = 2;

/// Forty steps of some ranks, which meet at the end of each. In each step a rank is busy from a time on; `busy` records
/// that, longer if its last argument says so, and returns its end.
fn steps(run: &mut Recording, mut busy: impl FnMut(&mut Recording, u64, u64, bool) -> u64) {
    let mut now = 2 * MS;
    for step in 0..40 {
        let mut came = [now; RANKS];
        for rank in 0..RANKS as u64 {
            came[rank as usize] = busy(run, rank, now, step == SLOW_STEP && rank == SLOW_RANK);
        }
        let last = came.into_iter().max().unwrap();
        let times: Vec<(u64, u64)> = came.iter().map(|at| (*at, last + 20 * US)).collect();
        run.meet("MPI_Allreduce", 11, None, &times);
        now = last + 30 * US;
    }
}

/// The name of the first source, its stream, and its noise.
fn first_source(found: &Anomalies) -> (&str, &str, Option<&'static str>) {
    let first = &found.paths[0].steps[0];
    let label = found.streams[first.stream as usize].label.as_str();
    (label, first.what.as_str(), first.noise.map(|n| n.name()))
}

#[test]
fn buffer_flush_is_noise_of_the_tracer() {
    let mut run = Recording::new(RANKS);
    steps(&mut run, |run, rank, from, is_slow| {
        let to = from + 800 * US + rank * 3 * US;
        if !is_slow {
            run.work(rank, "smooth", from, to);
            return to;
        }
        let region = run.region("smooth");
        let e = run.on(rank);
        e.enter(from, region);
        e.flush(from + 100 * US, from + 100 * US + 30 * MS);
        e.leave(to + 30 * MS, region);
        to + 30 * MS
    });
    let found = run.analyse();
    assert_eq!(first_source(&found), ("rank 2", "TRACE BUFFER FLUSH", Some("tracer")));
    let waiting = found.waiting.unwrap();
    let smooth = waiting.regions.iter().find(|r| r.function == "smooth").unwrap();
    assert!(smooth.max_ns < 40 * 900_000, "the flush is taken out of the region: {smooth:?}");
    assert_eq!((waiting.costs[0].label.as_str(), waiting.costs[0].function.as_str()), ("rank 2", "TRACE BUFFER FLUSH"));
    assert!(waiting.imbalances.is_empty(), "{:?}", waiting.imbalances);
}

/// A host that waits for its accelerator; `with_queue`: the accelerator's work was recorded.
fn with_accelerator(with_queue: bool) -> Anomalies {
    let mut run = Recording::new(RANKS);
    let launch = run.region_of("cuLaunchKernel", Role::Function, Paradigm::Cuda);
    let wait = run.region_of("cuStreamSynchronize", Role::Function, Paradigm::Cuda);
    let kernel = run.region_of("stencil_kernel", Role::Function, Paradigm::Cuda);
    let queues: Vec<u64> =
        if with_queue { (0..RANKS as u32).map(|r| run.writer.queue(r, "CUDA[0:7]")).collect() } else { Vec::new() };
    steps(&mut run, |run, rank, from, is_slow| {
        let done = from + 800 * US + rank * 3 * US + if is_slow { 30 * MS } else { 0 };
        let e = run.on(rank);
        e.enter(from, launch);
        e.leave(from + 5 * US, launch);
        e.enter(from + 6 * US, wait);
        e.leave(done, wait);
        if let Some(queue) = queues.get(rank as usize) {
            let e = run.on(*queue);
            e.enter(from + 10 * US, kernel);
            e.leave(done, kernel);
        }
        done
    });
    run.analyse()
}

#[test]
fn wait_for_an_accelerator_is_no_noise() {
    let found = with_accelerator(true);
    let (label, what, noise) = first_source(&found);
    assert_eq!((what, noise), ("stencil_kernel", None), "{:?}", found.paths[0].steps);
    assert!(label.starts_with("rank 2"), "{label}");
    let unrecorded = with_accelerator(false);
    let steps = unrecorded.paths.iter().flat_map(|p| &p.steps);
    let waits = steps.filter(|s| s.what == "cuStreamSynchronize").collect::<Vec<_>>();
    assert!(waits.iter().all(|s| s.noise.is_none()), "{waits:?}");
}

#[test]
fn barrier_of_a_team_is_no_noise() {
    let mut run = Recording::new(RANKS);
    let parallel = run.region_of("!$omp parallel", Role::Function, Paradigm::OpenMp);
    let barrier = run.region_of("!$omp implicit barrier", Role::ImplicitBarrier, Paradigm::OpenMp);
    let workers: Vec<u64> = (0..RANKS as u32).map(|rank| run.writer.thread(rank)).collect();
    let members: Vec<Vec<u64>> = (0..RANKS as u64).zip(&workers).map(|(rank, worker)| vec![rank, *worker]).collect();
    let teams = run.writer.teams(&members);
    // Once the worker of one rank is late.
    steps(&mut run, |run, rank, from, is_slow| {
        let end = from + 800 * US + rank * 3 * US + if is_slow { 30 * MS } else { 0 };
        let team = teams[rank as usize];
        run.on(rank).fork(from, Paradigm::OpenMp, 2);
        for (location, done) in [(rank, from + 700 * US), (workers[rank as usize], end)] {
            run.on(location).team_begin(from, team);
            run.on(location).enter(from, parallel);
            run.work(location, "smooth", from, done);
            let e = run.on(location);
            e.enter(done, barrier);
            e.leave(end + 5 * US, barrier);
            e.leave(end + 5 * US, parallel);
            e.team_end(end + 5 * US, team);
        }
        run.on(rank).join(end + 6 * US, Paradigm::OpenMp);
        end + 6 * US
    });
    let found = run.analyse();
    assert_eq!(first_source(&found), ("rank 2 thread 1", "smooth", None), "{:?}", found.paths[0].steps);
    let barriers = found.paths.iter().flat_map(|p| &p.steps).filter(|s| s.what == "!$omp implicit barrier");
    assert!(barriers.clone().count() > 0 && barriers.clone().all(|s| s.noise.is_none()));
}
