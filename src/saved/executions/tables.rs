//! The tables of a task: names, threads and contexts; and of a part of it what else is in no column.
//!
//! In: tables, and a model. Out: their bytes; and the same from bytes, whose parts agree with each other. The tables of
//! a database hold what any of its parts uses; a part has the list of the entries that it uses, which are its own
//! tables.

use crate::base::names::NameId;
use crate::base::pack::{Pack, Unpack};
use crate::base::packed::{Packed, packed, packed_variants};
use crate::model::context::{ContextId, Contexts, Frame, FrameKind};
use crate::model::execution::Executions;
use crate::model::facts::HostQuality;
use crate::model::metric::Metric;
use crate::model::united::{ModelTables, UnitedIds};
use crate::model::wait_kind::WaitKind;
use crate::model::{Model, ThreadInfo, ThreadInfoId, TraceInfo};

packed! {
    HostQuality { host, quality }
    ThreadInfo { host, process, pid, tid, thread }
    Frame { kind, name }
}

packed_variants! {
    FrameKind {
        Process,
        Function,
        Inlined,
        File,
        KernelFunction,
        Call,
        NoStack,
        Wait(kind),
        Thread(kind),
    }
}

/// The position in [`WaitKind::ALL`].
impl Packed for WaitKind {
    fn pack(&self, pack: &mut Pack) {
        pack.number(*self as u64);
    }

    fn unpack(unpack: &mut Unpack<'_>) -> Option<Self> {
        WaitKind::ALL.get(unpack.index(WaitKind::ALL.len())?).copied()
    }
}

/// Each context: how far before it its parent is (0 for a root), and its frame. Times of threads are those of parts.
impl Packed for Contexts {
    fn pack(&self, pack: &mut Pack) {
        pack.number(self.len() as u64);
        for (at, (parent, frame)) in self.nodes().enumerate() {
            pack.number(parent.map_or(0, |parent| (at - parent.index()) as u64));
            frame.pack(pack);
        }
    }

    fn unpack(unpack: &mut Unpack<'_>) -> Option<Self> {
        let mut contexts = Contexts::default();
        for at in 0..unpack.index(unpack.0.len())? {
            let back = unpack.index(at + 1)?;
            let parent = (back > 0).then(|| ContextId::at(at - back));
            (contexts.child(parent, Frame::unpack(unpack)?).index() == at).then_some(())?;
        }
        Some(contexts)
    }
}

packed! {
    // In the order of `pack`.
    ModelTables { names, who, contexts }
}

/// The tables of a task, each entry of which refers to others that are there.
pub(in crate::saved) fn unpack(unpack: &mut Unpack<'_>) -> Option<ModelTables> {
    let tables = ModelTables::unpack(unpack)?;
    let ModelTables { names, who, contexts } = &tables;
    let name = |id: NameId| id.index() < names.len();
    let threads =
        who.iter().all(|ThreadInfo { host, process, thread, .. }| [*host, *process, *thread].map(name) == [true; 3]);
    let frames = contexts.nodes().all(|(_, frame)| name(frame.name));
    (threads && frames).then_some(tables)
}

/// What a part uses of the tables of its task: positions, ascending.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct UsedEntries {
    names: Vec<usize>,
    who: Vec<usize>,
    contexts: Vec<usize>,
}

/// Each as the distance from the one before, less one.
fn pack_ascending(list: &[usize], pack: &mut Pack) {
    pack.number(list.len() as u64);
    let mut next = 0;
    for at in list {
        pack.number((at - next) as u64);
        next = at + 1;
    }
}

/// A list of positions below `end`.
fn unpack_ascending(end: usize, unpack: &mut Unpack<'_>) -> Option<Vec<usize>> {
    let (mut list, mut next) = (Vec::new(), 0_usize);
    for _ in 0..unpack.index(unpack.0.len().checked_add(1)?)? {
        let at = next.checked_add(unpack.index(end)?).filter(|at| *at < end)?;
        list.push(at);
        next = at + 1;
    }
    Some(list)
}

impl UsedEntries {
    /// All of tables with so many entries.
    pub(super) fn all(names: usize, who: usize, contexts: usize) -> UsedEntries {
        let [names, who, contexts] = [names, who, contexts].map(|n| (0..n).collect());
        UsedEntries { names, who, contexts }
    }

    /// Nothing of these tables is another part's alone.
    pub(super) fn is_all(&self, tables: &ModelTables) -> bool {
        let ModelTables { names, who, contexts } = tables;
        let own = [&self.names, &self.who, &self.contexts].map(Vec::len);
        own == [names.len(), who.len(), contexts.len()]
    }

    pub(super) fn pack(&self, pack: &mut Pack) {
        [&self.names, &self.who, &self.contexts].into_iter().for_each(|list| pack_ascending(list, pack));
    }

