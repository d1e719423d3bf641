//! The dialogs: each file has one with its state, its answers to keys and the mouse, and its drawing.

pub mod anomaly;
pub mod baseline;
pub mod bookmarks;
pub mod details;
pub mod executions;
pub mod files;
pub mod filters;
pub mod functions;
pub mod help;
pub mod kinds;
pub mod menu;
pub mod overview;
pub mod page;
pub mod palette;
pub mod prompt;
pub mod quality;
pub mod ranks;
pub mod tasks;
pub mod threads;
pub mod timeline;
