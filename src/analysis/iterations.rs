//! Iterations of loops as executions: the time of a thread between two waits in one call (`wait=CALL[,thread=NAME]`).
//!
//! In: the segments and system calls of a timeline's threads, and where no system call has the name, their stacks. Out:
//! marks, a begin and an end for each iteration. An iteration begins at the exit of the call in which the thread had
//! waited, else where the thread runs again, and ends at the thread's next wait in that call. A call without a wait
//! ends no iteration, and neither does a wait in another call. The time before the first wait and after the last
//! belongs to no iteration. Several waits in one system call count as one. Cost: linear in segments; the stacks that
//! are needed are resolved once each. ALGORITHMS.md 6.1.

use super::stack_tables::{LazyStackTables, StackTables};
use super::stacks::StackId;
use super::thread_groups::ThreadGroups;
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::names::{NameId, Names, fold_digits};
use crate::base::notice::Notices;
use crate::base::time::{Span, Timestamp};
use crate::event::derived::WaitIterations;
use crate::symbols::files::SymbolPaths;
use crate::symbols::{ProcessStack, StackResolver};
use crate::timeline::questions::Asker;
use crate::timeline::reader::{RowCursor, RowReader};
use crate::timeline::store::marks::MarkStore;
use crate::timeline::{Call, DerivedField, Mark, MarkField, Segment, Thread, ThreadId, Timeline};
use foldhash::HashMap;
use std::collections::BTreeSet;

/// A time in which a thread did not run because it waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadWait {
    /// Position among the thread's system calls of the one in which it waited.
    pub call: Option<Call>,
    /// From the end of its running to the exit of the call, else to where it ran again.
    pub span: Span,
    /// For a block device, or a kernel thread that works for one.
    pub for_disk: bool,
}

/// The waits of a thread, in order. Unknown time is no wait, and a wait that had not ended with the thread or the
/// recording is left out.
pub fn waits<'r>(
    timeline: &'r Timeline,
    reader: &'r RowReader<'_>,
    thread: ThreadId,
) -> impl Iterator<Item = ThreadWait> + use<'r> {
    let mut calls = reader.calls(thread);
    let mut segments = reader.segments(thread).all();
    // The wait since whose begin the thread has not run, and the last one that ended.
    let (mut open, mut ended): (Option<ThreadWait>, Option<ThreadWait>) = (None, None);
    std::iter::from_fn(move || {
        for segment in segments.by_ref() {
            if segment.kind.is_on_cpu() {
                let Some(mut wait) = open.take() else { continue };
                let exit = wait.call.filter(|call| call.ret.is_some());
                wait.span.end = exit.map_or(segment.span.start, |call| call.span.end.max(segment.span.start));
                match &mut ended {
                    Some(last) if wait.call.is_some() && last.call == wait.call => last.span.end = wait.span.end,
                    _ => {
                        if let Some(last) = ended.replace(wait) {
                            return Some(last);
                        }
                    }
                }
            } else if open.is_none() && segment.kind.is_wait() {
                let (call, for_disk) = (call_at(&mut calls, segment.span.start), timeline.is_disk_wait(&segment));
                open = Some(ThreadWait { call, span: segment.span, for_disk });
            }
        }
        ended.take()
    })
}

/// The system call that a thread is in at `t`.
fn call_at(calls: &mut RowCursor<'_, Call>, t: Timestamp) -> Option<Call> {
    calls.last_begun(t).filter(|call| t < call.span.end)
}

