//! Several models as one: traces of two versions, or databases of many hosts, compared like any two groups.
//!
//! In: models of one task, each with the labels of its own traces. Out: one model of all executions in order of time,
//! its contexts the union of theirs. Functions may be given other names on the way, so that what was renamed between
//! two versions still is on the same paths: contexts that become equal become one. Cost: linear in all of it, times the
//! logarithm of the number of models; in memory is each execution once. Equal threads of two models stay two: they are
//! of different recordings. Invariant: the executions of each model are in order.

use super::column_values::ColumnValues;
use super::context::{ContextId, Frame, FrameKind};
use super::execution::{ExecutionId, ExecutionRow, Executions};
use super::execution_timeline::ExecutionTimeline;
use super::metric::{ABSENT, Column, Metric, Unit};
use super::profile::Profile;
use super::{Model, ThreadInfo, ThreadInfoId, TraceId, TraceLevel};
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::names::NameId;
use foldhash::HashSet;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

/// New names of functions, by old ones.
pub type Renamed = BTreeMap<String, String>;

/// Executions between two looks at whether the user has cancelled.
const CHECKED: usize = 4096;

/// The handles of one model in the whole.
struct Part {
    names: Vec<NameId>,
    contexts: Vec<ContextId>,
    traces: u32,
    who: u32,
    /// Of its own executions.
    timelines: BTreeMap<ExecutionId, ExecutionTimeline>,
}

/// The executions of a part that are not taken yet.
struct Rest<I> {
    part: Part,
    /// By column of the whole its column of that metric.
    places: Vec<Option<usize>>,
    /// Numbered.
    rows: I,
    /// The first of them, before `rows`.
    first: Option<(usize, (ExecutionRow, Vec<i64>))>,
}

/// Join models of the same task. Without any there is an empty one.
pub fn join(mut models: Vec<Model>, renamed: &Renamed, ctx: &Ctx) -> Result<Model, Cancelled> {
    if models.len() == 1 && renamed.is_empty() {
        return Ok(models.pop().unwrap_or_default());
    }
    // Rank 9 of 64 is no rank 9 of 128: what ranks of other runs are compared with is their role.
    let by_role = runs_of_different_size(&models);
    let mut whole = Model { origin: models.iter().map(|m| m.origin).min().unwrap_or_default(), ..Model::default() };
    whole.choice = models.first().and_then(|m| m.choice.clone());
    whole.profile = profile_of(&models);
    let mut tasks: Vec<&String> = Vec::new();
    for model in &models {
        whole.quality.extend(model.quality.iter().cloned());
        let known: HashSet<&String> = tasks.iter().copied().collect();
        tasks.extend(model.tasks.iter().filter(|t| !known.contains(t)));
        whole.notices.merge(&model.notices);
    }
    whole.tasks = Arc::new(tasks.into_iter().cloned().collect());
    let task = models.first().and_then(|m| m.tasks.get(m.task));
    whole.task = whole.tasks.iter().position(|t| Some(t) == task).unwrap_or(0);
    let mut parts = Vec::new();
    for mut model in models {
        ctx.cancel.check()?;
        let executions = std::mem::take(&mut model.executions);
        let roles = if by_role { thread_roles(&model, &executions) } else { BTreeMap::new() };
        parts.push((Part::new(model, renamed, &roles, &mut whole), executions));
    }
    executions(parts, &mut whole, ctx)?;
    Ok(whole)
}

impl Part {
    /// Take a model's tables into the whole.
    fn new(model: Model, renamed: &Renamed, roles: &BTreeMap<NameId, String>, whole: &mut Model) -> Part {
        let text = |i: usize| model.names.get(NameId::at(i));
        let names: Vec<NameId> = (0..model.names.len()).map(|i| whole.names.intern(text(i))).collect();
        // A name that one of them has not proven is not proven in the whole.
        for name in model.names.unproven() {
            let new = renamed.get(text(name.index()));
            let name = new.map_or(names[name.index()], |new| whole.names.intern(new));
            whole.names.mark_unproven(name);
        }
        // Renamed functions are a program's own.
        model.names.runtime().for_each(|name| whole.names.mark_runtime(names[name.index()]));
        let (traces, who) = (whole.traces.len() as u32, whole.who.len() as u32);
        whole.traces.extend(model.traces.iter().cloned());
        whole.who.extend(model.who.iter().cloned().map(|mut w| {
            for name in [&mut w.host, &mut w.process, &mut w.thread] {
                *name = names[name.index()];
            }
            w
        }));
        let mut contexts: Vec<ContextId> = Vec::with_capacity(model.contexts.len());
        for (parent, Frame { kind, name }) in model.contexts.nodes() {
            let is_function = matches!(kind, FrameKind::Function | FrameKind::Inlined | FrameKind::KernelFunction);
            let new = is_function.then(|| renamed.get(text(name.index()))).flatten();
            let role = matches!(kind, FrameKind::Thread(_)).then(|| roles.get(&name)).flatten();
            let name = new.or(role).map_or(names[name.index()], |new| whole.names.intern(new));
            contexts.push(whole.contexts.child(parent.map(|p| contexts[p.index()]), Frame { kind, name }));
        }
        for ((context, held), ns) in &model.contexts.who {
            let key = (contexts[context.index()], ThreadInfoId::from_raw(who + held.raw()));
            *whole.contexts.who.entry(key).or_insert(0) += ns;
        }
        Part { names, contexts, traces, who, timelines: model.timelines }
    }

