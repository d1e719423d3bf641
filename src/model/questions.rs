//! Data quality by question: the share of the time for which this recording has the answer, and how to record the rest.
//!
//! In: a model. Out: for each question of a user the time that it is asked of and the time of which the answer is
//! known, over all executions of the task. A share does not mean that the answers are right: contradictions and losses
//! are reported by notices. Archives of MPI runs are asked other questions, because other options record the answers.
//! Cost: linear in the executions' sparse lists and in the contexts times their depth. PRODUCT.md, `info`.

use super::context::{COMPUTATION, ContextId, FrameKind};
use super::wait_kind::WaitKind;
use super::{Model, TraceLevel};

/// A question, and how far it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// In words.
    pub question: &'static str,
    /// Nanoseconds of which the answer is known.
    pub known_ns: u64,
    /// Nanoseconds of which it is asked.
    pub of_ns: u64,
    /// Option that records the rest.
    pub remedy: &'static str,
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
        Answered { question, known_ns: 0, of_ns: 0, remedy }
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
        for (context, ns) in model.executions.own.row(i) {
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

/// The own time of a context in all executions.
struct ContextTime {
    context: ContextId,
    ns: u64,
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
    if in_files * 2 > place.of_ns - place.known_ns {
        place.remedy = GIVE_SYMBOLS;
    }
    [ran, woke, why, place]
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
            row.push((kinds.into_iter().fold(root, child), ns));
        }
        model.executions.start.push(Timestamp::ZERO);
        model.executions.end.push(Timestamp::new(108));
        model.executions.own.push(row);
        let known: Vec<(u64, u64)> = questions(&model).iter().map(|a| (a.known_ns, a.of_ns)).collect();
        assert_eq!(known, [(100, 108), (20, 35), (25, 40), (98, 108)]);
        assert_eq!(questions(&model)[3].remedy, RECORD_STACKS);
        let unnamed = model.contexts.child(Some(root), Frame { kind: FrameKind::File, name });
        model.executions.own.push(vec![(unnamed, 11)]);
        model.executions.start.push(Timestamp::ZERO);
        model.executions.end.push(Timestamp::new(11));
        assert_eq!(questions(&model)[3].remedy, GIVE_SYMBOLS);
        assert!(questions(&Model::default()).iter().all(|a| a.share().is_none()));
    }

    #[test]
    fn questions_of_an_mpi_run_are_answered_by_options_of_its_recorder() {
        let mut model = Model::default();
        let span = Default::default();
        model.traces.push(TraceInfo { label: String::new(), level: TraceLevel::MpiRun, span });
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
            row.push((context, ns));
        }
        model.executions.start.push(Timestamp::ZERO);
        model.executions.end.push(Timestamp::new(90));
        model.executions.own.push(row);
        let asked = questions(&model);
        let known: Vec<(u64, u64)> = asked.iter().map(|a| (a.known_ns, a.of_ns)).collect();
        assert_eq!(known, [(0, 80), (3, 10), (50, 80)]);
        assert!(asked.iter().all(|a| !a.remedy.contains("sched_")), "{asked:?}");
    }
}
