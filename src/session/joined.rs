//! History files as the input of questions: one, or several whose executions are compared.

use super::reopened::Reopened;
use super::traces::Traces;
use super::{OpenOptions, UsageError};
use crate::base::ctx::Ctx;
use crate::input::{Argument, Source};
use crate::kernel::Handlers;
use crate::model::execution::ExecutionId;
use crate::model::join::Renamed;
use crate::model::{Model, join};
use crate::reading::engine::EngineOptions;
use crate::symbols::files::SymbolPaths;
use std::sync::OnceLock;

impl Traces {
    /// Recordings in history files, at least one.
    pub fn reopen(arguments: &[Argument], options: &OpenOptions, ctx: &Ctx) -> anyhow::Result<Traces> {
        let mut opened = Vec::new();
        for argument in arguments {
            let (reopened, clocks) = Reopened::open(argument, options.leaves, ctx)?;
            let declared = options.tasks.as_deref().map(|file| reopened.catalog().with_file(file)).transpose()?;
            if let Some(file) = &options.handlers {
                let why = "the causes of waits are those of the build: give it to `whyslow build --history`";
                return Err(UsageError(format!("--handlers {}: {why}", file.display())).into());
            }
            opened.push(Traces {
                sources: Vec::new(),
                reopened: Some(Box::new(reopened)),
                others: Vec::new(),
                tasks: declared.map(Box::new).map_or_else(OnceLock::new, OnceLock::from),
                clocks: Some(clocks),
                handlers: Handlers::built_in(),
                engine: EngineOptions::default(),
                recorded: OnceLock::new(),
            });
        }
        let mut opened = opened.into_iter();
        let first = opened.next().ok_or_else(|| UsageError("name a history file".to_owned()))?;
        Ok(Traces { others: opened.collect(), ..first })
    }

    /// Error, in one line, if a question about one recording is asked of several history files.
    pub fn alone(&self, question: &str) -> anyhow::Result<()> {
        if self.others.is_empty() {
            return Ok(());
        }
        anyhow::bail!("{}: `whyslow {question}` is asked of one history file at a time", self.title())
    }

    /// The open traces; one line for a question that a history file does not answer.
    pub fn opened(&self, question: &str) -> anyhow::Result<&[Source]> {
        match &self.reopened {
            Some(reopened) => reopened.refuse(question),
            None => Ok(&self.sources),
        }
    }

    /// The executions of several history files: those of the task that the first one chooses, where none is named.
    pub(super) fn joined_model(
        &mut self,
        typed: Option<&str>,
        places: &SymbolPaths,
        timelines: &[ExecutionId],
        ctx: &Ctx,
    ) -> anyhow::Result<Model> {
        if !timelines.is_empty() {
            self.alone("diff --executions")?;
        }
        let mut others = std::mem::take(&mut self.others);
        let models = self.model(typed, places, &[], ctx).and_then(|first| {
            let task = first.tasks.get(first.task).cloned().unwrap_or_default();
            let mut models = vec![first];
            for other in &mut others {
                models.push(other.model(Some(&task), places, &[], ctx)?);
            }
            Ok(models)
        });
        self.others = others;
        Ok(join::join(models?, &Renamed::new(), ctx)?)
    }
}
