//! Several models as one: traces of two versions, or databases of many hosts, compared like any two groups.
//!
//! In: models of one task, each with the labels of its own traces. Out: one model of all executions in order of time,
//! its contexts the union of theirs. Functions may be given other names on the way, so that what was renamed between
//! two versions still is on the same paths: contexts that become equal become one. Cost: linear in all of it, plus
//! sorting. Equal threads of two models stay two: they are of different recordings.

use super::context::{ContextId, Frame, FrameKind};
use super::execution::{ContextTime, ExecutionId, Executions};
use super::metric::{ABSENT, Column, Metric, Unit};
use super::profile::Profile;
use super::{Model, ThreadInfo, ThreadInfoId, TraceId, TraceLevel};
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::names::NameId;
use crate::base::time::Timestamp;
use foldhash::HashSet;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// New names of functions, by old ones.
pub type Renamed = BTreeMap<String, String>;

/// The handles of one model in the whole.
struct Part {
    model: Model,
    names: Vec<NameId>,
    contexts: Vec<ContextId>,
    traces: u32,
    who: u32,
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
    for model in models {
        ctx.cancel.check()?;
        parts.push(Part::new(model, renamed, by_role, &mut whole));
    }
    executions(&parts, &mut whole, ctx)?;
    Ok(whole)
}

impl Part {
    /// Take a model's tables into the whole.
    fn new(model: Model, renamed: &Renamed, by_role: bool, whole: &mut Model) -> Part {
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
        let roles = if by_role { thread_roles(&model) } else { BTreeMap::new() };
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
        Part { model, names, contexts, traces, who }
    }

    /// The value of one of its columns, in the whole.
    fn value(&self, metric: &Metric, column: Option<&Column>, i: usize) -> i64 {
        let value = column.and_then(|c| c.values.get(i)).unwrap_or(ABSENT);
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
fn thread_roles(model: &Model) -> BTreeMap<NameId, String> {
    let Some(roles) = model.executions.column(&Metric::Role) else { return BTreeMap::new() };
    let mut by_process: BTreeMap<NameId, NameId> = BTreeMap::new();
    for (who, role) in model.executions.who.iter().zip(roles.values.iter()) {
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

/// All executions, by time.
fn executions(parts: &[Part], whole: &mut Model, ctx: &Ctx) -> Result<(), Cancelled> {
    let mut order: Vec<(Timestamp, Timestamp, usize, usize)> = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        let e = &part.model.executions;
        order.extend((0..e.len()).map(|i| (e.start[i], e.end[i], at, i)));
    }
    order.sort_unstable();
    let columns = parts.iter().flat_map(|p| &p.model.executions.columns);
    let metrics: BTreeSet<Metric> = columns.map(|c| c.metric.clone()).collect();
    let mut all = Executions::default();
    for (start, end, at, i) in &order {
        let part = &parts[*at];
        let e = &part.model.executions;
        all.start.push(*start);
        all.end.push(*end);
        all.who.push(ThreadInfoId::from_raw(part.who + e.who[*i].raw()));
        all.trace.push(TraceId::from_raw(part.traces + e.trace[*i].raw()));
        all.cpu.push(e.cpu.get(*i).copied().unwrap_or(u16::MAX));
        all.unsure.push(e.unsure[*i]);
        let joined = |time: ContextTime| ContextTime { context: part.contexts[time.context.index()], ..time };
        all.own.push(e.own.row(*i).map(joined).collect());
        if let Some(timeline) = part.model.timelines.get(&ExecutionId::at(*i)) {
            let mut timeline = timeline.clone();
            timeline.segments.iter_mut().for_each(|s| s.context = part.contexts[s.context.index()]);
            whole.timelines.insert(ExecutionId::at(all.len() - 1), timeline);
        }
    }
    for metric in metrics {
        ctx.cancel.check()?;
        let columns: Vec<Option<&Column>> = parts.iter().map(|p| p.model.executions.column(&metric)).collect();
        let value = |(start, _, at, i): &(Timestamp, Timestamp, usize, usize)| match metric {
            Metric::Start => start.since(whole.origin),
            _ => parts[*at].value(&metric, columns[*at], *i),
        };
        let values = order.iter().map(value).collect();
        all.columns.push(Column { metric, values });
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
