//! Data quality by question: the share of the time for which this recording has the answer, and how to record the rest.
//!
//! In: a model. Out: for each question of a user the time that it is asked of and the time of which the answer is
//! known, over all executions of the task. A share does not mean that the answers are right: contradictions and losses
//! are reported by notices. Archives of MPI runs are asked other questions, because other options record the answers.
//! Cost: linear in the executions' sparse lists and in the contexts times their depth. PRODUCT.md, `info`.

use super::missing;
use super::topic::MissingTopic;
use crate::model::context::{COMPUTATION, ContextId, FrameKind};
use crate::model::execution::ContextTime;
use crate::model::recorded::{Recorded, StackKind};
use crate::model::recorder::TraceRecorder;
use crate::model::wait_kind::WaitKind;
use crate::model::{Model, TraceLevel};
use std::borrow::Cow;

/// A question, and how far it is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// In words.
    pub question: &'static str,
    /// Nanoseconds of which the answer is known.
    pub known_ns: u64,
    /// Nanoseconds of which it is asked.
    pub of_ns: u64,
    /// Option that records the rest.
    pub remedy: Cow<'static, str>,
}

impl Answered {
    /// Known part; `None` where there was nothing to ask of.
    pub fn share(&self) -> Option<f64> {
        (self.of_ns > 0).then(|| self.known_ns as f64 / self.of_ns as f64)
    }
}

/// Knowledge in the frames of a context.
#[derive(Clone, Copy, Default)]
struct Evidence {
    /// Whether the thread at its end ran or waited is unknown.
    unknown_state: bool,
    /// A wait on the way whose end was not recorded.
    unknown_wait: bool,
    /// A thread, a device or a timer that ended the wait.
    thread: bool,
    /// A function of the execution's own thread.
    function: bool,
    /// A place in a file, of which the function is not known.
    file: bool,
}

const RECORD_STACKS: &str =
    "record call stacks at switches and system calls (context callstack_user), and give --symbols";
const GIVE_SYMBOLS: &str = "give --symbols DIR with the executables and libraries: their call stacks are recorded";

fn evidence(model: &Model, context: ContextId) -> Evidence {
    let mut found = Evidence::default();
    let mut own = true;
    for frame in model.contexts.path(context).into_iter().map(|c| model.contexts.frame(c)) {
        match frame.kind {
            FrameKind::Wait(WaitKind::UnknownState) => found.unknown_state = true,
            FrameKind::Wait(WaitKind::UnknownWait) => (found.unknown_wait, own) = (true, false),
            FrameKind::Wait(_) => own = false,
            FrameKind::Thread(_) => (found.thread, own) = (true, false),
            FrameKind::Function | FrameKind::Inlined => found.function |= own,
            FrameKind::File => found.file |= own,
            _ => {}
        }
    }
    found
}

impl Answered {
    fn none(question: &'static str, remedy: &'static str) -> Answered {
        Answered { question, known_ns: 0, of_ns: 0, remedy: remedy.into() }
    }

    fn count(&mut self, ns: u64, known: bool) {
        self.of_ns += ns;
        self.known_ns += if known { ns } else { 0 };
    }
}

/// The questions behind "why did it take long", in order.
pub fn questions(model: &Model) -> Vec<Answered> {
    let mut sums = vec![0_u64; model.contexts.len()];
    for i in 0..model.executions.len() {
        for ContextTime { context, ns } in model.executions.own.row(i) {
            sums[context.index()] += ns;
        }
    }
    let times: Vec<ContextTime> = sums
        .into_iter()
        .enumerate()
        .filter(|(_, ns)| *ns > 0)
        .map(|(at, ns)| ContextTime { context: ContextId::at(at), ns })
        .collect();
    if !model.traces.is_empty() && model.traces.iter().all(|t| t.level == TraceLevel::MpiRun) {
        of_mpi_run(model, &times).into()
    } else {
        of_machine(model, &times).into()
    }
}

