//! The difference by function, besides that by context: what a function costs everywhere, who calls it, what it calls.
//!
//! In: a differential tree. Out: a row per frame ([`by_function`]), and for one of them the frames above and below all
//! of its occurrences ([`sandwich`]). A mean of the tree is additive, so sums over contexts are means again. Where a
//! function calls itself, only the outermost occurrence counts for its total, so that no time is counted twice. Cost:
//! linear in the nodes; the sandwich also in the frames above each occurrence.

use super::frame_text;
use super::{DiffNode, DiffTree};
use crate::model::Model;
use crate::model::context::{Frame, FrameKind};
use std::collections::BTreeMap;

/// A function, call, wait or thread over all of its contexts.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionDiff {
    pub name: String,
    /// Contexts that have it.
    pub places: u32,
    /// Mean time of the slow group with everything that it calls.
    pub slow_mean_ns: f64,
    /// Mean time of the fast group with everything that it calls.
    pub fast_mean_ns: f64,
    /// `slow_mean_ns - fast_mean_ns`.
    pub delta_ns: f64,
    /// The part of `delta_ns` that no frame below it has.
    pub self_delta_ns: f64,
}

/// A frame next to the occurrences of a function.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NeighbourFrame {
    pub name: String,
    /// Mean time in the slow group: of the function below this caller, or of this callee.
    pub slow_mean_ns: f64,
    /// Mean time in the fast group: of the function below this caller, or of this callee.
    pub fast_mean_ns: f64,
    /// The frames further away.
    pub next: FrameLevel,
}

impl NeighbourFrame {
    /// The difference.
    pub fn delta_ns(&self) -> f64 {
        self.slow_mean_ns - self.fast_mean_ns
    }
}

/// Frames at one distance from a function.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FrameLevel {
    /// Those with a hundredth of the function's time or difference, the largest difference first.
    pub frames: Vec<NeighbourFrame>,
    /// The number of the others.
    pub small: u32,
    /// Their mean time in the slow group.
    pub small_slow_ns: f64,
    /// Their mean time in the fast group.
    pub small_fast_ns: f64,
}

/// A function between its callers and its callees.
#[derive(Clone, Debug, PartialEq)]
pub struct Sandwich {
    pub function: FunctionDiff,
    /// Its callers, the nearest first: the tree inverted.
    pub callers: FrameLevel,
    pub callees: FrameLevel,
}

/// Frames above and below a function that are looked at.
const DEEPEST: usize = 60;
/// Part of a function's time or difference below which a neighbour is small.
const SMALL: f64 = 0.01;

/// A row per frame, the largest difference first; without the processes at the roots.
pub fn by_function(model: &Model, tree: &DiffTree) -> Vec<FunctionDiff> {
    let names = FrameNames::new(model, tree);
    let empty = |name: &String| FunctionDiff {
        name: name.clone(),
        places: 0,
        slow_mean_ns: 0.0,
        fast_mean_ns: 0.0,
        delta_ns: 0.0,
        self_delta_ns: 0.0,
    };
    let mut all: Vec<FunctionDiff> = names.texts.iter().map(empty).collect();
    for (at, node) in tree.nodes.iter().enumerate().filter(|(_, node)| !is_root(model, node)) {
        let Some(sum) = all.get_mut(names.number(at)) else { continue };
        sum.places += 1;
        sum.self_delta_ns += node.self_delta_ns;
        if !names.is_below_itself(tree, at) {
            sum.slow_mean_ns += node.slow_mean_ns;
            sum.fast_mean_ns += node.fast_mean_ns;
            sum.delta_ns += node.delta_ns;
        }
    }
    all.retain(|function| function.places > 0);
    all.sort_by(|a, b| b.delta_ns.abs().total_cmp(&a.delta_ns.abs()).then_with(|| a.name.cmp(&b.name)));
    all
}

fn is_root(model: &Model, node: &DiffNode) -> bool {
    node.parent.is_none() && model.contexts.frame(node.context).kind == FrameKind::Process
}