/// The delimiting events of a timeline, with those of the iterations of a task.
pub fn marks(
    timeline: &Timeline,
    task: u32,
    definition: &WaitIterations,
    stacks: &LazyStackTables,
    symbol_paths: &SymbolPaths,
    ctx: &Ctx,
) -> Result<MarkStore, Cancelled> {
    let call = timeline.names().find(&definition.call);
    let reader = timeline.reader(Asker::Tasks);
    let recorded = timeline.threads_by_id().any(|(id, _)| reader.calls(id).all().any(|c| Some(c.name) == call));
    drop(reader);
    let tables = if recorded { None } else { Some(stacks.get(timeline, symbol_paths, ctx)?) };
    let tables = tables.as_deref();
    let sites = tables.map(|tables| tables.sites(timeline, symbol_paths, ctx)).transpose()?;
    let ret = timeline.field_name(DerivedField::Returned);
    let name_of_task = definition.thread.as_deref().map(fold_digits);
    let marks = timeline.marks_with(|add| {
        let is_name = |name: NameId| name_of_task.as_deref() == Some(&*fold_digits(timeline.names().get(name)));
        let matches = |thread: &Thread, t: Timestamp| name_of_task.is_none() || thread.name_at(t).is_some_and(is_name);
        let ever_matches = |thread: &Thread| name_of_task.is_none() || thread.names.iter().any(|own| is_name(own.name));
        let reader = timeline.reader(Asker::Tasks);
        for (id, thread) in timeline.threads_by_id().filter(|(_, thread)| !thread.idle && ever_matches(thread)) {
            if ctx.cancel.is_cancelled() {
                break;
            }
            let mut segments = reader.segments(id);
            let mut before: Option<ThreadWait> = None;
            let mut stacks = tables.map(|tables| tables.timelines.cursor(&reader, id));
            let mut is_site = |wait: &ThreadWait| match sites.zip(stacks.as_mut()) {
                None => wait.call.is_some_and(|c| Some(c.name) == call),
                Some((sites, stacks)) => {
                    sites.names(stacks.at(wait.span.start)).any(|name| is_named(name, &definition.call))
                }
            };
            let waits = waits(timeline, &reader, id);
            for to in waits.filter(|wait| matches(thread, wait.span.start) && is_site(wait)) {
                let Some(from) = before.replace(to) else { continue };
                let (start, end) = (from.span.end, to.span.start);
                if start <= end {
                    let value = from.call.and_then(|call| call.ret);
                    let fields = value.map(|value| MarkField { name: ret, value }).into_iter().collect();
                    let begin = boundary(timeline, &mut segments, id, task, ExecutionEnd::Begin, start);
                    add(Mark { fields, ..begin });
                    add(boundary(timeline, &mut segments, id, task, ExecutionEnd::End, end));
                }
            }
        }
    });
    ctx.cancel.check()?;
    Ok(marks)
}

/// The two ends of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecutionEnd {
    Begin,
    End,
}

/// A derived mark: a thread begins or ends an execution here without an event of its own. `segments` are those of the
/// thread; marks in order of time cost least.
pub fn boundary(
    timeline: &Timeline,
    segments: &mut RowCursor<'_, Segment>,
    id: ThreadId,
    task: u32,
    end: ExecutionEnd,
    time: Timestamp,
) -> Mark {
    let begins = end == ExecutionEnd::Begin;
    let thread = timeline.thread(id);
    // The CPU on which the thread runs from then on, or ran until then.
    let after = segments.first_after(time);
    let segment = if begins { after } else { segments.previous_row() };
    let running = segment.filter(|segment| segment.kind.is_on_cpu());
    let cpu = running.and_then(|segment| u16::try_from(segment.cpu).ok()).unwrap_or(u16::MAX);
    let trace = thread.and_then(|thread| timeline.trace_of(thread.host)).unwrap_or(0);
    Mark { time, task, begins, thread: Some(id), trace, cpu, key: None, kind: None, fields: Vec::new() }
}

/// True where a function, with or without its parameters and the version of its library, has the name.
fn is_named(function: &str, name: &str) -> bool {
    let bare = function.split('(').next().unwrap_or(function);
    function == name || bare == name || bare.split('@').next() == Some(name)
}

/// The functions in which threads waited, by their stacks.
#[derive(Debug)]
pub struct WaitSites {
    /// Names on a stack, outermost first; the system call in its kernel part is last.
    names: HashMap<StackId, Vec<NameId>>,
    texts: Names,
}

