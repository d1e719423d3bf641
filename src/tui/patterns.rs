//! State of panes 3 and 4: the settings, the report under them, and the positions of the cursors.
//!
//! The [`RootCauseList`] is in `sources.rs`. When q or s change, the item under the cursor is found again by name: the
//! words of a root cause, the start of an occurrence.

use super::job::Busy;
use super::report::AnomalyReport;
use super::sources::{RootCauseList, RootCauseRow};
use crate::model::propagation::PropagationStep;
use crate::model::settings::Settings;
use crate::view::anomalies::{rule, verdict_path};
use std::sync::Arc;

/// State of the path pane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathPane {
    /// Position of the path.
    pub path: usize,
    /// The step under the cursor.
    pub step: usize,
    /// The first step shown.
    pub offset: usize,
}

/// Everything about patterns on the screen.
#[derive(Clone, Debug, Default)]
pub struct PatternState {
    /// q, s and the kind of limit, as requested.
    pub settings: Settings,
    /// The result under the previous or the current settings.
    pub found: Option<Arc<AnomalyReport>>,
    /// Running job: mining, or a new judgement.
    pub busy: Option<Busy>,
    /// Why there is no result.
    pub failure: Option<String>,
    /// The anomaly list.
    pub list: RootCauseList,
    pub path: PathPane,
}

impl PatternState {
    /// Take a new result; cursors return to the same items, by name.
    pub fn replace(&mut self, found: Arc<AnomalyReport>) {
        let old = self.found.take();
        let here = old.as_ref().and_then(|old| self.list.name(old, self.list.here()?));
        let open: Vec<_> = old.iter().flat_map(|old| self.list.open_names(old)).collect();
        let step = old.as_ref().and_then(|old| {
            let step = old.step(self.path.path, self.path.step)?;
            Some((step.stream, step.span.start, step.what.clone()))
        });
        self.list.reopen(&found, &open);
        self.list.rebuild(&found);
        let row = here
            .and_then(|name| self.list.visible.iter().position(|r| self.list.name(&found, *r).as_ref() == Some(&name)));
        self.list.row = row.unwrap_or(0);
        let same = |s: &PropagationStep| Some((s.stream, s.span.start, s.what.clone())) == step;
        let mut steps = found.anomalies.paths.iter().enumerate().map(|(at, p)| (at, p.steps.iter().position(same)));
        let place = steps.find_map(|(path, step)| Some(PathPane { path, step: step?, offset: 0 }));
        self.path = place.unwrap_or_default();
        // The first look is at the root cause of the verdict.
        let first = verdict_path(&found.anomalies).filter(|_| old.is_none());
        self.found = Some(found);
        if let Some(path) = first {
            self.path = PathPane { path, ..PathPane::default() };
            self.follow_path();
        }
    }

    /// The path of the row under the cursor is shown beside it.
    pub fn follow_list(&mut self) {
        let Some(found) = &self.found else { return };
        let path = self.list.here().and_then(|row| row.occurrence(found)).and_then(|o| o.path);
        // Waits for work are on no path.
        let path = path.map_or(usize::MAX, |p| p as usize);
        let row = |path: usize| found.beginnings.get(path).copied().flatten();
        // Of an occurrence with several paths any may be shown.
        if path == usize::MAX || row(path) != row(self.path.path) {
            self.path = PathPane { path, ..PathPane::default() };
        }
    }

    /// The row of the path that is shown is under the cursor of the list.
    pub fn follow_path(&mut self) {
        let Some(beginning) = self.found.as_ref().and_then(|f| f.beginnings.get(self.path.path).copied().flatten())
        else {
            return;
        };
        if !self.list.go_to(RootCauseRow::Occurrence(beginning.root_cause, beginning.occurrence)) {
            self.list.go_to(RootCauseRow::Source(beginning.root_cause));
        }
    }

    /// The settings as text: `q 0.75, s 2`, or the robust limit.
    pub fn rule(&self) -> String {
        rule(self.settings.limit, self.settings.q, self.settings.s)
    }

    /// Position of the selected path, where there is one.
    pub fn selected(&self) -> Option<(&Arc<AnomalyReport>, usize)> {
        let found = self.found.as_ref()?;
        (self.path.path < found.anomalies.paths.len()).then_some((found, self.path.path))
    }
}
