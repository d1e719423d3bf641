//! Partial results added up: those of models, or those of files.
//!
//! In: totals with their contexts, by task and host. Out: per task the contexts united, per task and host one total,
//! and the file of them. What is in totals is known by their sources: of two totals of one task and host that have
//! sources in common, one must have all of the other's, which then counts no second time. The bytes follow from the
//! set of totals alone. Cost: the tables of each file are read once, totals once; in memory are the contexts of all
//! files' tasks and the totals of one host. ALGORITHMS.md section 6.5.

use super::{CONTENTS, GroupTexts, PartialContents, PartialHost, PartialTask, PartialsFile, TABLES, TOTALS, totals};
use crate::base::ctx::Ctx;
use crate::base::digest::Digest;
use crate::base::file::Output;
use crate::base::names::NameId;
use crate::base::pack::Pack;
use crate::base::packed::bytes_of;
use crate::model::Model;
use crate::model::context::{ContextId, Frame};
use crate::model::partials::{GroupTotals, HostTotals};
use crate::model::united::{ModelTables, Renamed, TableUnion, UnitedIds};
use crate::saved::writing::save_sections;
use crate::saved::{SavedFileError, SavedKind};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Why totals cannot be added up.
#[derive(Debug, thiserror::Error)]
pub enum SumsError {
    #[error(transparent)]
    Saved(#[from] SavedFileError),
    /// The groups of a task are other ones.
    #[error("{}: the groups of `{task}` are {found}, but those of {} are {known}: build one of them again with the \
             groups of the other", path.display(), other.display())]
    Groups {
        /// The file.
        path: PathBuf,
        task: String,
        /// Its filters.
        found: String,
        /// The file that came before.
        other: PathBuf,
        known: String,
    },
    /// Two totals have some executions in common.
    #[error("{}: the totals of `{task}` on host `{host}` have some recordings of {}, but not all: they cannot be \
             added; add up the files that these were made of, or leave one out", path.display(), other.display())]
    Overlap {
        /// The file.
        path: PathBuf,
        task: String,
        host: String,
        /// The other file.
        other: PathBuf,
    },
}

impl From<crate::base::ctx::Cancelled> for SumsError {
    fn from(cancelled: crate::base::ctx::Cancelled) -> Self {
        SumsError::Saved(cancelled.into())
    }
}

/// Totals that were computed from a part of a database, with the part's digest and its groups.
pub struct FoundTotals {
    pub task: String,
    pub groups: GroupTexts,
    pub hosts: BTreeMap<String, HostTotals>,
    tables: ModelTables,
}

impl FoundTotals {
    /// Totals by host over contexts of a model; contexts that have none are left out.
    pub fn new(task: String, groups: GroupTexts, model: &Model, mut hosts: BTreeMap<String, HostTotals>) -> Self {
        let all = |hosts: &BTreeMap<String, HostTotals>| -> BTreeSet<ContextId> {
            let groups = hosts.values().flat_map(|totals| &totals.groups);
            groups.flat_map(|group| group.contexts.iter().map(|(context, _)| *context)).collect()
        };
        let (mut tables, mut new) = (ModelTables::default(), BTreeMap::new());
        let unproven: BTreeSet<NameId> = model.names.unproven().collect();
        let runtime: BTreeSet<NameId> = model.names.runtime().collect();
        for context in all(&hosts) {
            let Frame { kind, name: old } = model.contexts.frame(context);
            let name = tables.names.intern(model.names.get(old));
            if unproven.contains(&old) {
                tables.names.mark_unproven(name);
            }
            if runtime.contains(&old) {
                tables.names.mark_runtime(name);
            }
            // Time in a context is time in its parent, too, which came before.
            let parent = model.contexts.parent(context).and_then(|parent| new.get(&parent).copied());
            new.insert(context, tables.contexts.child(parent, Frame { kind, name }));
        }
        for group in hosts.values_mut().flat_map(|totals| &mut totals.groups) {
            group.contexts.iter_mut().for_each(|(context, _)| *context = new.get(context).copied().unwrap_or(*context));
        }
        FoundTotals { task, groups, hosts, tables }
    }
}

/// Where totals are.
enum TotalsPlace {
    /// Positions of the file, of the task and of the host in it.
    File(usize, usize, usize),
    /// As they are, of this position among those that were found.
    Found(usize, Box<HostTotals>),
}

/// A total to add.
struct Summand {
    place: TotalsPlace,
    sources: BTreeSet<Digest>,
    /// Whose totals they are, for errors.
    path: PathBuf,
}

/// A task whose totals are added up.
struct TaskSums {
    name: String,
    groups: GroupTexts,
    tables: ModelTables,
    /// By position of the file, or of what was found, the ids of its contexts in `tables`.
    ids: BTreeMap<usize, UnitedIds>,
    hosts: BTreeMap<String, Vec<Summand>>,
}

/// Totals that can be added up.
pub struct PartialSums<'a> {
    files: &'a [PartialsFile],
    tasks: Vec<TaskSums>,
    /// Totals of tasks and hosts that others contain, by the path of their files.
    pub repeated: BTreeMap<PathBuf, usize>,
}

