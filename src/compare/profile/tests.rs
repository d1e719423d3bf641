//! Profiles of simulated programs: what is planted is named, and what only scatters is not believed.

use super::*;
use crate::base::statistics::Random;
use crate::base::time::{Span, Timestamp};
use crate::compare::{Basis, compare};
use crate::model::column_values::ColumnValues;
use crate::model::context::{Frame, FrameKind};
use crate::model::execution::ContextTime;
use crate::model::metric::Column;
use crate::model::{ThreadInfo, ThreadInfoId, TraceId, TraceInfo, TraceLevel};

const TICK: i64 = 1_000_000;

/// A run: its label, and the function of each sample.
struct Run {
    label: &'static str,
    functions: Vec<usize>,
}

/// A program of a main loop that calls functions in turn; each call takes about this many ticks.
fn run(label: &'static str, loops: usize, ticks: &[f64], random: &mut Random) -> Run {
    let mut functions = Vec::new();
    let (mut now, mut next) = (0.0, (random.below(1000) as f64) / 1000.0);
    for _ in 0..loops {
        for (function, mean) in ticks.iter().enumerate() {
            // Calls scatter by up to a tenth.
            now += mean * (0.9 + random.below(1000) as f64 / 5000.0);
            while next < now {
                functions.push(function);
                next += 1.0;
            }
        }
    }
    Run { label, functions }
}

fn model(runs: &[Run]) -> Model {
    let mut model = Model { tasks: vec!["profile".to_owned()].into(), ..Model::default() };
    let mut name = |text: &str| model.names.intern(text);
    let (program, main) = (name("indexer"), name("main"));
    let names: Vec<_> = (0..12).map(|n| name(&format!("function_{n}"))).collect();
    let root = model.contexts.child(None, Frame { kind: FrameKind::Process, name: program });
    let main = model.contexts.child(Some(root), Frame { kind: FrameKind::Function, name: main });
    let contexts: Vec<ContextId> = names
        .iter()
        .map(|name| model.contexts.child(Some(main), Frame { kind: FrameKind::Function, name: *name }))
        .collect();
    model.who.push(ThreadInfo { host: program, process: program, pid: 1, tid: 1, thread: program });
    let mut labels = ColumnValues::default();
    for (at, run) in runs.iter().enumerate() {
        let label = i64::from(model.names.intern(run.label).raw());
        let span = Span::new(Timestamp::ZERO, Timestamp::new(run.functions.len() as i64 * TICK));
        model.traces.push(TraceInfo { label: run.label.to_owned(), level: TraceLevel::Machine, span, recorded: None });
        for (tick, function) in (0..).zip(&run.functions) {
            let executions = &mut model.executions;
            executions.start.push(Timestamp::new(tick * TICK));
            executions.duration.push(TICK);
            executions.who.push(ThreadInfoId::at(0));
            executions.trace.push(TraceId::at(at));
            executions.cpu.push(0);
            executions.unsure.push(false);
            executions.own.push_sorted(&[ContextTime { context: contexts[*function], ns: TICK as u64 }]);
            labels.push(label);
        }
    }
    model.executions.columns.push(Column { metric: Metric::Trace, values: labels });
    model.profile = Some(Profile { event: "cpu-clock".to_owned(), whose: "indexer".to_owned(), ..Profile::default() });
    model
}

fn ask(model: &Model, per: ProfileUnit) -> Comparison {
    let c = compare(model, &ComparisonRequest { per, ..ComparisonRequest::default() }, &Ctx::new(1)).unwrap();
    assert_eq!(c.causes.iter().map(|cause| cause.extra_ns).sum::<i64>(), c.extra_ns, "causes add up");
    c
}

#[test]
fn compare_names_the_heaviest_functions_of_one_profile() {
    let mut random = Random::new(3);
    let one = model(&[run("a", 200, &[1.0, 2.0, 0.5], &mut random)]);
    let c = ask(&one, ProfileUnit::Run);
    assert_eq!((c.verdict.basis, c.verdict.confident), (Basis::Profile, false));
    let said = &c.verdict.sentence;
    assert!(
        said.starts_with("indexer, ") && said.contains("in function_1, ") && said.contains("all from main"),
        "{said}"
    );
    assert_eq!(c.causes[0].by.function.as_deref(), Some("function_1"));
    assert_eq!(c.extra_ns, one.executions.len() as i64 * TICK);
    let root = &c.tree.nodes[0];
    assert_eq!(root.slow_mean_ns as i64, c.extra_ns);
}

