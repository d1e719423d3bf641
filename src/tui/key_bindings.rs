//! The table of actions: name, default keys, help line, pane. An action that differs between panes has a row for
//! each.
//!
//! It feeds the key handler, the `?` page, the footer, the `:` palette and, through [`markdown`], docs/KEYS.md.
//! PRODUCT.md's table of keys is the contract.

use super::actions::ActionScope::{self, Anomalies, Any, Histograms, Overview, Path, Threads, Timeline, Tree};
use super::actions::{Action as A, Action, KeyBinding};
use std::borrow::Cow;

const fn entry(
    action: Action,
    name: &'static str,
    keys: &'static str,
    help: &'static str,
    scope: ActionScope,
    footer: Option<&'static str>,
) -> KeyBinding {
    KeyBinding { action, name, keys: Cow::Borrowed(keys), help, scope, footer }
}

/// The table, in the order of the help page.
pub static TABLE: &[KeyBinding] = &[
    entry(A::Up, "up", "Up k", "move up", Any, None),
    entry(A::Down, "down", "Down j", "move down", Any, None),
    entry(A::Left, "left", "Left h", "move left; in the tree: fold the node or go to its parent", Any, None),
    entry(A::Right, "right", "Right l", "move right; in the tree: unfold the node, open a chain", Any, None),
    entry(A::PageUp, "page up", "PgUp Ctrl-b", "move up by a page", Any, None),
    entry(A::PageDown, "page down", "PgDn Ctrl-f", "move down by a page", Any, None),
    entry(A::Home, "first", "Home", "move to the first line or bin", Any, None),
    entry(A::End, "last", "End G", "move to the last line or bin", Any, None),
    entry(A::Open, "open", "Enter Space", "unfold or fold the node; follow a cause to its node", Tree, Some("unfold")),
    entry(A::Search, "search", "/", "search the tree for a name", Tree, Some("search")),
    entry(A::NextMatch, "next match", "n", "go to the next match", Tree, None),
    entry(A::PreviousMatch, "previous match", "N", "go to the previous match", Tree, None),
    entry(A::Order, "order", "o", "order by extra time, deviations or name", Tree, Some("order")),
    entry(A::Invert, "invert", "I", "callees first, each with its callers below it; and back", Tree, None),
    entry(A::ShowKernel, "kernel functions", "H", "show the kernel's functions below calls; hide them", Tree, None),
    entry(A::Icicle, "icicle", "|", "draw the tree as an icicle, or as rows again", Tree, None),
    entry(A::ZoomIn, "zoom in", "+ =", "show this subtree alone", Tree, None),
    entry(A::ZoomOut, "zoom out", "-", "take back a zoom, focus, drop or collapse", Tree, None),
    entry(A::Focus, "focus", "O", "only this function, and what it calls", Tree, None),
    entry(A::Drop, "drop", "d", "without this function, and what it calls", Tree, None),
    entry(A::Collapse, "collapse", "c", "what this function calls is its own time", Tree, None),
    entry(
        A::MakeSlow,
        "slow group",
        "s",
        "type the slow group's filters: `duration>20ms type=NAME`",
        Tree,
        Some("slow"),
    ),
    entry(A::MakeFast, "fast group", "f", "type the fast group's filters", Tree, Some("fast")),
    entry(
        A::Open,
        "open",
        "Enter Space",
        "show the occurrences of a root cause; show the path of an occurrence",
        Anomalies,
        Some("open"),
    ),
    entry(A::Search, "search", "/", "search for a root cause, place, function or call", Anomalies, Some("search")),
    entry(A::NextMatch, "next match", "n", "go to the next match", Anomalies, None),
    entry(A::PreviousMatch, "previous match", "N", "go to the previous match", Anomalies, None),
    entry(
        A::Filter,
        "filter",
        "&",
        "list only root causes that match all of the words typed",
        Anomalies,
        Some("filter"),
    ),
    entry(A::Order, "order", "o", "order by delay caused, extra time, factor, time or place", Anomalies, Some("order")),
    entry(
        A::ShowPatterns,
        "patterns",
        "p",
        "show all patterns, selected and rejected, with the reason",
        Anomalies,
        Some("patterns"),
    ),
    entry(
        A::ShowRanks,
        "ranks",
        "v",
        "show ranks over time: those around the root cause, then all",
        Anomalies,
        Some("ranks"),
    ),
    entry(A::Open, "open", "Enter Space", "go to the next step", Path, Some("walk")),
    entry(A::Left, "left", "Left h", "go to the previous path", Path, None),
    entry(A::Right, "right", "Right l", "go to the next path", Path, Some("next path")),
    entry(
        A::Moment,
        "moment",
        "m",
        "compare the executions that ran during this step as the slow group",
        Path,
        Some("its executions"),
    ),
    entry(A::Open, "open", "Enter Space", "show the segment, or the call, as large as fits", Timeline, None),
    entry(A::ZoomIn, "zoom in", "+ =", "show half as much time, around the cursor", Timeline, None),
    entry(A::ZoomOut, "zoom out", "-", "show twice as much time", Timeline, None),
    entry(A::Zoom, "zoom", "z 0", "show the whole of both executions", Timeline, None),
    entry(A::PanLeft, "pan left", "Shift-Left", "show earlier times", Timeline, None),
    entry(A::PanRight, "pan right", "Shift-Right", "show later times", Timeline, None),
    entry(A::OtherExecution, "other execution", "Tab Shift-Tab", "go to the other execution", Timeline, None),
    entry(A::Align, "align", "a", "align both at begins, where they diverge, at their cursors", Timeline, None),
    entry(
        A::AlignCalls,
        "align calls",
        "c",
        "the calls of both side by side as a tree; over time again",
        Timeline,
        None,
    ),
    entry(A::ShowKernel, "kernel functions", "H", "show the kernel's functions below calls; hide them", Timeline, None),
    entry(A::ShowEvents, "events", "p", "mark events: calls, failed ones, faults, messages, ...", Timeline, None),
    entry(A::NextEvent, "next event", ")", "go to the next event, and say what it is", Timeline, None),
    entry(A::PreviousEvent, "previous event", "(", "go to the event before", Timeline, None),
    entry(
        A::Concurrent,
        "who else",
        "o",
        "who else ran on that CPU, waited for a disk, was in a futex call meanwhile",
        Timeline,
        None,
    ),
    entry(A::Search, "search", "/", "search for a function, call, wait or thread on the path", Timeline, None),
    entry(A::NextMatch, "next match", "n", "go to the next match", Timeline, None),
    entry(A::PreviousMatch, "previous match", "N", "go to the previous match", Timeline, None),
    entry(A::ZoomIn, "zoom in", "+ =", "show half as much time, around the cursor", Overview, None),
    entry(A::ZoomOut, "zoom out", "-", "show twice as much time", Overview, None),
    entry(A::Zoom, "zoom", "z 0", "show the whole recording", Overview, None),
    entry(A::PanLeft, "pan left", "Shift-Left", "go to earlier times", Overview, None),
    entry(A::PanRight, "pan right", "Shift-Right", "go to later times", Overview, None),
    entry(A::GrowRight, "grow selection right", ">", "select to the right", Overview, None),
    entry(A::GrowLeft, "grow selection left", "<", "select to the left", Overview, None),
    entry(A::MakeSlow, "slow group", "s", "the executions that begin there become the slow group", Overview, None),
    entry(A::MakeFast, "fast group", "f", "the executions that begin there become the fast group", Overview, None),
    entry(A::Open, "open", "Enter", "follow the wake-up: to the waker, at the moment when it woke", Threads, None),
    entry(A::Unfold, "unfold", "Space", "show each thread of the process, or all of them in one lane", Threads, None),
    entry(A::ZoomIn, "zoom in", "+ =", "show half as much time, around the cursor", Threads, None),
    entry(A::ZoomOut, "zoom out", "-", "show twice as much time", Threads, None),
    entry(A::Zoom, "zoom", "z 0", "show the whole recording", Threads, None),
    entry(A::PanLeft, "pan left", "Shift-Left", "go to earlier times", Threads, None),
    entry(A::PanRight, "pan right", "Shift-Right", "go to later times", Threads, None),
    entry(A::GrowRight, "grow selection right", ">", "select to the right", Threads, None),
    entry(A::GrowLeft, "grow selection left", "<", "select to the left", Threads, None),
    entry(A::Clear, "clear", "Backspace Delete", "clear the selection and the words", Threads, None),
    entry(A::MakeSlow, "slow group", "s", "the executions that begin there become the slow group", Threads, None),
    entry(A::MakeFast, "fast group", "f", "the executions that begin there become the fast group", Threads, None),
    entry(A::Filter, "filter", "&", "only threads with a word: name, process, tid or pid", Threads, None),
    entry(A::ShowCpus, "CPUs", "c", "show a lane for each CPU, too", Threads, None),
    entry(A::Concurrent, "who else", "o", "who else ran on that CPU, waited for a disk meanwhile", Threads, None),
    entry(A::Back, "back", "Ctrl-o", "go back to where the last jump started", Any, None),
    entry(A::GrowRight, "grow selection right", ">", "move the selection's free end to the right", Histograms, None),
    entry(
        A::GrowLeft,
        "grow selection left",
        "<",
        "move the selection's free end to the left",
        Histograms,
        Some("select"),
    ),
    entry(
        A::MoveLeft,
        "move selection left",
        "Shift-Left",
        "move the selection left; stretch the box on the heat map",
        Histograms,
        None,
    ),
    entry(
        A::MoveRight,
        "move selection right",
        "Shift-Right",
        "move the selection right; stretch the box on the heat map",
        Histograms,
        None,
    ),
    entry(A::Widen, "widen selection", "Shift-Up", "widen the selection; stretch the box up", Histograms, None),
    entry(A::Narrow, "narrow selection", "Shift-Down", "narrow the selection; stretch the box down", Histograms, None),
    entry(
        A::DrawBox,
        "box",
        "Space",
        "begin a box on the heat map, which arrows stretch; end it",
        Histograms,
        Some("box"),
    ),
    entry(A::NextAxis, "axis", "a", "heat map by time, type, process or any other property", Histograms, Some("axis")),
    entry(A::Open, "open", "Enter", "list the executions of the cell, the box or the bin", Histograms, None),
    entry(
        A::MakeSlow,
        "slow group",
        "s",
        "type the slow group's filters, from the selection on",
        Histograms,
        Some("slow"),
    ),
    entry(
        A::MakeFast,
        "fast group",
        "f",
        "type the fast group's filters, from the selection on",
        Histograms,
        Some("fast"),
    ),
    entry(
        A::Clear,
        "clear",
        "Backspace Delete",
        "clear the selection, then the filters on this metric",
        Histograms,
        Some("clear"),
    ),
    entry(
        A::Clear,
        "clear",
        "Backspace Delete",
        "clear the search and the list's filter; show the whole tree",
        Any,
        None,
    ),
    entry(A::Details, "details", "i", "show details: the full stack and sample executions", Any, Some("details")),
    entry(
        A::ShowTimeline,
        "timeline",
        "v V",
        "show an example as a timeline, beside a typical fast execution",
        Any,
        Some("timeline"),
    ),
    entry(
        A::ShowFunctions,
        "functions",
        "F",
        "show the difference by function: its cost everywhere, callers and callees",
        Any,
        None,
    ),
    entry(
        A::ShowExecutions,
        "executions",
        "E",
        "list the executions, the slowest first; of a selection, its own",
        Any,
        Some("executions"),
    ),
    entry(
        A::ShowKinds,
        "kinds",
        "K",
        "list the kinds of slow executions, to compare one alone, and what else differs",
        Any,
        None,
    ),
    entry(A::GoToTime, "go to time", "", "list the executions that ran at a time: 12.5s, 09:45:56", Any, None),
    entry(A::ShowThreads, "threads", "t", "show all threads over time, the busiest first", Any, Some("threads")),
    entry(A::ShowOverview, "overview", "r", "show the recording at a glance", Any, Some("overview")),
    entry(
        A::Baseline,
        "baseline",
        "C",
        "compare with another recording, or a label, as the fast side (--baseline)",
        Any,
        None,
    ),
    entry(A::Swap, "swap", "x", "swap the two groups", Any, None),
    entry(A::Propose, "propose", "g", "go back to automatically proposed groups", Any, None),
    entry(A::Undo, "undo", "u", "undo the last change of the groups", Any, Some("undo")),
    entry(A::Redo, "redo", "U", "redo the change that was undone last", Any, None),
    entry(A::NextPane, "next pane", "Tab", "go to the next pane", Any, Some("pane")),
    entry(A::PreviousPane, "previous pane", "Shift-Tab", "go to the previous pane", Any, None),
    entry(A::Pane(1), "histograms", "1", "go to the histograms", Any, None),
    entry(A::Pane(2), "flame tree", "2", "go to the differential flame tree", Any, None),
    entry(A::Pane(3), "anomalies", "3", "go to the anomalies of frequent patterns", Any, None),
    entry(A::Pane(4), "propagation", "4", "go to the propagation path of the selected anomaly", Any, None),
    entry(A::Zoom, "zoom", "z", "zoom this pane / show all panes that fit", Any, None),
    entry(A::QuotientDown, "q down", "[", "pattern analysis: count fewer occurrences as normal (q)", Any, None),
    entry(A::QuotientUp, "q up", "]", "pattern analysis: count more occurrences as normal (q)", Any, None),
    entry(A::ThresholdDown, "s down", "{", "pattern analysis: list smaller delays too (lower threshold s)", Any, None),
    entry(A::ThresholdUp, "s up", "}", "pattern analysis: list larger delays only (higher threshold s)", Any, None),
    entry(
        A::Robust,
        "robust limit",
        "R",
        "pattern analysis: switch between robust limits (median and deviation) and limits from q and s",
        Any,
        None,
    ),
    entry(
        A::Export,
        "export",
        "e",
        "export to a file: .json (or anomalies), .html, .md, .svg, .folded, .pb.gz, .why, by its ending",
        Any,
        Some("export"),
    ),
    entry(
        A::SaveDatabase,
        "save database",
        "D",
        "save the executions as a database: small, opens without the trace",
        Any,
        None,
    ),
    entry(A::Copy, "copy", "y", "copy the item under the cursor to the clipboard (OSC 52)", Any, None),
    entry(A::Bookmark, "bookmark", "b", "bookmark the item under the cursor, with a note", Any, None),
    entry(A::ShowBookmarks, "bookmarks", "B", "list the bookmarks, and go to one", Any, None),
    entry(A::SkipStep, "skip step", ".", "skip this step of the tour", Any, None),
    entry(A::CopySummary, "copy summary", "Y", "copy a summary in Markdown, for a ticket", Any, None),
    entry(A::CopyCommand, "copy command", "", "copy the command line that prints this answer", Any, None),
    entry(A::SaveScreen, "save screen", "", "save this screen as an SVG picture", Any, None),
    entry(A::ChooseTask, "task", "T", "choose the task whose executions are compared", Any, Some("task")),
    entry(A::Quality, "data quality", "w", "show data quality: losses, unknowns, caveats", Any, None),
    entry(A::Palette, "palette", ":", "run any action by name", Any, None),
    entry(A::Theme, "theme", "Ctrl-t", "change to the next theme", Any, None),
    entry(A::Help, "help", "?", "show this page", Any, Some("help")),
    entry(A::Close, "close", "Esc", "close the dialog; clear selection and search", Any, None),
    entry(A::Redraw, "redraw", "Ctrl-l", "redraw the screen", Any, None),
    entry(A::Suspend, "suspend", "Ctrl-z", "suspend the program; fg resumes it", Any, None),
    entry(A::Quit, "quit", "q Ctrl-c", "quit", Any, Some("quit")),
];

