//! Waits inside a rank: teams, locks, tasks, accelerators.

use super::*;

/// A rank with threads: its locations and their team.
fn team(run: &mut Recording, threads: usize) -> (Vec<u64>, u32) {
    let mut members = vec![0];
    members.extend((1..threads).map(|_| run.writer.thread(0)));
    let team = run.writer.teams(&[members.clone()])[0];
    (members, team)
}

#[test]
fn team_threads_wait_for_work_and_at_barriers() {
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
fn nested_teams_wait_at_their_own_barriers() {
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
fn locks_are_waited_for_until_their_release() {
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
fn taskwait_is_the_wait_for_a_task_of_another_thread() {
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
fn task_continues_on_another_thread() {
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
    let barrier = mined.waiting(&Ctx::new(1)).unwrap().unwrap().states[0].clone();
    assert_eq!((barrier.kind.name(), barrier.ns / 1_000), ("thread_barrier", 4_000), "for the second half");
}

/// A host of rank 1 that launches two kernels and waits for each; `queue`: makes the location of the accelerator.
fn with_accelerator(queue: impl Fn(&mut ArchiveWriter) -> u64) -> Recording {
    let mut run = Recording::new(2);
    let queue = queue(&mut run.writer);
    let launch = run.region_of("cuLaunchKernel", Role::Function, Paradigm::Cuda);
    let wait = run.region_of("cuStreamSynchronize", Role::Function, Paradigm::Cuda);
    let kernel = run.region_of("stencil_kernel", Role::Function, Paradigm::Cuda);
    for (launched, began, ended) in [(2 * MS, 2 * MS + 10 * US, 5 * MS), (9 * MS, 9 * MS + 10 * US, 12 * MS)] {
        let e = run.on(1);
        e.enter(launched, launch);
        e.leave(launched + 5 * US, launch);
        e.enter(launched + MS, wait);
        e.leave(ended, wait);
        let e = run.on(queue);
        e.enter(began, kernel);
        e.leave(ended, kernel);
    }
    run
}

#[test]
fn accelerator_and_host_wait_for_each_other() {
    let in_group_of_rank = with_accelerator(|writer| writer.queue(1, "CUDA[0:7]"));
    let in_own_group = with_accelerator(|writer| writer.accelerator(1, "CUDA Context 1", "CUDA[0:7]"));
    for run in [in_group_of_rank, in_own_group] {
        let mined = run.mined();
        let waiting = mined.waiting(&Ctx::new(1)).unwrap().unwrap();
        // The host waits 2 ms twice; the queue has nothing to do from 5 ms until the second launch has arrived.
        let totals: Vec<(&str, i64)> = waiting.states.iter().map(|s| (s.kind.name(), s.ns / 1_000)).collect();
        assert_eq!(totals, [("idle_accelerator", 4_010), ("accelerator", 4_000)]);
        let queue = &mined.operations.sequences[2];
        assert_eq!((queue.label(), queue.rank), ("rank 1 CUDA[0:7]", Some(1)), "its group's creator gives the rank");
        let cause = &waiting.states[1].rows[0];
        assert_eq!((cause.stream, cause.causes[0].stream), (1, 2), "the host waits for the queue");
    }
}

/// Tasks of a task graph, numbered by attributes: one waits for its maker, one goes on on another thread.
#[test]
fn task_graph_waits_for_makers_and_migrating_tasks() {
    let mut run = Recording::new(1);
    let worker = run.writer.thread(0);
    let (task, maker) = (run.writer.attribute("GUID"), run.writer.attribute("Parent GUID"));
    let mut part = |location: u64, name: &'static str, number: u64, made_by: u64, from: u64, to: u64| {
        let region = run.region(name);
        let events = run.on(location);
        events.attributes(&[(task, Value::U64(number)), (maker, Value::U64(made_by))]).enter(from, region);
        events.leave(to, region);
    };
    part(0, "produce", 1, 0, MS, 5 * MS);
    part(0, "migrate", 4, 1, 6 * MS, 7 * MS);
    part(worker, "consume", 2, 0, MS, 2 * MS);
    // Its maker ends 3 ms later.
    part(worker, "consume", 3, 1, 5 * MS + 20 * US, 5 * MS + 500 * US);
    part(worker, "migrate", 4, 1, 7 * MS + 10 * US, 9 * MS);
    let (folder, path) = run.finish();
    let (archive, work) = (Archive::open(&path).unwrap(), Ctx::new(1));
    let operations = mpi::read(&archive, &work).unwrap().into_operations(&archive);
    let mined = PatternAnalysis::new(operations, &work).unwrap();
    let states = &mined.waiting(&Ctx::new(1)).unwrap().unwrap().states;
    let totals: Vec<(&str, i64)> = states.iter().map(|s| (s.kind.name(), s.ns / 1_000)).collect();
    assert_eq!(totals, [("tasks", 4_500)]);
    let causes: Vec<u32> = states[0].rows.iter().flat_map(|r| r.causes.iter().map(|c| c.stream)).collect();
    assert!(!causes.is_empty() && causes.iter().all(|stream| *stream == 0), "{states:?}");
    let mut dumped = Vec::new();
    dump(&archive, &Cancel::default(), &mut dumped).unwrap();
    let dumped = String::from_utf8(dumped).unwrap();
    assert!(dumped.contains("Enter\tconsume, GUID=3, Parent GUID=1\n"), "{dumped}");
    drop(folder);
}
