//! From the samples of a profiler to a model whose executions are these samples.
//!
//! In: a sealed timeline with the samples of its threads, and what is asked: an event, a program. Out: a model in which
//! each sample is an execution that lasts as long as the sample counts for, in the calling context of its stack; `None`
//! where nothing was sampled. Whose samples: those of the command that the recorder ran and of all its descendants, of
//! a program by name, or of all; the tracer's own only in the last case. What was left out is summed by program.
//!
//! A sample says nothing of the time before and after what it counts for, so nothing is made up between two samples.
//! Cost: linear in the samples; each distinct stack is named once. ALGORITHMS.md section 5.6.

use super::contexts::{self, Dictionary};
use super::threads::ModelThreads;
use crate::analysis::derived::{commands, tracers};
use crate::analysis::leaders::Leaders;
use crate::analysis::outline::{Outline, OutlineId, OutlineStep};
use crate::analysis::stacks::{Stack, StackTable, stack_of_sample};
use crate::analysis::thread_names::ThreadNames;
use crate::base::ctx::{Cancelled, Ctx, Progress};
use crate::base::heap::MemoryPart;
use crate::base::names::{NameId, Names};
use crate::base::notice::Notices;
use crate::base::time::{Span, Timestamp};
use crate::event::host::HostId;
use crate::event::image::ImageChange;
use crate::event::profile::{EVERY_PROGRAM, ProfileTask};
use crate::model::choice::{ChosenBy, TaskChoice};
use crate::model::column_values::ColumnValues;
use crate::model::context::{ContextId, Frame, FrameKind};
use crate::model::execution::{ContextTime, ExecutionRow};
use crate::model::metric::{Column, Metric};
use crate::model::profile::{Profile, ProgramAmount, is_clock};
use crate::model::{Model, TraceId, TraceInfo};
use crate::symbols::cache::SymbolCache;
use crate::symbols::files::{SymbolPaths, kernel_symbols};
use crate::symbols::images::Spaces;
use crate::symbols::{ProcessStack, unnamed};
use crate::timeline::questions::Asker;
use crate::timeline::{StackSample, ThreadId, Timeline};
use get_size2::GetSize;
use std::collections::{BTreeMap, BTreeSet};

/// The command counts as what was recorded from this share of all samples on; below it only set the time, like `sleep`.
const COMMAND_SHARE: u64 = 100;
/// The frame of kernel code without symbols, and the image of all kernel code.
const KERNEL: &str = "kernel";
/// The image of code that no recorded mapping holds.
const UNKNOWN: &str = "unknown";

#[derive(Clone, Debug)]
pub struct ProfileRequest {
    pub task: ProfileTask,
    pub trace: TraceInfo,
    /// Folders of symbol files.
    pub places: SymbolPaths,
}

/// How often an event was sampled, and how much of it the samples stand for.
#[derive(Clone, Copy, Debug, Default)]
struct EventSum {
    samples: u64,
    amount: u64,
}

/// A sample that is part of the profile.
struct Taken {
    start: Timestamp,
    end: Timestamp,
    thread: ThreadId,
    amount: u64,
    program: NameId,
    node: OutlineId,
    /// The kernel part has no symbols.
    in_kernel: bool,
    image: SampledImage,
}

/// Whose code a sample hit.
#[derive(Clone, Copy)]
enum SampledImage {
    Kernel,
    /// A mapped file, by its path.
    File(NameId),
    Unknown,
}

/// All sampled events.
fn events(timeline: &Timeline, progress: &Progress) -> BTreeMap<NameId, EventSum> {
    let reader = timeline.reader(Asker::Explain);
    let mut all: BTreeMap<NameId, EventSum> = BTreeMap::new();
    for (id, _) in timeline.threads_by_id().filter(|(_, thread)| !thread.idle) {
        for weight in progress.follow(reader.samples(id).all()).filter_map(|sample| sample.weight.get()) {
            let sum = all.entry(weight.event).or_default();
            sum.samples += 1;
            sum.amount = sum.amount.saturating_add(weight.amount);
        }
    }
    all
}

/// The event that was asked for: by its name with or without modifiers; else the clock, or the event, with most
/// samples.
fn chosen(names: &Names, events: &BTreeMap<NameId, EventSum>, asked: Option<&str>) -> Option<NameId> {
    let bare = |name: &NameId| names.get(*name).split(':').next().unwrap_or_default() == asked.unwrap_or_default();
    if let Some(asked) = asked {
        let exact = events.keys().find(|name| names.get(**name) == asked);
        return exact.or_else(|| events.keys().find(|name| bare(name))).copied();
    }
    let rank =
        |(name, sum): &(&NameId, &EventSum)| (is_clock(names.get(**name)), sum.samples, std::cmp::Reverse(**name));
    events.iter().max_by_key(rank).map(|(name, _)| *name)
}

