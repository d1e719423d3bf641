//! One-sided communication, metrics and parameters.

use super::*;

#[test]
fn rma_fences_posts_completes_and_locks() {
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

#[test]
fn metrics_are_columns_parameters_are_types_and_dumps_have_names() {
    let mut run = Recording::new(2);
    let instructions = run.writer.metric("PAPI_TOT_INS", "#", true, false);
    let temperature = run.writer.metric("temperature", "C", false, true);
    let power = run.writer.scaled_metric("power", "W", false, false, -3);
    let moved = run.writer.scaled_metric("moved", "B", false, false, 3);
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
            e.metric(now + 400 * US, power, &[Value::U64(2_500)]);
            e.metric(now + 400 * US, moved, &[Value::U64(7)]);
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
    let mined = PatternAnalysis::new(operations, &work).unwrap();
    let model = iterations(&mined, 0, "run", "host", &notices, &work).unwrap();
    let column = |metric: &Metric| model.executions.column(metric).unwrap().values.iter().collect::<Vec<i64>>();
    let turn = column(&Metric::Field("turn".into()));
    let grown = column(&Metric::Perf("PAPI_TOT_INS".into()));
    let warm = column(&Metric::Field("temperature".into()));
    assert!(column(&Metric::Field("moved".into())).iter().all(|v| *v == 7_000), "thousands of bytes");
    assert!(column(&Metric::Field("power".into())).iter().all(|v| *v == 2_500), "as recorded: thousandths of a watt");
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
        "temperature 40.4 C\n",
        "power 2.5 W\n",
        "moved 7000 B\n",
        "level=2\n",
        "write 1, restart.dat\n",
        ", 4096 bytes, restart.dat\n",
    ] {
        assert!(dumped.contains(text), "{text}");
    }
}
