//! Several models as one: traces of two versions, or databases of many hosts, compared like any two groups.
//!
//! In: models of one task. Out: one model of all executions in order of time, then of thread and CPU; its tables the
//! union of theirs, in canonical order, so that neither the order of the models nor the division of executions among
//! them changes an id. Functions may be given other names on the way, so that what was renamed between two versions
//! still is on the same paths: contexts that become equal become one. Cost: linear in all of it, times the logarithm of
//! the number of models; in memory is each execution once, and the union of the tables. Invariant: the executions of
//! each model are in order of time. ALGORITHMS.md section 6.4.

use super::column_values::ColumnValues;
use super::context::ContextId;
use super::execution::{ExecutionId, ExecutionRow, Executions};
use super::execution_timeline::ExecutionTimeline;
use super::facts::HostQuality;
use super::metric::{ABSENT, Column, Metric, Unit};
use super::profile::Profile;
use super::united::{ModelTables, TableUnion, UnitedIds};
use super::{Model, ThreadInfo, ThreadInfoId, TraceId, TraceInfo, TraceLevel};
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::names::{NameId, Names};
use crate::base::packed;
use crate::base::time::{Span, Timestamp};
use foldhash::HashSet;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

pub use super::united::Renamed;

/// Executions between two looks at whether the user has cancelled.
const CHECKED: usize = 4096;

/// Join models of the same task. Without any there is an empty one.
pub fn join(mut models: Vec<Model>, renamed: &Renamed, ctx: &Ctx) -> Result<Model, Cancelled> {
    if models.len() == 1 && renamed.is_empty() {
        return Ok(models.pop().unwrap_or_default());
    }
    let choice = models.first().and_then(|m| m.choice.clone());
    let profile = profile_of(&models);
    let mut tasks: Vec<&String> = Vec::new();
    for model in &models {
        let known: HashSet<&String> = tasks.iter().copied().collect();
        tasks.extend(model.tasks.iter().filter(|t| !known.contains(t)));
    }
    let task = models.first().and_then(|m| m.tasks.get(m.task));
    let task = tasks.iter().position(|known| Some(*known) == task).unwrap_or(0);
    let tasks = Arc::new(tasks.into_iter().cloned().collect());
    let mut joiner = Joiner::new(renamed, LabelNames::Kept);
    models.into_iter().for_each(|model| joiner.add(model));
    Ok(Model { choice, profile, tasks, task, ..joiner.finish(ctx)? })
}

/// A model whose ids follow from what is in it alone, as those of a database do. A profile stays as it is: no database
/// holds it.
pub fn canonical(model: Model, labels: LabelNames, ctx: &Ctx) -> Result<Model, Cancelled> {
    if model.profile.is_some() {
        return Ok(model);
    }
    let (choice, tasks, task) = (model.choice.clone(), Arc::clone(&model.tasks), model.task);
    let renamed = Renamed::new();
    let mut joiner = Joiner::new(&renamed, labels);
    joiner.add(model);
    Ok(Model { choice, tasks, task, ..joiner.finish(ctx)? })
}

/// A canonical model that was made without the names of labels, with them: executions have them as values where there
/// is a column for them.
pub fn named_labels(mut model: Model) -> Model {
    if model.traces.iter().any(|trace| model.names.find(&trace.label).is_none()) {
        let Model { names, who, contexts, .. } = &mut model;
        let held = std::mem::take(&mut contexts.who);
        let tables =
            ModelTables { names: std::mem::take(names), who: std::mem::take(who), contexts: std::mem::take(contexts) };
        let mut union = TableUnion::default();
        let ids = union.add(&tables, &Renamed::new(), &BTreeMap::new());
        for trace in &model.traces {
            union.name(&trace.label);
        }
        union.use_all();
        let (tables, order) = union.sorted();
        let ids = ids.then(&order);
        (model.names, model.who, model.contexts) = (tables.names, tables.who, tables.contexts);
        // Threads and contexts keep their places.
        model.contexts.who = held;
        for Column { values, .. } in model.executions.columns.iter_mut().filter(|c| c.metric.unit() == Unit::Name) {
            *values = std::mem::take(values).into_iter().map(|value| named(&ids, value)).collect();
        }
    }
    let label = |trace: &TraceInfo| model.names.find(&trace.label).map_or(ABSENT, |id| id.raw().into());
    let labels: Vec<i64> = model.traces.iter().map(label).collect();
    let executions = &mut model.executions;
    if let Some(column) = executions.columns.iter_mut().find(|column| column.metric == Metric::Trace) {
        let label = |trace: TraceId| labels.get(trace.index()).copied().unwrap_or(ABSENT);
        column.values = executions.trace.iter().map(label).collect();
    }
    model
}

