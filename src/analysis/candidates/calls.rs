//! System calls and recorded functions of programs, as tasks that could be asked about.
//!
//! In: a timeline with its programs. Out: for each program its calls, those in which no loop waits first. A call that
//! failed at once is no fast one. Cost: linear in calls.

use super::loops::{LoopSites, is_site};
use super::programs::Programs;
use super::tails::{Candidate, TaskSpans, ranked};
use crate::analysis::executions::Execution;
use crate::analysis::functions::{FunctionNames, called};
use crate::base::names::NameId;
use crate::base::statistics::nearest_rank;
use crate::base::time::{Ns, Span};
use crate::event::derived::Derived;
use crate::event::errno;
use crate::model::choice::ExecutionKind;
use crate::state::questions::Asker;
use crate::state::timeline::{ThreadId, Timeline};
use foldhash::HashMap;
use std::collections::BTreeMap;

/// Calls of one name.
#[derive(Default)]
struct CallSpans {
    succeeded: Vec<Span>,
    failed: Vec<Span>,
}

impl CallSpans {
    /// Those that may be compared with each other: calls that failed at once are no fast ones.
    fn comparable(mut self) -> Vec<Span> {
        if self.succeeded.is_empty() {
            return self.failed;
        }
        let mut durations: Vec<Ns> = self.succeeded.iter().map(|span| span.len()).collect();
        durations.sort_unstable();
        let usual = nearest_rank(&durations, 50.0).unwrap_or(0);
        self.succeeded.extend(self.failed.into_iter().filter(|span| span.len() > usual));
        self.succeeded
    }
}

/// System calls by program. Those in which some thread's loop waits for its next iteration come after those in which no
/// loop of the program waits.
pub fn calls(timeline: &Timeline, programs: &Programs, loops: &LoopSites) -> BTreeMap<usize, Vec<Candidate>> {
    let (mut tasks, mut idle) = (TaskSpans::new(), TaskSpans::new());
    let reader = timeline.reader(Asker::Tasks);
    for id in (0..timeline.threads().len()).map(ThreadId::at) {
        let Some((program, thread)) = programs.program(id).zip(programs.thread_name(id)) else { continue };
        let mut own: HashMap<NameId, CallSpans> = HashMap::default();
        for call in reader.calls(id).all() {
            let Some(ret) = call.ret else { continue };
            let of_name = own.entry(call.name).or_default();
            let spans = if errno::failed(ret) { &mut of_name.failed } else { &mut of_name.succeeded };
            spans.push(call.span);
        }
        for (call, spans) in own {
            let name = timeline.names().get(call);
            let of = if is_site(loops, program, thread, name) { &mut idle } else { &mut tasks };
            of.entry((program, Derived::Call(name.to_owned()))).or_default().extend(spans.comparable());
        }
    }
    idle.retain(|task, _| !tasks.contains_key(task));
    let ranked = |tasks| ranked(programs, timeline.span(), ExecutionKind::SystemCalls, tasks);
    let mut all = ranked(tasks);
    for (program, candidates) in ranked(idle) {
        all.entry(program).or_default().extend(candidates);
    }
    all
}

/// Functions whose calls were recorded, by program.
pub fn functions(
    timeline: &Timeline,
    programs: &Programs,
    executions: &[Execution],
    functions: &FunctionNames,
) -> BTreeMap<usize, Vec<Candidate>> {
    let mut tasks = TaskSpans::new();
    for execution in executions {
        let Some(function) = timeline.mark(execution.begin).and_then(|begin| called(timeline, begin)) else { continue };
        let Some(program) = programs.program(execution.thread) else { continue };
        let task = Derived::Named(functions.name(function).to_owned());
        tasks.entry((program, task)).or_default().push(execution.span);
    }
    ranked(programs, timeline.span(), ExecutionKind::FunctionCalls, tasks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_calls_are_no_fast_ones() {
        let spans = |all: &[Ns]| all.iter().map(|ns| Span::of_ns(5, 5 + ns)).collect::<Vec<_>>();
        let durations = |failed: &[Ns], succeeded: &[Ns]| {
            let comparable = CallSpans { succeeded: spans(succeeded), failed: spans(failed) }.comparable();
            comparable.iter().map(|span| span.len()).collect::<Vec<_>>()
        };
        assert_eq!(durations(&[1, 2, 90], &[30, 10, 20]), [30, 10, 20, 90]);
        assert_eq!(durations(&[1, 2], &[]), [1, 2]);
    }
}