/// No archive records the scheduler. Calls of MPI are regions; the program's functions are regions only where they
/// were instrumented or sampled.
fn of_mpi_run(model: &Model, times: &[ContextTime]) -> [Answered; 3] {
    let mut ran = Answered::none(
        "whether it computed or was preempted",
        "archives have no scheduler events: record the kernel of the node as well (whyslow record)",
    );
    let mut held = Answered::none(
        "who held it up",
        "record all calls and their requests: Score-P with SCOREP_MPI_ENABLE_GROUPS=all; EZTrace records no completion \
         of non-blocking calls of C programs",
    );
    let mut place = Answered::none(
        "in which function",
        "instrument the program's functions: scorep --compiler, a smaller SCOREP_FILTERING_FILE, or sample with \
         SCOREP_ENABLE_UNWINDING=true",
    );
    for ContextTime { context, ns } in times {
        let (found, frame) = (evidence(model, *context), model.contexts.frame(*context));
        let function = frame.kind == FrameKind::Function;
        let named = function && !model.names.get(frame.name).starts_with(COMPUTATION);
        if model.contexts.spent(*context) == WaitKind::Cpu {
            ran.count(*ns, false);
        } else {
            held.count(*ns, !found.unknown_wait);
        }
        if function {
            place.count(*ns, named);
        }
    }
    [ran, held, place]
}

fn of_machine(model: &Model, times: &[ContextTime]) -> [Answered; 4] {
    let ask = Answered::none;
    let mut ran = ask("who ran", "record sched_switch, in buffers large enough to lose nothing");
    let mut woke = ask("who woke whom", "record sched_waking (or sched_wakeup) and, over the network, net events");
    let mut why = ask("why it waited", "record sched_waking and the events of interrupts, timers and block devices");
    let mut place = ask("in which function", RECORD_STACKS);
    let mut in_files = 0;
    for ContextTime { context, ns } in times {
        let (ns, found, spent) = (*ns, evidence(model, *context), model.contexts.spent(*context));
        ran.count(ns, !found.unknown_state);
        place.count(ns, found.function);
        in_files += if found.file && !found.function { ns } else { 0 };
        if matches!(spent, WaitKind::Thread | WaitKind::Network | WaitKind::UnknownWait | WaitKind::Ipi) {
            woke.count(ns, found.thread && !found.unknown_wait);
        }
        if !matches!(spent, WaitKind::Cpu | WaitKind::Preempted | WaitKind::Interrupted | WaitKind::UnknownState) {
            why.count(ns, !found.unknown_wait && !found.unknown_state);
        }
    }
    let traces: Vec<&Recorded> = model.traces.iter().filter_map(|trace| trace.recorded.as_ref()).collect();
    if !traces.is_empty() {
        let missing = missing(model);
        for (question, topics) in [(&mut ran, RAN), (&mut woke, WOKE), (&mut why, WHY), (&mut place, PLACE)] {
            question.remedy = remedy(&missing, topics);
        }
        if place.remedy == RECORDED {
            place.remedy = stacks_remedy(&traces).into();
        }
    }
    if in_files * 2 > place.of_ns - place.known_ns {
        place.remedy = GIVE_SYMBOLS.into();
    }
    [ran, woke, why, place]
}

/// The questions of [`TOPICS`](super::topic::TOPICS) behind each question of a user.
const RAN: &[&str] = &["who ran"];
const WOKE: &[&str] = &["who woke whom", "packets"];
const WHY: &[&str] = &["who woke whom", "interrupts and timers", "disk requests", "work of kernel workers"];
const PLACE: &[&str] = &["functions in which threads waited", "functions that ran"];

/// The remedy where nothing is missing that a recorder could add.
const RECORDED: &str =
    "all events for it were recorded; the rest was lost, or is before the first event of a thread: use larger buffers";

/// The questions that the traces of a model cannot answer, and the command that records the answers.
pub fn missing(model: &Model) -> Vec<MissingTopic> {
    missing::missing(model.traces.iter().filter_map(|trace| trace.recorded.as_ref()))
}

/// The events and options that answer some topics.
fn remedy(missing: &[MissingTopic], topics: &[&str]) -> Cow<'static, str> {
    let lacks: Vec<&str> = missing
        .iter()
        .filter(|topic| topics.contains(&topic.question))
        .flat_map(|topic| topic.lacks.iter().map(String::as_str))
        .collect();
    if lacks.is_empty() { RECORDED.into() } else { format!("record {}", lacks.join(", ")).into() }
}