/// The names of the events that a recording sampled.
pub fn event_names(timeline: &Timeline) -> Vec<String> {
    events(timeline, &Progress::default()).keys().map(|name| timeline.names().get(*name).to_owned()).collect()
}

/// The threads whose samples are asked for, and in words who they are.
struct Selection {
    threads: BTreeSet<ThreadId>,
    /// The recorded command, of which the threads are; `None` for all of the machine, or a program by name.
    is_command: bool,
}

/// See the module.
pub fn build(
    timeline: &Timeline,
    request: &ProfileRequest,
    notices: &Notices,
    ctx: &Ctx,
) -> Result<Option<Model>, Cancelled> {
    ctx.progress.enter("stacks", 2 * timeline.sample_count() as u64);
    let all_events = events(timeline, &ctx.progress);
    let Some(event) = chosen(timeline.names(), &all_events, request.task.event.as_deref()) else { return Ok(None) };
    let mut model = Model {
        tasks: vec![request.task.to_string()].into(),
        traces: vec![request.trace.clone()],
        notices: notices.clone(),
        origin: timeline.span().start,
        ..Model::default()
    };
    let kernel = kernel_symbols(&request.places, &mut model.notices);
    let symbols = request.places.known.clone().unwrap_or_default();
    let symbols: &SymbolCache = &symbols;
    let spaces = Spaces::with_code(timeline.images(), &request.places, symbols);
    let names = ThreadNames::new(timeline, &mut model.names, &mut model.notices);
    let leaders = Leaders::new(timeline);
    let programs = Programs::new(timeline, &names, &leaders, &mut model.names);
    let (has_kernel, progress) = (kernel.is_some(), &ctx.progress);
    let samples = Samples { timeline, spaces: &spaces, programs: &programs, event, has_kernel, progress };
    let (selection, left_out) = samples.select(request.task.program.as_deref(), &model.names);
    model.choice = request.task.program.is_none().then(|| TaskChoice {
        by: if selection.is_command { ChosenBy::Recorded } else { ChosenBy::Guessed },
        ..TaskChoice::default()
    });
    let mut table = StackTable::default();
    let (outline, taken) = samples.take(&selection, &mut table, ctx)?;
    ctx.progress.enter("symbols", 0);
    let places = &request.places;
    if kernel.is_none() && places.wants_kernel {
        unnamed::kernel(timeline, &mut model.notices);
    }
    let stacks = table.distinct().iter().filter_map(|stack| stack.user.as_ref());
    unnamed::compiled(timeline, &spaces, stacks, (places, symbols), &mut model.notices);
    let dictionary =
        Dictionary { timeline, stacks: &table, spaces: &spaces, places, symbols, kernel: kernel.as_ref(), pauses: &[] };
    let (contexts, ids) = contexts::name(&outline, &dictionary, &mut model.names, &mut model.notices, ctx)?;
    model.contexts = contexts;
    let event_name = |id: &NameId| timeline.names().get(*id).to_owned();
    let other_events = all_events.keys().filter(|other| **other != event).map(event_name).collect();
    fill(&mut model, timeline, &leaders, &ids, taken, ctx)?;
    let whose = whose(&model, &selection, request.task.program.as_deref());
    model.profile = Some(Profile { event: event_name(&event), other_events, whose, left_out });
    ctx.progress.parts.hold(MemoryPart::Results, model.executions.get_heap_size());
    Ok(Some(model))
}

/// What the samples are taken from.
struct Samples<'a> {
    timeline: &'a Timeline,
    spaces: &'a Spaces,
    programs: &'a Programs<'a>,
    event: NameId,
    /// Kernel symbols are known.
    has_kernel: bool,
    progress: &'a Progress,
}

