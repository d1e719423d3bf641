//! System calls and recorded functions of programs, as tasks that could be asked about.
//!
//! In: a timeline with its programs. Out: for each program its calls, those in which no loop waits first. A call that
//! failed at once is no fast one. Cost: linear in calls, groups of threads
//! in parallel.

use super::loops::{LoopSites, is_site};
use super::programs::Programs;
use super::tails::{Candidate, TaskSpans, ranked};
use crate::analysis::executions::Execution;
use crate::analysis::functions::{FunctionNames, called};
use crate::analysis::thread_groups::ThreadGroups;
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::names::NameId;
use crate::base::span_list::{SpanList, SpanRoom};
use crate::base::statistics::nearest_rank_of;
use crate::event::derived::Derived;
use crate::event::errno;
use crate::model::choice::ExecutionKind;
use crate::timeline::questions::Asker;
use crate::timeline::reader::RowReader;
use crate::timeline::{Call, Thread, ThreadId, Timeline};
use foldhash::HashMap;
use std::collections::BTreeMap;

/// Calls of one name.
struct CallSpans {
    succeeded: SpanList,
    failed: SpanList,
}

impl CallSpans {
    fn new(room: &SpanRoom) -> CallSpans {
        CallSpans { succeeded: SpanList::new(room), failed: SpanList::new(room) }
    }

    /// Those that may be compared with each other: calls that failed at once are no fast ones.
    fn comparable(mut self) -> SpanList {
        if self.succeeded.is_empty() {
            return self.failed;
        }
        if !self.failed.is_empty() {
            let [usual] = self.succeeded.lengths_at([nearest_rank_of(self.succeeded.len(), 50.0)]);
            self.failed.all().filter(|span| span.len() > usual).for_each(|span| self.succeeded.push(span));
        }
        self.succeeded
    }
}

/// System calls by program. Those in which some thread's loop waits for its next iteration come after those in which no
/// loop of the program waits.
pub fn calls(
    timeline: &Timeline,
    programs: &Programs,
    loops: &LoopSites,
    room: &SpanRoom,
    ctx: &Ctx,
) -> Result<BTreeMap<usize, Vec<Candidate>>, Cancelled> {
    let (mut tasks, mut idle) = (TaskSpans::new(room), TaskSpans::new(room));
    let counter = timeline.reader(Asker::Tasks);
    let groups = ThreadGroups::new(timeline, |id| counter.calls(id).len() as u64);
    let find = |reader: &RowReader<'_>, id: ThreadId, _: &Thread| {
        programs.program(id)?;
        let own = of_thread(ctx.progress.follow(reader.calls(id).all()), room);
        Some(own.into_iter().map(|(call, spans)| (call, spans.comparable())).collect::<Vec<_>>())
    };
    groups.each(Asker::Tasks, ctx, find, |id, found| {
        let Some((program, thread)) = programs.program(id).zip(programs.thread_name(id)) else { return };
        for (call, spans) in found {
            let name = timeline.names().get(call);
            let of = if is_site(loops, program, thread, name) { &mut idle } else { &mut tasks };
            of.of(program, Derived::Call(name.to_owned())).append(spans);
        }
    })?;
    idle.without(&tasks);
    let ranked = |tasks| ranked(programs, timeline.span(), ExecutionKind::SystemCalls, tasks, ctx);
    let mut all = ranked(tasks)?;
    for (program, candidates) in ranked(idle)? {
        all.entry(program).or_default().extend(candidates);
    }
    Ok(all)
}

/// The calls of a thread that returned, by name.
fn of_thread(calls: impl Iterator<Item = Call>, room: &SpanRoom) -> HashMap<NameId, CallSpans> {
    let mut own: HashMap<NameId, CallSpans> = HashMap::default();
    for call in calls {
        let Some(ret) = call.ret else { continue };
        let of_name = own.entry(call.name).or_insert_with(|| CallSpans::new(room));
        let spans = if errno::failed(ret) { &mut of_name.failed } else { &mut of_name.succeeded };
        spans.push(call.span);
    }
    own
}

/// Functions whose calls were recorded, by program.
pub fn functions(
    timeline: &Timeline,
    programs: &Programs,
    executions: &[Execution],
    functions: &FunctionNames,
    room: &SpanRoom,
    ctx: &Ctx,
) -> Result<BTreeMap<usize, Vec<Candidate>>, Cancelled> {
    let mut tasks = TaskSpans::new(room);
    for execution in executions {
        let Some(function) = timeline.mark(execution.begin).and_then(|begin| called(timeline, begin)) else { continue };
        let Some(program) = programs.program(execution.thread) else { continue };
        let task = Derived::Named(functions.name(function).to_owned());
        tasks.of(program, task).push(execution.span);
    }
    ranked(programs, timeline.span(), ExecutionKind::FunctionCalls, tasks, ctx)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::time::{Ns, Span};

    #[test]
    fn failed_calls_are_no_fast_ones() {
        let room = SpanRoom::of(&Ctx::new(1));
        let durations = |failed: &[Ns], succeeded: &[Ns]| {
            let mut calls = CallSpans::new(&room);
            failed.iter().for_each(|ns| calls.failed.push(Span::of_ns(5, 5 + ns)));
            succeeded.iter().for_each(|ns| calls.succeeded.push(Span::of_ns(5, 5 + ns)));
            calls.comparable().all().map(Span::len).collect::<Vec<_>>()
        };
        assert_eq!(durations(&[1, 2, 90], &[30, 10, 20]), [30, 10, 20, 90]);
        assert_eq!(durations(&[1, 2], &[]), [1, 2]);
    }
}
