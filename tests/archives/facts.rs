//! What an archive says of itself, through the whole program: creator, nodes, ranks, threads, streams, communicators,
//! file transfers, and functions as their authors wrote them.

use super::*;
use std::path::Path;

/// Two ranks, a thread and a queue, a function with the name that its linker knew, and a file that is written.
fn archive(with_files: bool) -> (TempDir, PathBuf) {
    let mut run = Recording::new(2);
    let world = run.world;
    run.writer.thread(0);
    run.writer.queue(1, "CUDA[0:7]");
    run.writer.handle(7, "restart.dat");
    for step in 0..12 {
        let now = MS + step * MS;
        for rank in 0..2 {
            run.work(rank, "_ZN4mesh6smoothEd", now, now + 300 * US);
        }
        run.call(0, "MPI_Send", now + 310 * US, now + 320 * US, |e| e.send(now + 311 * US, 1, world, 1, 64));
        run.call(1, "MPI_Recv", now + 305 * US, now + 330 * US, |e| e.recv(now + 329 * US, 0, world, 1, 64));
        if with_files {
            run.call(1, "write", now + 400 * US, now + 500 * US, |e| {
                e.io_begin(now + 401 * US, 7, 1, 5_000, step);
                e.io_complete(now + 499 * US, 7, 4_096, step);
            });
        }
    }
    run.finish()
}

fn text(words: &[&str]) -> String {
    let out = ask::output(words);
    assert!(out.status.success(), "{}", ask::said(&out));
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn info_names_creator_nodes_ranks_threads_streams_and_communicators() {
    let (_folder, path) = archive(true);
    let path = path.display().to_string();
    let said = text(&["info", &path]);
    for part in ["by whyslow's tests: 2 ranks, 3 threads, 1 accelerator streams, 1 communicators", "nodes: node0"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let facts = &ask::json(&["info", "--json", &path])["traces"][0];
    let number = |key: &str| facts[key].as_u64().unwrap();
    assert_eq!((&facts["creator"], &facts["nodes"][0]), (&"whyslow's tests".into(), &"node0".into()));
    assert_eq!(["ranks", "threads", "accelerator_streams", "communicators"].map(number), [2, 3, 1, 1]);
}

#[test]
fn info_names_what_an_archive_cannot_answer_with_the_command() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/archives/hybrid/trace");
    let found = ask::json(&["info", "--json", &path.display().to_string()]);
    let missing = found["missing"].as_array().unwrap();
    let about = |question: &str| missing.iter().find(|m| m["question"] == question);
    let files = about("which files were read and written").unwrap();
    assert!(files["command"].as_str().unwrap().starts_with("scorep --io=posix mpicc "), "{files}");
    assert_eq!(about("whether it computed or was preempted").unwrap()["command"], "whyslow record --duration 10s");
    assert!(about("functions that ran").is_none(), "it has regions of the program: {missing:?}");
    let said = text(&["info", &path.display().to_string()]);
    assert!(said.contains("questions that this archive cannot answer") && said.contains("--io=posix"), "{said}");
    // With operations on files.
    let (_folder, path) = archive(true);
    let found = ask::json(&["info", "--json", &path.display().to_string()]);
    let questions = found["missing"].as_array().unwrap().iter().map(|m| m["question"].as_str().unwrap());
    assert_eq!(questions.collect::<Vec<_>>(), ["whether it computed or was preempted"]);
}

#[test]
fn stats_io_adds_up_bytes_by_rank() {
    let (_folder, path) = archive(true);
    let path = path.display().to_string();
    let found = ask::json(&["stats", "io", "--json", &path]);
    assert_eq!(found["processes"].as_array().unwrap().len(), 1, "{found}");
    let rank = &found["processes"][0];
    let number = |key: &str| rank[key].as_u64().unwrap();
    assert_eq!(rank["name"], "rank 1");
    assert_eq!(["written_bytes", "writes", "read_bytes", "reads"].map(number), [12 * 4_096, 12, 0, 0]);
    assert!(text(&["stats", "io", &path]).contains("rank 1"));
    // Without any, the reason and the remedy.
    let (_folder, path) = archive(false);
    let found = ask::json(&["stats", "io", "--json", &path.display().to_string()]);
    let remedy = found["warnings"][0].as_str().unwrap();
    // EZTrace records the modules named and no others: MPI must stay among them.
    assert!(remedy.contains("scorep --io=posix") && remedy.contains("-t \"openmpi posixio\""), "{found}");
}

#[test]
fn mangled_names_are_demangled() {
    let (_folder, path) = archive(false);
    let path = path.display().to_string();
    let dumped = text(&["dump", &path]);
    assert!(dumped.contains("Enter\tmesh::smooth\n") && !dumped.contains("_ZN4mesh"), "{dumped}");
    let found = ask::json(&["anomalies", "--json", &path]);
    let regions: Vec<&str> =
        found["regions"].as_array().unwrap().iter().filter_map(|r| r["function"].as_str()).collect();
    assert!(regions.contains(&"mesh::smooth"), "{regions:?}");
}
