//! The four panes: their order, their pairs on wide screens, their titles; the origins of jumps between them.

use super::actions::ActionScope;
use super::patterns::PathPane;
use crate::model::context::ContextId;

/// The origin of a jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JumpOrigin {
    Cause(usize),
    /// A context of the tree.
    Context(ContextId),
    /// The row of an anomaly.
    Anomaly(usize),
    /// A step of a path.
    Step(PathPane),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pane {
    /// Histograms of the metrics.
    Histograms,
    /// Causes and the differential flame tree.
    Tree,
    /// Root causes of anomalies in frequent patterns.
    Anomalies,
    /// The propagation of one delay.
    Path,
}

impl Pane {
    /// In the order of their numbers.
    pub const ALL: [Pane; 4] = [Pane::Histograms, Pane::Tree, Pane::Anomalies, Pane::Path];

    /// The pane of a number, from 1.
    pub fn numbered(number: u8) -> Option<Pane> {
        Pane::ALL.get(usize::from(number).wrapping_sub(1)).copied()
    }

    /// Its number, from 1.
    pub fn number(self) -> u8 {
        Pane::ALL.iter().zip(1..).find(|(pane, _)| **pane == self).map_or(1, |(_, number)| number)
    }

    /// The two panes that are side by side on wide screens: executions, or patterns.
    pub fn pair(self) -> [Pane; 2] {
        if self.is_of_patterns() { [Pane::Anomalies, Pane::Path] } else { [Pane::Histograms, Pane::Tree] }
    }

    /// It shows patterns and not executions.
    pub fn is_of_patterns(self) -> bool {
        matches!(self, Pane::Anomalies | Pane::Path)
    }

    /// The scope of its actions in the table.
    pub fn scope(self) -> ActionScope {
        match self {
            Pane::Histograms => ActionScope::Histograms,
            Pane::Tree => ActionScope::Tree,
            Pane::Anomalies => ActionScope::Anomalies,
            Pane::Path => ActionScope::Path,
        }
    }

    /// Its number and title.
    pub fn title(self) -> &'static str {
        match self {
            Pane::Histograms => "1 Histograms",
            Pane::Tree => "2 Flame tree",
            Pane::Anomalies => "3 Anomalies",
            Pane::Path => "4 Propagation",
        }
    }
}
