//! A list to choose from, narrowed by typing.
//!
//! In: entries, then keys. Out: what a key does ([`MenuResponse`]). Executions can be marked: two of them are
//! compared, several become the slow group. Narrowing costs O(entries) for each key.

use super::actions::Action;
use super::input::TextInput;
use super::key::{KeyPress, QUIT};
use crossterm::event::KeyCode;
use std::collections::BTreeSet;

/// An entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MenuItem {
    /// The name, searched and shown first.
    pub name: String,
    /// The rest of the line.
    pub help: String,
    /// The effect of choosing it.
    pub command: MenuCommand,
}

/// The effect of a choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MenuCommand {
    /// An action of the table.
    Act(Action),
    /// Analyse for this task.
    Task(String),
    /// Take this theme.
    Theme(usize),
    /// Show this function with its callers and callees.
    Function(String),
    /// Show the time-line of the execution of this number.
    Execution(u32),
    /// Make the kind of slow executions at this position the slow group.
    Kind(usize),
    /// Go to the histogram of this metric.
    Metric(String),
    /// Go to the bookmark at this position.
    Bookmark(usize),
}

impl MenuCommand {
    /// The number of the execution, in the list of executions.
    fn execution(&self) -> Option<u32> {
        match self {
            MenuCommand::Execution(number) => Some(*number),
            _ => None,
        }
    }
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
pub struct Menu {
    pub title: &'static str,
    /// The text typed.
    pub input: TextInput,
    /// All entries.
    pub items: Vec<MenuItem>,
    /// Position of the cursor among those that fit.
    pub at: usize,
    /// Numbers of the executions that are marked.
    pub marked: BTreeSet<u32>,
    /// The order of executions.
    pub order: MenuOrder,
}

/// What a key does on a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MenuResponse {
    /// Nothing more: the key is used up.
    Taken,
    Close,
    /// Run this.
    Run(MenuCommand),
    /// Make these executions the slow group.
    MakeSlow(Vec<u32>),
}

/// Changes the order of executions.
const ORDER: KeyPress = KeyPress::control('o');

/// Makes the marked executions the slow group, or all that are listed if none is marked.
const TAKE: KeyPress = KeyPress::control('s');

impl Menu {
    /// A list with nothing typed yet.
    pub fn new(title: &'static str, items: Vec<MenuItem>) -> Menu {
        Menu { title, input: TextInput::default(), items, at: 0, marked: BTreeSet::new(), order: MenuOrder::Given }
    }

    /// True for a list of executions.
    pub fn is_of_executions(&self) -> bool {
        self.items.first().is_some_and(|item| item.command.execution().is_some())
    }

    /// Its keys, for the footer.
    pub fn keys(&self) -> &'static [(&'static str, &'static str)] {
        if self.is_of_executions() {
            return &[
                ("Enter", "time-line"),
                ("Tab", "mark"),
                ("Ctrl-s", "slow group"),
                ("Ctrl-o", "order"),
                ("Up Down", "move"),
                ("Esc", "close"),
                ("letters", "narrow"),
            ];
        }
        &[("Enter", "choose"), ("Up Down", "move"), ("Esc", "close"), ("letters", "narrow")]
    }

    /// The entries that fit the typed text: all its words occur in the name or in the help. Those whose names begin
    /// with its first word come first, unless they are ordered otherwise.
    pub fn fitting(&self) -> impl Iterator<Item = &MenuItem> {
        let mut found: Vec<&MenuItem> = fitting(&self.items, self.input.text()).collect();
        match self.order {
            MenuOrder::Given => {}
            MenuOrder::Time => found.sort_by_key(|item| item.command.execution()),
            MenuOrder::Text => found.sort_by_key(|item| item.help.as_str()),
        }
        found.into_iter()
    }

    /// Replace the entries; the cursor stays on the one of the same name.
    pub fn replace(&mut self, items: Vec<MenuItem>) {
        let here = self.fitting().nth(self.at).map(|item| item.name.clone());
        self.items = items;
        let at = self.fitting().position(|item| Some(&item.name) == here.as_ref());
        self.at = at.unwrap_or(0);
    }

    /// Take pasted text.
    pub fn paste(&mut self, text: &str) {
        self.input.insert(text);
        self.at = 0;
    }

    /// The executions that the slow group will have: the marked ones, else all that are listed.
    fn taken(&self) -> Vec<u32> {
        match self.marked.is_empty() {
            true => self.fitting().filter_map(|item| item.command.execution()).collect(),
            false => self.marked.iter().copied().collect(),
        }
    }

    /// Take a key.
    pub fn key(&mut self, key: KeyPress) -> MenuResponse {
        const PAGE: usize = 10;
        let found: Vec<&MenuItem> = self.fitting().collect();
        let last = found.len().saturating_sub(1);
        let here = found.get(self.at).map(|item| item.command.clone());
        match key.plain() {
            Some(KeyCode::Esc) => return MenuResponse::Close,
            Some(KeyCode::Enter) => return here.map_or(MenuResponse::Taken, MenuResponse::Run),
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
            _ if key == QUIT => return MenuResponse::Close,
            _ if key == ORDER && self.is_of_executions() => {
                self.order = self.order.next();
                self.at = 0;
            }
            _ if key == TAKE => {
                let taken = self.taken();
                if !taken.is_empty() {
                    return MenuResponse::MakeSlow(taken);
                }
            }
            _ => {
                if self.input.key(key) {
                    self.at = 0;
                }
            }
        }
        MenuResponse::Taken
    }
}

fn fitting<'a>(items: &'a [MenuItem], typed: &str) -> impl Iterator<Item = &'a MenuItem> {
    let words: Vec<String> = typed.split_whitespace().map(str::to_lowercase).collect();
    let starts = |c: &MenuItem| !words.is_empty() && c.name.to_lowercase().starts_with(&words[0]);
    let fits = |c: &MenuItem| {
        let text = format!("{} {}", c.name, c.help).to_lowercase();
        words.iter().all(|w| text.contains(w))
    };
    let (first, rest): (Vec<&MenuItem>, Vec<&MenuItem>) = items.iter().filter(|c| fits(c)).partition(|c| starts(c));
    first.into_iter().chain(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn executions() -> Menu {
        let item = |(number, help): (u32, &str)| MenuItem {
            name: format!("{number}  5.00 ms"),
            help: help.into(),
            command: MenuCommand::Execution(number),
        };
        let all = [(7, "worker append"), (3, "worker lookup"), (9, "journal append")];
        Menu::new("Executions", all.map(item).to_vec())
    }

    #[test]
    fn take_is_of_the_marked_executions_else_of_all_that_are_listed() {
        let mut menu = executions();
        menu.paste("append");
        assert_eq!(menu.key(TAKE), MenuResponse::MakeSlow(vec![7, 9]));
        menu.key(KeyPress::of(KeyCode::Tab));
        assert_eq!(menu.at, 1, "the next one can be marked at once");
        assert_eq!(menu.key(TAKE), MenuResponse::MakeSlow(vec![7]));
        menu.key(KeyPress::of(KeyCode::Up));
        menu.key(KeyPress::of(KeyCode::Tab));
        assert!(menu.marked.is_empty(), "a second time takes the mark away");
        menu.paste(" nothing like that");
        assert_eq!(menu.key(TAKE), MenuResponse::Taken);
    }

    #[test]
    fn order_goes_through_time_and_text_and_back() {
        let mut menu = executions();
        let numbers = |menu: &Menu| menu.fitting().filter_map(|item| item.command.execution()).collect::<Vec<_>>();
        let press = |menu: &mut Menu| {
            menu.key(ORDER);
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
}
