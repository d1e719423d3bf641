//! The iterations of an MPI run as executions, so that slow ones and fast ones can be compared like requests.
//!
//! In: what was mined. Out: a [`Model`] whose executions are the iterations of each rank's outermost loop, on the
//! common time line. The time of an iteration is that of its operations and of the computation between them; a wait is
//! spent by the rank that made it wait, as on a critical path: the sender's own operations, computation and waits over
//! the same time, followed from rank to rank. What is left of a wait after the sending is the transfer; a wait of which
//! nothing is recorded is unknown. So every nanosecond of an iteration is in one context, exactly.
//!
//! Calls are children of the regions around them. Time between two calls is that of the region it was spent in; where
//! none but the outermost is known, it is named after the call before.
//!
//! ```text
//! rank > main > exchange > MPI_Recv > rank 3 > main > computation after MPI_Send
//! ```
//! Cost: linear in the operations of the iterations, plus those that each wait is followed through.

use super::libraries;
use super::measured::Measured;
use super::own_times::OwnTimes;
use super::roles;
use crate::analysis::patterns::PatternAnalysis;
use crate::analysis::patterns::iterations::Iterations;
use crate::analysis::patterns::triggers::{LastWait, Triggers};
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::names::{NameId, Names};
use crate::base::notice::Notices;
use crate::base::time::{Ns, Span, Timestamp};
use crate::event::operation::{CallPathNode, NO_PATH, OperationKind, OperationPlace, Operations, Sequence};
use crate::model::context::{COMPUTATION, ContextId, Contexts, Frame, FrameKind};
use crate::model::execution::ContextTime;
use crate::model::metric::{ABSENT, Column, Metric};
use crate::model::wait_kind::WaitKind;
use crate::model::{Model, ThreadInfo, ThreadInfoId, TraceId, TraceInfo, TraceLevel};
use foldhash::HashMap;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The task of all ranks' iterations, whatever they consist of.
pub const ITERATION: &str = "iteration";

/// Waits are followed over this many ranks: a delay from farther away ends at the last of them.
const FARTHEST: usize = 16;

/// Names of the tasks that a run has: all iterations together, and each pattern that is some rank's iteration.
pub fn tasks(mined: &PatternAnalysis) -> Vec<String> {
    let mut patterns: Vec<_> = mined.iterations().into_iter().map(|one| one.pattern).collect();
    patterns.sort_unstable();
    patterns.dedup();
    let all = (!patterns.is_empty()).then(|| ITERATION.to_owned());
    all.into_iter().chain(patterns.into_iter().map(|p| p.name(mined))).collect()
}

/// One iteration of a rank.
struct Iteration {
    /// On the common time line.
    span: Span,
    stream: u32,
    pattern: NameId,
    /// Its number in its rank's loop.
    number: usize,
}

