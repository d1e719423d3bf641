//! From the machines' runs to a sealed history: joins names, makes ids canonical, builds the tree.
//!
//! In: attributes, texts and runs of one chunk after another. Each chunk has a builder of its own, with its own ids;
//! [`HistoryBuilder::append`] joins the builder of a later chunk. Out: a [`History`] that depends on the intervals of
//! each path, and not on the order in which paths, texts or intervals appeared: [`HistoryBuilder::seal`] numbers
//! attributes by path and texts by content.
//!
//! Joining costs the names of the later chunk, not its intervals: a run refers to a table with the new ids, and is
//! rewritten once, in parallel, when the history is sealed.

use super::History;
use super::bulk::{BuildError, build, map, workers_for};
use super::interval::Run;
use super::tree::Shape;
use crate::base::ctx::Ctx;
use crate::base::names::{NameId, Names};
use crate::base::time::Span;
use crate::state::attributes::{AttributeId, Attributes};
use std::sync::{Arc, OnceLock};

/// New ids by old ones.
#[derive(Debug)]
struct Renumbering {
    attributes: Vec<AttributeId>,
    texts: Vec<NameId>,
}

impl Renumbering {
    /// True when no id changes.
    fn is_identity(&self) -> bool {
        self.attributes.iter().enumerate().all(|(at, id)| id.index() == at)
            && self.texts.iter().enumerate().all(|(at, id)| id.index() == at)
    }

    /// First this, then `next`.
    fn then(&self, next: &Renumbering) -> Renumbering {
        let attribute = |id: &AttributeId| next.attributes.get(id.index()).copied().unwrap_or(*id);
        let text = |id: &NameId| next.texts.get(id.index()).copied().unwrap_or(*id);
        Renumbering {
            attributes: self.attributes.iter().map(attribute).collect(),
            texts: self.texts.iter().map(text).collect(),
        }
    }
}

/// A run of one chunk.
#[derive(Debug)]
struct BuiltRun {
    run: Run,
    /// The new ids of its attributes and texts; `None` where they do not change.
    ids: Option<Arc<Renumbering>>,
}

/// A history while it is being written.
#[derive(Debug, Default)]
pub struct HistoryBuilder {
    /// The attributes; their ids are those of the runs.
    pub attributes: Attributes,
    /// The texts that values name.
    pub texts: Names,
    states: &'static [&'static str],
    runs: Vec<BuiltRun>,
}

impl HistoryBuilder {
    /// An empty history. `states` are the names of [`super::interval::StateValue::Code`]s.
    pub fn new(states: &'static [&'static str]) -> Self {
        HistoryBuilder { states, ..Self::default() }
    }

    /// Add a run whose ids are of this builder's tables.
    pub fn push(&mut self, run: Run) {
        if !run.is_empty() {
            self.runs.push(BuiltRun { run, ids: None });
        }
    }

    /// Number of intervals so far.
    pub fn len(&self) -> usize {
        self.runs.iter().map(|built| built.run.len()).sum()
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Join the runs of another builder. Its states must be the same list.
    pub fn append(&mut self, later: HistoryBuilder) {
        let attributes = self.attributes.absorb(&later.attributes);
        let texts = (0..later.texts.len()).map(|id| self.texts.intern(later.texts.get(NameId::at(id)))).collect();
        let here = Arc::new(Renumbering { attributes, texts });
        self.runs.extend(later.runs.into_iter().map(|BuiltRun { run, ids }| {
            let ids = ids.map_or_else(|| here.clone(), |ids| Arc::new(ids.then(&here)));
            BuiltRun { run, ids: Some(ids) }
        }));
    }

    /// The history of a trace that covers `window`.
    pub fn seal(self, window: Span, shape: Shape, ctx: &Ctx) -> Result<History, BuildError> {
        let count = self.len();
        let (attributes, new_attributes) = self.attributes.sorted();
        let (texts, new_texts) = canonical(self.texts);
        let last = Renumbering { attributes: new_attributes, texts: new_texts };
        let is_canonical = last.is_identity();
        let runs = map(&workers_for(count, ctx), self.runs, |BuiltRun { mut run, ids }| {
            let joined = ids.map(|ids| ids.then(&last));
            if joined.is_some() || !is_canonical {
                let ids = joined.as_ref().unwrap_or(&last);
                run.renumber(&ids.attributes, &ids.texts);
            }
            run
        })?;
        let tree = build(runs, shape, ctx)?;
        Ok(History { attributes, texts, states: self.states, window, tree, summary: OnceLock::new() })
    }
}

/// The same texts numbered by content, and the new id of each by its old one.
pub(super) fn canonical(texts: Names) -> (Names, Vec<NameId>) {
    let mut order: Vec<NameId> = (0..texts.len()).map(NameId::at).collect();
    if order.is_sorted_by_key(|id| texts.get(*id)) {
        return (texts, order);
    }
    order.sort_by_key(|id| texts.get(*id));
    let mut sorted = Names::default();
    let mut new = vec![NameId::at(0); order.len()];
    for id in order {
        new[id.index()] = sorted.intern(texts.get(id));
    }
    (sorted, new)
}
