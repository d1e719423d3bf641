//! JSON of a comparison: `whyslow.explain/1` and `whyslow.diff/1` (PRODUCT.md).
//!
//! In: a model and what [`crate::compare`] made of it. Out: one document, the same bytes for any number of workers:
//! every list has a fixed order, and no map is iterated. Texts from traces are cleaned of control characters.

use crate::base::clean;
use crate::base::names::NameId;
use crate::compare::members::sorted_present;
use crate::compare::moments::{Alignment, Moment};
use crate::compare::{
    Basis, Cause, Comparison, Culprit, DiffTree, Dimension, Group, GroupsOrigin, SlowKind, frame_text,
};
use crate::model::Model;
use crate::model::execution::ExecutionId;
use crate::model::histogram::Bins;
use crate::model::metric::{Column, Unit};
use serde::Serialize;
use std::collections::BinaryHeap;

/// Executions of each group given as samples.
const SAMPLES: usize = 20;

fn cleaned(text: &str) -> String {
    clean::text(text).into_owned()
}

#[derive(Serialize)]
struct GroupJson {
    count: usize,
    /// Absent where it is empty.
    mean_ns: Option<i64>,
    filters: Vec<String>,
}

fn group(g: &Group) -> GroupJson {
    let filters = g.filters.iter().map(|f| cleaned(&f.to_string())).collect();
    let mean_ns = (!g.members.is_empty()).then_some(g.mean_ns);
    GroupJson { count: g.members.len(), mean_ns, filters }
}

#[derive(Serialize)]
struct VerdictJson {
    confident: bool,
    basis: &'static str,
    groups: &'static str,
    sentence: String,
}

fn verdict(c: &Comparison) -> VerdictJson {
    VerdictJson {
        confident: c.verdict.confident,
        basis: match c.verdict.basis {
            Basis::Cause => "cause",
            Basis::Dimension => "dimension",
            Basis::Place => "place",
            Basis::Profile => "profile",
            Basis::None => "none",
        },
        groups: match c.verdict.groups {
            GroupsOrigin::Given => "given",
            GroupsOrigin::Gap => "gap",
            GroupsOrigin::Valley => "valley",
            GroupsOrigin::Percentile => "percentile",
            GroupsOrigin::Trace => "trace",
            GroupsOrigin::All => "all",
        },
        sentence: cleaned(&c.verdict.sentence),
    }
}

#[derive(Serialize)]
struct ByJson {
    host: Option<String>,
    process: Option<String>,
    pid: Option<i32>,
    tid: Option<i32>,
    thread: Option<String>,
    function: Option<String>,
}

fn by(c: &Culprit) -> ByJson {
    let text = |t: &Option<String>| t.as_deref().map(cleaned);
    ByJson {
        host: text(&c.host),
        process: text(&c.process),
        pid: c.pid,
        tid: c.tid,
        thread: text(&c.thread),
        function: text(&c.function),
    }
}

#[derive(Serialize)]
struct CauseJson {
    rank: Option<u32>,
    kind: Option<&'static str>,
    extra_ns: i64,
    share: f64,
    deviations: Option<f64>,
    p_value: Option<f64>,
    slow_affected: f64,
    fast_affected: f64,
    path: Vec<String>,
    by: ByJson,
    sentence: String,
}

fn cause(c: &Cause) -> CauseJson {
    CauseJson {
        rank: c.rank,
        kind: c.kind.map(|k| k.name()),
        extra_ns: c.extra_ns,
        share: c.share,
        deviations: c.deviations,
        p_value: c.p_value,
        slow_affected: c.slow_affected,
        fast_affected: c.fast_affected,
        path: c.path.iter().map(|p| cleaned(p)).collect(),
        by: by(&c.by),
        sentence: cleaned(&c.sentence),
    }
}

#[derive(Serialize)]
struct DimensionJson {
    name: String,
    value: String,
    slow_share: f64,
    fast_share: f64,
    effect: f64,
}

fn dimension(d: &Dimension) -> DimensionJson {
    DimensionJson {
        name: cleaned(&d.name),
        value: cleaned(&d.value),
        slow_share: d.slow_share,
        fast_share: d.fast_share,
        effect: d.effect,
    }
}

#[derive(Serialize)]
struct KindJson {
    count: usize,
    mean_ns: i64,
    /// Rank of the cause that most of their extra time has.
    cause: Option<u32>,
    sentence: String,
}

fn kind(k: &SlowKind) -> KindJson {
    KindJson { count: k.members.len(), mean_ns: k.mean_ns, cause: k.cause, sentence: cleaned(&k.sentence) }
}

fn task(model: &Model) -> String {
    model.tasks.get(model.task).map_or_else(String::new, |t| cleaned(t))
}