/// The iterations of the task at this position of [`tasks`], explained. `label` names the run, `host` its machine.
pub fn iterations(
    mined: &PatternAnalysis,
    task: usize,
    label: &str,
    host: &str,
    notices: &Notices,
    ctx: &Ctx,
) -> Result<Model, Cancelled> {
    let tasks = tasks(mined);
    let mut model = Model { notices: notices.clone(), ..Model::default() };
    let chosen = |one: &Iterations| task == 0 || tasks.get(task).is_some_and(|t| *t == one.pattern.name(mined));
    let triggers = Triggers::new(&mined.operations, &mined.clocks);
    let mut all: Vec<Iteration> = Vec::new();
    let mut measured = Measured::new(&mined.operations);
    for one in mined.iterations().iter().filter(|one| chosen(one)) {
        let clock = triggers.clock(one.stream);
        let name = model.names.intern(&one.pattern.name(mined));
        let spans = one.spans.iter().enumerate();
        all.extend(spans.map(|(number, local)| {
            let start = clock.common(local.start);
            let span = Span::new(start, clock.common(local.end).max(start));
            Iteration { span, stream: one.stream, pattern: name, number }
        }));
    }
    all.sort_by_key(|one| (one.span.start, one.span.end, one.stream));
    let whole = |(stream, sequence): (u32, &Sequence)| {
        let (first, last) = (sequence.operations.first()?, sequence.operations.last()?);
        Some(Span::new(triggers.span(stream, first).start, triggers.span(stream, last).end))
    };
    let bounds: Vec<Span> = (0..).zip(&mined.operations.sequences).filter_map(whole).collect();
    model.origin = bounds.iter().map(|b| b.start).min().unwrap_or_default();
    let end = bounds.iter().map(|b| b.end).max().unwrap_or(model.origin);
    let span = Span::new(model.origin, end);
    model.traces.push(TraceInfo { label: label.to_owned(), level: TraceLevel::MpiRun, span, recorded: None });
    model.tasks = Arc::new(tasks);
    model.task = task;
    model.who = threads(mined, host, &mut model.names);
    libraries::mark(&mined.operations, &mut model.names);
    let mut contexts = IterationContexts::new(&mined.operations, &triggers, &mut model.contexts, &mut model.names);
    ctx.progress.enter("paths", all.len() as u64);
    let trace = contexts.names.intern(label);
    let mut columns = Columns::default();
    let roles: Vec<i64> = roles::roles(&mined.operations)
        .into_iter()
        .map(|role| role.map_or(ABSENT, |role| i64::from(contexts.names.intern(&role).raw())))
        .collect();
    for Iteration { span, stream, pattern, number } in all {
        ctx.cancel.check()?;
        let own = contexts.fold(span, stream);
        let rank = mined.operations.sequences.get(stream as usize).and_then(|s| s.rank);
        columns.push(contexts.contexts, &own, span.start - model.origin, span.len(), number as i64);
        let kind = match measured.push(&mined.operations, &triggers, stream, span) {
            Some(parameters) => contexts.names.intern(&parameters),
            None => pattern,
        };
        columns.traces.push(i64::from(trace.raw()));
        columns.patterns.push(i64::from(kind.raw()));
        // Ranks are names, as ids of threads are: the distance between two says nothing.
        let name = rank.map(|rank| contexts.names.intern(&rank.to_string()));
        columns.rank.push(name.map_or(ABSENT, |name| i64::from(name.raw())));
        columns.roles.push(roles.get(stream as usize).copied().unwrap_or(ABSENT));
        let executions = &mut model.executions;
        executions.start.push(span.start);
        executions.duration.push(span.len());
        executions.who.push(ThreadInfoId::from_raw(stream));
        executions.trace.push(TraceId::at(0));
        executions.unsure.push(false);
        executions.own.push(own);
        ctx.progress.step(1);
    }
    model.executions.columns = columns.finish();
    model.executions.columns.extend(measured.finish());
    model.executions.own.shrink();
    Ok(model)
}

/// A rank is a process; its first thread is called like it. The rank's number is its pid and tid.
fn threads(mined: &PatternAnalysis, host: &str, names: &mut Names) -> Vec<ThreadInfo> {
    let host = names.intern(host);
    let one = |sequence: &Sequence| {
        let thread = names.intern(sequence.label());
        let process = sequence.rank.map_or(thread, |rank| names.intern(&format!("rank {rank}")));
        let number = sequence.rank.and_then(|r| i32::try_from(r).ok()).unwrap_or(0);
        ThreadInfo { host, process, pid: number, tid: number, thread }
    };
    mined.operations.sequences.iter().map(one).collect()
}

/// The frames that stand for a called function.
#[derive(Clone, Copy)]
struct CallFrames {
    /// The call itself.
    call: Frame,
    /// The computation from its end to the next call.
    after: Frame,
}

/// Accumulates the time of iterations into contexts.
struct IterationContexts<'a> {
    operations: &'a Operations,
    triggers: &'a Triggers<'a>,
    contexts: &'a mut Contexts,
    names: &'a mut Names,
    root: ContextId,
    ranks: Vec<NameId>,
    /// By symbol: the call, and the computation after it; `None` before they are asked for.
    frames: Vec<Option<CallFrames>>,
    /// By the context above and the call path.
    paths: HashMap<(ContextId, u32), ContextId>,
    transfer: Frame,
    unknown: Frame,
    flush: Frame,
    /// By stream: its last wait.
    last_waits: Vec<LastWait>,
    /// Empty between two iterations.
    own: OwnTimes,
}

impl<'a> IterationContexts<'a> {
    fn new(
        operations: &'a Operations,
        triggers: &'a Triggers<'a>,
        contexts: &'a mut Contexts,
        names: &'a mut Names,
    ) -> Self {
        let root = contexts.child(None, Frame { kind: FrameKind::Process, name: names.intern("rank") });
        let ranks = operations.sequences.iter().map(|s| names.intern(s.label())).collect();
        let transfer = Frame { kind: FrameKind::Wait(WaitKind::Network), name: names.intern("transfer") };
        let unknown = Frame { kind: FrameKind::Wait(WaitKind::UnknownWait), name: names.intern("unknown") };
        let flush = Frame { kind: FrameKind::Function, name: names.intern("trace buffer flush") };
        let frames = vec![None; operations.names.len()];
        let last_waits = vec![LastWait::default(); operations.sequences.len()];
        IterationContexts {
            operations,
            triggers,
            contexts,
            names,
            root,
            ranks,
            frames,
            paths: HashMap::default(),
            transfer,
            unknown,
            flush,
            last_waits,
            own: OwnTimes::default(),
        }
    }

