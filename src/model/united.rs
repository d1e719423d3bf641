//! The tables of several models as one: names, threads and calling contexts, each once, in canonical order.
//!
//! In: tables. Out: tables that have what is in any of them, in an order that follows from that alone: names by their
//! bytes, threads by host, ids and names, contexts as the walk from the roots that takes children by kind and name; and
//! for each of the tables the ids there. Equal contents get equal ids however they are divided and in whatever order
//! they come; ids that ascend in canonical tables ascend in the united ones. Cost: n log n in the entries; in memory
//! each once. ALGORITHMS.md section 6.4.

use super::context::{ContextId, Contexts, Frame, FrameKind};
use super::{ThreadInfo, ThreadInfoId};
use crate::base::names::{NameId, Names};
use foldhash::HashMap;
use std::collections::BTreeMap;

/// New names of functions, by old ones.
pub type Renamed = BTreeMap<String, String>;

/// What the executions of a task refer to by ids.
#[derive(Clone, Debug, Default)]
pub struct ModelTables {
    pub names: Names,
    /// Threads by [`ThreadInfoId`].
    pub who: Vec<ThreadInfo>,
    /// Without the times of threads, which are those of executions.
    pub contexts: Contexts,
}

/// The ids of one set of tables in another.
#[derive(Clone, Debug, Default)]
pub struct UnitedIds {
    names: Vec<NameId>,
    who: Vec<ThreadInfoId>,
    contexts: Vec<ContextId>,
}

impl UnitedIds {
    /// A name there; [`Names::MISSING`] where nothing used it.
    pub fn name(&self, id: NameId) -> NameId {
        self.names.get(id.index()).copied().unwrap_or(Names::MISSING)
    }

    /// A thread there.
    ///
    /// # Panics
    ///
    /// If the id is none of these tables'.
    pub fn thread(&self, id: ThreadInfoId) -> ThreadInfoId {
        self.who[id.index()]
    }

    /// A context there.
    ///
    /// # Panics
    ///
    /// If the id is none of these tables'.
    pub fn context(&self, id: ContextId) -> ContextId {
        self.contexts[id.index()]
    }

    /// How many contexts they are of.
    pub fn contexts(&self) -> usize {
        self.contexts.len()
    }

    /// The same ids after another step.
    #[must_use]
    pub fn then(&self, next: &UnitedIds) -> UnitedIds {
        UnitedIds {
            names: self.names.iter().map(|id| next.name(*id)).collect(),
            who: self.who.iter().map(|id| next.thread(*id)).collect(),
            contexts: self.contexts.iter().map(|id| next.context(*id)).collect(),
        }
    }
}

/// Tables that grow by those of others.
#[derive(Debug, Default)]
pub struct TableUnion {
    tables: ModelTables,
    threads: HashMap<ThreadInfo, ThreadInfoId>,
    /// By name: whether something uses it.
    used: Vec<bool>,
}

impl TableUnion {
    /// Take in tables; the ids are those of this union. Functions have the names of `renamed`, thread frames those of
    /// `roles`, by the old ones.
    pub fn add(&mut self, tables: &ModelTables, renamed: &Renamed, roles: &BTreeMap<NameId, String>) -> UnitedIds {
        let ModelTables { names: texts, who, contexts } = tables;
        let text = |id: NameId| texts.get(id);
        let all = &mut self.tables;
        let names: Vec<NameId> = (0..texts.len()).map(|i| all.names.intern(text(NameId::at(i)))).collect();
        self.used.resize(all.names.len(), false);
        // A name that one of them has not proven is not proven in the whole.
        for name in texts.unproven() {
            let new = renamed.get(text(name));
            let name = new.map_or(names[name.index()], |new| self.name(new));
            self.tables.names.mark_unproven(name);
            self.use_name(name);
        }
        // Renamed functions are a program's own.
        for name in texts.runtime() {
            self.tables.names.mark_runtime(names[name.index()]);
            self.use_name(names[name.index()]);
        }
        let threads = who.iter().map(|who| self.thread(who, &names)).collect();
        let mut ids: Vec<ContextId> = Vec::with_capacity(contexts.len());
        for (parent, Frame { kind, name }) in contexts.nodes() {
            let is_function = matches!(kind, FrameKind::Function | FrameKind::Inlined | FrameKind::KernelFunction);
            let new = is_function.then(|| renamed.get(text(name))).flatten();
            let role = matches!(kind, FrameKind::Thread(_)).then(|| roles.get(&name)).flatten();
            let name = new.or(role).map_or(names[name.index()], |new| self.name(new));
            self.use_name(name);
            ids.push(self.tables.contexts.child(parent.map(|p| ids[p.index()]), Frame { kind, name }));
        }
        UnitedIds { names, who: threads, contexts: ids }
    }

