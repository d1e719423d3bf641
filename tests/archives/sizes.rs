//! Runs of one program on different numbers of ranks.

use super::*;
use whyslow::parts::compare::filter::Filter;
use whyslow::parts::compare::ranks::{RankComparison, ranks};
use whyslow::parts::compare::{ComparisonRequest, compare};
use whyslow::parts::model::Model;
use whyslow::parts::model::context::FrameKind;
use whyslow::parts::model::join::{self, Renamed};

const STEPS: u64 = 30;

/// The iterations of a line of ranks, each of which works and passes a message to the next.
fn line(label: &str, ranks: usize, work: u64, late: u64) -> Model {
    let mut run = Recording::new(ranks);
    let world = run.world;
    for rank in 0..ranks as u64 {
        let mut now = MS;
        for step in 0..STEPS {
            // The inner ranks take longer in the last third.
            let inner = rank > 0 && rank + 1 < ranks as u64;
            let longer = if inner && step >= 2 * STEPS / 3 { late } else { 0 };
            let start = MS + step * 10 * MS;
            assert!(now <= start);
            run.work(rank, "smooth", start, start + work + longer);
            now = start + 6 * MS + rank * 20 * US;
            if rank > 0 {
                let from = start + work + longer;
                run.call(rank, "MPI_Recv", from, now, |e| e.recv(now - US, rank as u32 - 1, world, 1, 64));
            }
            if rank + 1 < ranks as u64 {
                let (from, to) = (now, now + 5 * US);
                run.call(rank, "MPI_Send", from, to, |e| e.send(from + US, rank as u32 + 1, world, 1, 64));
            }
        }
    }
    let (_folder, path) = run.finish();
    let (archive, work) = (Archive::open(&path).unwrap(), Ctx::new(1));
    let (operations, notices) = mpi::operations(&archive, &work).unwrap();
    let mined = PatternAnalysis::new(operations, &work).unwrap();
    let mut model = iterations(&mined, 0, label, "host", &notices, &work).unwrap();
    join::label(&mut model, label);
    model
}

fn compared(old: Model, new: Model) -> (Model, RankComparison) {
    let ctx = Ctx::new(1);
    let model = join::join(vec![old, new], &Renamed::new(), &ctx).unwrap();
    let filter = |text: &str| vec![text.parse::<Filter>().unwrap()];
    let request =
        ComparisonRequest { slow: filter("trace=old"), fast: filter("trace=new"), ..ComparisonRequest::default() };
    let comparison = compare(&model, &request, &ctx).unwrap();
    let found = ranks(&model, &comparison).unwrap();
    (model, found)
}

#[test]
fn runs_of_different_size_are_compared_by_region_role_and_iteration() {
    let (model, found) = compared(line("old", 4, 4 * MS, MS), line("new", 8, 2 * MS, 0));
    let mean = |region: &str, role: Option<&str>| {
        let row = found.regions.iter().find(|r| r.region == region && r.role.as_deref() == role);
        row.map(|r| (r.means.slow_ns.unwrap() / 10_000, r.means.fast_ns.unwrap() / 10_000))
    };
    // In hundredths of a millisecond: a third of the inner ranks' iterations took 1 ms more.
    assert_eq!(mean("smooth", Some("rank with the most partners")), Some((433, 200)), "{found:?}");
    assert_eq!(mean("smooth", Some("rank with the fewest partners")), Some((400, 200)), "{found:?}");
    assert_eq!(mean("smooth", None), Some((416, 200)), "{found:?}");
    let by_role = found.regions.iter().filter(|r| r.role.is_some());
    let deltas = by_role.map(|r| r.means.delta_ns().map_or(0, i64::abs));
    assert!(deltas.is_sorted_by(|a, b| a >= b), "the largest difference comes first: {found:?}");
    assert_eq!((found.iterations.len(), found.iterations[0].first, found.iterations[9].last), (10, 0, 29));
    // A wait for a rank is a wait for its role, which both runs have.
    let threads =
        (0..model.contexts.len()).map(|at| model.contexts.frame(whyslow::parts::model::context::ContextId::at(at)));
    let threads: Vec<&str> =
        threads.filter(|f| matches!(f.kind, FrameKind::Thread(_))).map(|f| model.names.get(f.name)).collect();
    assert!(!threads.is_empty() && threads.iter().all(|name| name.starts_with("rank with ")), "{threads:?}");
}

#[test]
fn runs_of_equal_size_are_compared_rank_by_rank() {
    let (model, found) = compared(line("old", 4, 4 * MS, MS), line("new", 4, 2 * MS, 0));
    assert!(
        found.regions.iter().any(|r| r.region == "smooth" && r.role.as_deref() == Some("rank with the most partners")),
        "{found:?}"
    );
    let threads =
        (0..model.contexts.len()).map(|at| model.contexts.frame(whyslow::parts::model::context::ContextId::at(at)));
    let mut threads = threads.filter(|f| matches!(f.kind, FrameKind::Thread(_))).map(|f| model.names.get(f.name));
    assert!(threads.any(|name| name == "rank 1"));
}
