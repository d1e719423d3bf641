//! JSON of a comparison: `whyslow.explain/1` and `whyslow.diff/1` (PRODUCT.md).
//!
//! In: a model and its comparison ([`crate::compare`]). Out: one document, the same bytes for any number of workers:
//! every list has a fixed order, and no map is iterated. Texts from traces are cleaned of control characters.
//!
//! - `comparison`: groups, verdict, causes: the parts that both documents share
//! - `tree`: metrics and the differential tree
//! - `function`: one function with its callers and callees
//! - `samples`: executions of the groups, and two of them aligned
//! - `timeline`: one execution
//! - `partials`: the document of partial results, `whyslow.partials/1`
//! - `trend`: the document of a task over time, `whyslow.trend/1`

mod calls;
mod comparison;
mod function;
mod partials;
mod samples;
mod timeline;
mod tree;
mod trend;

pub use partials::partials;
pub use tree::largest;
pub use trend::trend;

use super::diff_parts::DiffParts;
use super::heat_map::{self, HeatMapJson};
use crate::base::clean;
use crate::compare::Comparison;
use crate::compare::ranks::{self, GroupMeans, RankComparison};
use crate::model::Model;
use comparison::{Head, Tail};
use function::SandwichJson;
use samples::{AlignmentJson, SampleJson};
use serde::Serialize;
use tree::{FunctionJson, MetricJson, NodeJson};

#[derive(Serialize)]
struct ExplainJson {
    #[serde(flatten)]
    head: Head,
    #[serde(flatten)]
    tail: Tail,
}

/// The document `whyslow.explain/1`.
pub fn explain(model: &Model, c: &Comparison) -> impl Serialize + use<> {
    ExplainJson { head: Head::new("whyslow.explain/1", model, c), tail: Tail::new(c) }
}

#[derive(Serialize)]
struct DiffJson {
    #[serde(flatten)]
    head: Head,
    metrics: Vec<MetricJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    heat_map: Option<HeatMapJson>,
    tree: Vec<NodeJson>,
    /// Nodes were left out to obey `--max-nodes`.
    truncated: bool,
    /// The difference by function.
    functions: Vec<FunctionJson>,
    /// The tree with callees first.
    #[serde(skip_serializing_if = "Option::is_none")]
    callees_first: Option<Vec<NodeJson>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<SandwichJson>,
    samples: Vec<SampleJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    executions: Option<AlignmentJson>,
    #[serde(flatten)]
    ranks: Option<RanksJson>,
    #[serde(flatten)]
    tail: Tail,
}

/// Iterations of MPI runs side by side.
#[derive(Serialize)]
struct RanksJson {
    regions: Vec<RegionJson>,
    iterations: Vec<IterationJson>,
}

#[derive(Serialize)]
struct MeansJson {
    slow_mean_ns: Option<i64>,
    fast_mean_ns: Option<i64>,
    delta_ns: Option<i64>,
}

#[derive(Serialize)]
struct RegionJson {
    function: String,
    /// Absent in the rows of all ranks together.
    role: Option<String>,
    #[serde(flatten)]
    means: MeansJson,
}

#[derive(Serialize)]
struct IterationJson {
    first: i64,
    last: i64,
    #[serde(flatten)]
    means: MeansJson,
}

impl RanksJson {
    fn new(found: &RankComparison) -> RanksJson {
        let means =
            |m: &GroupMeans| MeansJson { slow_mean_ns: m.slow_ns, fast_mean_ns: m.fast_ns, delta_ns: m.delta_ns() };
        let region = |r: &ranks::RegionRow| RegionJson {
            function: clean::owned(&r.region),
            role: r.role.as_deref().map(clean::owned),
            means: means(&r.means),
        };
        let iteration =
            |r: &ranks::IterationRow| IterationJson { first: r.first, last: r.last, means: means(&r.means) };
        RanksJson {
            regions: found.regions.iter().map(region).collect(),
            iterations: found.iterations.iter().map(iteration).collect(),
        }
    }
}

/// The document `whyslow.diff/1` with the parts that were asked for, its trees bounded to `max_nodes`.
pub fn diff(model: &Model, c: &Comparison, parts: &DiffParts<'_>, max_nodes: Option<usize>) -> impl Serialize + use<> {
    let (tree, whole) = match parts.arranged {
        Some(arranged) => (tree::arranged(model, arranged, max_nodes), &arranged.comparison.tree),
        None => (tree::tree(model, &c.tree, max_nodes), &c.tree),
    };
    let inverted = parts.inverted.map(|i| (tree::callees_first(i, max_nodes), i.comparison.tree.nodes.len()));
    let is_cut =
        parts.inverted.is_some_and(|i| i.truncated) || inverted.as_ref().is_some_and(|(nodes, of)| nodes.len() < *of);
    let mut samples = samples::samples(model, "slow", &c.slow.members);
    samples.extend(samples::samples(model, "fast", &c.fast.members));
    DiffJson {
        head: Head::new("whyslow.diff/1", model, c),
        metrics: model.executions.columns.iter().map(|column| tree::metric(model, column, c)).collect(),
        heat_map: parts.heat_map.map(heat_map::json),
        truncated: tree.len() < whole.nodes.len() || is_cut,
        functions: tree::functions(model, &c.tree, max_nodes),
        tree,
        callees_first: inverted.map(|(nodes, _)| nodes),
        function: parts.function.map(SandwichJson::new),
        samples,
        ranks: ranks::ranks(model, c).map(|found| RanksJson::new(&found)),
        executions: parts.aligned.map(|(aligned, calls)| samples::alignment(model, aligned, calls)),
        tail: Tail::new(c),
    }
}

#[cfg(test)]
mod tests {
    use super::samples::sampled;
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
            [
                "schema",
                "task",
                "task_chosen_by",
                "recording",
                "slow",
                "fast",
                "extra_ns",
                "verdict",
                "causes",
                "kinds",
                "dimensions",
                "warnings"
            ]
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
        let whole = value(diff(&model, &c, &DiffParts::default(), None));
        assert_eq!(whole["tree"].as_array().unwrap().len(), c.tree.nodes.len());
        assert_eq!(whole["truncated"], false);
        for metric in whole["metrics"].as_array().unwrap() {
            let counts = metric["slow"].as_array().unwrap();
            assert_eq!(counts.len() + 1, metric["bins"].as_array().unwrap().len());
            let sum: u64 = counts.iter().map(|n| n.as_u64().unwrap()).sum();
            assert_eq!(sum as usize, c.slow.members.len());
        }
        for most in [0, 1, 5, 17] {
            let v = value(diff(&model, &c, &DiffParts::default(), Some(most)));
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
        let text = serde_json::to_string(&diff(&model, &c, &DiffParts::default(), None)).unwrap();
        assert!(text.contains("il") && !text.contains(clean::is_unsafe) && !text.contains("\\u001b"), "{text}");
    }
}