impl WaitSites {
    /// The stacks at which waits begin, resolved.
    pub fn new(
        timeline: &Timeline,
        StackTables { spaces, timelines, symbols, kernel, .. }: &StackTables,
        symbol_paths: &SymbolPaths,
        ctx: &Ctx,
    ) -> Result<WaitSites, Cancelled> {
        // Missing symbols are reported when the executions are explained.
        let mut unreported = Notices::default();
        let counter = timeline.reader(Asker::Tasks);
        let groups = ThreadGroups::new(timeline, |id| counter.segments(id).len() as u64);
        let mut stacks: BTreeSet<StackId> = BTreeSet::new();
        let of_thread = |reader: &RowReader<'_>, id: ThreadId, thread: &Thread| {
            let mut cursor = timelines.cursor(reader, id);
            let of_wait = |wait: ThreadWait| cursor.at(wait.span.start);
            (!thread.idle).then(|| waits(timeline, reader, id).map(of_wait).collect::<BTreeSet<StackId>>())
        };
        groups.each(Asker::Tasks, ctx, of_thread, |_, found| stacks.extend(found))?;
        let placed: BTreeSet<ProcessStack> = stacks.iter().filter_map(|id| timelines.get(*id).user).collect();
        let placed: Vec<ProcessStack> = placed.into_iter().collect();
        let mut texts = Names::default();
        let resolver = StackResolver::new(timeline, spaces, symbol_paths, symbols);
        let frames = resolver.resolve(&placed, &mut texts, &mut unreported, ctx)?;
        let user: HashMap<ProcessStack, Vec<NameId>> = placed
            .into_iter()
            .zip(frames)
            .map(|(placed, frames)| (placed, frames.iter().filter(|f| !f.folded).map(|f| f.name).collect()))
            .collect();
        let mut names = HashMap::default();
        for id in stacks {
            let stack = timelines.get(id);
            let mut functions = stack.user.and_then(|placed| user.get(&placed)).cloned().unwrap_or_default();
            if let (Some(symbols), Some(raw)) = (kernel, stack.kernel) {
                let addresses = timeline.stacks().get(raw);
                let inner = symbols.functions(addresses);
                functions.extend(inner.iter().map(|name| texts.intern(name)));
                functions.extend(symbols.system_call(addresses).map(|name| texts.intern(name)));
            }
            functions.extend(stack.call.map(|call| texts.intern(timeline.names().get(call))));
            names.insert(id, functions);
        }
        Ok(WaitSites { names, texts })
    }

    /// The functions on a stack, outermost first, and the system call.
    pub fn names(&self, stack: StackId) -> impl DoubleEndedIterator<Item = &str> {
        let names = self.names.get(&stack);
        names.into_iter().flatten().map(|name| self.texts.get(*name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::executions::{PairingRule, pair};
    use crate::analysis::timeline_builder::TimelineBuilder;
    use crate::base::time::Ns;
    use crate::event::stack::StackOrigin;
    use crate::timeline::{SegmentKind, ThreadName};

    fn iterations(builder: &mut TimelineBuilder, call: &str, thread: Option<&str>) -> Vec<(Ns, Ns)> {
        let definition = WaitIterations { call: call.to_owned(), thread: thread.map(str::to_owned) };
        let (mut notices, symbol_paths) = (Notices::default(), SymbolPaths::default());
        builder.0.marks.clear();
        let timeline = builder.sealed();
        let stacks = LazyStackTables::default();
        let marks = marks(&timeline, 0, &definition, &stacks, &symbol_paths, &Ctx::new(1)).unwrap();
        let timeline = timeline.delimited_by(marks);
        let found = pair(&timeline, 0, &PairingRule::default(), &mut notices);
        assert!(notices.is_empty());
        found.iter().map(|e| (e.span.start.ns(), e.span.end.ns())).collect()
    }

    /// A thread that runs except for the waits; each wait ends with two nanoseconds in a run queue.
    fn looping(waits: &[(Ns, Ns)]) -> TimelineBuilder {
        let mut builder = TimelineBuilder::new(1);
        let mut at = 0;
        for (from, to) in waits {
            builder.segment(1, at, *from, SegmentKind::Running, 0).segment(1, *from, *to - 2, SegmentKind::Network, 0);
            builder.segment(1, *to - 2, *to, SegmentKind::Preempted, 0);
            at = *to;
        }
        builder.segment(1, at, 1000, SegmentKind::Running, 0);
        builder
    }

    #[test]
    fn iteration_lasts_from_the_exit_of_the_call_to_the_next_wait_in_it() {
        let mut builder = looping(&[(10, 20), (40, 60), (45 + 45, 100), (130, 140)]);
        // The call at 70 does not wait; the one at 85 waits twice.
        for (start, end) in [(8, 23), (38, 62), (70, 75), (85, 145)] {
            builder.silent_call(1, start, end);
        }
        assert_eq!(iterations(&mut builder, "call", None), [(23, 40), (62, 90)]);
        assert_eq!(iterations(&mut builder, "call", Some("1")), [(23, 40), (62, 90)]);
        assert_eq!(iterations(&mut builder, "call", Some("other")), []);
        assert_eq!(iterations(&mut builder, "read", None), []);
    }

    #[test]
    fn mark_replaces_numbers_in_thread_names() {
        let mut builder = looping(&[(10, 20), (40, 60)]);
        builder.silent_call(1, 8, 23).silent_call(1, 38, 62);
        let name = builder.0.tables.names.intern("job-17");
        builder.0.threads[0].thread.names = vec![ThreadName { from: Timestamp::ZERO, name }];
        for thread in ["job-*", "job-17", "job-4"] {
            assert_eq!(iterations(&mut builder, "call", Some(thread)), [(23, 40)], "{thread}");
        }
        assert_eq!(iterations(&mut builder, "call", Some("job")), []);
    }

    #[test]
    fn iteration_begins_where_the_thread_runs_again_if_the_exit_is_lost() {
        let mut builder = looping(&[(10, 20), (40, 60)]);
        builder.silent_call(1, 8, 23).silent_call(1, 38, 62);
        builder.0.threads[0].rows.calls[0].ret = None;
        assert_eq!(iterations(&mut builder, "call", None), [(20, 40)]);
    }

    #[test]
    fn mark_uses_functions_on_the_stack_where_no_system_calls_were_recorded() {
        let mut builder = looping(&[(10, 20), (30, 50), (60, 80), (90, 95)]);
        for (time, stack) in [(10, "AS"), (30, "AX"), (60, "AS"), (90, "AS")] {
            builder.sample(1, time, StackOrigin::SwitchOut, stack);
        }
        // Without files functions have no names, only addresses.
        assert_eq!(iterations(&mut builder, "S", None), []);
    }

    #[test]
    fn unknown_time_is_no_wait() {
        let mut builder = looping(&[(10, 20), (40, 60), (80, 90)]);
        for (start, end) in [(8, 23), (38, 62), (78, 92)] {
            builder.silent_call(1, start, end);
        }
        for segment in &mut builder.0.threads[0].rows.segments {
            if segment.kind == SegmentKind::Network && segment.span.start.ns() == 40 {
                segment.kind = SegmentKind::Unknown;
            }
        }
        assert_eq!(iterations(&mut builder, "call", None), [(23, 80)]);
    }

    #[test]
    fn is_named_accepts_names_with_and_without_parameters_and_versions() {
        for name in ["take", "take(int)", "take@@GLIBC_2.2.5", "take(int)@V1"] {
            assert!(is_named(name, "take"), "{name}");
        }
        assert!(is_named("take(int)", "take(int)") && !is_named("taken", "take"));
    }
}
