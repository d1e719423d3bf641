//! The state history: the value of each attribute at every instant, as a view of the rows of a timeline.
//!
//! An attribute has a path (`threads/7/state`) and is a name for a line of rows; nothing is copied. \[002\] calls such
//! a history a state history tree; here the tree is the one above the leaves of the store (`timeline::store`).
//!
//! - [`attributes_of`]: which attributes a recording has, and of which rows
//! - [`join`]: rows become intervals
//! - [`view`]: questions by path; [`instant`]: at an instant, of two leaves at most; [`around`]: about a span
//! - [`all_threads`]: questions about all threads
//! - [`lines`]: what is asked, and what the `query` command prints

mod all_threads;
mod around;
mod attributes_of;
mod instant;
mod join;
pub mod lines;
pub mod view;

#[cfg(test)]
mod instant_tests;

use crate::base::names::NameId;
use std::collections::BTreeMap;

pub use all_threads::{Slots, ThreadActivity};
pub use attributes_of::STATES;
pub use view::StateHistory;

/// The value of an attribute. An unknown value has no interval, so there is no variant for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StateValue {
    /// A position in [`STATES`].
    Code(u16),
    /// A number.
    Int(i64),
    /// A text in the table of names.
    Text(NameId),
}

/// A value as screens and JSON show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown<'a> {
    Number(i64),
    /// A text, or the name of a state.
    Text(&'a str),
}

impl Shown<'_> {
    /// True where it is shown like this.
    pub fn is(self, text: &str) -> bool {
        match self {
            Shown::Number(number) => number.to_string() == text,
            Shown::Text(own) => own == text,
        }
    }
}

/// Time in ns by state code.
pub type Times = BTreeMap<u16, u64>;

/// The state with most time; of two equal ones the lower code.
pub fn most(times: &Times) -> Option<u16> {
    times.iter().max_by_key(|(code, time)| (**time, std::cmp::Reverse(**code))).map(|(code, _)| *code)
}