/// The remedy for functions without names, where call stacks were recorded.
fn stacks_remedy(traces: &[&Recorded]) -> &'static str {
    let by_perf =
        |trace: &&&Recorded| trace.recorder == TraceRecorder::Perf && trace.stacks.contains(&StackKind::UserAtSwitches);
    if traces.iter().any(|trace| by_perf(&trace)) {
        "give --symbols DIR; of programs without frame pointers record copies of stacks (--call-graph dwarf)"
    } else {
        GIVE_SYMBOLS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::time::Timestamp;
    use crate::model::TraceInfo;
    use crate::model::context::Frame;

    #[test]
    fn shares_are_of_the_time_that_each_question_covers() {
        let mut model = Model::default();
        let name = model.names.intern("x");
        let mut row = Vec::new();
        let (wait, thread) = (FrameKind::Wait, FrameKind::Thread);
        let root = model.contexts.child(None, Frame { kind: FrameKind::Process, name });
        for (kinds, ns) in [
            (vec![FrameKind::Function], 50),
            (vec![FrameKind::NoStack], 10),
            (vec![FrameKind::Function, thread(WaitKind::Thread)], 20),
            (vec![FrameKind::Function, wait(WaitKind::UnknownWait)], 15),
            (vec![FrameKind::Function, wait(WaitKind::Timer)], 5),
            (vec![FrameKind::Function, wait(WaitKind::UnknownState)], 8),
        ] {
            let child = |at, kind| model.contexts.child(Some(at), Frame { kind, name });
            row.push(ContextTime { context: kinds.into_iter().fold(root, child), ns });
        }
        model.executions.start.push(Timestamp::ZERO);
        model.executions.duration.push(108);
        model.executions.own.push(row);
        let known: Vec<(u64, u64)> = questions(&model).iter().map(|a| (a.known_ns, a.of_ns)).collect();
        assert_eq!(known, [(100, 108), (20, 35), (25, 40), (98, 108)]);
        assert_eq!(questions(&model)[3].remedy, RECORD_STACKS);
        let recorded = Recorded { recorder: TraceRecorder::Perf, ..Recorded::default() };
        let trace = |recorded| TraceInfo {
            label: String::new(),
            level: TraceLevel::Machine,
            span: Default::default(),
            recorded: Some(recorded),
        };
        let [mut with_switches, mut with_stacks] = [model.clone(), model.clone()];
        with_switches.traces.push(trace(Recorded { events: ["sched:sched_switch".into()].into(), ..recorded.clone() }));
        let remedies: Vec<_> = questions(&with_switches).into_iter().map(|a| a.remedy).collect();
        assert_eq!(remedies[0], RECORDED);
        assert!(remedies[1].starts_with("record sched:sched_waking, sched:sched_wakeup_new, net:net_dev_queue"));
        assert_eq!(remedies[3], "record call stacks of sched_switch, call stacks at a timer's rate");
        with_stacks.traces.push(trace(Recorded { stacks: StackKind::ALL.into(), ..recorded }));
        assert!(questions(&with_stacks)[3].remedy.contains("--call-graph dwarf"));
        assert!(missing(&with_stacks).iter().all(|topic| topic.command.starts_with("perf record ")));
        let unnamed = model.contexts.child(Some(root), Frame { kind: FrameKind::File, name });
        model.executions.own.push(vec![ContextTime { context: unnamed, ns: 11 }]);
        model.executions.start.push(Timestamp::ZERO);
        model.executions.duration.push(11);
        assert_eq!(questions(&model)[3].remedy, GIVE_SYMBOLS);
        assert!(questions(&Model::default()).iter().all(|a| a.share().is_none()));
    }

    #[test]
    fn questions_of_an_mpi_run_are_answered_by_options_of_its_recorder() {
        let mut model = Model::default();
        let span = Default::default();
        model.traces.push(TraceInfo { label: String::new(), level: TraceLevel::MpiRun, span, recorded: None });
        let root = Frame { kind: FrameKind::Process, name: model.names.intern("rank") };
        let root = model.contexts.child(None, root);
        let mut row = Vec::new();
        for (frames, ns) in [
            (vec![(FrameKind::Function, "smooth")], 50),
            (vec![(FrameKind::Function, "computation after MPI_Send")], 30),
            (vec![(FrameKind::Function, "MPI_Recv"), (FrameKind::Wait(WaitKind::UnknownWait), "unknown")], 7),
            (vec![(FrameKind::Function, "MPI_Recv"), (FrameKind::Wait(WaitKind::Network), "transfer")], 3),
        ] {
            let mut context = root;
            for (kind, name) in frames {
                context = model.contexts.child(Some(context), Frame { kind, name: model.names.intern(name) });
            }
            row.push(ContextTime { context, ns });
        }
        model.executions.start.push(Timestamp::ZERO);
        model.executions.duration.push(90);
        model.executions.own.push(row);
        let asked = questions(&model);
        let known: Vec<(u64, u64)> = asked.iter().map(|a| (a.known_ns, a.of_ns)).collect();
        assert_eq!(known, [(0, 80), (3, 10), (50, 80)]);
        assert!(asked.iter().all(|a| !a.remedy.contains("sched_")), "{asked:?}");
    }
}
