//! The rows of two aligned executions on the screen: which are open, and the cursor.
//!
//! In: aligned calls. Out: the rows that are shown, with their names, which are made where rows open or fold. Long
//! calls are open from the begin on. Cost: the rows that are shown.

use crate::base::time::Ns;
use crate::compare::calls::aligned::{AlignedRow, PairedCalls};
use crate::model::Model;
use crate::tui::actions::Action;
use crate::tui::canvas::width;
use crate::view::call_rows::{self, ShownCalls};
use std::collections::BTreeSet;

/// Parts of the longer execution from which on a row is shown by itself, and from which on it is open.
const SHOWN: Ns = 500;
const OPEN: Ns = 20;

/// The rows on the screen.
#[derive(Clone, Debug, Default)]
pub struct AlignedView {
    /// Rows of which what is below them is shown.
    open: BTreeSet<u32>,
    /// The length of the longer execution.
    longest: Ns,
    pub rows: Vec<ShownCalls>,
    /// Their names.
    pub labels: Vec<String>,
    /// Columns of the widest name, with its indent and mark.
    pub name_columns: usize,
    pub cursor: usize,
    /// The first row on the screen.
    pub top: usize,
}

impl AlignedView {
    /// The rows of two executions, the long ones open, with the cursor on a row or the one that has it.
    pub fn new(model: &Model, calls: &PairedCalls, longest: Ns, row: Option<u32>) -> AlignedView {
        let least = longest / OPEN;
        let is_long =
            |row: &AlignedRow| !row.is_run() && [row.a, row.b].into_iter().flatten().any(|calls| calls.ns >= least);
        let long = (0_u32..).zip(&calls.rows).filter(|(_, row)| is_long(row)).map(|(at, _)| at);
        let mut view = AlignedView { open: long.collect(), longest, ..AlignedView::default() };
        view.arrange(model, calls);
        if let Some(row) = row {
            view.cursor = view.rows.partition_point(|shown| shown.first <= row).saturating_sub(1);
        }
        view
    }

    fn arrange(&mut self, model: &Model, calls: &PairedCalls) {
        let least = (self.longest / SHOWN).max(1);
        self.rows = call_rows::shown(calls, least, |row| self.open.contains(&row));
        self.labels = self.rows.iter().map(|shown| call_rows::label(model, calls, shown)).collect();
        let names = self.rows.iter().zip(&self.labels).map(|(shown, label)| shown.level + width(label) + 2);
        self.name_columns = names.max().unwrap_or(0);
        self.cursor = self.cursor.min(self.rows.len().saturating_sub(1));
    }

    /// The row under the cursor.
    pub fn here(&self) -> Option<&ShownCalls> {
        self.rows.get(self.cursor)
    }

    /// Scroll so that the cursor is on a screen of so many rows.
    pub fn scroll(&mut self, lines: usize) {
        let lines = lines.max(1);
        self.top = self.top.clamp((self.cursor + 1).saturating_sub(lines), self.cursor);
        self.top = self.top.min(self.rows.len().saturating_sub(lines));
    }

    /// Move, open or fold; false where the action is none of these.
    pub fn act(&mut self, action: Action, model: &Model, calls: &PairedCalls, page: usize) -> bool {
        let last = self.rows.len().saturating_sub(1);
        match action {
            Action::Up => self.cursor = self.cursor.saturating_sub(1),
            Action::Down => self.cursor = (self.cursor + 1).min(last),
            Action::PageUp => self.cursor = self.cursor.saturating_sub(page.max(1)),
            Action::PageDown => self.cursor = (self.cursor + page.max(1)).min(last),
            Action::Home => self.cursor = 0,
            Action::End => self.cursor = last,
            Action::Right => self.unfold(model, calls),
            Action::Left => self.fold(model, calls),
            _ => return false,
        }
        true
    }

    /// Open a row: what is below it, or each of the short calls.
    pub fn unfold(&mut self, model: &Model, calls: &PairedCalls) {
        let Some(shown) = self.here().copied() else { return };
        if shown.short > 0 {
            let parent = calls.rows.get(shown.first as usize).and_then(|row| row.parent);
            let beside = calls.children(parent).skip_while(|at| *at < shown.first);
            self.open.extend(beside.take(shown.short));
        } else {
            self.open.insert(shown.last);
        }
        self.arrange(model, calls);
    }

    /// Fold a row, or go to the one above it.
    fn fold(&mut self, model: &Model, calls: &PairedCalls) {
        let Some(shown) = self.here().copied() else { return };
        if shown.is_open {
            self.open.remove(&shown.last);
            self.arrange(model, calls);
        } else if let Some(above) = self.rows.iter().take(self.cursor).rposition(|row| row.level < shown.level) {
            self.cursor = above;
        }
    }
}
