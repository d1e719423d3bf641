//! The same stencil on 64 and on 128 ranks, through the whole program: one role is slower in one region, and the root
//! in another.

use super::*;
use serde_json::Value;

const STEPS: u64 = 24;

/// A grid of ranks in the making, with the time of each.
struct Grid {
    run: Recording,
    width: usize,
    height: usize,
    now: Vec<u64>,
}

impl Grid {
    fn neighbours(&self, rank: usize) -> Vec<usize> {
        let (x, y) = (rank % self.width, rank / self.width);
        let mut all = Vec::new();
        all.extend((x > 0).then(|| rank - 1));
        all.extend((x + 1 < self.width).then_some(rank + 1));
        all.extend((y > 0).then(|| rank - self.width));
        all.extend((y + 1 < self.height).then_some(rank + self.width));
        all
    }

    fn work(&mut self, rank: usize, name: &'static str, ns: u64) {
        let from = self.now[rank];
        self.now[rank] += ns;
        self.run.work(rank as u64, name, from, from + ns);
    }

    /// Messages to and from all neighbours.
    fn exchange(&mut self) {
        let world = self.run.world;
        let sent = self.now.clone();
        for rank in 0..self.now.len() {
            let around = self.neighbours(rank);
            let mut at = sent[rank];
            for (neighbour, request) in around.iter().zip(0..) {
                self.run.call(rank as u64, "MPI_Irecv", at, at + US, |e| e.irecv_request(at + 100, request));
                at += 2 * US;
                let peer = *neighbour as u32;
                self.run.call(rank as u64, "MPI_Isend", at, at + US, |e| {
                    e.isend(at + 100, peer, world, 1, 64, 8 + request)
                });
                at += 2 * US;
            }
            let came = around.iter().map(|n| sent[*n] + 20 * US).max().unwrap().max(at) + 10 * US;
            self.run.call(rank as u64, "MPI_Waitall", at, came, |e| {
                for (neighbour, request) in around.iter().zip(0..) {
                    e.irecv(came - 100, *neighbour as u32, world, 1, 64, request);
                    e.isend_complete(came - 100, 8 + request);
                }
            });
            self.now[rank] = came;
        }
    }

    /// A collective: all leave when its root, or the last rank, has come.
    fn meet(&mut self, name: &'static str, number: u8, root: Option<u32>) {
        let awaited = root.map_or_else(|| *self.now.iter().max().unwrap(), |root| self.now[root as usize]);
        let times: Vec<(u64, u64)> = self.now.iter().map(|now| (*now, awaited.max(*now) + 10 * US)).collect();
        self.run.meet(name, number, root, &times);
        self.now = times.into_iter().map(|(_, left)| left).collect();
    }
}

/// A run on `width` x `height` ranks. `edge` is the time of `smooth` on ranks with three neighbours (1 ms elsewhere),
/// `partition` that of the root in each eighth step.
fn stencil(width: usize, height: usize, edge: u64, partition: u64) -> (TempDir, PathBuf) {
    let ranks = width * height;
    let mut grid = Grid { run: Recording::new(ranks), width, height, now: vec![MS; ranks] };
    for step in 0..STEPS {
        for rank in 0..ranks {
            let noise = (rank as u64 * 7 + step * 13) % 10 * US;
            let longer = grid.neighbours(rank).len() == 3;
            grid.work(rank, "smooth", if longer { edge } else { MS } + noise);
        }
        grid.exchange();
        if step % 8 == 3 {
            grid.work(0, "partition", partition);
            grid.meet("MPI_Bcast", 1, Some(0));
        }
        if step % 4 == 3 {
            grid.meet("MPI_Allreduce", 11, None);
        }
    }
    grid.run.finish()
}

/// The mean times of a region on the ranks of a role in both runs, in microseconds.
fn mean(found: &Value, function: &str, role: &str) -> (i64, i64) {
    let rows = found["regions"].as_array().unwrap();
    let row = rows.iter().find(|r| r["function"] == function && r["role"] == role);
    let row = row.unwrap_or_else(|| panic!("no {function} of a {role}: {rows:?}"));
    let us = |key: &str| row[key].as_i64().unwrap() / 1_000;
    (us("slow_mean_ns"), us("fast_mean_ns"))
}

#[test]
fn growing_runs_are_compared_by_region_role_and_iteration() {
    let (_old, old) = stencil(8, 8, MS, MS);
    let (_new, new) = stencil(8, 16, 3 * MS / 2, 9 * MS);
    let archives = [format!("old={}", old.display()), format!("new={}", new.display())];
    let groups = ["--slow", "trace=new", "--fast", "trace=old"];
    let json = |command: &str, inputs: &[String]| -> Value {
        let inputs = inputs.iter().map(String::as_str);
        ask::json(&[command, "--json"].into_iter().chain(groups).chain(inputs).collect::<Vec<&str>>())
    };
    let found = json("diff", &archives);
    let [inner, edge, corner] =
        ["rank with the most partners", "rank with a medium number of partners", "rank with the fewest partners"];
    let root = "root rank with the fewest partners";
    // The calls repeat every eight steps, so these are an iteration.
    assert_eq!(mean(&found, "smooth", edge), (8 * 1_500 + 35, 8 * 1_000 + 35), "{}", found["regions"]);
    for role in [inner, corner, root] {
        let (new, old) = mean(&found, "smooth", role);
        assert!((new - old).abs() < 10 && (8_000..8_080).contains(&new), "{role}: {}", found["regions"]);
    }
    assert_eq!(mean(&found, "partition", root), (9_000, 1_000));
    let iterations = found["iterations"].as_array().unwrap();
    assert!(iterations.iter().all(|i| i["delta_ns"].as_i64().unwrap() > 0), "{iterations:?}");
    // A database of both runs, and one of each, give the same answers.
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    let build = |inputs: &[String], name: &str| {
        let database = file(name);
        let inputs = inputs.iter().map(String::as_str);
        let built = ask::output(&["build", "-o", &database].into_iter().chain(inputs).collect::<Vec<&str>>());
        assert!(built.status.success(), "{}", ask::said(&built));
        database
    };
    let both = build(&archives, "both.why");
    let one = |label: &str, path: &PathBuf| format!("{label}={}", build(&[path.display().to_string()], label));
    let single = [one("old", &old), one("new", &new)];
    for inputs in [&[both][..], &single] {
        let stored = json("diff", inputs);
        assert_eq!((&stored["regions"], &stored["iterations"]), (&found["regions"], &found["iterations"]));
    }
    let explained = json("explain", &archives);
    let first = &explained["causes"][0]["by"];
    assert_eq!((&first["thread"], &first["function"]), (&"rank 0".into(), &"partition".into()), "{first}");
    // Ranks of other runs are called by their role, and no rank is called a thread.
    let sentences: Vec<&str> =
        explained["causes"].as_array().unwrap().iter().filter_map(|c| c["sentence"].as_str()).collect();
    assert!(sentences[0].contains(" for rank 0, which ran partition"), "{sentences:?}");
    assert!(sentences.iter().any(|s| s.contains(" for ranks with a medium number of partners, ")), "{sentences:?}");
    assert!(sentences.iter().all(|s| !s.contains("thread")), "{sentences:?}");
}
