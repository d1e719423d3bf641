//! TSDL, the metadata language of CTF 1.8: text to tokens, tokens to a syntax tree, the tree to the schema.
//!
//! Parsing decides what belongs together, resolving what names mean (types by scope, clocks, stream classes); lengths
//! and selectors stay locations until `locate` binds them, for CTF 2 alike. Errors carry the byte offset and the chain
//! of what was being read. CTF 1.8.3, section 7 and appendix C.

mod fields;
mod meaning;
mod parse;
mod resolve;
mod syntax;
mod token;
mod types;

use super::metadata::{Oddity, Trouble};
use super::schema::Schema;

/// The schema that a TSDL text describes; `locate` has not run yet.
pub(super) fn read(text: &str) -> Result<Schema, Trouble> {
    let (items, oddities) = parse::parse(text)?;
    resolve::resolve(&items, oddities)
}
