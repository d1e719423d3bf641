//! The tasks of some traces by name: those that a file declares, then those found among the record classes.

use super::UsageError;
use crate::base::lazy::Lazy;
use crate::event::task::TaskDefinition;
use crate::input::record::{ClassId, Scope};
use crate::input::{self, Source};
use crate::reading::bind::is_kernel;
use crate::reading::signature::{self, EventSignature, PayloadField};
use crate::reading::{declared, tasks};
use foldhash::HashMap;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// The tasks by name, and the classes among which they were found.
pub(super) struct TaskCatalog {
    /// Those declared in a file, then those found.
    pub tasks: Vec<TaskDefinition>,
    /// How many of them are declared.
    pub declared: usize,
    /// Shared by the traces that share their schema.
    pub classes: Lazy<Vec<Arc<EventSignature>>>,
    /// Names of the kernel's events.
    kernel: OnceLock<BTreeSet<String>>,
    /// Names of the tasks, and the first position of each.
    names: OnceLock<Box<Names>>,
}

/// Names of tasks.
pub(super) struct Names {
    /// In their order.
    pub all: Arc<Vec<String>>,
    /// The first position of each.
    pub first: HashMap<String, usize>,
}

impl TaskCatalog {
    pub fn new(sources: &[Source]) -> TaskCatalog {
        let classes = all_signatures(sources);
        TaskCatalog::kept(tasks::discover(&classes), 0, classes.into())
    }

    /// Of tasks and classes that are known already.
    pub fn kept(tasks: Vec<TaskDefinition>, declared: usize, classes: Lazy<Vec<Arc<EventSignature>>>) -> TaskCatalog {
        TaskCatalog { tasks, declared, classes, kernel: OnceLock::new(), names: OnceLock::new() }
    }

    /// True for an event of the kernel's.
    pub fn is_kernels(&self, event: &str) -> bool {
        let of_kernel = |class: &&Arc<EventSignature>| class.kernel && !class.is_placed();
        let names = || self.classes.iter().filter(of_kernel).map(|class| class.name.clone()).collect();
        self.kernel.get_or_init(names).contains(event)
    }

    /// Declared tasks come first and replace those found under the same name.
    pub fn with_file(mut self, file: &Path) -> anyhow::Result<TaskCatalog> {
        let known = &mut self;
        known.tasks.drain(..known.declared);
        let declared = declared(file, &known.classes)?;
        known.declared = declared.len();
        let names: BTreeSet<&str> = declared.iter().map(|d| d.name.as_str()).collect();
        known.tasks.retain(|t| !names.contains(t.name.as_str()));
        known.tasks.splice(0..0, declared);
        Ok(self)
    }

    /// Names of the tasks, and the first position of each.
    pub fn names(&self) -> &Names {
        self.names.get_or_init(|| {
            let mut first = HashMap::default();
            for (at, task) in self.tasks.iter().enumerate() {
                first.entry(task.name.clone()).or_insert(at);
            }
            Box::new(Names { all: Arc::new(self.tasks.iter().map(|t| t.name.clone()).collect()), first })
        })
    }
}

/// The tasks that a file declares.
fn declared(file: &Path, classes: &[Arc<EventSignature>]) -> anyhow::Result<Vec<TaskDefinition>> {
    let option = format!("--tasks {}", file.display());
    let text = super::text_of(file).map_err(|e| UsageError(format!("{option}: {e}")))?;
    declared::tasks(&text, classes).map_err(|e| UsageError(format!("{option}:{e}")).into())
}

/// The classes of all traces; those of one schema are looked at once.
fn all_signatures(sources: &[Source]) -> Vec<Arc<EventSignature>> {
    let mut all: Vec<Arc<EventSignature>> = Vec::new();
    let mut known: HashMap<usize, Range<usize>> = HashMap::default();
    for source in sources {
        let key = source.trace.schema_key();
        if let Some(same) = key.and_then(|key| known.get(&key)).cloned() {
            all.extend_from_within(same);
            continue;
        }
        let start = all.len();
        all.extend(signatures(source).into_iter().map(Arc::new));
        key.map(|key| known.insert(key, start..all.len()));
    }
    all
}

fn signatures(source: &Source) -> Vec<EventSignature> {
    let kernel = is_kernel(&source.trace);
    let has_context = |class, name: &str| {
        let scopes = [Scope::CommonContext, Scope::SpecificContext];
        scopes.iter().any(|scope| source.trace.has_field(class, *scope, name))
    };
    let fields = |class| source.trace.payload_fields(class).into_iter().map(PayloadField::from).collect();
    let signature = |(i, class): (usize, &input::stream::Class)| EventSignature {
        name: class.known().to_owned(),
        shown: class.name.clone(),
        kernel,
        fields: fields(ClassId::at(i)),
        contexts: signature::CONTEXTS
            .iter()
            .filter(|c| has_context(ClassId::at(i), c))
            .map(|c| (*c).to_owned())
            .collect(),
    };
    source.trace.classes().iter().enumerate().map(signature).collect()
}
