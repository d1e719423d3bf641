//! A list to choose from, narrowed by typing.
//!
//! In: entries, then keys and clicks. Executions can be marked: two of them are compared, several become the slow
//! group. A key that narrows or orders costs a look at all entries; all others, and drawing, the lines on the screen.

use crate::tui::app::{App, Layer, LayerResponse};
use crate::tui::canvas::{Canvas, width};
use crate::tui::input::TextInput;
use crate::tui::key::{KeyPress, QUIT};
use crate::tui::pane::Pane;
use crate::tui::theme::StyleScope;
use crate::tui::widget::page::MARK;
use crossterm::event::KeyCode;
use ratatui::layout::{Position, Rect};
use std::collections::BTreeSet;
use std::fmt::Debug;

/// What is chosen in a list.
pub trait Choice: Clone + Debug + 'static {
    /// The effect of choosing it.
    fn chosen(self) -> LayerResponse;

    /// The number of the execution, in lists of executions.
    fn execution(&self) -> Option<u32> {
        None
    }

    /// The cursor has come to it.
    fn reached(&self) -> LayerResponse {
        LayerResponse::TAKEN
    }

    /// To the entry at the left (-1) or at the right (1) of it on the heat map.
    fn beside(&self, _by: isize) -> LayerResponse {
        LayerResponse::TAKEN
    }

    /// The mouse button went down outside of the list.
    fn outside(_at: Position) -> LayerResponse {
        LayerResponse::CLOSE
    }

    /// The effect of taking several executions together.
    fn taken(_numbers: Vec<u32>) -> LayerResponse {
        LayerResponse::TAKEN
    }
}

/// An entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MenuItem<C> {
    /// The name, searched and shown first.
    pub name: String,
    /// The rest of the line.
    pub help: String,
    pub choice: C,
}

/// The order of a list of executions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MenuOrder {
    /// As the entries come.
    #[default]
    Given,
    /// In order of time, in which executions are numbered.
    Time,
    /// By type, thread and what they waited for.
    Text,
}

impl MenuOrder {
    /// In words, of executions that come with the slowest first.
    pub fn words(self) -> &'static str {
        match self {
            MenuOrder::Given => "the slowest first",
            MenuOrder::Time => "in order of time",
            MenuOrder::Text => "by type and thread",
        }
    }

    /// The one after it.
    fn next(self) -> MenuOrder {
        match self {
            MenuOrder::Given => MenuOrder::Time,
            MenuOrder::Time => MenuOrder::Text,
            MenuOrder::Text => MenuOrder::Given,
        }
    }
}

/// A list, and what was typed and marked in it.
#[derive(Clone, Debug)]
pub struct Menu<C> {
    pub title: &'static str,
    /// The text typed.
    input: TextInput,
    items: Vec<MenuItem<C>>,
    /// Positions of the entries that fit, in their order.
    found: Vec<u32>,
    /// Columns of the longest name, and of the shortest help.
    columns: [usize; 2],
    /// Position of the cursor among those that fit.
    pub at: usize,
    /// Numbers of the executions that are marked.
    pub marked: BTreeSet<u32>,
    /// The order of executions.
    order: MenuOrder,
}

/// Changes the order of executions.
const ORDER: KeyPress = KeyPress::control('o');

/// Makes the marked executions the slow group, or all that are listed if none is marked.
const TAKE: KeyPress = KeyPress::control('s');

impl<C: Choice> Menu<C> {
    /// A list with nothing typed yet.
    pub fn new(title: &'static str, items: Vec<MenuItem<C>>) -> Menu<C> {
        let (input, found, columns) = (TextInput::default(), Vec::new(), [0; 2]);
        let (marked, order) = (BTreeSet::new(), MenuOrder::Given);
        let mut menu = Menu { title, input, items: Vec::new(), found, columns, at: 0, marked, order };
        menu.put(items);
        menu
    }

    fn put(&mut self, items: Vec<MenuItem<C>>) {
        let widest = items.iter().map(|item| width(&item.name)).max().unwrap_or(0);
        let least = items.iter().map(|item| width(&item.help)).min().unwrap_or(0);
        (self.items, self.columns) = (items, [widest, least]);
        self.narrow();
    }