#[test]
fn compare_names_a_planted_slowdown_first() {
    let mut random = Random::new(5);
    let mut first = 0;
    for pair in 0..20 {
        let functions = 3 + pair % 6;
        let ticks: Vec<f64> = (0..functions).map(|_| 0.3 + random.below(1000) as f64 / 500.0).collect();
        let mut slower = ticks.clone();
        let planted = pair % functions;
        slower[planted] *= 1.05 + 0.45 * pair as f64 / 19.0;
        let both = model(&[run("old", 2000, &ticks, &mut random), run("new", 2000, &slower, &mut random)]);
        let c = ask(&both, ProfileUnit::Run);
        let name = format!("function_{planted}");
        first += usize::from(c.causes[0].by.function.as_deref() == Some(name.as_str()));
        assert!(c.verdict.sentence.contains("in new"), "{}", c.verdict.sentence);
        let same_work = ask(&both, ProfileUnit::Sample);
        assert!(same_work.extra_ns.abs() <= 1, "{}", same_work.extra_ns);
        assert_eq!(same_work.causes[0].by.function, c.causes[0].by.function);
    }
    assert!(first >= 19, "{first} of 20");
}

#[test]
fn compare_believes_no_difference_between_runs_of_one_program() {
    let mut random = Random::new(8);
    let mut sure = 0;
    for pair in 0..100 {
        let ticks: Vec<f64> = (0..4 + pair % 5).map(|_| 0.3 + random.below(1000) as f64 / 500.0).collect();
        // Runs differ by themselves, each function by up to 2 %.
        let mut of = |label| {
            let ticks: Vec<f64> = ticks.iter().map(|t| t * (0.98 + random.below(1000) as f64 / 25_000.0)).collect();
            run(label, 300, &ticks, &mut random)
        };
        let runs: Vec<Run> = match pair % 2 {
            0 => vec![of("old"), of("new")],
            _ => vec![of("old"), of("new"), of("old"), of("new"), of("old"), of("new")],
        };
        sure += usize::from(ask(&model(&runs), ProfileUnit::Run).verdict.confident);
    }
    assert!(sure <= 5, "{sure} of 100");
}

#[test]
fn compare_is_sure_of_a_large_slowdown() {
    let mut random = Random::new(9);
    let both = model(&[run("old", 300, &[1.0, 2.0], &mut random), run("new", 300, &[4.0, 2.0], &mut random)]);
    let c = ask(&both, ProfileUnit::Run);
    assert!(c.verdict.confident, "{:?}", c.verdict);
    let said = &c.verdict.sentence;
    assert!(said.starts_with("function_0 takes ") && said.contains("; function_1 takes the same"), "{said}");
    // The other way round it takes less, which is said of the same function.
    let request = ComparisonRequest {
        slow: vec!["trace=old".parse().unwrap()],
        fast: vec!["trace=new".parse().unwrap()],
        ..ComparisonRequest::default()
    };
    let c = compare(&both, &request, &Ctx::new(1)).unwrap();
    assert!(!c.verdict.confident && c.verdict.sentence.contains("function_0 takes "), "{:?}", c.verdict);
}

#[test]
fn compare_needs_repeated_runs_for_what_a_busy_core_can_do() {
    let mut random = Random::new(12);
    let mut pair = |runs: usize| {
        let runs: Vec<Run> = (0..runs)
            .flat_map(|_| [("old", [1.0, 2.0]), ("new", [1.7, 2.0])])
            .map(|(label, ticks)| run(label, 300, &ticks, &mut random))
            .collect();
        ask(&model(&runs), ProfileUnit::Run)
    };
    let c = pair(1);
    assert!(!c.verdict.confident, "{:?}", c.verdict);
    assert!(c.verdict.sentence.contains("more runs on each side would show"), "{:?}", c.verdict);
    assert_eq!(c.causes[0].by.function.as_deref(), Some("function_0"));
    assert!(pair(3).verdict.confident);
}

#[test]
fn compare_says_when_everything_takes_longer() {
    let mut random = Random::new(10);
    let both = model(&[run("old", 300, &[1.0, 2.0, 1.5], &mut random), run("new", 600, &[1.0, 2.0, 1.5], &mut random)]);
    let c = ask(&both, ProfileUnit::Run);
    assert!(!c.verdict.confident && c.verdict.sentence.contains("by the same factor"), "{:?}", c.verdict);
}