/// A value that is a name, in other tables.
fn named(ids: &UnitedIds, value: i64) -> i64 {
    let name = u32::try_from(value).map(|id| ids.name(NameId::from_raw(id)));
    name.ok().filter(|name| *name != Names::MISSING).map_or(ABSENT, |name| name.raw().into())
}

/// Whether the labels of traces are among the names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LabelNames {
    /// Executions have them as values.
    Kept,
    /// They may change.
    LeftOut,
}

/// A model in the making: models are added one after the other, and the tables of each go as soon as they are in the
/// union.
pub struct Joiner<'a> {
    renamed: &'a Renamed,
    labels: LabelNames,
    union: TableUnion,
    parts: Vec<Part>,
    /// Runs of MPI, while nothing else was added: which names ranks have depends on all of them.
    runs: Vec<Model>,
}

/// A model without its tables.
struct Part {
    /// Its ids in the whole.
    ids: UnitedIds,
    /// Of its executions.
    held: BTreeMap<(ContextId, ThreadInfoId), u64>,
    rest: Model,
}

impl<'a> Joiner<'a> {
    /// Without any models; functions get these names.
    pub fn new(renamed: &'a Renamed, labels: LabelNames) -> Joiner<'a> {
        Joiner { renamed, labels, union: TableUnion::default(), parts: Vec::new(), runs: Vec::new() }
    }

    /// Add a model of the task.
    pub fn add(&mut self, model: Model) {
        if self.parts.is_empty() && model.traces.iter().all(|trace| trace.level == TraceLevel::MpiRun) {
            self.runs.push(model);
            return;
        }
        for run in std::mem::take(&mut self.runs) {
            self.unite(run, &BTreeMap::new());
        }
        self.unite(model, &BTreeMap::new());
    }

    /// Take a model, whose labels, values and CPUs are used names.
    fn unite(&mut self, mut model: Model, roles: &BTreeMap<NameId, String>) {
        let held = std::mem::take(&mut model.contexts.who);
        let tables = ModelTables {
            names: std::mem::take(&mut model.names),
            who: std::mem::take(&mut model.who),
            contexts: std::mem::take(&mut model.contexts),
        };
        let ids = self.union.add(&tables, self.renamed, roles);
        if self.labels == LabelNames::Kept {
            for trace in &model.traces {
                self.union.name(&trace.label);
            }
        }
        let is_name = |column: &&Column| column.metric.unit() == Unit::Name && column.metric != Metric::Trace;
        for column in model.executions.columns.iter().filter(is_name) {
            let values: BTreeSet<i64> = column.values.iter().collect();
            for value in values.into_iter().filter_map(|value| u32::try_from(value).ok()) {
                self.union.use_name(ids.name(NameId::from_raw(value)));
            }
        }
        let cpus: BTreeSet<u16> = model.executions.cpu.iter().collect();
        cpus.into_iter().for_each(|cpu| self.union.use_number(cpu.into()));
        self.parts.push(Part { ids, held, rest: model });
    }

    /// The model, but for its tasks.
    pub fn finish(mut self, ctx: &Ctx) -> Result<Model, Cancelled> {
        let runs = std::mem::take(&mut self.runs);
        // Rank 9 of 64 is no rank 9 of 128: what ranks of other runs are compared with is their role.
        let by_role = differ_in_size(&runs);
        for run in runs {
            let roles = if by_role { thread_roles(&run) } else { BTreeMap::new() };
            self.unite(run, &roles);
        }
        let Joiner { union, mut parts, .. } = self;
        let (ModelTables { names, who, contexts }, order) = union.sorted();
        let mut whole = Model { names, who, contexts, ..Model::default() };
        whole.origin = parts.iter().map(|part| part.rest.origin).min().unwrap_or_default();
        for Part { ids, held, rest } in &mut parts {
            ctx.cancel.check()?;
            *ids = ids.then(&order);
            whole.notices.merge(&rest.notices);
            whole.traces.extend(rest.traces.iter().cloned());
            for ((context, held), ns) in std::mem::take(held) {
                let all = whole.contexts.who.entry((ids.context(context), ids.thread(held))).or_insert(0);
                *all = all.saturating_add(ns);
            }
        }
        whole.quality = quality(parts.iter().flat_map(|part| &part.rest.quality));
        sort_traces(&mut whole.traces);
        executions(parts, &mut whole, ctx)?;
        Ok(whole)
    }
}

/// How far the events of each host agree, in order of their names.
fn quality<'a>(all: impl Iterator<Item = &'a HostQuality>) -> Vec<HostQuality> {
    let mut by_host: BTreeMap<&str, HostQuality> = BTreeMap::new();
    for one in all {
        let sum =
            by_host.entry(&one.host).or_insert_with(|| HostQuality { host: one.host.clone(), ..Default::default() });
        sum.quality = sum.quality.and(one.quality);
    }
    by_host.into_values().collect()
}