    fn thread(&mut self, who: &ThreadInfo, names: &[NameId]) -> ThreadInfoId {
        let [host, process, thread] = [who.host, who.process, who.thread].map(|id| names[id.index()]);
        [host, process, thread].into_iter().for_each(|name| self.use_name(name));
        self.use_number(who.tid.into());
        let who = ThreadInfo { host, process, thread, pid: who.pid, tid: who.tid };
        let all = &mut self.tables.who;
        *self.threads.entry(who).or_insert_with_key(|who| {
            all.push(who.clone());
            ThreadInfoId::at(all.len() - 1)
        })
    }

    /// A name that is used.
    pub fn name(&mut self, text: &str) -> NameId {
        let id = self.tables.names.intern(text);
        self.used.resize(self.tables.names.len(), false);
        self.use_name(id);
        id
    }

    /// A name of this union is used.
    pub fn use_name(&mut self, id: NameId) {
        if let Some(used) = self.used.get_mut(id.index()) {
            *used = true;
        }
    }

    /// A number that is a name where a model has it as one.
    pub fn use_number(&mut self, number: i64) {
        if let Some(id) = self.tables.names.find(&number.to_string()) {
            self.use_name(id);
        }
    }

    /// All names are used: those of tables whose executions are elsewhere.
    pub fn use_all(&mut self) {
        self.used.iter_mut().for_each(|used| *used = true);
    }

    /// The tables in canonical order, without names that nothing uses; and the ids there of what is in this union.
    pub fn sorted(self) -> (ModelTables, UnitedIds) {
        let ModelTables { names, who, contexts } = self.tables;
        let mut sorted = ModelTables::default();
        let mut by_text: Vec<NameId> = (0..names.len()).map(NameId::at).filter(|id| self.used[id.index()]).collect();
        by_text.sort_unstable_by(|a, b| names.get(*a).cmp(names.get(*b)));
        let mut new_names = vec![Names::MISSING; names.len()];
        for id in by_text {
            new_names[id.index()] = sorted.names.intern(names.get(id));
        }
        names.unproven().for_each(|id| sorted.names.mark_unproven(new_names[id.index()]));
        names.runtime().for_each(|id| sorted.names.mark_runtime(new_names[id.index()]));
        let renamed = who.iter().map(|ThreadInfo { host, process, pid, tid, thread }| {
            let [host, process, thread] = [host, process, thread].map(|id| new_names[id.index()]);
            ThreadInfo { host, process, pid: *pid, tid: *tid, thread }
        });
        let mut threads: Vec<(ThreadInfo, usize)> = renamed.zip(0..).collect();
        threads.sort_unstable_by(|(a, _), (b, _)| {
            let key = |who: &ThreadInfo| (who.host, who.pid, who.tid, who.process, who.thread);
            key(a).cmp(&key(b))
        });
        let mut new_threads = vec![ThreadInfoId::at(0); threads.len()];
        for (who, id) in threads {
            new_threads[id] = ThreadInfoId::at(sorted.who.len());
            sorted.who.push(who);
        }
        let new_contexts;
        (sorted.contexts, new_contexts) = in_order(&contexts, &new_names);
        (sorted, UnitedIds { names: new_names, who: new_threads, contexts: new_contexts })
    }
}

