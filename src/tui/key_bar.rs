//! The key bar: the keys of the pane in front and of all panes, as many as fit, from the table of actions.
//!
//! While a pane has nothing to show yet, only the keys that do something then are named.

use super::actions::{Action, ActionScope, KeyBinding};
use super::app::App;
use super::canvas::width;
use super::key::KeyPress;
use super::layers::ranks;
use std::ops::Range;

/// A key with its word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyWord {
    /// The key as shown.
    pub key: String,
    pub word: &'static str,
    /// What it does.
    pub action: Action,
    pub x: usize,
}

impl KeyWord {
    /// The columns that it takes.
    pub fn columns(&self) -> Range<usize> {
        self.x..self.x + width(&self.key) + 1 + width(self.word)
    }
}

/// The words in this many columns. Help and quit come last and stay longest.
pub fn words(app: &App, columns: usize) -> Vec<KeyWord> {
    let scope = app.pane.scope();
    let own = app.options.keys.rows().iter().filter(|e| e.scope == scope && app.has_results());
    let any = app.options.keys.rows().iter().filter(|e| e.scope == ActionScope::Any);
    let useful = |e: &&KeyBinding| match e.action {
        Action::ShowRanks => ranks::are_known(app),
        Action::Details | Action::Export => app.has_results(),
        Action::ChooseTask => app.model.is_some(),
        Action::ShowExecutions => app.comparison.is_some(),
        Action::Undo => app.has_results() && app.groups.can_undo(),
        Action::ShowTimeline => app.comparison.is_some() && app.has_events,
        Action::ShowOverview => app.has_events,
        _ => true,
    };
    let word = |e: &KeyBinding| {
        // A key of all panes may have another meaning in this one.
        let means = |key: &&str| {
            let here = KeyPress::parse(key).and_then(|press| app.options.keys.bound(press, scope));
            here == Some(e.action)
        };
        let key = e.keys.split(' ').find(means)?;
        // `<` represents the pair.
        let key = if key == "<" { "< >" } else { key };
        Some(KeyWord { key: key.to_owned(), word: e.footer?, action: e.action, x: 0 })
    };
    let mut words: Vec<KeyWord> = own.chain(any).filter(useful).filter_map(word).collect();
    let length = |words: &[KeyWord]| words.iter().map(|w| w.columns().len() + 2).sum::<usize>();
    while words.len() > 2 && length(&words) > columns + 2 {
        words.remove(words.len() - 3);
    }
    let mut x = 0;
    for word in &mut words {
        word.x = x;
        x = word.columns().end + 2;
    }
    words
}
