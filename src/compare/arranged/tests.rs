//! Arranged trees hold the figures of the tree that they are made of.

use super::*;
use crate::compare::functions::by_function;
use crate::compare::{ComparisonRequest, compare, frame_text, scenario};

fn made() -> (Model, Comparison, ArrangedTree) {
    let model = scenario::lock_contention(5, 16.0);
    let comparison = compare(&model, &ComparisonRequest::default(), &Ctx::new(1)).unwrap();
    let inverted = invert(&model, &comparison, &Arrangement::default(), &Ctx::new(1)).unwrap();
    (model, comparison, inverted)
}

#[test]
fn invert_gives_roots_that_add_up_to_the_difference() {
    let (_, comparison, inverted) = made();
    let nodes = &inverted.comparison.tree.nodes;
    let roots: f64 = nodes.iter().filter(|n| n.parent.is_none()).map(|n| n.delta_ns).sum();
    assert!((roots - comparison.extra_ns as f64).abs() < 10.0, "{roots} of {}", comparison.extra_ns);
    for (at, node) in nodes.iter().enumerate() {
        let children = nodes.iter().filter(|n| n.parent == Some(at as u32));
        let parts: f64 = children.map(|n| n.delta_ns).sum::<f64>() + node.self_delta_ns;
        assert!((parts - node.delta_ns).abs() < 1.0, "{parts} of {}", node.delta_ns);
    }
    assert!(!inverted.truncated);
}

/// A root is what a function costs by itself, over all contexts.
#[test]
fn invert_gives_the_own_time_of_each_function() {
    let (model, comparison, inverted) = made();
    let roots = inverted.comparison.tree.nodes.iter().filter(|n| n.parent.is_none());
    let mut found = 0;
    for root in roots {
        let name = frame_text(&inverted.model, root.context);
        let functions = by_function(&model, &comparison.tree);
        // The process at the root of the tree is no function.
        let Some(function) = functions.iter().find(|f| f.name == name) else { continue };
        assert!((function.self_delta_ns - root.delta_ns).abs() < 1.0, "{name}: {root:?} {function:?}");
        found += 1;
    }
    assert!(found > 3, "{found}");
}

#[test]
fn contexts_in_a_node_are_those_whose_frames_end_so() {
    let (model, _, inverted) = made();
    for node in &inverted.comparison.tree.nodes {
        // From the callee to the caller.
        let mut wanted: Vec<String> =
            inverted.model.contexts.path(node.context).iter().map(|c| frame_text(&inverted.model, *c)).collect();
        wanted.reverse();
        let inside = inverted.contexts_in(node.context);
        assert!(inside.contains(&true));
        for (at, _) in inside.iter().enumerate().filter(|(_, inside)| **inside) {
            let path: Vec<String> =
                model.contexts.path(ContextId::at(at)).iter().map(|c| frame_text(&model, *c)).collect();
            assert!(path.ends_with(&wanted), "{path:?} {wanted:?}");
        }
    }
}

/// A frame of a path, as tests write it.
fn drawn(model: &Model, context: ContextId) -> Vec<String> {
    model.contexts.path(context).iter().map(|context| frame_text(model, *context)).collect()
}

/// Executions on random paths: user functions, calls with the kernel's functions below them, waits and other threads.
fn random(seed: u64) -> Model {
    let mut made = scenario::ModelBuilder::new(seed);
    let user = ["main", "serve", "parse", "f", "g", "copy"];
    let kernel = ["(vfs_read)", "(copy)", "(io_schedule)", "(handle_mm_fault)"];
    for run in 0..60_u64 {
        let mut paths = Vec::new();
        for _ in 0..=made.random.below(4) {
            let mut path = vec!["app"];
            for _ in 0..made.random.below(5) {
                path.push(user[made.random.below(user.len())]);
            }
            if made.random.below(2) == 0 {
                path.push("[read]");
            }
            for _ in 0..made.random.below(4) {
                path.push(kernel[made.random.below(kernel.len())]);
            }
            if made.random.below(3) == 0 {
                path.extend(["thread journal", "flush", "[fsync]", "(vfs_fsync)"]);
            }
            if made.random.below(3) == 0 {
                path.push("{block device}");
            }
            paths.push(path.join(";"));
        }
        paths.sort();
        paths.dedup();
        let slow = if run % 10 == 0 { 9 } else { 1 };
        let parts: Vec<(&str, u64)> =
            paths.iter().map(|path| (path.as_str(), 1_000_000 * (1 + slow * made.random.below(9)) as u64)).collect();
        made.run("x", "app", "app", 1, &parts);
    }
    made.seal()
}

/// True if a program's function or a call is right below a context.
fn runs_program(model: &Model, context: ContextId) -> bool {
    let mut nodes = model.contexts.nodes();
    nodes.any(|(parent, f)| parent == Some(context) && matches!(f.kind, FrameKind::Function | FrameKind::Call))
}

/// What a transform makes of a path; `None` where it leaves it out.
fn transformed_path(path: &[String], kind: TransformKind, frame: &str) -> Option<Vec<String>> {
    let at = path.iter().position(|own| own == frame);
    match (kind, at) {
        (TransformKind::Focus, at) => at.map(|at| path[at..].to_vec()),
        (TransformKind::Drop, at) => at.is_none().then(|| path.to_vec()),
        (TransformKind::Collapse, Some(at)) => Some(path[..=at].to_vec()),
        (TransformKind::Collapse, None) => Some(path.to_vec()),
    }
}

