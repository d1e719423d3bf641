//! The terminal's input: bytes to keys, pastes, the mouse, the answer about the background, and new sizes.
//!
//! One reader for all of it, because only the bytes that follow, and how soon they follow, distinguish an escape
//! sequence from a key. Rejected: crossterm's reader. It waits without limit for one particular byte after `ESC [ ?`,
//! `ESC [ <`, `ESC [ M` and `ESC [ 2 0 0 ~`, and takes no key until that byte comes, not even Ctrl-C; its decoder
//! cannot be used without its reader (`tests/upstream.rs`). Keys stay in crossterm's vocabulary.
//!
//! ```text
//! reader: bytes and pauses -> decoder: bytes that wait, the paste so far -> sequence: the first input of the bytes
//! ```
//!
//! Invariants: whatever was sent, a key pressed after a pause is that key. What is not understood is dropped. A control
//! character within a sequence ends it and is a key.

mod decoder;
mod event;
mod reader;
mod sequence;

pub use decoder::InputDecoder;
pub use event::TerminalEvent;
pub use reader::read;