    /// A value of one of its columns, in the whole.
    fn value(&self, metric: &Metric, value: i64) -> i64 {
        match metric.unit() {
            Unit::Name => usize::try_from(value).map_or(ABSENT, |id| i64::from(self.names[id].raw())),
            _ => value,
        }
    }
}

/// All are MPI runs, and not all have the same ranks.
fn runs_of_different_size(models: &[Model]) -> bool {
    let runs = models.iter().flat_map(|m| &m.traces).all(|t| t.level == TraceLevel::MpiRun);
    let ranks = |m: &Model| -> BTreeSet<i32> { m.who.iter().map(|w| w.pid).collect() };
    let mut sizes = models.iter().map(ranks);
    let first = sizes.next();
    runs && sizes.any(|ranks| Some(ranks) != first)
}

/// The roles of an MPI run's threads, by their name: `rank with the most partners`, `thread 1 of root rank`.
fn thread_roles(model: &Model, executions: &Executions) -> BTreeMap<NameId, String> {
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

/// All executions, by time. What a part has given is freed, so that one that is taken is in memory once.
fn executions(parts: Vec<(Part, Executions)>, whole: &mut Model, ctx: &Ctx) -> Result<(), Cancelled> {
    let columns = parts.iter().flat_map(|(_, executions)| &executions.columns);
    let metrics: BTreeSet<Metric> = columns.map(|c| c.metric.clone()).collect();
    let columns = metrics.into_iter().map(|metric| Column { metric, values: ColumnValues::default() });
    let mut all = Executions { columns: columns.collect(), ..Executions::default() };
    let mut rests: Vec<Rest<_>> = Vec::new();
    let mut next = BinaryHeap::new();
    for (part, executions) in parts {
        let place = |column: &Column| executions.columns.iter().position(|own| own.metric == column.metric);
        let places = all.columns.iter().map(place).collect();
        let mut rows = executions.into_rows().enumerate();
        let first = rows.next();
        next.extend(first.as_ref().map(|(_, (row, _))| Reverse((row.span, rests.len()))));
        rests.push(Rest { part, places, rows, first });
    }
    while let Some(Reverse((_, at))) = next.pop() {
        if all.len().is_multiple_of(CHECKED) {
            ctx.cancel.check()?;
        }
        let Rest { part, places, rows, first } = &mut rests[at];
        let Some((number, (row, values))) = std::mem::replace(first, rows.next()) else { continue };
        next.extend(first.as_ref().map(|(_, (row, _))| Reverse((row.span, at))));
        let ExecutionRow { span, who, trace, cpu, unsure, mut own } = row;
        for (Column { metric, values: column }, place) in all.columns.iter_mut().zip(places) {
            let value = place.and_then(|place| values.get(place).copied()).unwrap_or(ABSENT);
            column.push(match metric {
                Metric::Start => span.start.since(whole.origin),
                _ => part.value(metric, value),
            });
        }
        own.iter_mut().for_each(|time| time.context = part.contexts[time.context.index()]);
        if let Some(mut timeline) = part.timelines.remove(&ExecutionId::at(number)) {
            timeline.segments.iter_mut().for_each(|s| s.context = part.contexts[s.context.index()]);
            whole.timelines.insert(ExecutionId::at(all.len()), timeline);
        }
        all.push(ExecutionRow {
            span,
            who: ThreadInfoId::from_raw(part.who + who.raw()),
            trace: TraceId::from_raw(part.traces + trace.raw()),
            cpu,
            unsure,
            own,
        });
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