/// The table as Markdown: `docs/KEYS.md`, held equal by a test.
#[cfg(not(program))]
pub fn markdown() -> String {
    let mut text = String::from("| keys | do | where |\n|---|---|---|\n");
    for e in TABLE {
        let quoted: Vec<String> =
            e.keys.split(' ').filter(|k| !k.is_empty()).map(|k| format!("`{}`", k.replace('|', "\\|"))).collect();
        let keys = if quoted.is_empty() { format!("`:` {}", e.name) } else { quoted.join(" ") };
        text.push_str(&format!("| {keys} | {} | {} |\n", e.help, e.scope.name()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::key::KeyPress;
    use crate::tui::key_map::KeyMap;

    #[test]
    fn every_key_parses_and_none_has_two_meanings_in_a_scope() {
        // A pane's own meaning may hide that of all panes.
        for scope in [Any, Histograms, Tree, Anomalies, Path, Timeline, Overview, Threads] {
            let mut seen = std::collections::BTreeSet::new();
            for e in TABLE.iter().filter(|e| e.scope == scope) {
                for k in e.keys.split(' ').filter(|k| !k.is_empty()) {
                    assert_eq!(KeyPress::parse(k).unwrap().to_string(), k);
                    assert!(seen.insert(k), "{k} has two meanings");
                }
            }
        }
    }

    #[test]
    fn names_and_actions_are_unique() {
        for (i, a) in TABLE.iter().enumerate() {
            let differ = |b: &KeyBinding| {
                (b.name == a.name) == (b.action == a.action) && (b.name != a.name || b.scope != a.scope)
            };
            assert!(TABLE[..i].iter().all(differ), "{}", a.name);
        }
    }

    #[test]
    fn every_key_of_the_contract_is_bound() {
        let contract = "Up Down Left Right h j k l PgUp PgDn Home End Tab Shift-Tab 1 2 3 4 z < > Shift-Left \
                        Shift-Right Shift-Up Shift-Down s f Backspace x g u U [ ] { } Enter Space Ctrl-o / n N o w : \
                        i e y t ? q &";
        for text in contract.split_whitespace() {
            let key = KeyPress::parse(text).unwrap();
            let bound = ActionScope::PANES.iter().any(|p| KeyMap::default().bound(key, *p).is_some());
            assert!(bound, "{text} does nothing");
        }
    }
}
