//! The anomaly list: one line per occurrence that took too long: by how much, where, when, source or victim of what,
//! and in which pattern.

use crate::view::tui::app::{App, Pane};
use crate::view::tui::canvas::{Canvas, width};
use crate::view::tui::figure;
use crate::view::tui::layout::list_lines;
use crate::view::tui::patterns::{Found, Role};
use crate::view::tui::theme::Scope;

/// Draw it.
pub fn draw(canvas: &mut Canvas<'_>, app: &App) {
    let Some(found) = &app.patterns.found else { return };
    let list = &app.patterns.list;
    let columns = Columns::of(canvas.width(), found);
    let head = canvas.height().saturating_sub(list_lines(app).min(canvas.height()));
    if head > 0 {
        columns.head(canvas, app, found);
    }
    if list.visible.is_empty() {
        let text = match found.anomalies.anomalies.is_empty() {
            true => "nothing took too long: { lowers the threshold, p shows the patterns",
            false => "no anomaly has all of these words: Esc shows all",
        };
        canvas.text(2, head + 1, text, Scope::Dim);
    }
    let shown = list.visible.iter().enumerate().skip(list.offset).take(canvas.height() - head);
    for (line, (row, at)) in shown.enumerate() {
        let here = app.pane == Pane::Anomalies && row == list.row;
        columns.row(canvas, head + line, app, found, *at, here);
    }
}

/// Times the reference: `21.3 ×`; what is beyond four digits only says so.
fn factor(times: f64) -> String {
    match times {
        f if f >= 9_999.5 => ">9999 ×".to_owned(),
        f if f >= 99.95 => format!("{f:.0} ×"),
        f => format!("{f:.1} ×"),
    }
}

/// Which columns there is room for; a width of 0 leaves the column out.
struct Columns {
    extra: usize,
    factor: usize,
    time: usize,
    place: usize,
    role: usize,
}

impl Columns {
    fn of(columns: usize, found: &Found) -> Columns {
        let widest = (0..found.anomalies.streams.len() as u32).map(|s| width(&found.place(s))).max().unwrap_or(0);
        let place = widest.clamp(5, if columns >= 100 { 24 } else { 14 });
        let (extra, factor, time, role) = match columns {
            0..=29 => (9, 0, 0, 0),
            30..=59 => (9, 0, 0, 18.min(columns.saturating_sub(place + 12))),
            60..=77 => (9, 7, 0, 18),
            78..=99 => (9, 7, 12, 18),
            _ => (9, 7, 14, 12 + place.min(20)),
        };
        Columns { extra, factor, time, place, role }
    }

    fn ends(&self) -> [usize; 3] {
        let mut end = 1;
        [self.extra, self.factor, self.time].map(|columns| {
            end += columns + usize::from(columns > 0);
            if columns > 0 { end } else { 0 }
        })
    }

    /// Column after the figures.
    fn text_from(&self) -> usize {
        self.ends().into_iter().max().unwrap_or(0) + 2
    }

    fn head(&self, canvas: &mut Canvas<'_>, app: &App, found: &Found) {
        let list = &app.patterns.list;
        for (end, name) in self.ends().into_iter().zip(["extra", "factor", "at"]).filter(|(end, _)| *end > 0) {
            canvas.right(end, 0, name, Scope::Dim);
        }
        let mut at = self.text_from();
        for (columns, name) in [(self.place, "place"), (self.role, "role")] {
            if columns > 0 {
                canvas.text_in(at, 0, columns, name, Scope::Dim);
                at += columns + 2;
            }
        }
        let all = found.anomalies.anomalies.len() as u64;
        let count = match (list.filter.is_empty(), list.search.text.is_empty()) {
            (true, true) => format!("{} by {}", figure::count(all), list.order.name()),
            (false, _) => format!("{} of {} with '{}'", list.visible.len(), figure::count(all), list.filter),
            (true, false) => format!("{} match /{}", list.search.matches.len(), list.search.text),
        };
        let what = canvas.text(at, 0, "what", Scope::Dim);
        if what + width(&count) + 2 <= canvas.width() {
            canvas.right(canvas.width(), 0, &count, Scope::Dim);
        }
    }

    fn row(&self, canvas: &mut Canvas<'_>, y: usize, app: &App, found: &Found, at: u32, here: bool) {
        let Some(anomaly) = found.get(at) else { return };
        let scope = match found.roles.get(at as usize) {
            Some(Role::Source(_)) => Scope::Slow3,
            Some(Role::Alone) => Scope::Slow2,
            Some(Role::Victim(_)) => Scope::Text,
            _ => Scope::Dim,
        };
        let figures = [
            (figure::extra(anomaly.excess_ns as f64), scope),
            (factor(anomaly.factor), Scope::Text),
            (figure::stamp(anomaly.span.start - app.origin()), Scope::Dim),
        ];
        for (end, (text, scope)) in self.ends().into_iter().zip(figures) {
            if end > 0 {
                canvas.right(end, y, &text, scope);
            }
        }
        let list = &app.patterns.list;
        let matched = list.search.matches.contains(&at);
        let text = match (matched, here) {
            (true, _) => Scope::Match,
            (false, true) => Scope::Strong,
            (false, false) => Scope::Text,
        };
        let mut x = self.text_from();
        canvas.text_in(x, y, self.place, &found.place(anomaly.stream), text);
        x += self.place + 2;
        if self.role > 0 {
            canvas.text_in(x, y, self.role, &found.role(at), scope);
            x += self.role + 2;
        }
        if x + 6 < canvas.width() {
            canvas.text(x, y, &found.what(anomaly), text);
        }
        if here {
            canvas.shade(0, y, canvas.width(), Scope::Cursor);
            canvas.text(0, y, "▌", Scope::Selection);
        }
    }
}