impl Samples<'_> {
    /// The samples of the event on a thread.
    fn of(&self, thread: ThreadId, mut put: impl FnMut(&StackSample, u64)) {
        let reader = self.timeline.reader(Asker::Explain);
        for sample in self.progress.follow(reader.samples(thread).all()) {
            if let Some(weight) = sample.weight.get().filter(|weight| weight.event == self.event) {
                put(&sample, weight.amount);
            }
        }
    }

    /// Whose code a sample with this stack hit.
    fn image(&self, stack: &Stack) -> SampledImage {
        let in_file = |user: ProcessStack| {
            let address = self.timeline.stacks().get(user.stack).first()?;
            Some(self.spaces.image(user.space?, user.host, *address)?.path)
        };
        match (stack.kernel, stack.user) {
            (Some(_), _) => SampledImage::Kernel,
            (None, Some(user)) => in_file(user).map_or(SampledImage::Unknown, SampledImage::File),
            (None, None) => SampledImage::Unknown,
        }
    }

    /// The threads whose samples are asked for, and the programs of the others.
    fn select(&self, program: Option<&str>, names: &Names) -> (Selection, Vec<ProgramAmount>) {
        let mut by_thread: BTreeMap<ThreadId, u64> = BTreeMap::new();
        for (id, thread) in self.timeline.threads_by_id() {
            let mut amount = 0_u64;
            if !thread.idle {
                self.of(id, |_, more| amount = amount.saturating_add(more));
            }
            if amount > 0 {
                by_thread.insert(id, amount);
            }
        }
        let command = commands(self.timeline);
        let sum = |threads: &mut dyn Iterator<Item = u64>| threads.fold(0, u64::saturating_add);
        let all = sum(&mut by_thread.values().copied());
        let own = sum(&mut by_thread.iter().filter(|(id, _)| command.contains(id)).map(|(_, amount)| *amount));
        let recorded = own > 0 && own >= all / COMMAND_SHARE;
        let recorders = tracers(self.timeline);
        let name = |id: ThreadId| {
            let end = self.timeline.thread(id).map_or(Timestamp::ZERO, |thread| thread.life.end);
            names.get(self.programs.at(id, end))
        };
        let is_wanted = |id: &ThreadId| match program {
            Some(EVERY_PROGRAM) => true,
            Some(program) => name(*id) == program,
            None if recorded => command.contains(id),
            None => !recorders.contains(id),
        };
        let (wanted, others): (Vec<_>, Vec<_>) = by_thread.into_iter().partition(|(id, _)| is_wanted(id));
        let mut left_out: BTreeMap<String, u64> = BTreeMap::new();
        for (id, amount) in others {
            let sum = left_out.entry(name(id).to_owned()).or_default();
            *sum = sum.saturating_add(amount);
        }
        let mut left_out: Vec<ProgramAmount> =
            left_out.into_iter().map(|(program, amount)| ProgramAmount { program, amount }).collect();
        left_out.sort_by(|a, b| b.amount.cmp(&a.amount).then_with(|| a.program.cmp(&b.program)));
        let threads = wanted.into_iter().map(|(id, _)| id).collect();
        (Selection { threads, is_command: recorded && program.is_none() }, left_out)
    }

    /// The samples in order of time, each at a node of an outline of their stacks.
    fn take(
        &self,
        selection: &Selection,
        table: &mut StackTable,
        ctx: &Ctx,
    ) -> Result<(Outline, Vec<Taken>), Cancelled> {
        let mut outline = Outline::default();
        let mut taken: Vec<Taken> = Vec::new();
        let is_time = is_clock(self.timeline.names().get(self.event));
        let reader = self.timeline.reader(Asker::Explain);
        let samples = selection.threads.iter().map(|thread| reader.samples(*thread).len() as u64);
        self.progress.enter("stacks", samples.sum());
        for thread in &selection.threads {
            ctx.cancel.check()?;
            self.of(*thread, |sample, amount| {
                let stack = stack_of_sample(self.timeline, self.spaces, *thread, sample);
                let in_kernel = stack.kernel.is_some() && !self.has_kernel;
                let program = self.programs.at(*thread, sample.time);
                let mut node = outline.child(None, OutlineStep::Process(Some(program)));
                // Kernel code without symbols is a frame of its own, made when contexts have names.
                if stack.user.is_some() || !in_kernel {
                    let kernel = stack.kernel.filter(|_| self.has_kernel);
                    node = outline.child(Some(node), OutlineStep::Stack(table.intern(Stack { kernel, ..stack })));
                }
                let ns = i64::try_from(amount).unwrap_or(i64::MAX);
                let (start, end) = if is_time {
                    (sample.time.saturating_sub(ns), sample.time)
                } else {
                    (sample.time, sample.time.saturating_add(ns))
                };
                // What passes the ends of time is cut.
                let amount = end.since(start).unsigned_abs();
                let image = self.image(&stack);
                taken.push(Taken { start, end, thread: *thread, amount, program, node, in_kernel, image });
            });
        }
        taken.sort_by_key(|sample| (sample.start, sample.end, sample.thread));
        Ok((outline, taken))
    }
}

/// The programs that threads run: by the name with which a program began, because its first thread may be called
/// otherwise later; else by the name of the first thread.
struct Programs<'a> {
    timeline: &'a Timeline,
    names: &'a ThreadNames,
    leaders: &'a Leaders,
    /// By process: when programs began, and their names in the model.
    begun: BTreeMap<(HostId, i32), Vec<(Timestamp, NameId)>>,
    unknown: NameId,
}