/// Traces in canonical order.
fn sort_traces(traces: &mut [TraceInfo]) {
    traces.sort_by_cached_key(|TraceInfo { label, level, span, recorded }| {
        (label.clone(), span.start, span.end, *level, packed::bytes_of(recorded))
    });
}

/// Not all runs have the same ranks.
fn differ_in_size(runs: &[Model]) -> bool {
    let ranks = |run: &Model| -> BTreeSet<i32> { run.who.iter().map(|who| who.pid).collect() };
    let mut sizes = runs.iter().map(ranks);
    let first = sizes.next();
    sizes.any(|ranks| Some(ranks) != first)
}

/// The roles of an MPI run's threads, by their name: `rank with the most partners`, `thread 1 of root rank`.
fn thread_roles(model: &Model) -> BTreeMap<NameId, String> {
    let executions = &model.executions;
    let Some(roles) = executions.column(&Metric::Role) else { return BTreeMap::new() };
    let mut by_process: BTreeMap<NameId, NameId> = BTreeMap::new();
    for (who, role) in executions.who.iter().zip(roles.values.iter()) {
        if let (Some(who), Ok(role)) = (model.who.get(who.index()), u32::try_from(role)) {
            by_process.insert(who.process, NameId::from_raw(role));
        }
    }
    let named = |who: &ThreadInfo| {
        let role = model.names.get(*by_process.get(&who.process)?);
        let (thread, process) = (model.names.get(who.thread), model.names.get(who.process));
        let within = thread.strip_prefix(process).unwrap_or_default().trim_start();
        let text = if within.is_empty() { role.to_owned() } else { format!("{within} of {role}") };
        Some((who.thread, text))
    };
    model.who.iter().filter_map(named).collect()
}

/// The executions of a part that are not taken yet.
struct Rest<I> {
    ids: UnitedIds,
    /// By number of its traces those of the whole, with their labels.
    traces: Vec<(TraceId, i64)>,
    timelines: BTreeMap<ExecutionId, ExecutionTimeline>,
    /// By column of the whole its column of that metric.
    places: Vec<Option<usize>>,
    /// Numbered.
    rows: I,
    /// The first of them, before `rows`.
    first: Option<(usize, (ExecutionRow, Vec<i64>))>,
}

/// An execution in the ids of the whole, and its timeline.
type JoinedRow = (ExecutionRow, Vec<i64>, Option<ExecutionTimeline>);

impl<I: Iterator<Item = (usize, (ExecutionRow, Vec<i64>))>> Rest<I> {
    /// The first one in the ids of the whole; the next one is the first then.
    fn take(&mut self, columns: &[Column], origin: Timestamp) -> Option<JoinedRow> {
        let next = self.rows.next();
        let (number, (mut row, values)) = std::mem::replace(&mut self.first, next)?;
        let (trace, label) = self.traces.get(row.trace.index()).copied().unwrap_or((row.trace, ABSENT));
        let value = |(Column { metric, .. }, place): (&Column, &Option<usize>)| {
            let value = place.and_then(|place| values.get(place).copied()).unwrap_or(ABSENT);
            match metric {
                Metric::Start => row.span.start.since(origin),
                Metric::Trace => label,
                _ if metric.unit() == Unit::Name => named(&self.ids, value),
                _ => value,
            }
        };
        let values = columns.iter().zip(&self.places).map(value).collect();
        row.own.iter_mut().for_each(|time| time.context = self.ids.context(time.context));
        (row.who, row.trace) = (self.ids.thread(row.who), trace);
        let mut timeline = self.timelines.remove(&ExecutionId::at(number));
        for segment in timeline.iter_mut().flat_map(|timeline| &mut timeline.segments) {
            segment.context = self.ids.context(segment.context);
        }
        Some((row, values, timeline))
    }