/// The part about a comparison that both documents share.
struct Common {
    task: String,
    slow: GroupJson,
    fast: GroupJson,
    verdict: VerdictJson,
    causes: Vec<CauseJson>,
    kinds: Vec<KindJson>,
    dimensions: Vec<DimensionJson>,
    warnings: Vec<String>,
}

fn common(model: &Model, c: &Comparison) -> Common {
    Common {
        task: task(model),
        slow: group(&c.slow),
        fast: group(&c.fast),
        verdict: verdict(c),
        causes: c.causes.iter().map(cause).collect(),
        kinds: c.kinds.iter().map(kind).collect(),
        dimensions: c.dimensions.iter().map(dimension).collect(),
        warnings: c.warnings.iter().map(|w| cleaned(w)).collect(),
    }
}

#[derive(Serialize)]
struct ExplainJson {
    schema: &'static str,
    task: String,
    slow: GroupJson,
    fast: GroupJson,
    extra_ns: i64,
    verdict: VerdictJson,
    causes: Vec<CauseJson>,
    kinds: Vec<KindJson>,
    dimensions: Vec<DimensionJson>,
    warnings: Vec<String>,
}

/// The document `whyslow.explain/1`.
pub fn explain(model: &Model, c: &Comparison) -> impl Serialize + use<> {
    let Common { task, slow, fast, verdict, causes, kinds, dimensions, warnings } = common(model, c);
    let schema = "whyslow.explain/1";
    ExplainJson { schema, task, slow, fast, extra_ns: c.extra_ns, verdict, causes, kinds, dimensions, warnings }
}

#[derive(Serialize)]
struct MetricJson {
    name: String,
    unit: &'static str,
    logarithmic: bool,
    /// Edges of the bins, one more than counts; half-open.
    bins: Vec<i64>,
    /// For metrics that are names: the name of each bin.
    #[serde(skip_serializing_if = "Option::is_none")]
    names: Option<Vec<String>>,
    slow: Vec<u32>,
    fast: Vec<u32>,
}

fn metric(model: &Model, column: &Column, c: &Comparison) -> MetricJson {
    let unit = column.metric.unit();
    let bins = Bins::new(&sorted_present(&column.values), unit);
    let counts = |members: &[ExecutionId]| {
        let mut counts = vec![0; bins.len()];
        for bin in members.iter().filter_map(|e| bins.of(*column.values.get(e.index())?)) {
            counts[bin] += 1;
        }
        counts
    };
    let name =
        |v: &i64| u32::try_from(*v).map_or_else(|_| String::new(), |id| cleaned(model.names.get(NameId::from_raw(id))));
    MetricJson {
        name: cleaned(&column.metric.name()),
        unit: match unit {
            Unit::Ns => "ns",
            Unit::Bytes => "bytes",
            Unit::Count => "count",
            Unit::Name => "name",
        },
        logarithmic: bins.logarithmic,
        names: (unit == Unit::Name).then(|| bins.edges.iter().take(bins.len()).map(name).collect()),
        slow: counts(&c.slow.members),
        fast: counts(&c.fast.members),
        bins: bins.edges,
    }
}

#[derive(Serialize)]
struct NodeJson {
    name: String,
    kind: &'static str,
    depth: u32,
    slow_mean_ns: f64,
    fast_mean_ns: f64,
    delta_ns: f64,
    self_delta_ns: f64,
    deviations: Option<f64>,
    p_value: Option<f64>,
    slow_affected: f64,
    fast_affected: f64,
}

fn tree(model: &Model, tree: &DiffTree, most: Option<usize>) -> Vec<NodeJson> {
    let keep = largest(tree, most.unwrap_or(usize::MAX));
    let kept = tree.nodes.iter().zip(keep).filter(|(_, keep)| *keep);
    kept.map(|(n, _)| NodeJson {
        name: cleaned(&frame_text(model, n.context)),
        kind: model.contexts.spent(n.context).name(),
        depth: n.depth,
        slow_mean_ns: n.slow_mean_ns,
        fast_mean_ns: n.fast_mean_ns,
        delta_ns: n.delta_ns,
        self_delta_ns: n.self_delta_ns,
        deviations: n.deviations,
        p_value: n.p_value,
        slow_affected: n.slow_affected,
        fast_affected: n.fast_affected,
    })
    .collect()
}