impl<'a> Programs<'a> {
    fn new(timeline: &'a Timeline, names: &'a ThreadNames, leaders: &'a Leaders, shown: &mut Names) -> Programs<'a> {
        let mut begun: BTreeMap<(HostId, i32), Vec<(Timestamp, NameId)>> = BTreeMap::new();
        for event in timeline.images() {
            if let ImageChange::Exec { path } = &event.change {
                let path = timeline.names().get(*path);
                let name = shown.intern(path.rsplit('/').next().unwrap_or(path));
                begun.entry((event.host, event.pid)).or_default().push((event.time, name));
            }
        }
        Programs { timeline, names, leaders, begun, unknown: shown.intern(UNKNOWN) }
    }

    /// The name in the model of the program that a thread runs at `t`.
    fn at(&self, thread: ThreadId, t: Timestamp) -> NameId {
        let Some(thread) = self.timeline.thread(thread) else { return self.unknown };
        let begun = self.begun.get(&(thread.host, thread.pid)).map_or(&[][..], |begun| begun);
        let last = begun.partition_point(|(from, _)| *from <= t).checked_sub(1);
        let leader = || self.names.at(self.leaders.of(self.timeline, thread, t), t);
        last.and_then(|last| Some(begun.get(last)?.1)).or_else(leader).unwrap_or(self.unknown)
    }
}

/// Put the samples into the model.
fn fill(
    model: &mut Model,
    timeline: &Timeline,
    leaders: &Leaders,
    contexts: &[ContextId],
    taken: Vec<Taken>,
    ctx: &Ctx,
) -> Result<(), Cancelled> {
    let mut threads = ModelThreads::new(timeline, leaders);
    let label = model.traces.first().map_or_else(String::new, |trace| trace.label.clone());
    let label = i64::from(model.names.intern(&label).raw());
    let kernel = Frame { kind: FrameKind::File, name: model.names.intern(KERNEL) };
    let metrics = [Metric::Start, Metric::Process, Metric::Thread, Metric::Image, Metric::Trace];
    let mut columns = metrics.map(|metric| Column { metric, values: ColumnValues::default() });
    ctx.progress.enter("results", taken.len() as u64);
    let taken = ctx.progress.follow(taken.into_iter());
    for (i, Taken { start, end, thread, amount, program, node, in_kernel, image }) in taken.enumerate() {
        if i % 4096 == 0 {
            ctx.cancel.check()?;
        }
        let mut context = contexts.get(node.index()).copied().unwrap_or(ContextId::at(0));
        if in_kernel {
            context = model.contexts.child(Some(context), kernel);
        }
        let who = threads.id(thread, end, &mut model.who, &mut model.names);
        let name = model.who.get_mut(who.index()).map_or(program, |who| {
            who.process = program;
            who.thread
        });
        let of_image = match image {
            SampledImage::Kernel => kernel.name,
            SampledImage::File(path) => {
                let path = timeline.names().get(path);
                model.names.intern(path.rsplit('/').next().unwrap_or(path))
            }
            SampledImage::Unknown => model.names.intern(UNKNOWN),
        };
        let [process, name, of_image] = [program, name, of_image].map(|name| i64::from(name.raw()));
        let values = [start.since(model.origin), process, name, of_image, label];
        columns.iter_mut().zip(values).for_each(|(column, value)| column.values.push(value));
        model.executions.push(ExecutionRow {
            span: Span::new(start, end),
            who,
            trace: TraceId::at(0),
            cpu: u16::MAX,
            unsure: false,
            own: vec![ContextTime { context, ns: amount }],
        });
    }
    model.executions.own.shrink();
    model.executions.columns = columns.into_iter().collect();
    Ok(())
}

/// Whose samples they are, in words.
fn whose(model: &Model, selection: &Selection, program: Option<&str>) -> String {
    let amounts = by_program(model);
    let total = amounts.iter().map(|(_, amount)| *amount).fold(0, u64::saturating_add);
    let first = amounts.first().map_or("no program", |(name, _)| name.as_str());
    match program {
        Some(EVERY_PROGRAM) => "all programs".to_owned(),
        Some(program) => program.to_owned(),
        // One that has nearly all speaks for all.
        None if amounts.first().is_some_and(|(_, amount)| *amount >= total / 10 * 9) => first.to_owned(),
        None if selection.is_command => format!("{first} and other programs of the recorded command"),
        None => "all programs".to_owned(),
    }
}

/// Programs with the amounts of their samples, the largest first.
fn by_program(model: &Model) -> Vec<(String, u64)> {
    let mut amounts: BTreeMap<&str, u64> = BTreeMap::new();
    for (i, who) in model.executions.who.iter().enumerate() {
        let Some(who) = model.who.get(who.index()) else { continue };
        let amount = amounts.entry(model.names.get(who.process)).or_default();
        *amount = amount.saturating_add(model.executions.duration(i).unsigned_abs());
    }
    let mut amounts: Vec<(String, u64)> = amounts.into_iter().map(|(name, amount)| (name.to_owned(), amount)).collect();
    amounts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    amounts
}