/// Tables in the making, by task.
#[derive(Default)]
struct TaskUnion {
    union: TableUnion,
    ids: BTreeMap<usize, UnitedIds>,
    groups: Option<(GroupTexts, PathBuf)>,
    hosts: BTreeMap<String, Vec<Summand>>,
}

impl TaskUnion {
    /// Take in the tables and groups of a file, or of what was found.
    fn take(
        &mut self,
        at: usize,
        task: &str,
        groups: &GroupTexts,
        path: PathBuf,
        tables: &ModelTables,
    ) -> Result<(), SumsError> {
        match &self.groups {
            Some((known, other)) if known != groups => {
                let (found, known) = (shown(groups), shown(known));
                return Err(SumsError::Groups { path, task: task.to_owned(), found, other: other.clone(), known });
            }
            Some(_) => {}
            None => self.groups = Some((groups.clone(), path)),
        }
        self.ids.insert(at, self.union.add(tables, &Renamed::new(), &BTreeMap::new()));
        Ok(())
    }
}

/// Groups in words.
fn shown(GroupTexts { slow, fast }: &GroupTexts) -> String {
    if slow.is_empty() && fast.is_empty() {
        return "none".to_owned();
    }
    format!("`{}` and `{}`", slow.join(", "), fast.join(", "))
}

impl<'a> PartialSums<'a> {
    /// Those of files.
    pub fn of_files(files: &'a [PartialsFile], ctx: &Ctx) -> Result<PartialSums<'a>, SumsError> {
        let mut tasks: BTreeMap<&str, TaskUnion> = BTreeMap::new();
        ctx.progress.enter("opening", files.len() as u64);
        for (at, file) in files.iter().enumerate() {
            ctx.cancel.check()?;
            let path = || file.path().to_owned();
            for (position, task) in file.tasks.iter().enumerate() {
                let known = tasks.entry(&task.name).or_default();
                known.take(at, &task.name, &task.groups, path(), &file.tables(position)?)?;
                for (host, PartialHost { name, sources }) in task.hosts.iter().enumerate() {
                    let place = TotalsPlace::File(at, position, host);
                    let summand = Summand { place, sources: sources.clone(), path: path() };
                    known.hosts.entry(name.clone()).or_default().push(summand);
                }
            }
            ctx.progress.step(1);
        }
        let tasks = tasks.into_iter().map(|(name, task)| (name.to_owned(), task)).collect();
        PartialSums::planned(files, tasks)
    }

    /// Those that were found in databases.
    pub fn of_found(found: Vec<(FoundTotals, PathBuf)>) -> Result<PartialSums<'static>, SumsError> {
        let mut tasks: BTreeMap<String, TaskUnion> = BTreeMap::new();
        for (at, (FoundTotals { task, groups, hosts, tables }, path)) in found.into_iter().enumerate() {
            let known = tasks.entry(task.clone()).or_default();
            known.take(at, &task, &groups, path.clone(), &tables)?;
            for (name, totals) in hosts {
                let sources = totals.sources.clone();
                let summand = Summand { place: TotalsPlace::Found(at, Box::new(totals)), sources, path: path.clone() };
                known.hosts.entry(name).or_default().push(summand);
            }
        }
        PartialSums::planned(&[], tasks)
    }