/// A function with its callers and callees; `None` where no node has the name.
pub fn sandwich(model: &Model, tree: &DiffTree, name: &str) -> Option<Sandwich> {
    let function = by_function(model, tree).into_iter().find(|function| function.name == name)?;
    let names = FrameNames::new(model, tree);
    let is_outermost = |at: &usize| names.of(*at) == name && !names.is_below_itself(tree, *at);
    let occurrences: Vec<usize> = (0..tree.nodes.len()).filter(is_outermost).collect();
    let search = Neighbourhood { tree, names: &names, function: &function };
    let above = occurrences.iter().map(|at| Caller { occurrence: *at, at: *at }).collect();
    let (callers, callees) = (search.callers(above, DEEPEST), search.callees(occurrences, DEEPEST));
    Some(Sandwich { callers, callees, function })
}

/// An occurrence of the function, and a frame above it.
struct Caller {
    occurrence: usize,
    at: usize,
}

/// Mean times of both groups.
#[derive(Clone, Copy, Default)]
struct MeanTimes {
    slow_ns: f64,
    fast_ns: f64,
}

struct Neighbourhood<'a> {
    tree: &'a DiffTree,
    names: &'a FrameNames,
    function: &'a FunctionDiff,
}

impl Neighbourhood<'_> {
    /// The frames above these, by name.
    fn callers(&self, below: Vec<Caller>, depth: usize) -> FrameLevel {
        let mut groups: BTreeMap<usize, Vec<Caller>> = BTreeMap::new();
        for Caller { occurrence, at } in below {
            if let Some(above) = self.tree.nodes.get(at).and_then(|node| node.parent).map(|parent| parent as usize) {
                groups.entry(self.names.number(above)).or_default().push(Caller { occurrence, at: above });
            }
        }
        let times = |group: &Vec<Caller>| self.sum(group.iter().map(|caller| caller.occurrence));
        let groups = groups.into_values().map(|group| (times(&group), group));
        self.level(groups, |group| {
            let name = group.first().map_or("", |caller| self.names.of(caller.at)).to_owned();
            (name, if depth > 0 { self.callers(group, depth - 1) } else { FrameLevel::default() })
        })
    }

    /// The frames below these, by name.
    fn callees(&self, above: Vec<usize>, depth: usize) -> FrameLevel {
        let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for parent in above {
            let size = |at: usize| self.tree.nodes.get(at).map_or(1, |node| node.size.max(1) as usize);
            let (mut at, end) = (parent + 1, parent + size(parent));
            while at < end {
                groups.entry(self.names.number(at)).or_default().push(at);
                at += size(at);
            }
        }
        let groups = groups.into_values().map(|group| (self.sum(group.iter().copied()), group));
        self.level(groups, |group| {
            let name = group.first().map_or("", |at| self.names.of(*at)).to_owned();
            (name, if depth > 0 { self.callees(group, depth - 1) } else { FrameLevel::default() })
        })
    }

    fn sum(&self, nodes: impl Iterator<Item = usize>) -> MeanTimes {
        nodes.filter_map(|at| self.tree.nodes.get(at)).fold(MeanTimes::default(), |sum, node| MeanTimes {
            slow_ns: sum.slow_ns + node.slow_mean_ns,
            fast_ns: sum.fast_ns + node.fast_mean_ns,
        })
    }

    /// Frames with a part of the function each; the small ones are added up and not looked at any further.
    fn level<G>(
        &self,
        groups: impl Iterator<Item = (MeanTimes, G)>,
        mut expand: impl FnMut(G) -> (String, FrameLevel),
    ) -> FrameLevel {
        let mut level = FrameLevel::default();
        for (MeanTimes { slow_ns, fast_ns }, group) in groups {
            if self.is_small(slow_ns, fast_ns) {
                level.small += 1;
                level.small_slow_ns += slow_ns;
                level.small_fast_ns += fast_ns;
                continue;
            }
            let (name, next) = expand(group);
            level.frames.push(NeighbourFrame { name, slow_mean_ns: slow_ns, fast_mean_ns: fast_ns, next });
        }
        level.frames.sort_by(|a, b| b.delta_ns().abs().total_cmp(&a.delta_ns().abs()));
        level
    }

    fn is_small(&self, slow_ns: f64, fast_ns: f64) -> bool {
        let of = self.function;
        let least = SMALL * of.slow_mean_ns.max(of.fast_mean_ns);
        slow_ns.max(fast_ns) < least && (slow_ns - fast_ns).abs() < SMALL * of.delta_ns.abs()
    }
}

