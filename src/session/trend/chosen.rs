//! The recordings of databases that have the task of a trend and count.
//!
//! In: opened databases. Out: the task, which recordings are left out and why, and their parts one after the other.
//! Cost: what the databases say of their recordings is looked at once; each part is read when it is passed.

use super::super::database::Databases;
use super::bounded;
use crate::base::ctx::Ctx;
use crate::base::digest::Digest;
use crate::model::Model;
use crate::saved::SavedFileError;
use crate::saved::executions::recordings::{RecordingPlace, StoredPart, StoredRecording};
use std::collections::{BTreeMap, BTreeSet};

/// Names of tasks in a line.
const NAMED: usize = 5;

/// The recordings of databases that count, and what is to be known of them.
pub(super) struct ChosenRecordings {
    pub task: String,
    left_out: BTreeSet<RecordingPlace>,
    pub lines: Vec<String>,
}

impl ChosenRecordings {
    pub fn new(databases: &Databases, typed: Option<&str>) -> anyhow::Result<ChosenRecordings> {
        let task = databases.task(typed)?;
        let mut lines = Vec::new();
        if let (None, [_, others @ ..]) = (typed, &databases.tasks()[..])
            && !others.is_empty()
        {
            let names = others.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join("`, `");
            lines.push(format!("the first of {} tasks; --task names another: `{names}`", others.len() + 1));
        }
        let path = |at: usize| databases.opened[at].1.path().display().to_string();
        let (mut without, mut left_out, mut twice) = (Vec::new(), BTreeSet::new(), Vec::new());
        let mut known: BTreeMap<Digest, (Digest, RecordingPlace)> = BTreeMap::new();
        for (at, (_, database)) in databases.opened.iter().enumerate() {
            let of_task = |recording: &StoredRecording| recording.parts.iter().any(|part| part.task == task);
            if !database.contents.recordings.iter().any(of_task) {
                let tasks = database.contents.tasks();
                let names = tasks.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join("`, `");
                without.push(format!("{}: no executions of `{task}`, it has `{names}`: left out", path(at)));
            }
        }
        for (place, recording) in databases.recordings() {
            for part in recording.parts.iter().filter(|part| part.task == task && part.count > 0) {
                let (content, first) = *known.entry(part.executions).or_insert((part.content, place));
                if content != part.content {
                    left_out.insert(place);
                    twice.push(format!(
                        "{}: its executions of `{task}` are those of {}, built with other symbols or by another \
                         version: left out",
                        path(place.database),
                        path(first.database)
                    ));
                }
            }
        }
        lines.extend(bounded(without, "file without the task"));
        lines.extend(bounded(twice, "recording that was built twice"));
        Ok(ChosenRecordings { task, left_out, lines })
    }

    /// Pass each part that counts, with the number of its recording among all.
    pub fn each_part(
        &self,
        databases: &Databases,
        ctx: &Ctx,
        mut put: impl FnMut((u32, &StoredRecording), &StoredPart, Model) -> anyhow::Result<()>,
    ) -> anyhow::Result<Vec<String>> {
        ctx.progress.enter("reading", databases.opened.len() as u64);
        let (mut unread, mut first) = (Vec::new(), 0);
        for (at, (_, database)) in databases.opened.iter().enumerate() {
            let counts = databases.counts(at, &self.task);
            let is_left_out = |recording| self.left_out.contains(&RecordingPlace { database: at, recording });
            let is_chosen = |recording: usize| counts(recording) && !is_left_out(recording);
            database.each_part_of(&self.task, is_chosen, ctx, |recording, part, model| {
                let number = u32::try_from(first + recording).unwrap_or(u32::MAX);
                match model {
                    Ok(model) => put((number, &database.contents.recordings[recording]), part, model),
                    Err(SavedFileError::Cancelled(cancelled)) => Err(cancelled.into()),
                    Err(why) => {
                        unread.push(why.to_string());
                        Ok(())
                    }
                }
            })?;
            first += database.contents.recordings.len();
            ctx.progress.step(1);
        }
        Ok(unread)
    }
}