    /// Find the entries that fit the typed text: all its words occur in the name or in the help. Those whose names
    /// begin with its first word come first, unless they are ordered otherwise.
    fn narrow(&mut self) {
        let mut found = fitting(&self.items, self.input.text());
        let item = |at: &u32| &self.items[*at as usize];
        match self.order {
            MenuOrder::Given => {}
            MenuOrder::Time => found.sort_by_key(|at| item(at).choice.execution()),
            MenuOrder::Text => found.sort_by(|a, b| item(a).help.cmp(&item(b).help)),
        }
        self.found = found;
    }

    /// True for a list of executions.
    pub fn is_of_executions(&self) -> bool {
        self.items.first().is_some_and(|item| item.choice.execution().is_some())
    }

    /// The entries that fit the typed text, in their order.
    pub fn fitting(&self) -> impl ExactSizeIterator<Item = &MenuItem<C>> {
        self.found.iter().map(|at| &self.items[*at as usize])
    }

    /// The entry under the cursor.
    pub fn here(&self) -> Option<C> {
        self.fitting().nth(self.at).map(|item| item.choice.clone())
    }

    /// Put the cursor on the entry of an execution, if it is listed.
    pub fn go_to(&mut self, number: u32) {
        let at = self.fitting().position(|item| item.choice.execution() == Some(number));
        self.at = at.unwrap_or(self.at);
    }

    /// The rectangle of the list: one of executions leaves the heat map in sight, on which its cursor is shown.
    fn area(&self, app: &App) -> Rect {
        let beside = app.frame.beside_heat().filter(|_| self.is_of_executions() && app.pane == Pane::Histograms);
        beside.unwrap_or(app.frame.overlay)
    }

    /// An answer, or where it has none and the cursor is on another entry than before, what follows from that.
    fn followed(&self, before: Option<u32>, response: LayerResponse) -> LayerResponse {
        let here = self.here();
        let moved = here.as_ref().is_some_and(|here| here.execution() != before);
        match here.filter(|_| moved && !response.closes && response.then.is_none()) {
            Some(here) => here.reached(),
            None => response,
        }
    }

    /// Replace the entries; the cursor stays on the one of the same name.
    pub fn replace(&mut self, items: Vec<MenuItem<C>>) {
        let here = self.fitting().nth(self.at).map(|item| item.name.clone());
        self.put(items);
        let at = self.fitting().position(|item| Some(&item.name) == here.as_ref());
        self.at = at.unwrap_or(0);
    }

    /// The executions that the slow group will have: the marked ones, else all that are listed.
    fn taken(&self) -> Vec<u32> {
        match self.marked.is_empty() {
            true => self.fitting().filter_map(|item| item.choice.execution()).collect(),
            false => self.marked.iter().copied().collect(),
        }
    }

    /// The typed text, the entries that fit below; the cursor is on one, others may be marked.
    fn picture(&self, canvas: &mut Canvas<'_>) {
        canvas.clear();
        canvas.fill(0, 0, canvas.width(), '─', StyleScope::Rule);
        let order = if self.is_of_executions() { format!(", {}", self.order.words()) } else { String::new() };
        canvas.text(2, 0, &format!(" {}{order} ", self.title), StyleScope::Title);
        self.input.draw(canvas, 1, "");
        let shown = canvas.height().saturating_sub(2);
        if self.found.is_empty() {
            canvas.text(2, 2, "no match", StyleScope::Dim);
        }
        let offset = (self.at + 1).saturating_sub(shown);
        let widest = name_columns(self.columns, canvas.width());
        for (y, choice) in self.fitting().skip(offset).take(shown).enumerate() {
            let here = offset + y == self.at;
            let end = canvas.text_in(
                2,
                y + 2,
                widest,
                &choice.name,
                if here { StyleScope::Strong } else { StyleScope::Text },
            );
            canvas.text(end.max(widest + 2) + 2, y + 2, &choice.help, StyleScope::Dim);
            if choice.choice.execution().is_some_and(|number| self.marked.contains(&number)) {
                canvas.text(0, y + 2, MARK, StyleScope::Selection);
            }
            if here {
                canvas.mark_line(y + 2);
            }
        }
    }

