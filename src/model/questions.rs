//! Data quality by question: the share of the time for which this recording has the answer, and how to record the rest.
//!
//! In: a model. Out: for each question of a user the time that it is asked of and the time of which the answer is
//! known, over all executions of the task. A share does not mean that the answers are right: contradictions and losses
//! are reported by notices. Cost: linear in the executions' sparse lists and in the contexts times their depth.
//! PRODUCT.md, `info`.

use super::Model;
use super::context::{ContextId, FrameKind};
use super::wait_kind::WaitKind;

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

/// The four questions behind "why did it take long", in order.
pub fn questions(model: &Model) -> [Answered; 4] {
    let mut sums = vec![0_u64; model.contexts.len()];
    for i in 0..model.executions.len() {
        for (context, ns) in model.executions.own.row(i) {
            sums[context.index()] += ns;
        }
    }
    let ask = |question, remedy| Answered { question, known_ns: 0, of_ns: 0, remedy };
    let mut ran = ask("who ran", "record sched_switch, in buffers large enough to lose nothing");
    let mut woke = ask("who woke whom", "record sched_waking (or sched_wakeup) and, over the network, net events");
    let mut why = ask("why it waited", "record sched_waking and the events of interrupts, timers and block devices");
    let mut place = ask("in which function", RECORD_STACKS);
    let mut in_files = 0;
    for (at, ns) in sums.into_iter().enumerate().filter(|(_, ns)| *ns > 0) {
        let context = ContextId::at(at);
        let (found, spent) = (evidence(model, context), model.contexts.spent(context));
        let count = |answered: &mut Answered, known: bool| {
            answered.of_ns += ns;
            answered.known_ns += if known { ns } else { 0 };
        };
        count(&mut ran, !found.unknown_state);
        count(&mut place, found.function);
        in_files += if found.file && !found.function { ns } else { 0 };
        if matches!(spent, WaitKind::Thread | WaitKind::Network | WaitKind::UnknownWait | WaitKind::Ipi) {
            count(&mut woke, found.thread && !found.unknown_wait);
        }
        if !matches!(spent, WaitKind::Cpu | WaitKind::Preempted | WaitKind::Interrupted | WaitKind::UnknownState) {
            count(&mut why, !found.unknown_wait && !found.unknown_state);
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
        let [ran, woke, why, place] = questions(&model).map(|a| (a.known_ns, a.of_ns));
        assert_eq!((ran, woke, why, place), ((100, 108), (20, 35), (25, 40), (98, 108)));
        assert_eq!(questions(&model)[3].remedy, RECORD_STACKS);
        let unnamed = model.contexts.child(Some(root), Frame { kind: FrameKind::File, name });
        model.executions.own.push(vec![(unnamed, 11)]);
        model.executions.start.push(Timestamp::ZERO);
        model.executions.end.push(Timestamp::new(11));
        assert_eq!(questions(&model)[3].remedy, GIVE_SYMBOLS);
        assert_eq!(questions(&Model::default()).map(|a| a.share()), [None; 4]);
    }
}