/// Which nodes to keep of a tree bounded to `most`: the largest differences, each with all nodes above it.
pub fn largest(tree: &DiffTree, most: usize) -> Vec<bool> {
    let mut keep = vec![most >= tree.nodes.len(); tree.nodes.len()];
    if most >= tree.nodes.len() {
        return keep;
    }
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); tree.nodes.len()];
    let mut open = BinaryHeap::new();
    // Absolute differences are never negative, so their bits are ordered as they are.
    let entry = |at: usize| (tree.nodes[at].delta_ns.abs().to_bits(), std::cmp::Reverse(at));
    for (at, node) in tree.nodes.iter().enumerate() {
        match node.parent {
            Some(parent) => children[parent as usize].push(at),
            None => open.push(entry(at)),
        }
    }
    for _ in 0..most {
        let Some((_, std::cmp::Reverse(at))) = open.pop() else { break };
        keep[at] = true;
        open.extend(children[at].iter().map(|c| entry(*c)));
    }
    keep
}

#[derive(Serialize)]
struct SampleJson {
    group: &'static str,
    execution: u32,
    trace: String,
    start_ns: i64,
    duration_ns: i64,
    process: String,
    thread: String,
    pid: Option<i32>,
    tid: Option<i32>,
}

/// Executions of a group from its longest to its shortest, evenly spread over them.
pub fn sampled(model: &Model, members: &[ExecutionId], most: usize) -> Vec<ExecutionId> {
    let mut by_length = members.to_vec();
    by_length.sort_by_key(|e| (std::cmp::Reverse(model.executions.duration(e.index())), *e));
    let (n, most) = (by_length.len(), most.min(by_length.len()));
    (0..most).map(|i| by_length[if most == 1 { 0 } else { i * (n - 1) / (most - 1) }]).collect()
}

fn samples(model: &Model, group: &'static str, members: &[ExecutionId]) -> Vec<SampleJson> {
    sampled(model, members, SAMPLES).into_iter().map(|e| sample(model, group, e)).collect()
}

fn sample(model: &Model, group: &'static str, e: ExecutionId) -> SampleJson {
    let i = e.index();
    let who = model.executions.who.get(i).and_then(|w| model.who.get(w.index()));
    let text = |id: Option<NameId>| id.map_or_else(String::new, |id| cleaned(model.names.get(id)));
    let trace = model.executions.trace.get(i).and_then(|t| model.traces.get(t.index()));
    SampleJson {
        group,
        execution: e.raw(),
        trace: trace.map_or_else(String::new, |t| cleaned(&t.label)),
        start_ns: model.executions.start[i],
        duration_ns: model.executions.duration(i),
        process: text(who.map(|w| w.process)),
        thread: text(who.map(|w| w.thread)),
        pid: who.map(|w| w.pid),
        tid: who.map(|w| w.tid),
    }
}

