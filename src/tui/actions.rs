//! Actions of the user, the panes where they apply, and the row of an action in the table of keys.

use std::borrow::Cow;

/// An action of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Move the cursor.
    Up,
    /// Move the cursor.
    Down,
    /// Move the cursor; in the tree fold, or go to the parent.
    Left,
    /// Move the cursor; in the tree unfold.
    Right,
    PageUp,
    PageDown,
    /// To the first.
    Home,
    /// To the last.
    End,
    NextPane,
    PreviousPane,
    /// The pane of that number, from 1.
    Pane(u8),
    /// One pane fills the screen, or all that fit.
    Zoom,
    /// The selection's moving end one bin to the left.
    GrowLeft,
    /// The selection's moving end one bin to the right.
    GrowRight,
    /// The whole selection one bin to the left; the corner of the box.
    MoveLeft,
    /// The whole selection one bin to the right; the corner of the box.
    MoveRight,
    /// Both ends of the selection outwards; the corner of the box up.
    Widen,
    /// Both ends of the selection inwards; the corner of the box down.
    Narrow,
    /// Begin or end a box on the heat map.
    DrawBox,
    /// Other columns of the heat map.
    NextAxis,
    /// Type the filters of the slow group; a selection is the first text.
    MakeSlow,
    /// Type the filters of the fast group; a selection is the first text.
    MakeFast,
    /// Clear the selection and the filters on this metric; elsewhere the search and the list's filter.
    Clear,
    /// Compare with another recording, or with a label, as the fast side.
    Baseline,
    /// Swap the groups.
    Swap,
    /// Propose groups again.
    Propose,
    /// Undo the last change of the groups.
    Undo,
    Redo,
    /// Pattern analysis: q down.
    QuotientDown,
    /// Pattern analysis: q up.
    QuotientUp,
    /// Pattern analysis: s down.
    ThresholdDown,
    /// Pattern analysis: s up.
    ThresholdUp,
    /// Open or fold a node; follow a cause to its node, an anomaly to its path, a path to its next step.
    Open,
    /// The executions that ran during a step become the slow group.
    Moment,
    /// Only root causes that match certain words.
    Filter,
    /// All patterns, selected and rejected.
    ShowPatterns,
    /// Ranks over time.
    ShowRanks,
    /// Pattern analysis: the robust limit, or q and s.
    Robust,
    /// Back to where the last jump started.
    Back,
    Search,
    NextMatch,
    PreviousMatch,
    /// Order of the tree.
    Order,
    /// The tree with callees first, or with callers first again.
    Invert,
    /// Show the kernel's functions in the tree, or hide them.
    ShowKernel,
    /// The tree as an icicle, or as rows again.
    Icicle,
    Focus,
    Drop,
    Collapse,
    /// The data quality page.
    Quality,
    /// Any action by name.
    Palette,
    Details,
    /// The timeline of an execution.
    ShowTimeline,
    /// The difference by function.
    ShowFunctions,
    /// The list of executions.
    ShowExecutions,
    /// Kinds of slow executions, and what else differs.
    ShowKinds,
    /// The executions at a time.
    GoToTime,
    /// The recording at a glance.
    ShowOverview,
    /// Many threads over time.
    ShowThreads,
    /// Many threads over time: the threads of a process, each or as one.
    Unfold,
    /// Many threads over time: CPUs too.
    ShowCpus,
    /// Timeline: half as much time.
    ZoomIn,
    /// Timeline: twice as much time.
    ZoomOut,
    /// Timeline: earlier times.
    PanLeft,
    /// Timeline: later times.
    PanRight,
    /// Timeline: the other execution.
    OtherExecution,
    /// Timeline: align both at their begins, where they diverge, or at their cursors.
    Align,
    /// Timeline: marks of events.
    ShowEvents,
    /// Timeline: to the next event.
    NextEvent,
    /// Timeline: to the event before.
    PreviousEvent,
    /// Timeline: the calls of both executions as trees, or over time again.
    AlignCalls,
    /// Timeline: the threads that used the same things.
    Concurrent,
    /// Export the comparison.
    Export,
    /// Save the executions as a database.
    SaveDatabase,
    /// Copy the selection.
    Copy,
    /// Attach a note to the item under the cursor.
    Bookmark,
    ShowBookmarks,
    /// Go on in the tour.
    SkipStep,
    /// Copy a summary for a ticket.
    CopySummary,
    /// Copy the command line that gives this answer.
    CopyCommand,
    /// Save the screen as a picture.
    SaveScreen,
    ChooseTask,
    /// Next theme.
    Theme,
    Help,
    /// Close the dialog on top.
    Close,
    /// Draw everything again.
    Redraw,
    /// Stop the program until `fg`.
    Suspend,
    Quit,
}

/// The pane where an action applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionScope {
    /// In every pane.
    Any,
    Histograms,
    /// In the differential flame tree.
    Tree,
    /// In the anomaly list.
    Anomalies,
    /// In the propagation path.
    Path,
    /// In the timeline of an execution.
    Timeline,
    /// In the recording at a glance.
    Overview,
    /// In many threads over time.
    Threads,
}

impl ActionScope {
    /// Those of one pane.
    pub const PANES: [ActionScope; 4] =
        [ActionScope::Tree, ActionScope::Histograms, ActionScope::Anomalies, ActionScope::Path];

    /// The name for people.
    pub fn name(self) -> &'static str {
        match self {
            ActionScope::Any => "",
            ActionScope::Histograms => "histograms",
            ActionScope::Tree => "flame tree",
            ActionScope::Anomalies => "anomalies",
            ActionScope::Path => "propagation",
            ActionScope::Timeline => "timeline",
            ActionScope::Overview => "overview",
            ActionScope::Threads => "threads",
        }
    }
}

/// A row of the table.
#[derive(Clone, Debug)]
pub struct KeyBinding {
    pub action: Action,
    /// Its name in the palette.
    pub name: &'static str,
    /// Keys, blank between them; empty: only in the palette.
    pub keys: Cow<'static, str>,
    /// One line of help.
    pub help: &'static str,
    /// The pane where it applies.
    pub scope: ActionScope,
    /// Its word in the footer, if the footer shows it.
    pub footer: Option<&'static str>,
}