    fn planned(files: &'a [PartialsFile], tasks: BTreeMap<String, TaskUnion>) -> Result<PartialSums<'a>, SumsError> {
        let (mut all, mut repeated) = (Vec::new(), BTreeMap::new());
        for (name, TaskUnion { union, ids, groups, mut hosts }) in tasks {
            for (host, summands) in &mut hosts {
                *summands = chosen(std::mem::take(summands), (&name, host), &mut repeated)?;
            }
            let (tables, order) = union.sorted();
            let ids = ids.into_iter().map(|(at, ids)| (at, ids.then(&order))).collect();
            let groups = groups.map(|(groups, _)| groups).unwrap_or_default();
            all.push(TaskSums { name, groups, tables, ids, hosts });
        }
        Ok(PartialSums { files, tasks: all, repeated })
    }

    /// The names of the tasks.
    pub fn tasks(&self) -> impl Iterator<Item = &str> {
        self.tasks.iter().map(|task| task.name.as_str())
    }

    /// The groups and contexts of a task, by its position.
    pub fn task(&self, task: usize) -> Option<(&GroupTexts, &ModelTables)> {
        self.tasks.get(task).map(|task| (&task.groups, &task.tables))
    }

    /// Pass the total of each host of a task, by its position, in the order of their names.
    pub fn each_host<E: From<SavedFileError>>(
        &self,
        task: usize,
        ctx: &Ctx,
        mut put: impl FnMut(&str, &HostTotals) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(TaskSums { hosts, ids, .. }) = self.tasks.get(task) else { return Ok(()) };
        ctx.progress.enter("adding up", hosts.len() as u64);
        for (host, summands) in hosts {
            ctx.cancel.check().map_err(SavedFileError::from)?;
            let mut sum = HostTotals::default();
            for summand in summands {
                sum.add(&self.read(summand, ids)?);
            }
            put(host, &sum)?;
            ctx.progress.step(1);
        }
        Ok(())
    }

    /// A total in the ids of the united tables.
    fn read(
        &self,
        Summand { place, .. }: &Summand,
        ids: &BTreeMap<usize, UnitedIds>,
    ) -> Result<HostTotals, SavedFileError> {
        let (at, mut totals) = match place {
            TotalsPlace::Found(at, totals) => (*at, HostTotals::clone(totals)),
            TotalsPlace::File(file, task, host) => {
                let contexts = ids.get(file).map_or(0, UnitedIds::contexts);
                (*file, self.files[*file].totals(*task, *host, contexts)?)
            }
        };
        let Some(ids) = ids.get(&at) else { return Ok(totals) };
        for GroupTotals { contexts, .. } in &mut totals.groups {
            contexts.iter_mut().for_each(|(context, _)| *context = ids.context(*context));
            contexts.sort_unstable_by_key(|(context, _)| *context);
        }
        Ok(totals)
    }

    /// Write the file of the sums to an output, where only a file of partial results may be replaced.
    pub fn save(&self, output: Output, ctx: &Ctx) -> Result<u64, SavedFileError> {
        let path = output.path().to_owned();
        save_sections(SavedKind::Partials, output, |out| {
            let io = |error| SavedFileError::Io { path: path.clone(), error };
            out.add(CONTENTS, &bytes_of(&self.contents())).map_err(io)?;
            for (task, TaskSums { tables, .. }) in (0..).zip(&self.tasks) {
                out.add(TABLES.of(task), &bytes_of(tables)).map_err(io)?;
            }
            let mut number = 0;
            for task in 0..self.tasks.len() {
                self.each_host(task, ctx, |_, totals| {
                    let mut pack = Pack::default();
                    totals::pack(totals, &mut pack);
                    out.add(TOTALS.of(number), &pack.0).map_err(io)?;
                    number += 1;
                    Ok::<(), SavedFileError>(())
                })?;
            }
            Ok(())
        })
    }

    fn contents(&self) -> PartialContents {
        let hosts = |task: &TaskSums| {
            let sources = |all: &Vec<Summand>| all.iter().flat_map(|summand| summand.sources.clone()).collect();
            let host =
                |(name, all): (&String, &Vec<Summand>)| PartialHost { name: name.clone(), sources: sources(all) };
            task.hosts.iter().map(host).collect()
        };
        let task =
            |task: &TaskSums| PartialTask { name: task.name.clone(), groups: task.groups.clone(), hosts: hosts(task) };
        PartialContents { tasks: self.tasks.iter().map(task).collect() }
    }
}

/// Of the totals of a task on a host those that no other contains; an error where two have only some sources in common.
fn chosen(
    mut all: Vec<Summand>,
    (task, host): (&str, &str),
    repeated: &mut BTreeMap<PathBuf, usize>,
) -> Result<Vec<Summand>, SumsError> {
    // The largest first: what contains another comes before it.
    all.sort_by(|a, b| b.sources.len().cmp(&a.sources.len()).then_with(|| a.sources.cmp(&b.sources)));
    let mut kept: Vec<Summand> = Vec::new();
    let mut owners: BTreeMap<Digest, usize> = BTreeMap::new();
    for summand in all {
        let known: BTreeSet<Option<usize>> = summand.sources.iter().map(|source| owners.get(source).copied()).collect();
        let owner = known.iter().copied().flatten().next();
        let Some(owner) = owner else {
            owners.extend(summand.sources.iter().map(|source| (*source, kept.len())));
            kept.push(summand);
            continue;
        };
        if known.len() > 1 {
            let (path, other) = (summand.path, kept[owner].path.clone());
            return Err(SumsError::Overlap { path, task: task.to_owned(), host: host.to_owned(), other });
        }
        *repeated.entry(summand.path).or_insert(0) += 1;
    }
    Ok(kept)
}
