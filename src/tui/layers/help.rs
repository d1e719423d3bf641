//! The help page: the table of actions, and how to read the screen.

use super::page::PageContent;
use crate::tui::actions::{Action, ActionScope, KeyBinding};
use crate::tui::app::App;
use crate::tui::canvas::{self, clip};
use crate::tui::key_map::KeyMap;
use crate::tui::theme::StyleScope;
use crate::tui::widget::page::{StyledLine, paragraph, plain};

const READING: &[&str] = &[
    "The verdict at the top says what makes the slow executions slow. The causes are listed below it, the largest \
     first; their extra times add up to the difference between the means of the two groups.",
    "A tree node is a call path: functions, [system calls], [waits] and the threads that were waited for. Its bar \
     is the mean time there: shaded what both groups have, full the extra of the slow group, light what the fast \
     group has more. Extra is the slow mean minus the fast mean. Dev is that difference in standard deviations of \
     the fast group: below 1 it is noise, from 3 on the colour is full, where the row has a fifth of the whole \
     difference. 'n/a' means too few executions. Rows below 1% share the last row; Enter shows them. A dot marks \
     the rows that the cause under the cursor sums up. '% of slow' is the share of slow executions that have the \
     node.",
    "Dev uses the standard deviation of the fast group: swapping the groups changes its scale.",
    "A name with a question mark is not proven: the file that gave it may not be the one that ran. `--symbols` names \
     the folder of the right one.",
    "Runnable means ready to run but not on a CPU: preempted, or woken and waiting for a CPU.",
    "A histogram has the slow group above its axis and the fast one below it, each to its own top. Full bars are the \
     members of the group; shaded cells have executions that pass its filters on all other metrics, but not that on \
     this one, whose range a line on the axis shows: a double one of the slow group, a single one of the fast. s and f \
     ask for a group's filters: type them (duration>20ms, type=NAME; Tab completes), or select a range with < and > or \
     a box on the heat map before and press Enter. Shift-arrows then move the group. The other group is all others, \
     unless it has filters too.",
    "An anomaly is an occurrence of a frequent pattern that took more than s times the longest of its reference, \
     which is the fastest fraction q of all occurrences. A root cause is an anomaly that no other anomaly \
     explains; its victims waited for it, directly or through others. The propagation has time from left to right \
     and a line per rank or thread: full bars are root causes, shaded bars wait, arrows are messages or wake-ups; \
     dots connect a delay with the wait that it caused.",
    "If the groups were chosen by duration, the upper nodes differ by construction; look for where in the tree \
     the difference is.",
];

/// Columns of the keys.
const KEYS: usize = 18;
/// From this width on short lists have two columns.
const TWO_COLUMNS: usize = 60;

/// The page.
#[derive(Debug)]
pub struct HelpPage;

impl PageContent for HelpPage {
    fn title(&self) -> &'static str {
        "Help"
    }

    fn action(&self) -> Action {
        Action::Help
    }

    /// The keys of the dialog below it come first, else those of the pane.
    fn lines(&self, app: &App, columns: usize, _: usize) -> Vec<StyledLine> {
        let of_dialog = app.layers.iter().rev().find_map(|layer| layer.scope());
        lines(columns, of_dialog.unwrap_or(app.pane.scope()), &app.options.keys)
    }
}

/// Its lines in this width, for the pane in front: its own keys in sentences, then all others by name.
fn lines(columns: usize, front: ActionScope, map: &KeyMap) -> Vec<StyledLine> {
    let mut lines = Vec::new();
    lines.push(plain(StyleScope::Strong, format!("In the {}", front.name())));
    for entry in map.rows().iter().filter(|e| e.scope == front) {
        let mut rest = paragraph(StyleScope::Text, entry.help, columns.saturating_sub(KEYS + 2).max(12), 0).into_iter();
        let mut first: StyledLine = vec![(StyleScope::Key, format!("  {:<KEYS$}", keys(entry)))];
        first.extend(rest.next().unwrap_or_default());
        lines.push(first);
        for more in rest {
            let mut line = plain(StyleScope::Text, " ".repeat(KEYS + 2));
            line.extend(more);
            lines.push(line);
        }
    }
    let others = ActionScope::PANES.into_iter().filter(|scope| *scope != front);
    for scope in [ActionScope::Any].into_iter().chain(others) {
        let title = if scope == ActionScope::Any { "Everywhere".into() } else { format!("In the {}", scope.name()) };
        lines.push(StyledLine::new());
        lines.push(plain(StyleScope::Strong, title));
        let entries: Vec<&KeyBinding> = map.rows().iter().filter(|e| e.scope == scope).collect();
        lines.extend(by_name(&entries, columns));
    }
    lines.push(StyledLine::new());
    lines.extend(paragraph(
        StyleScope::Text,
        "All actions with a sentence each, to search and run: press :",
        columns,
        0,
    ));
    lines.push(StyledLine::new());
    lines.push(plain(StyleScope::Strong, "How to read it"));
    for text in READING {
        lines.extend(paragraph(StyleScope::Text, text, columns, 0));
        lines.push(StyledLine::new());
    }
    lines
}

/// The keys of an action; `:` and its name where it has none.
fn keys(entry: &KeyBinding) -> String {
    if entry.keys.is_empty() { format!(": {}", entry.name) } else { entry.keys.to_string() }
}

/// Keys and names, in two columns where they fit; read down the first column, then down the second.
fn by_name(entries: &[&KeyBinding], columns: usize) -> Vec<StyledLine> {
    let count = if columns >= TWO_COLUMNS { 2 } else { 1 };
    let (height, width) = (entries.len().div_ceil(count), columns / count);
    let cell = |entry: &KeyBinding| {
        let name = clip(entry.name, width.saturating_sub(KEYS + 3)).into_owned();
        let blank = width.saturating_sub(KEYS + 2 + canvas::width(&name));
        vec![
            (StyleScope::Key, format!("  {:<KEYS$}", keys(entry))),
            (StyleScope::Text, format!("{name}{}", " ".repeat(blank))),
        ]
    };
    let line = |row: usize| entries.iter().skip(row).step_by(height.max(1)).flat_map(|e| cell(e)).collect();
    (0..height).map(line).collect()
}