    /// The time of one iteration by context.
    fn fold(&mut self, span: Span, stream: u32) -> Vec<ContextTime> {
        let mut own = std::mem::take(&mut self.own);
        self.spend(span, stream, self.root, 0, &mut own);
        let row = own.take();
        self.own = own;
        row
    }

    /// Activity of a stream over a span, below a context.
    fn spend(&mut self, span: Span, stream: u32, above: ContextId, far: usize, own: &mut OwnTimes) {
        let operations = self.operations;
        let Some(sequence) = operations.sequences.get(stream as usize) else { return };
        let all = &sequence.operations;
        let clock = self.triggers.clock(stream);
        let first = all.partition_point(|o| clock.common(o.end) <= span.start);
        let mut at = span.start;
        let mut before = first.checked_sub(1);
        for (position, operation) in all.iter().enumerate().skip(first) {
            let time = self.triggers.span(stream, operation);
            if time.start >= span.end {
                break;
            }
            let (start, end) = (time.start.clamp(at, span.end), time.end.clamp(at, span.end));
            self.compute(stream, before, Span::new(at, start), above, own);
            let around = self.around(above, self.operations.around(stream, 2 * position as u32));
            let call = self.frames_of(operation.symbol).call;
            let call = self.contexts.child(Some(around), call);
            let inside = Span::new(start, end.max(start));
            match operation.kind {
                OperationKind::Work | OperationKind::Wait => self.spent(stream, call, inside, own),
                OperationKind::Receive | OperationKind::Collective | OperationKind::Send => {
                    let place = OperationPlace { stream, operation: position as u32 };
                    self.wait(place, time.end, inside, call, far, own);
                }
            }
            at = inside.end;
            before = Some(position);
        }
        self.compute(stream, before, Span::new(at, span.end), above, own);
    }

    /// The context of a call path below another.
    fn around(&mut self, above: ContextId, path: u32) -> ContextId {
        let Some(CallPathNode { parent, name }) = self.operations.paths.get(path) else { return above };
        if let Some(known) = self.paths.get(&(above, path)) {
            return *known;
        }
        let parent = self.around(above, parent);
        let name = self.names.intern(self.operations.names.get(name));
        let context = self.contexts.child(Some(parent), Frame { kind: FrameKind::Function, name });
        self.paths.insert((above, path), context);
        context
    }

    /// Computation after an operation.
    fn compute(&mut self, stream: u32, after: Option<usize>, span: Span, above: ContextId, own: &mut OwnTimes) {
        if span.is_empty() {
            return;
        }
        let path = after.map_or(NO_PATH, |at| self.operations.around(stream, 2 * at as u32 + 1));
        let mut context = self.around(above, path);
        // The outermost region is around everything: it does not distinguish computations.
        if self.operations.paths.parent(path) == NO_PATH {
            let operation = after.and_then(|at| self.operations.get(OperationPlace { stream, operation: at as u32 }));
            let frame = match operation {
                Some(operation) => self.frames_of(operation.symbol).after,
                None => {
                    let name = self.names.intern(&format!("{COMPUTATION}before the first call"));
                    Frame { kind: FrameKind::Function, name }
                }
            };
            context = self.contexts.child(Some(context), frame);
        }
        self.spent(stream, context, span, own);
    }

    /// A stream's own time; the tracer's share of it is separate.
    fn spent(&mut self, stream: u32, context: ContextId, span: Span, own: &mut OwnTimes) {
        let flushes = self.operations.sequences.get(stream as usize).map_or(&[][..], |s| &s.flushes);
        let mut flushed = 0;
        if !flushes.is_empty() {
            let clock = self.triggers.clock(stream);
            let during = |f: &Span| clock.common(f.end).min(span.end) - clock.common(f.start).max(span.start);
            flushed = flushes.iter().map(during).filter(|ns| *ns > 0).sum::<Ns>().min(span.len());
        }
        own.add(context, span.len() - flushed);
        if flushed > 0 {
            let flush = self.contexts.child(Some(context), self.flush);
            own.add(flush, flushed);
        }
    }

