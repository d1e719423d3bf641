//! Call trees of made-up paths: distinct calls, what no stack is known of, disks, and levels that are left out.

use super::*;
use crate::base::statistics::Random;
use crate::model::context::Frame;
use crate::model::execution_timeline::TimelineSegment;

/// A timeline of segments as (path, length): `p main [futex] {disk} ?`.
pub(super) fn timeline(model: &mut Model, segments: &[(&str, Ns)]) -> ExecutionTimeline {
    let mut timeline = ExecutionTimeline::default();
    for (path, ns) in segments {
        let mut context = None;
        for (at, name) in path.split(' ').enumerate() {
            let kind = match name {
                _ if at == 0 => FrameKind::Process,
                "?" => FrameKind::NoStack,
                "{disk}" => FrameKind::Wait(WaitKind::Disk),
                name if name.starts_with('[') => FrameKind::Call,
                name if name.starts_with("k_") => FrameKind::KernelFunction,
                _ => FrameKind::Function,
            };
            let name = model.names.intern(name);
            context = Some(model.contexts.child(context, Frame { kind, name }));
        }
        let (start_ns, state) = (timeline.ns, WaitKind::Cpu);
        let context = context.unwrap();
        timeline.segments.push(TimelineSegment { start_ns, ns: *ns, thread: 0, state, cpu: None, context });
        timeline.ns += ns;
    }
    timeline
}

/// Its calls as `name@start+length`, moved in by level.
fn drawn(segments: &[(&str, Ns)], kernel: KernelFrames) -> Vec<String> {
    let mut model = Model::default();
    let timeline = timeline(&mut model, segments);
    model.timelines.insert(ExecutionId::at(0), timeline);
    let tree = CallTree::new(&model, ExecutionId::at(0), kernel);
    let name = |call: &PathCall| model.names.get(model.contexts.frame(call.context).name).to_owned();
    let line =
        |call: &PathCall| format!("{}{}@{}+{}", " ".repeat(call.level as usize), name(call), call.start_ns, call.ns);
    tree.calls().iter().map(line).collect()
}

#[test]
fn calls_and_timelines_are_counted_among_the_results() {
    use crate::base::ctx::{Cancel, Ctx};
    let held = |turns: usize| {
        let mut model = Model::default();
        let segments: Vec<(&str, Ns)> = [("p main", 5), ("p main read", 10)].repeat(turns);
        let timeline = timeline(&mut model, &segments);
        model.timelines.insert(ExecutionId::at(0), timeline);
        let first = ExecutionId::at(0);
        let calls = aligned::PairedCalls::new(&model, first, None, KernelFrames::Shown, &Cancel::default()).unwrap();
        let ctx = Ctx::new(1);
        calls.hold(&model, &ctx);
        ctx.progress.parts.held().map(|part| part.most as usize).sum::<usize>()
    };
    let each = 2 * size_of::<TimelineSegment>() + size_of::<PathCall>() + size_of::<aligned::AlignedRow>();
    assert!(held(1_000) - held(10) >= 990 * each / 2, "{} {}", held(1_000), held(10));
}

#[test]
fn distinct_calls_have_distinct_boxes_in_order() {
    let segments = [("p main", 5), ("p main read", 10), ("p main", 1), ("p main read", 20), ("p main read [pread]", 4)];
    let expected = ["p@0+40", " main@0+40", "  read@5+10", "  read@16+24", "   [pread]@36+4"];
    assert_eq!(drawn(&segments, KernelFrames::Shown), expected);
}

#[test]
fn nothing_reaches_over_time_without_a_stack() {
    let segments = [("p main parse", 5), ("p ?", 10), ("p main parse", 5)];
    let expected = ["p@0+20", " main@0+5", "  parse@0+5", " ?@5+10", " main@15+5", "  parse@15+5"];
    assert_eq!(drawn(&segments, KernelFrames::Shown), expected);
}

#[test]
fn threads_that_share_a_disk_have_no_times_of_their_own() {
    let segments = [("p main {disk} other sync", 5), ("p main {disk} another", 5), ("p main {disk}", 1)];
    assert_eq!(drawn(&segments, KernelFrames::Shown), ["p@0+11", " main@0+11", "  {disk}@0+11"]);
}