/// Contexts as the walk visits them, and by old id the new one.
fn in_order(contexts: &Contexts, names: &[NameId]) -> (Contexts, Vec<ContextId>) {
    let frame = |id: ContextId| {
        let Frame { kind, name } = contexts.frame(id);
        Frame { kind, name: names[name.index()] }
    };
    // By parent, the last child first, so that the first one is the next to be taken from the end of `rest`.
    let mut all: Vec<(Option<ContextId>, Frame, ContextId)> = contexts
        .nodes()
        .enumerate()
        .map(|(at, (parent, _))| (parent, frame(ContextId::at(at)), ContextId::at(at)))
        .collect();
    all.sort_unstable_by(|a, b| b.cmp(a));
    let children = |of: Option<ContextId>| {
        let from = all.partition_point(|(parent, ..)| *parent > of);
        all[from..].iter().take_while(move |(parent, ..)| *parent == of).map(|(.., id)| *id)
    };
    let (mut sorted, mut new) = (Contexts::default(), vec![ContextId::at(0); contexts.len()]);
    let mut rest: Vec<ContextId> = children(None).collect();
    while let Some(id) = rest.pop() {
        let parent = contexts.parent(id).map(|parent| new[parent.index()]);
        new[id.index()] = sorted.child(parent, frame(id));
        rest.extend(children(Some(id)));
    }
    (sorted, new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::wait_kind::WaitKind;

    /// Contexts of paths such as `p;f;g`, in this order, and a thread.
    fn tables(paths: &[&str], tid: i32) -> ModelTables {
        let mut tables = ModelTables::default();
        for path in paths {
            let mut at = None;
            for (depth, part) in path.split(';').enumerate() {
                let kind = match (depth, part) {
                    (0, _) => FrameKind::Process,
                    (_, "disk") => FrameKind::Wait(WaitKind::Disk),
                    _ => FrameKind::Function,
                };
                let name = tables.names.intern(part);
                at = Some(tables.contexts.child(at, Frame { kind, name }));
            }
        }
        let [host, name] = ["host", "p"].map(|text| tables.names.intern(text));
        tables.who.push(ThreadInfo { host, process: name, pid: 7, tid, thread: name });
        tables
    }

    fn listed(tables: &ModelTables) -> Vec<String> {
        let ids = (0..tables.contexts.len()).map(ContextId::at);
        let name = |id: &ContextId| tables.names.get(tables.contexts.frame(*id).name);
        ids.map(|id| tables.contexts.path(id).iter().map(name).collect::<Vec<_>>().join(";")).collect()
    }

    fn united(all: &[&ModelTables]) -> (ModelTables, Vec<UnitedIds>) {
        let mut union = TableUnion::default();
        let ids: Vec<UnitedIds> = all.iter().map(|one| union.add(one, &Renamed::new(), &BTreeMap::new())).collect();
        let (tables, order) = union.sorted();
        (tables, ids.iter().map(|ids| ids.then(&order)).collect())
    }

    #[test]
    fn sorted_has_one_order_whatever_the_order_of_the_parts() {
        let (a, b) = (tables(&["q;z", "p;f;g", "p;disk", "p;f;b"], 9), tables(&["p;f;c", "p;a", "q;z"], 8));
        let (whole, ids) = united(&[&a, &b]);
        assert_eq!(listed(&whole), ["p", "p;a", "p;f", "p;f;b", "p;f;c", "p;f;g", "p;disk", "q", "q;z"]);
        assert_eq!(whole.who.iter().map(|who| who.tid).collect::<Vec<_>>(), [8, 9]);
        let (other, _) = united(&[&b, &a, &b]);
        assert_eq!((listed(&other), other.who), (listed(&whole), whole.who.clone()));
        // What was canonical ascends, and each id means what it meant.
        let (canonical, _) = united(&[&b]);
        let (again, of_canonical) = united(&[&a, &canonical]);
        assert_eq!(listed(&again), listed(&whole));
        assert!((0..canonical.contexts.len()).map(|i| of_canonical[1].context(ContextId::at(i))).is_sorted());
        let meant = listed(&a);
        for (i, path) in meant.iter().enumerate() {
            assert_eq!(*path, listed(&whole)[ids[0].context(ContextId::at(i)).index()]);
        }
    }

    #[test]
    fn sorted_leaves_out_names_that_nothing_uses() {
        let mut a = tables(&["p;f"], 7);
        for text in ["7", "label", "unproven"] {
            a.names.intern(text);
        }
        a.names.mark_unproven(a.names.find("unproven").unwrap());
        let (whole, ids) = united(&[&a]);
        let all: Vec<&str> = (0..whole.names.len()).map(|i| whole.names.get(NameId::at(i))).collect();
        assert_eq!(all, ["7", "f", "host", "p", "unproven"]);
        assert_eq!(ids[0].name(a.names.find("label").unwrap()), Names::MISSING);
        assert_eq!(whole.names.unproven().count(), 1);
    }
}