    /// A wait: until the sending (the posting of a receive) it is spent by the sender (the receiver), after it by the
    /// transfer.
    fn wait(
        &mut self,
        place: OperationPlace,
        left: Timestamp,
        span: Span,
        call: ContextId,
        far: usize,
        own: &mut OwnTimes,
    ) {
        let mut unknown = LastWait::default();
        let last = self.last_waits.get_mut(place.stream as usize).unwrap_or(&mut unknown);
        let trigger = self.triggers.after(last, place, left);
        let Some(trigger) = trigger.filter(|t| t.from.stream != place.stream) else {
            // The last to arrive at a collective does not wait: its time is the operation's own.
            let own_time = trigger.is_some();
            let context = if own_time { call } else { self.contexts.child(Some(call), self.unknown) };
            return self.spent(place.stream, context, span, own);
        };
        let sent = trigger.sent.clamp(span.start, span.end);
        if sent > span.start {
            // Every place is one of a stream.
            let Some(name) = self.ranks.get(trigger.from.stream as usize) else { return own.add(call, span.len()) };
            let frame = Frame { kind: FrameKind::Thread(WaitKind::Thread), name: *name };
            let thread = self.contexts.child(Some(call), frame);
            let waited = Span::new(span.start, sent);
            *self.contexts.who.entry((thread, ThreadInfoId::from_raw(trigger.from.stream))).or_insert(0) +=
                waited.len() as u64;
            if far < FARTHEST {
                self.spend(waited, trigger.from.stream, thread, far + 1, own);
            } else {
                own.add(thread, waited.len());
            }
        }
        // Between threads of one process nothing is transferred: the rest is the call's own.
        let process = |stream: u32| self.operations.sequences.get(stream as usize).and_then(|s| s.process);
        let is_inside = process(place.stream).is_some_and(|own| process(trigger.from.stream) == Some(own));
        let rest = if is_inside { call } else { self.contexts.child(Some(call), self.transfer) };
        own.add(rest, span.end - sent);
    }

    fn frames_of(&mut self, symbol: NameId) -> CallFrames {
        if let Some(Some(known)) = self.frames.get(symbol.index()) {
            return *known;
        }
        let name = self.operations.names.get(symbol);
        let call = self.names.intern(name);
        let after = self.names.intern(&format!("{COMPUTATION}after {name}"));
        let [call, after] = [call, after].map(|name| Frame { kind: FrameKind::Function, name });
        let frames = CallFrames { call, after };
        if let Some(known) = self.frames.get_mut(symbol.index()) {
            *known = Some(frames);
        }
        frames
    }
}

/// Collects metrics.
#[derive(Default)]
struct Columns {
    duration: Vec<i64>,
    start: Vec<i64>,
    spent: [Vec<i64>; 4],
    threads: Vec<i64>,
    traces: Vec<i64>,
    patterns: Vec<i64>,
    roles: Vec<i64>,
    rank: Vec<i64>,
    number: Vec<i64>,
}

impl Columns {
    fn push(&mut self, contexts: &Contexts, own: &[ContextTime], since_origin: Ns, length: Ns, number: i64) {
        let mut spent = [0; 4];
        let mut ranks = BTreeSet::new();
        for ContextTime { context, ns } in own {
            let kind = match contexts.spent(*context) {
                WaitKind::Cpu => 0,
                WaitKind::Thread => 1,
                WaitKind::Network => 2,
                _ => 3,
            };
            spent[kind] += *ns as i64;
            let mut at = Some(*context);
            while let Some(c) = at {
                let frame = contexts.frame(c);
                if matches!(frame.kind, FrameKind::Thread(_)) {
                    ranks.insert(frame.name);
                }
                at = contexts.parent(c);
            }
        }
        self.duration.push(length);
        self.start.push(since_origin);
        self.spent.iter_mut().zip(spent).for_each(|(column, ns)| column.push(ns));
        self.threads.push(1 + ranks.len() as i64);
        self.number.push(number);
    }

    fn finish(self) -> Vec<Column> {
        let [cpu, thread, network, other] = self.spent;
        let columns = [
            (Metric::Duration, self.duration),
            (Metric::Start, self.start),
            (Metric::Time(WaitKind::Cpu), cpu),
            (Metric::Time(WaitKind::Network), network),
            (Metric::Time(WaitKind::Thread), thread),
            (Metric::Other, other),
            (Metric::Threads, self.threads),
            (Metric::Trace, self.traces),
            (Metric::Type, self.patterns),
            (Metric::Role, self.roles),
            (Metric::Rank, self.rank),
            (Metric::Field("turn".into()), self.number),
        ];
        let known = |(metric, values): (Metric, Vec<i64>)| {
            values.iter().any(|v| *v != ABSENT).then(|| Column { metric, values: values.into() })
        };
        columns.into_iter().filter_map(known).collect()
    }
}
