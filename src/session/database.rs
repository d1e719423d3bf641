//! Execution databases in place of their traces: the executions of the tasks that they hold, without reading events.
//!
//! Several databases become one model, as several traces do: each execution has the label of its trace.

use super::UsageError;
use crate::base::ctx::Ctx;
use crate::base::notice::Notices;
use crate::base::time::Ns;
use crate::input::Argument;
use crate::model::Model;
use crate::model::facts::{Facts, TaskDurations};
use crate::model::join::{self, Renamed};
use crate::reading::delimiter_names::system_call;
use crate::saved::SavedKind;
use crate::saved::executions::Database;
use foldhash::HashSet;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The databases of a command line.
pub struct Databases {
    opened: Vec<LabelledDatabase>,
}

struct LabelledDatabase {
    /// Given by the user.
    label: Option<String>,
    database: Database,
}

impl Databases {
    /// Open what is named, if it is databases. Cost: their headers.
    pub fn open(arguments: &[Argument]) -> anyhow::Result<Option<Databases>> {
        let Some(one) = arguments.iter().find(|a| SavedKind::Executions.is_of(&a.path)) else { return Ok(None) };
        if let Some(other) = arguments.iter().find(|a| !SavedKind::Executions.is_of(&a.path)) {
            anyhow::bail!(
                "{}: not a database, and {} is one: build a database of the other as well",
                other.path.display(),
                one.path.display()
            );
        }
        let open = |a: &Argument| Ok(LabelledDatabase { label: a.label.clone(), database: Database::open(&a.path)? });
        Ok(Some(Databases { opened: arguments.iter().map(open).collect::<anyhow::Result<_>>()? }))
    }

    /// The files as the user named them.
    pub fn title(&self) -> String {
        let name =
            |one: &LabelledDatabase| one.label.clone().unwrap_or_else(|| one.database.path().display().to_string());
        self.opened.iter().map(name).collect::<Vec<_>>().join(" + ")
    }

    /// Notices about the traces that they were built from.
    pub fn notices(&self) -> Notices {
        let mut notices = Notices::default();
        self.opened.iter().for_each(|one| notices.merge(&one.database.contents.notices));
        notices
    }

    /// The tasks of all of them, those of the first one first.
    pub fn tasks(&self) -> Vec<String> {
        let mut known = HashSet::default();
        let all = self.opened.iter().flat_map(|one| &one.database.contents.tasks);
        all.filter(|task| known.insert(task.as_str())).cloned().collect()
    }

    /// The task that was named; without one, the first that all databases hold, else the first of any.
    pub fn task(&self, typed: Option<&str>) -> anyhow::Result<String> {
        let tasks = self.tasks();
        let in_all = |t: &&String| self.opened.iter().all(|one| one.database.contents.tasks.contains(t));
        let chosen = match typed {
            Some(typed) => {
                let call = || system_call(typed).and_then(|call| tasks.iter().find(|t| *t == call));
                tasks.iter().find(|t| *t == typed).or_else(call)
            }
            None => tasks.iter().find(in_all).or(tasks.first()),
        };
        chosen.cloned().ok_or_else(|| {
            let (title, names) = (self.title(), tasks.join("`, `"));
            let build = "build it from the trace with `whyslow build --task`";
            match typed {
                Some(typed) => UsageError(format!("--task {typed}: {title} holds `{names}` only; {build}")).into(),
                None => anyhow::anyhow!("{title}: the database holds no executions; {build}"),
            }
        })
    }

    /// One line for a question that only the events answer.
    pub fn refuse<T>(&self, question: &str) -> anyhow::Result<T> {
        anyhow::bail!(
            "{}: this file holds the executions alone: run `whyslow {question}` on the original recording, or build \
             with --history to keep its states",
            self.title()
        )
    }

    /// The executions of a task.
    pub fn model(&self, typed: Option<&str>, ctx: &Ctx) -> anyhow::Result<Model> {
        let task = self.task(typed)?;
        ctx.progress.enter("opening", 0);
        let mut models = Vec::new();
        for LabelledDatabase { label, database } in &self.opened {
            let Some(at) = database.contents.tasks.iter().position(|t| *t == task) else { continue };
            let mut model = database.model(at, ctx)?;
            if let Some(label) = label {
                join::label(&mut model, label);
            }
            models.push(model);
        }
        let mut model = join::join(models, &Renamed::new(), ctx)?;
        // The user may ask for any of them next.
        model.tasks = Arc::new(self.tasks());
        model.task = model.tasks.iter().position(|t| *t == task).unwrap_or(0);
        Ok(model)
    }

    /// Facts about the recordings, and how long the executions of each task took, ascending.
    pub fn survey(&self) -> anyhow::Result<(Facts, Vec<TaskDurations>)> {
        let mut facts = Facts::default();
        let mut durations: BTreeMap<&str, Vec<Ns>> = BTreeMap::new();
        for LabelledDatabase { database, .. } in &self.opened {
            facts.traces.extend(database.contents.facts.traces.iter().cloned());
            facts.lost = facts.lost.and(database.contents.facts.lost);
            for (at, task) in database.contents.tasks.iter().enumerate() {
                durations.entry(task).or_default().extend(database.durations(at)?);
            }
        }
        durations.values_mut().for_each(|d| d.sort_unstable());
        let tasks = self.tasks();
        let of = |t: String| durations.remove(t.as_str()).map(|sorted| TaskDurations { name: t.clone(), sorted });
        Ok((facts, tasks.into_iter().filter_map(of).collect()))
    }
}
