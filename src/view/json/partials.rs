//! JSON of a comparison from partial results: `whyslow.partials/1`.

use super::tree::{NodeJson, tree};
use crate::base::clean;
use crate::compare::Spread;
use crate::compare::partials::{ComparedHost, PartialCause, PartialComparison, PartialGroup};
use crate::model::Model;
use crate::model::partials::DurationHistogram;
use crate::view::partials::FleetFilters;
use serde::Serialize;
use std::collections::BTreeSet;

#[derive(Serialize)]
struct PartialsJson {
    schema: &'static str,
    task: String,
    executions: u64,
    unsure: u64,
    slow: PartialGroupJson,
    fast: PartialGroupJson,
    extra_ns: i64,
    histogram: Vec<BucketJson>,
    tree: Vec<NodeJson>,
    /// Nodes were left out to obey `--max-nodes`.
    truncated: bool,
    hosts: Vec<HostJson>,
    causes: Vec<PartialCauseJson>,
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct PartialGroupJson {
    count: u64,
    mean_ns: i64,
    p50_ns: i64,
    p95_ns: i64,
    p99_ns: i64,
    max_ns: i64,
    filters: Vec<String>,
}

/// Executions of some lengths.
#[derive(Serialize)]
struct BucketJson {
    /// The least length.
    from_ns: i64,
    /// The largest length.
    to_ns: i64,
    all: u64,
    slow: u64,
    fast: u64,
}

#[derive(Serialize)]
struct HostJson {
    host: String,
    executions: u64,
    slow: u64,
    fast: u64,
    /// Null where the group has none of the host's.
    slow_mean_ns: Option<i64>,
    fast_mean_ns: Option<i64>,
}

/// A cause of a comparison of sums.
#[derive(Serialize)]
pub(super) struct PartialCauseJson {
    rank: Option<u32>,
    kind: Option<&'static str>,
    extra_ns: i64,
    share: f64,
    path: Vec<String>,
    sentence: String,
}

fn group(PartialGroup { count, mean_ns, spread }: &PartialGroup, filters: &[String]) -> PartialGroupJson {
    let Spread { p50_ns, p95_ns, p99_ns, max_ns } = *spread;
    let filters = filters.iter().map(|filter| clean::owned(filter)).collect();
    PartialGroupJson { count: *count, mean_ns: *mean_ns, p50_ns, p95_ns, p99_ns, max_ns, filters }
}

fn histogram(all: &[DurationHistogram; 3]) -> Vec<BucketJson> {
    let buckets: BTreeSet<u32> = all.iter().flat_map(|one| one.counts.keys().copied()).collect();
    let of_bucket = |bucket: u32| {
        let [all, slow, fast] = [0, 1, 2].map(|at: usize| all[at].counts.get(&bucket).copied().unwrap_or(0));
        let (from_ns, to_ns) = DurationHistogram::bounds(bucket);
        BucketJson { from_ns, to_ns, all, slow, fast }
    };
    buckets.into_iter().map(of_bucket).collect()
}

fn host(ComparedHost { name, executions, groups }: &ComparedHost) -> HostJson {
    let [slow, fast] = groups.map(|(count, mean)| (count, (count > 0).then_some(mean)));
    HostJson {
        host: clean::owned(name),
        executions: *executions,
        slow: slow.0,
        fast: fast.0,
        slow_mean_ns: slow.1,
        fast_mean_ns: fast.1,
    }
}

pub(super) fn cause(PartialCause { rank, kind, extra_ns, share, path, phrase }: &PartialCause) -> PartialCauseJson {
    PartialCauseJson {
        rank: *rank,
        kind: kind.map(|kind| kind.name()),
        extra_ns: *extra_ns,
        share: *share,
        path: path.iter().map(|frame| clean::owned(frame)).collect(),
        sentence: clean::owned(phrase),
    }
}

/// The document `whyslow.partials/1`.
pub fn partials(
    model: &Model,
    [slow, fast]: FleetFilters<'_>,
    c: &PartialComparison,
    warnings: &[String],
    most: Option<usize>,
) -> impl Serialize + use<> {
    PartialsJson {
        schema: "whyslow.partials/1",
        task: model.tasks.get(model.task).map_or_else(String::new, |task| clean::owned(task)),
        executions: c.executions,
        unsure: c.unsure,
        slow: group(&c.groups[0], slow),
        fast: group(&c.groups[1], fast),
        extra_ns: c.extra_ns,
        histogram: histogram(&c.by_length),
        tree: tree(model, &c.tree, most),
        truncated: most.is_some_and(|most| most < c.tree.nodes.len()),
        hosts: c.hosts.iter().map(host).collect(),
        causes: c.causes.iter().map(cause).collect(),
        warnings: warnings.iter().map(|line| clean::owned(line)).collect(),
    }
}