#[derive(Serialize)]
struct DiffJson {
    schema: &'static str,
    task: String,
    slow: GroupJson,
    fast: GroupJson,
    extra_ns: i64,
    verdict: VerdictJson,
    metrics: Vec<MetricJson>,
    tree: Vec<NodeJson>,
    /// Nodes were left out to obey `--max-nodes`.
    truncated: bool,
    samples: Vec<SampleJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    executions: Option<AlignmentJson>,
    causes: Vec<CauseJson>,
    kinds: Vec<KindJson>,
    dimensions: Vec<DimensionJson>,
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct AlignmentJson {
    a: SampleJson,
    b: SampleJson,
    /// Frames to which paths were cut because there were too many moments; null where they were not.
    depth: Option<u32>,
    moments: Vec<MomentJson>,
}

#[derive(Serialize)]
struct MomentJson {
    path: Vec<String>,
    kind: &'static str,
    /// Since the execution began; null where it has no such moment.
    a_start_ns: Option<i64>,
    a_ns: i64,
    b_start_ns: Option<i64>,
    b_ns: i64,
    delta_ns: i64,
}

fn alignment(model: &Model, aligned: &Alignment) -> AlignmentJson {
    let moment = |m: &Moment| MomentJson {
        path: model.contexts.path(m.context).into_iter().map(|c| cleaned(&frame_text(model, c))).collect(),
        kind: model.contexts.spent(m.context).name(),
        a_start_ns: m.a.map(|p| p.start_ns),
        a_ns: m.a.map_or(0, |p| p.ns),
        b_start_ns: m.b.map(|p| p.start_ns),
        b_ns: m.b.map_or(0, |p| p.ns),
        delta_ns: m.delta_ns(),
    };
    AlignmentJson {
        a: sample(model, "a", aligned.a),
        b: sample(model, "b", aligned.b),
        depth: aligned.depth,
        moments: aligned.moments.iter().map(moment).collect(),
    }
}

/// The document `whyslow.diff/1`, its tree bounded to `max_nodes`; with two executions aligned where that was asked for.
pub fn diff(
    model: &Model,
    c: &Comparison,
    aligned: Option<&Alignment>,
    max_nodes: Option<usize>,
) -> impl Serialize + use<> {
    let Common { task, slow, fast, verdict, causes, kinds, dimensions, warnings } = common(model, c);
    let tree = tree(model, &c.tree, max_nodes);
    let mut samples = samples(model, "slow", &c.slow.members);
    samples.extend(self::samples(model, "fast", &c.fast.members));
    DiffJson {
        schema: "whyslow.diff/1",
        task,
        slow,
        fast,
        extra_ns: c.extra_ns,
        verdict,
        metrics: model.executions.columns.iter().map(|column| metric(model, column, c)).collect(),
        truncated: tree.len() < c.tree.nodes.len(),
        tree,
        samples,
        executions: aligned.map(|a| alignment(model, a)),
        causes,
        kinds,
        dimensions,
        warnings,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ctx::Ctx;
    use crate::compare::{ComparisonRequest, compare, scenario};
    use serde_json::Value;

    fn made() -> (Model, Comparison) {
        let model = scenario::lock_contention(5, 16.0);
        let c = compare(&model, &ComparisonRequest::default(), &Ctx::new(1)).unwrap();
        (model, c)
    }

    fn value(document: impl Serialize) -> Value {
        serde_json::to_value(document).unwrap()
    }

    #[test]
    fn explain_has_the_shape_of_the_contract() {
        let (model, c) = made();
        let v = value(explain(&model, &c));
        let keys: Vec<&String> = v.as_object().unwrap().keys().collect();
        let first = v["causes"][0].as_object().unwrap();
        assert_eq!(
            keys,
            ["schema", "task", "slow", "fast", "extra_ns", "verdict", "causes", "kinds", "dimensions", "warnings"]
        );
        assert_eq!((&v["schema"], &v["task"]), (&"whyslow.explain/1".into(), &"app:request".into()));
        assert_eq!(
            first.keys().collect::<Vec<_>>(),
            [
                "rank",
                "kind",
                "extra_ns",
                "share",
                "deviations",
                "p_value",
                "slow_affected",
                "fast_affected",
                "path",
                "by",
                "sentence"
            ]
        );
        assert_eq!((&first["kind"], &first["by"]["thread"]), (&"blocked.thread".into(), &"journal".into()));
        let sum: i64 = v["causes"].as_array().unwrap().iter().map(|c| c["extra_ns"].as_i64().unwrap()).sum();
        assert_eq!(sum, v["extra_ns"].as_i64().unwrap());
    }

    #[test]
    fn diff_is_whole_or_says_that_it_is_not() {
        let (model, c) = made();
        let whole = value(diff(&model, &c, None, None));
        assert_eq!(whole["tree"].as_array().unwrap().len(), c.tree.nodes.len());
        assert_eq!(whole["truncated"], false);
        for metric in whole["metrics"].as_array().unwrap() {
            let counts = metric["slow"].as_array().unwrap();
            assert_eq!(counts.len() + 1, metric["bins"].as_array().unwrap().len());
            let sum: u64 = counts.iter().map(|n| n.as_u64().unwrap()).sum();
            assert_eq!(sum as usize, c.slow.members.len());
        }
        for most in [0, 1, 5, 17] {
            let v = value(diff(&model, &c, None, Some(most)));
            let nodes = v["tree"].as_array().unwrap();
            assert_eq!((nodes.len(), &v["truncated"]), (most, &true.into()));
            let depths: Vec<u64> = nodes.iter().map(|n| n["depth"].as_u64().unwrap()).collect();
            assert!(depths.windows(2).all(|w| w[1] <= w[0] + 1), "no node without its parent: {depths:?}");
        }
    }

    #[test]
    fn samples_run_from_the_longest_to_the_shortest() {
        let (model, c) = made();
        let s = sampled(&model, &c.slow.members, 7);
        let d: Vec<i64> = s.iter().map(|e| model.executions.duration(e.index())).collect();
        let all = c.slow.members.iter().map(|e| model.executions.duration(e.index()));
        assert!(d.is_sorted_by(|a, b| a >= b) && d[0] == all.clone().max().unwrap() && d[6] == all.min().unwrap());
        assert_eq!(sampled(&model, &c.slow.members[..1], 7).len(), 1);
    }

    #[test]
    fn names_from_a_trace_cannot_steer_a_terminal() {
        let mut s = scenario::ModelBuilder::new(1);
        for i in 0..40 {
            let hostile = "p;ev\u{1b}[2Jil\u{202e}";
            s.run("x\u{7}", "p\u{9b}", "t", 1, &[("p;main", 1000 + i), (hostile, if i > 30 { 9_000_000 } else { 0 })]);
        }
        let model = s.seal();
        let c = compare(&model, &ComparisonRequest::default(), &Ctx::new(1)).unwrap();
        let text = serde_json::to_string(&diff(&model, &c, None, None)).unwrap();
        assert!(text.contains("il") && !text.contains(clean::is_unsafe) && !text.contains("\\u001b"), "{text}");
    }
}
