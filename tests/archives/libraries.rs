//! Causes carry the program's functions: time in a call of MPI, OpenMP or pthreads is that of the region around it.

use super::*;

const STEPS: u64 = 40;

/// What `explain` says about two ranks, the second of which makes a call in `assemble` that takes 30 ms in three steps,
/// while the first waits for its message.
fn explained(call: &'static str, paradigm: Paradigm) -> serde_json::Value {
    let mut run = Recording::new(2);
    let (world, assemble) = (run.world, run.region("assemble"));
    let slow = run.region_of(call, Role::Function, paradigm);
    let mut now = MS;
    for step in 0..STEPS {
        let long = if [9, 20, 31].contains(&step) { 30 * MS } else { 20 * US };
        let done = now + 500 * US + long + step % 7 * US;
        let e = run.on(1);
        e.enter(now, assemble);
        e.enter(now + 400 * US, slow);
        e.leave(done, slow);
        e.leave(done + 20 * US, assemble);
        run.call(1, "MPI_Send", done + 30 * US, done + 35 * US, |e| e.send(done + 31 * US, 0, world, 1, 64));
        run.work(0, "smooth", now, now + 200 * US);
        run.call(0, "MPI_Recv", now + 210 * US, done + 50 * US, |e| e.recv(done + 49 * US, 1, world, 1, 64));
        now = done + 60 * US;
    }
    let (_folder, path) = run.finish();
    ask::json(&["explain", "--json", &path.display().to_string()])
}

#[test]
fn causes_name_the_region_around_a_call_of_a_library() {
    let calls = [
        ("omp_unset_lock", Paradigm::OpenMp),
        ("MPI_Type_commit", Paradigm::Mpi),
        ("pthread_mutex_unlock", Paradigm::Pthread),
    ];
    for (call, paradigm) in calls {
        let found = explained(call, paradigm);
        let causes = found["causes"].as_array().unwrap();
        let waited = causes.iter().find(|c| c["sentence"].as_str().unwrap().starts_with("Waiting in MPI_Recv"));
        let waited = waited.unwrap_or_else(|| panic!("{call}: {causes:?}"));
        assert_eq!(waited["by"]["function"], "assemble", "{call}: {}", waited["sentence"]);
        assert!(waited["sentence"].as_str().unwrap().contains(" for rank 1, which ran assemble"), "{waited}");
        let own = causes.iter().filter_map(|c| c["by"]["function"].as_str());
        assert!(own.clone().all(|function| function != call), "{causes:?}");
        let said = format!("Running {call} for assemble on the CPU");
        assert!(causes.iter().any(|c| c["sentence"].as_str().unwrap().starts_with(&said)), "{causes:?}");
    }
}