/// The path without the kernel's functions below a call, a program's function, or a thread that has such.
fn path_without_kernel(path: &[String], kinds: &[FrameKind], runs_program: &[bool]) -> Vec<String> {
    let mut left = Vec::new();
    let mut led = false;
    for (at, (name, kind)) in path.iter().zip(kinds).enumerate() {
        if *kind == FrameKind::KernelFunction {
            let from_program = at > 0
                && match kinds[at - 1] {
                    FrameKind::Process | FrameKind::Thread(_) => runs_program[at - 1],
                    kind => kind == FrameKind::Function,
                };
            if !led || name == "handle_mm_fault" {
                left.push(name.clone());
            }
            led |= from_program;
        } else {
            left.push(name.clone());
            led = *kind == FrameKind::Call;
        }
    }
    left
}

/// Each time counts where a transform of its path, written as one would say it, leads; and nodes are sums of these.
#[test]
fn arranged_trees_hold_each_time_at_its_transformed_path() {
    let kinds = [TransformKind::Focus, TransformKind::Drop, TransformKind::Collapse];
    let mut left_out = 0;
    for seed in 0..15 {
        let model = random(seed);
        let ctx = Ctx::new(1);
        let comparison = compare(&model, &ComparisonRequest::default(), &ctx).unwrap();
        let mut random = crate::base::statistics::Random::new(seed);
        let frames: Vec<_> = model.contexts.nodes().map(|(_, frame)| frame).collect();
        let transforms: Vec<Transform> = (0..random.below(3))
            .map(|_| Transform { kind: kinds[random.below(3)], frame: frames[random.below(frames.len())] })
            .collect();
        let kernel = if random.below(2) == 0 { KernelFrames::Hidden } else { KernelFrames::Shown };
        let arrangement = Arrangement { kernel, transforms };
        let inverted = invert(&model, &comparison, &arrangement, &ctx).unwrap();
        let tree = arrange(&model, &comparison, &arrangement, &ctx).unwrap();
        for context in (0..model.contexts.len()).map(ContextId::at) {
            let path = drawn(&model, context);
            let kinds: Vec<_> = model.contexts.path(context).iter().map(|at| model.contexts.frame(*at).kind).collect();
            let mut wanted = Some(match kernel {
                KernelFrames::Hidden => {
                    let contexts = model.contexts.path(context);
                    let runs_program: Vec<bool> = contexts.iter().map(|at| runs_program(&model, *at)).collect();
                    path_without_kernel(&path, &kinds, &runs_program)
                }
                KernelFrames::Shown => path,
            });
            for Transform { kind, frame } in &arrangement.transforms {
                let frame = crate::compare::frame_in_words(&model, *frame);
                wanted = wanted.and_then(|path| transformed_path(&path, *kind, &frame));
            }
            left_out += usize::from(wanted.is_none());
            if let Some(tree) = &tree {
                let at = tree.counted(context).map(|at| drawn(&tree.model, at));
                assert_eq!(at, wanted, "{arrangement:?}");
            }
            let at = inverted.counted(context).map(|at| drawn(&inverted.model, at));
            if let (Some(at), Some(mut wanted)) = (at, wanted) {
                wanted.reverse();
                assert_eq!(at, wanted, "{arrangement:?}");
            }
        }
        for tree in tree.iter().chain([&inverted]) {
            sums_are_those_of_the_contexts(&model, tree);
        }
    }
    assert!(left_out > 50, "{left_out}");
}

fn sums_are_those_of_the_contexts(model: &Model, tree: &ArrangedTree) {
    let slow = &tree.comparison.slow.members;
    for node in &tree.comparison.tree.nodes {
        let inside = tree.contexts_in(node.context);
        let own = |at: &ExecutionId| {
            let row = model.executions.own.row(at.index());
            row.filter(|time| inside[time.context.index()]).map(|time| time.ns).sum::<u64>()
        };
        let sum: u64 = slow.iter().map(own).sum();
        let mean = sum as f64 / slow.len() as f64;
        assert!((mean - node.slow_mean_ns).abs() < 1.0, "{mean} {node:?}");
    }
}

/// In the kernel's own threads its functions are the program.
#[test]
fn arrange_keeps_the_functions_of_kernel_threads() {
    let mut made = scenario::ModelBuilder::new(3);
    for run in 0..40_u64 {
        let parts = [("kworker;(worker_thread);(process_one_work)", 1_000_000 * (1 + run % 9))];
        made.run("x", "kworker", "kworker", 1, &parts);
    }
    let model = made.seal();
    let comparison = compare(&model, &ComparisonRequest::default(), &Ctx::new(1)).unwrap();
    assert!(arrange(&model, &comparison, &Arrangement::default(), &Ctx::new(1)).unwrap().is_none());
}

/// Of a thread that also runs in user mode, functions of the kernel without a caller are on behalf of it.
#[test]
fn arrange_hides_what_a_program_is_interrupted_by() {
    let mut made = scenario::ModelBuilder::new(3);
    for run in 0..40_u64 {
        let ns = 1_000_000 * (1 + run % 9);
        let parts = [("app;main", ns), ("app;(exit_to_user_mode_loop);(get_signal);(do_exit)", ns)];
        made.run("x", "app", "app", 1, &parts);
    }
    let model = made.seal();
    let comparison = compare(&model, &ComparisonRequest::default(), &Ctx::new(1)).unwrap();
    let tree = arrange(&model, &comparison, &Arrangement::default(), &Ctx::new(1)).unwrap().unwrap();
    let names: Vec<_> = tree.comparison.tree.nodes.iter().map(|node| frame_text(&tree.model, node.context)).collect();
    assert_eq!(names, ["app", "exit_to_user_mode_loop", "main"]);
}
