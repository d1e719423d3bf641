//! Writes OTF2 archives in the form of Score-P's own (docs/OTF2-FACTS.md): an anchor, global definitions, and for each
//! location its clock and its events. otf2-print, Vampir and whyslow read them.
//!
//! Regions, processes, threads, accelerator queues and communicators are defined by calls of an [`ArchiveWriter`], each
//! of which gives an id; a location's records are collected in [`Events`] and written as soon as they are complete, so
//! that an archive may be larger than memory. `tests/archives/` makes small archives of each wait state,
//! `examples/stencil.rs` large ones.

mod definitions;
#[allow(dead_code)] // not every test needs it
pub mod encoding;
mod events;
#[cfg(test)]
#[allow(dead_code)] // not every test needs it
pub mod recording;

pub use definitions::ArchiveWriter;
#[allow(unused_imports)] // not every test needs all
pub use events::{Events, Paradigm, Role, Value};