    /// What is used of these tables.
    pub(super) fn unpack(tables: &ModelTables, unpack: &mut Unpack<'_>) -> Option<UsedEntries> {
        let ModelTables { names, who, contexts } = tables;
        let names = unpack_ascending(names.len(), unpack)?;
        let who = unpack_ascending(who.len(), unpack)?;
        Some(UsedEntries { names, who, contexts: unpack_ascending(contexts.len(), unpack)? })
    }

    /// The same entries in other tables. `None` if they are not in the same order there, as those of canonical tables
    /// are.
    pub(super) fn united(&self, ids: &UnitedIds) -> Option<UsedEntries> {
        let names = self.names.iter().map(|at| ids.name(NameId::at(*at)).index()).collect();
        let who = self.who.iter().map(|at| ids.thread(ThreadInfoId::at(*at)).index()).collect();
        let contexts = self.contexts.iter().map(|at| ids.context(ContextId::at(*at)).index()).collect();
        let ascends = |list: &Vec<usize>| list.is_sorted_by(|a, b| a < b);
        let is_sorted = [&names, &who, &contexts].into_iter().all(ascends);
        is_sorted.then_some(UsedEntries { names, who, contexts })
    }

    /// These entries as tables of their own. `None` where one refers to an entry that is not used.
    pub(super) fn of(&self, tables: &ModelTables) -> Option<ModelTables> {
        let ModelTables { names, who, contexts } = tables;
        let mut own = ModelTables::default();
        for at in &self.names {
            own.names.intern(names.get(NameId::at(*at)));
        }
        let name = |id: NameId| self.names.binary_search(&id.index()).ok().map(NameId::at);
        names.unproven().filter_map(name).for_each(|id| own.names.mark_unproven(id));
        names.runtime().filter_map(name).for_each(|id| own.names.mark_runtime(id));
        for at in &self.who {
            let ThreadInfo { host, process, pid, tid, thread } = who.get(*at)?;
            let [host, process, thread] = [name(*host)?, name(*process)?, name(*thread)?];
            own.who.push(ThreadInfo { host, process, pid: *pid, tid: *tid, thread });
        }
        for at in &self.contexts {
            let (parent, Frame { kind, name: text }) =
                (contexts.parent(ContextId::at(*at)), contexts.frame(ContextId::at(*at)));
            let parent = match parent {
                Some(parent) => Some(ContextId::at(self.contexts.binary_search(&parent.index()).ok()?)),
                None => None,
            };
            own.contexts.child(parent, Frame { kind, name: name(text)? });
        }
        Some(own)
    }
}

/// Add the bytes of the tables of a model.
pub(super) fn pack(model: &Model, pack: &mut Pack) {
    model.names.pack(pack);
    model.who.pack(pack);
    model.contexts.pack(pack);
}

/// Add the bytes of what a part says that is in no column, without labels and notices; its tables are its own.
pub(super) fn pack_part(model: &Model, pack: &mut Pack) {
    model.origin.pack(pack);
    model.quality.pack(pack);
    pack.number(model.traces.len() as u64);
    for TraceInfo { label: _, level, span, recorded } in &model.traces {
        level.pack(pack);
        span.pack(pack);
        recorded.pack(pack);
    }
    pack.number(model.executions.column(&Metric::Trace).is_some().into());
    pack.number(model.contexts.who.len() as u64);
    for ((context, who), ns) in &model.contexts.who {
        context.pack(pack);
        who.pack(pack);
        ns.pack(pack);
    }
}

/// Add what a part says to a model of its own tables: traces with these labels, and times of threads. Returns whether
/// its executions have labels as values.
pub(super) fn unpack_part(model: &mut Model, labels: &[String], unpack: &mut Unpack<'_>) -> Option<bool> {
    model.origin = Packed::unpack(unpack)?;
    model.quality = Packed::unpack(unpack)?;
    let traces = unpack.index(unpack.0.len())?;
    (traces == labels.len()).then_some(())?;
    for label in labels {
        let (level, span) = (Packed::unpack(unpack)?, Packed::unpack(unpack)?);
        model.traces.push(TraceInfo { label: label.clone(), level, span, recorded: Packed::unpack(unpack)? });
    }
    let has_labels = bool::unpack(unpack)?;
    let mut total = 0_u64;
    for _ in 0..unpack.index(unpack.0.len().checked_add(1)?)? {
        let context = ContextId::at(unpack.index(model.contexts.len())?);
        let (who, ns) = (ThreadInfoId::at(unpack.index(model.who.len())?), u64::unpack(unpack)?);
        total = total.checked_add(ns)?;
        model.contexts.who.insert((context, who), ns).is_none().then_some(())?;
    }
    Some(has_labels)
}

/// True where executions are of known threads and traces.
pub(super) fn knows(tables: &Model, executions: &Executions) -> bool {
    let threads = executions.who.iter().all(|id| id.index() < tables.who.len());
    threads && executions.trace.iter().all(|id| id.index() < tables.traces.len())
}
