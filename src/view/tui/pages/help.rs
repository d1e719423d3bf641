//! The help page: the table of actions, and how to read the screen.

use crate::view::tui::actions::{ActionScope, KeyBinding, TABLE};
use crate::view::tui::theme::StyleScope;
use crate::view::tui::widget::page::{StyledLine, paragraph, plain};

const READING: &[&str] = &[
    "The verdict at the top says what makes the slow executions slow. The causes are listed below it, the largest \
     first; their extra times add up to the difference between the means of the two groups.",
    "A tree node is a call path: functions, [system calls], [waits] and the threads that were waited for. Its bar \
     is the slow group's mean time there. Extra is the slow mean minus the fast mean. Dev is that difference in \
     standard deviations of the fast group: below 1 it is noise, from 3 on the colour is full. 'few' means too \
     few executions. '% of slow' is the share of slow executions that have the node.",
    "Dev uses the standard deviation of the fast group: swapping the groups changes its scale.",
    "Runnable means ready to run but not on a CPU: preempted, or woken and waiting for a CPU.",
    "A histogram counts the executions that pass the group's filters on all other metrics; bars that the group's \
     own filter on this metric excludes are faint, and a double line underlines those that it includes. Select a \
     range with < and >, then press s or f: the range becomes that group's filter, and moving it with \
     Shift-arrows moves the group.",
    "An anomaly is an occurrence of a frequent pattern that took more than s times the longest of its reference, \
     which is the fastest fraction q of all occurrences. A root cause is an anomaly that no other anomaly \
     explains; its victims waited for it, directly or through others. The propagation has time from left to right \
     and a line per rank or thread: full bars are root causes, shaded bars wait, arrows are messages or wake-ups; \
     dots connect a delay with the wait that it caused.",
    "If the groups were chosen by duration, the upper nodes differ by construction; look for where in the tree \
     the difference is.",
];

/// Its lines in this width.
pub fn lines(columns: usize) -> Vec<StyledLine> {
    let mut lines = Vec::new();
    let panes = ActionScope::PANES.into_iter().map(|scope| (scope, format!("In the {}", scope.name())));
    for (scope, title) in [(ActionScope::Any, "Everywhere".to_owned())].into_iter().chain(panes) {
        lines.push(plain(StyleScope::Strong, title));
        let entries: Vec<&KeyBinding> = TABLE.iter().filter(|e| e.scope == scope).collect();
        for entry in entries {
            let keys = if entry.keys.is_empty() { format!(": {}", entry.name) } else { entry.keys.to_owned() };
            let mut rest = paragraph(StyleScope::Text, entry.help, columns.saturating_sub(20).max(12), 0).into_iter();
            let mut first: StyledLine = vec![(StyleScope::Key, format!("  {keys:<18}"))];
            first.extend(rest.next().unwrap_or_default());
            lines.push(first);
            for more in rest {
                let mut line = plain(StyleScope::Text, " ".repeat(20));
                line.extend(more);
                lines.push(line);
            }
        }
        lines.push(StyledLine::new());
    }
    lines.push(plain(StyleScope::Strong, "How to read it"));
    for text in READING {
        lines.extend(paragraph(StyleScope::Text, text, columns, 0));
        lines.push(StyledLine::new());
    }
    lines
}
