//! The terminal interface: the answer first, then the evidence, by keyboard, over a slow line.
//!
//! [`run`] is the loop: it draws the state, waits for a message (a key, a result, a signal), gives it to
//! [`update`](update::update) and performs the effects. One thread turns the terminal's input into messages, another
//! does slow work (`jobs`); the loop itself waits for neither, so that a key is answered within a frame.
//!
//! ```text
//!  keys, signals, results -> UiMessage -> update(&mut App) -> UiEffects -> the loop performs them
//!                                            |
//!                                         layout: once per message -> App::frame (rectangles, wrapped texts)
//!                                            |
//!                                         screen::draw(&App) -> Buffer -> paint: fewest bytes -> terminal
//! ```
//!
//! [`actions`] has the keys, `header` the text above the panes, [`panes`] and [`layers`] a file for each pane and each
//! dialog, `widget/` what several of them draw with, [`theme`] the colours. No two files use each other
//! (`tests/layers.rs`).

pub mod actions;
pub mod app;
pub mod background;
pub mod bookmarks;
mod canvas;
mod cause_labels;
pub mod completion;
mod concurrent;
mod copied;
pub mod counts;
pub mod details;
mod event_loop;
pub mod frame;
pub mod groups;
mod header;
mod header_strips;
pub mod heat_cells;
pub mod input;
pub mod job;
mod jobs;
pub mod keeping;
pub mod key;
pub mod key_bar;
pub mod key_bindings;
pub mod key_map;
pub mod keyboard;
pub mod layers;
mod layout;
pub mod message;
pub mod overview;
pub mod paint;
pub mod pane;
pub mod panes;
pub mod patterns;
pub mod report;
pub mod runner;
pub mod saved;
pub mod screen;
pub mod search;
pub mod setup;
pub mod sources;
pub mod svg;
pub mod tabs;
mod terminal;
pub mod theme;
mod time_window;
pub mod tour;
pub mod tree;
pub mod update;
pub mod widget;

pub use event_loop::run;
pub use job::Exported;
pub use setup::{Backend, FirstQuestion, UiOptions};

/// Restore the terminal, if it was taken over. Does not wait and allocates nothing.
pub fn give_back() {
    terminal::leave();
}