/// The names of the frames of all nodes, each made once.
struct FrameNames {
    texts: Vec<String>,
    by_node: Vec<usize>,
}

impl FrameNames {
    fn new(model: &Model, tree: &DiffTree) -> FrameNames {
        let mut by_frame: foldhash::HashMap<Frame, usize> = foldhash::HashMap::default();
        let mut by_text: foldhash::HashMap<String, usize> = foldhash::HashMap::default();
        let (mut texts, mut by_node) = (Vec::new(), Vec::with_capacity(tree.nodes.len()));
        for node in &tree.nodes {
            // Two kinds of frames may have one text.
            let number = *by_frame.entry(model.contexts.frame(node.context)).or_insert_with(|| {
                let text = frame_text(model, node.context);
                *by_text.entry(text.clone()).or_insert_with(|| {
                    texts.push(text);
                    texts.len() - 1
                })
            });
            by_node.push(number);
        }
        FrameNames { texts, by_node }
    }

    /// The number of a node's name.
    fn number(&self, node: usize) -> usize {
        self.by_node.get(node).copied().unwrap_or(0)
    }

    fn of(&self, node: usize) -> &str {
        self.texts.get(self.number(node)).map_or("", |text| text)
    }

    /// True if a frame above the node has its name.
    fn is_below_itself(&self, tree: &DiffTree, at: usize) -> bool {
        let parent = |at: &usize| tree.nodes.get(*at).and_then(|node| node.parent).map(|parent| parent as usize);
        std::iter::successors(parent(&at), parent).any(|above| self.number(above) == self.number(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ctx::Ctx;
    use crate::compare::{ComparisonRequest, compare, scenario};

    #[test]
    fn by_function_adds_up_to_the_difference() {
        let model = scenario::lock_contention(5, 16.0);
        let comparison = compare(&model, &ComparisonRequest::default(), &Ctx::new(1)).unwrap();
        let functions = by_function(&model, &comparison.tree);
        let roots: f64 = comparison.tree.nodes.iter().filter(|n| n.parent.is_none()).map(|n| n.self_delta_ns).sum();
        let own: f64 = functions.iter().map(|f| f.self_delta_ns).sum();
        assert!((own + roots - comparison.extra_ns as f64).abs() < 10.0, "{own} of {}", comparison.extra_ns);
        assert!(functions.is_sorted_by(|a, b| a.delta_ns.abs() >= b.delta_ns.abs()));
        for function in &functions {
            let nodes = comparison.tree.nodes.iter().filter(|n| frame_text(&model, n.context) == function.name);
            assert_eq!(nodes.count(), function.places as usize, "{}", function.name);
        }
    }

    #[test]
    fn sandwich_has_the_time_of_the_function_on_both_sides() {
        let model = scenario::lock_contention(5, 16.0);
        let comparison = compare(&model, &ComparisonRequest::default(), &Ctx::new(1)).unwrap();
        for function in by_function(&model, &comparison.tree) {
            let found = sandwich(&model, &comparison.tree, &function.name).unwrap();
            let sum =
                |level: &FrameLevel| level.frames.iter().map(|f| f.slow_mean_ns).sum::<f64>() + level.small_slow_ns;
            let (callers, callees) = (sum(&found.callers), sum(&found.callees));
            assert!((callers - function.slow_mean_ns).abs() < 10.0, "{}: {callers}", function.name);
            assert!(callees <= function.slow_mean_ns + 10.0, "{}: {callees}", function.name);
        }
        assert_eq!(sandwich(&model, &comparison.tree, "no such function"), None);
    }
}