    fn press(&mut self, key: KeyPress) -> LayerResponse {
        const PAGE: usize = 10;
        let last = self.found.len().saturating_sub(1);
        let here = self.here();
        match key.plain() {
            Some(KeyCode::Esc) => return LayerResponse::CLOSE,
            Some(KeyCode::Enter) => return here.map_or(LayerResponse::TAKEN, C::chosen),
            Some(KeyCode::Tab) if here.as_ref().is_some_and(|here| here.execution().is_some()) => {
                let number = here.and_then(|here| here.execution());
                if let Some(number) = number.filter(|number| !self.marked.remove(number)) {
                    self.marked.insert(number);
                }
                self.at = (self.at + 1).min(last);
            }
            Some(KeyCode::Up) => self.at = self.at.saturating_sub(1),
            Some(KeyCode::Down | KeyCode::Tab) => self.at = (self.at + 1).min(last),
            Some(KeyCode::PageUp) => self.at = self.at.saturating_sub(PAGE),
            Some(KeyCode::PageDown) => self.at = (self.at + PAGE).min(last),
            Some(KeyCode::Left) if self.input.text().is_empty() && here.is_some() => {
                return here.map_or(LayerResponse::TAKEN, |here| here.beside(-1));
            }
            Some(KeyCode::Right) if self.input.text().is_empty() && here.is_some() => {
                return here.map_or(LayerResponse::TAKEN, |here| here.beside(1));
            }
            _ if key == QUIT => return LayerResponse::CLOSE,
            _ if key == ORDER && self.is_of_executions() => {
                self.order = self.order.next();
                self.at = 0;
                self.narrow();
            }
            _ if key == TAKE => {
                let taken = self.taken();
                if !taken.is_empty() {
                    return C::taken(taken);
                }
            }
            _ => {
                if self.input.key(key) {
                    self.at = 0;
                    self.narrow();
                }
            }
        }
        LayerResponse::TAKEN
    }
}

/// Positions of those that fit, those whose names begin with the first word first.
fn fitting<C>(items: &[MenuItem<C>], typed: &str) -> Vec<u32> {
    let words: Vec<String> = typed.split_whitespace().map(str::to_lowercase).collect();
    let starts = |c: &MenuItem<C>| !words.is_empty() && c.name.to_lowercase().starts_with(&words[0]);
    let fits = |c: &MenuItem<C>| {
        let text = format!("{} {}", c.name, c.help).to_lowercase();
        words.iter().all(|w| text.contains(w))
    };
    let fitting = (0_u32..).zip(items).filter(|(_, c)| words.is_empty() || fits(c));
    let (first, rest): (Vec<_>, Vec<_>) = fitting.partition(|(_, c)| starts(c));
    first.into_iter().chain(rest).map(|(at, _)| at).collect()
}

impl<C: Choice> Layer for Menu<C> {
    fn key(&mut self, key: KeyPress, _: &App) -> LayerResponse {
        let before = self.here().and_then(|here| here.execution());
        let response = self.press(key);
        self.followed(before, response)
    }

    fn paste(&mut self, text: &str) -> LayerResponse {
        self.input.insert(text);
        self.at = 0;
        self.narrow();
        LayerResponse::TAKEN
    }

    /// The entry of a line gets the cursor; the one that has it is chosen.
    fn click(&mut self, at: Position, app: &App) -> LayerResponse {
        let area = self.area(app);
        if !area.contains(at) {
            return C::outside(at);
        }
        let offset = (self.at + 1).saturating_sub(usize::from(area.height).saturating_sub(2));
        let entry = usize::from(at.y - area.y).checked_sub(2).map(|line| offset + line);
        match entry.filter(|entry| *entry < self.found.len()) {
            Some(entry) if entry == self.at => self.press(KeyPress::of(KeyCode::Enter)),
            Some(entry) => {
                let before = self.here().and_then(|here| here.execution());
                self.at = entry;
                self.followed(before, LayerResponse::TAKEN)
            }
            None => LayerResponse::TAKEN,
        }
    }

    fn wheel(&mut self, lines: isize, _: &App) -> LayerResponse {
        let key = KeyPress::of(if lines < 0 { KeyCode::Up } else { KeyCode::Down });
        let before = self.here().and_then(|here| here.execution());
        for _ in 0..lines.unsigned_abs() {
            self.press(key);
        }
        self.followed(before, LayerResponse::TAKEN)
    }