#[test]
fn functions_of_the_kernel_below_calls_are_hidden() {
    let segments = [("p main [read] k_one k_two", 5), ("p main [read] k_three", 5)];
    assert_eq!(drawn(&segments, KernelFrames::Hidden), ["p@0+10", " main@0+10", "  [read]@0+10"]);
    assert_eq!(drawn(&segments, KernelFrames::Shown).len(), 6);
}

/// A random path of calls over some levels.
pub(super) fn random(random: &mut Random, segments: usize) -> Vec<(String, Ns)> {
    let segment = |_| {
        let depth = random.below(5);
        let path: Vec<&str> = (0..depth).map(|_| ["a", "b", "c"][random.below(3)]).collect();
        (std::iter::once("p").chain(path).collect::<Vec<_>>().join(" "), 1 + random.below(9) as Ns)
    };
    (0..segments).map(segment).collect()
}

/// Segments with paths that are borrowed.
pub(super) fn borrowed(segments: &[(String, Ns)]) -> Vec<(&str, Ns)> {
    segments.iter().map(|(path, ns)| (path.as_str(), *ns)).collect()
}

#[test]
fn a_call_is_on_the_path_at_each_moment_of_it_and_at_no_other() {
    let mut source = Random::new(11);
    for _ in 0..60 {
        let mut model = Model::default();
        let segments = random(&mut source, 40);
        let timeline = timeline(&mut model, &borrowed(&segments));
        let tree = CallTree::of(&model.contexts, &timeline, &[], MOST_CALLS);
        for segment in &timeline.segments {
            let path = model.contexts.path(segment.context);
            for at in segment.start_ns..segment.end_ns() {
                let of_level = |level| tree.at(level, at).and_then(|call| tree.call(call)).map(|call| call.context);
                let found: Vec<_> = (0..tree.depth()).map_while(of_level).collect();
                assert_eq!(found, path);
                assert_eq!(
                    tree.deepest_at(at).and_then(|call| tree.call(call)).map(|c| c.context),
                    path.last().copied()
                );
            }
        }
        let own: Ns = (0..tree.calls().len() as u32).map(|at| tree.own_ns(at)).sum();
        assert_eq!(own, timeline.ns, "own times add up");
        for (at, call) in tree.calls().iter().enumerate() {
            let children: Vec<u32> = tree.children(Some(at as u32)).collect();
            let expected =
                (0..tree.calls().len() as u32).filter(|c| tree.calls()[*c as usize].parent == Some(at as u32));
            assert!(children.iter().copied().eq(expected));
            assert!(call.ns > 0);
        }
    }
}

#[test]
fn too_many_calls_are_cut_at_a_level() {
    let mut model = Model::default();
    let segments: Vec<(&str, Ns)> = (0..50).flat_map(|_| [("p main read", 1), ("p main", 1)]).collect();
    let timeline = timeline(&mut model, &segments);
    let tree = CallTree::of(&model.contexts, &timeline, &[], 10);
    assert_eq!((tree.deepest, tree.calls().len(), tree.depth()), (Some(1), 2, 2));
    let tree = CallTree::of(&model.contexts, &timeline, &[], 52);
    assert_eq!((tree.deepest, tree.calls().len()), (None, 52));
    assert_eq!(tree.lines(), [0..2, 2..3]);
    assert_eq!(tree.meeting(2, 10, 15), tree.level(2).get(5..8).unwrap());
}

#[test]
fn levels_share_a_line_where_they_show_the_same() {
    let lines = |segments: &[(&str, Ns)]| {
        let mut model = Model::default();
        let timeline = timeline(&mut model, segments);
        CallTree::of(&model.contexts, &timeline, &[], MOST_CALLS)
    };
    let tree = lines(&[("p main serve lock", 100), ("p main", 1), ("p main log", 4), ("p main serve parse", 50)]);
    assert_eq!(tree.lines(), [0..2, 2..4], "serve makes one call each time, log none");
    let name = |at: Option<u32>| at.and_then(|at| tree.call(at)).map(|call| (call.level, call.start_ns));
    assert_eq!([50, 100, 103].map(|at| name(tree.on_line(1, at))), [Some((3, 0)), Some((1, 0)), Some((2, 101))]);
    assert_eq!((tree.line_of(0), tree.line_of(3), tree.on_line(2, 0)), (0, 1, None));
    let tree = lines(&[("p main serve lock", 50), ("p main serve parse", 50)]);
    assert_eq!(tree.lines(), [0..3, 3..4]);
    assert_eq!(lines(&[]).lines(), []);
}