    fn span(&self) -> Option<Span> {
        self.first.as_ref().map(|(_, (row, _))| row.span)
    }
}

/// All executions, by time. What a part has given is freed, so that one that is taken is in memory once.
fn executions(parts: Vec<Part>, whole: &mut Model, ctx: &Ctx) -> Result<(), Cancelled> {
    let columns = parts.iter().flat_map(|part| &part.rest.executions.columns);
    let metrics: BTreeSet<Metric> = columns.map(|c| c.metric.clone()).collect();
    let columns = metrics.into_iter().map(|metric| Column { metric, values: ColumnValues::default() });
    let mut all = Executions { columns: columns.collect(), ..Executions::default() };
    let mut rests: Vec<Rest<_>> = Vec::new();
    let mut next = BinaryHeap::new();
    for Part { ids, rest: Model { traces, executions, timelines, .. }, .. } in parts {
        let place = |column: &Column| executions.columns.iter().position(|own| own.metric == column.metric);
        let places = all.columns.iter().map(place).collect();
        let known = |info: &TraceInfo| {
            let id = whole.traces.iter().position(|known| known == info).map_or(TraceId::at(0), TraceId::at);
            (id, whole.names.find(&info.label).map_or(ABSENT, |label| label.raw().into()))
        };
        let traces = traces.iter().map(known).collect();
        let mut rows = executions.into_rows().enumerate();
        let first = rows.next();
        next.extend(first.as_ref().map(|(_, (row, _))| Reverse((row.span, rests.len()))));
        rests.push(Rest { ids, traces, timelines, places, rows, first });
    }
    // Those of one span are ordered by what they are, and not by their part.
    let mut alike: Vec<JoinedRow> = Vec::new();
    while let Some(Reverse((span, at))) = next.pop() {
        if all.len().is_multiple_of(CHECKED) {
            ctx.cancel.check()?;
        }
        alike.extend(rests[at].take(&all.columns, whole.origin));
        next.extend(rests[at].span().map(|span| Reverse((span, at))));
        if next.peek().is_some_and(|Reverse((other, _))| *other == span) {
            continue;
        }
        if alike.len() > 1 {
            let key = |(row, values, _): &JoinedRow| (row.who, row.cpu, row.trace, row.own.clone(), values.clone());
            alike.sort_by_cached_key(key);
        }
        for (row, values, timeline) in alike.drain(..) {
            all.columns.iter_mut().zip(values).for_each(|(column, value)| column.values.push(value));
            if let Some(timeline) = timeline {
                whole.timelines.insert(ExecutionId::at(all.len()), timeline);
            }
            all.push(row);
        }
    }
    all.own.shrink();
    whole.executions = all;
    Ok(())
}

/// Give all traces of a model one label.
pub fn label(model: &mut Model, label: &str) {
    let id = i64::from(model.names.intern(label).raw());
    model.traces.iter_mut().for_each(|t| label.clone_into(&mut t.label));
    for column in model.executions.columns.iter_mut().filter(|c| c.metric == Metric::Trace) {
        column.values = std::iter::repeat_n(id, column.values.len()).collect();
    }
}

/// The profile of several models together; `None` where one of them is none.
fn profile_of(models: &[Model]) -> Option<Profile> {
    let mut profiles = models.iter().map(|model| model.profile.as_ref());
    let mut whole = profiles.next()??.clone();
    for profile in profiles {
        let Profile { other_events, left_out, .. } = profile?;
        for event in other_events {
            if !whole.other_events.contains(event) {
                whole.other_events.push(event.clone());
            }
        }
        for one in left_out {
            match whole.left_out.iter_mut().find(|known| known.program == one.program) {
                Some(known) => known.amount = known.amount.saturating_add(one.amount),
                None => whole.left_out.push(one.clone()),
            }
        }
    }
    whole.left_out.sort_by(|a, b| b.amount.cmp(&a.amount).then_with(|| a.program.cmp(&b.program)));
    Some(whole)
}