    fn keys(&self, _: &App) -> &'static [(&'static str, &'static str)] {
        if self.is_of_executions() {
            return &[
                ("Enter", "timeline"),
                ("Tab", "mark"),
                ("Ctrl-s", "slow group"),
                ("Ctrl-o", "order"),
                ("arrows", "move"),
                ("Esc", "close"),
                ("letters", "narrow"),
            ];
        }
        &[("Enter", "choose"), ("Up Down", "move"), ("Esc", "close"), ("letters", "narrow")]
    }

    fn draw(&self, canvas: &mut Canvas<'_>, app: &App) {
        self.picture(&mut canvas.part(self.area(app)));
    }
}

/// Columns of the names, of which the longest and the shortest help have these: what the figures beside them leave, or
/// half where sentences stand there.
fn name_columns([widest, figures]: [usize; 2], columns: usize) -> usize {
    const LEAST: usize = 12;
    let left = columns.saturating_sub(figures + 4);
    widest.min(if left >= LEAST && figures > 0 { left } else { columns / 2 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::theme::{ColourDepth, Theme, built_in};
    use ratatui::buffer::Buffer;

    #[derive(Clone, Debug)]
    struct Number(u32);

    impl Choice for Number {
        fn chosen(self) -> LayerResponse {
            LayerResponse::TAKEN
        }

        fn execution(&self) -> Option<u32> {
            Some(self.0)
        }

        fn taken(_: Vec<u32>) -> LayerResponse {
            LayerResponse::CLOSE
        }
    }

    fn executions() -> Menu<Number> {
        let item = |(number, help): (u32, &str)| MenuItem {
            name: format!("{number}  5.00 ms"),
            help: help.into(),
            choice: Number(number),
        };
        let all = [(7, "worker append"), (3, "worker lookup"), (9, "journal append")];
        Menu::new("Executions", all.map(item).to_vec())
    }

    #[test]
    fn take_is_of_the_marked_executions_else_of_all_that_are_listed() {
        let mut menu = executions();
        menu.paste("append");
        assert_eq!(menu.taken(), [7, 9]);
        menu.press(KeyPress::of(KeyCode::Tab));
        assert_eq!(menu.at, 1, "the next one can be marked at once");
        assert!(menu.taken() == [7] && menu.press(TAKE).closes);
        menu.press(KeyPress::of(KeyCode::Up));
        menu.press(KeyPress::of(KeyCode::Tab));
        assert!(menu.marked.is_empty(), "a second time takes the mark away");
        menu.paste(" nothing like that");
        assert!(menu.taken().is_empty() && !menu.press(TAKE).closes);
    }

    #[test]
    fn order_goes_through_time_and_text_and_back() {
        let mut menu = executions();
        let numbers =
            |menu: &Menu<Number>| menu.fitting().filter_map(|item| item.choice.execution()).collect::<Vec<_>>();
        let press = |menu: &mut Menu<Number>| {
            menu.press(ORDER);
            numbers(menu)
        };
        assert_eq!(
            [press(&mut menu), press(&mut menu), press(&mut menu)],
            [vec![3, 7, 9], vec![9, 7, 3], vec![7, 3, 9]]
        );
    }

    #[test]
    fn replace_keeps_the_cursor_on_its_entry() {
        let mut menu = executions();
        menu.at = 2;
        let mut items = menu.items.clone();
        items.reverse();
        menu.replace(items);
        assert_eq!(menu.at, 0);
    }

    #[test]
    fn figures_stay_whole_beside_long_names() {
        let item = |name: &str, help: &str| MenuItem { name: name.into(), help: help.into(), choice: Number(0) };
        let figures = "     700 executions  p50  4.59 ms  p99  60.6 ms";
        let choices = [item(&"wait=epoll_pwait2,thread=".repeat(3), figures), item("short", figures)];
        let theme = Theme::compile(&built_in()[0], ColourDepth::True).unwrap();
        for columns in [64_u16, 80, 200] {
            let mut buffer = Buffer::empty(Rect::new(0, 0, columns, 6));
            Menu::new("Task", choices.to_vec()).picture(&mut Canvas::new(&mut buffer, &theme));
            let text: String = buffer.content.iter().map(|cell| cell.symbol()).collect();
            assert_eq!(text.matches("p99  60.6 ms").count(), 2, "{columns}: {text}");
        }
    }
}
