//! TSDL, the metadata language of CTF 1.8: text to tokens, tokens to a syntax tree, the tree to the schema.
//!
//! Parsing decides what belongs together, resolving what names mean (types by scope, clocks, stream classes); lengths
//! and selectors stay locations until `locate` binds them, for CTF 2 alike. Errors carry the byte offset and the chain
//! of what was being read. CTF 1.8.3, section 7 and appendix C.

mod attributes;
mod fields;
mod known;
mod meaning;
mod parse;
mod resolve;
mod syntax;
mod token;
mod types;

use super::error::MetadataError;
use super::schema::Schema;
pub(super) use known::{Blocks, Known};

/// The schema that a TSDL text describes, and what other texts may take over; `locate` has not run yet.
pub(super) fn read<'t>(text: &'t str, known: Option<&'t Known<'t>>) -> Result<(Schema, Blocks<'t>), MetadataError> {
    let (items, warnings) = parse::parse(text, known)?;
    let takes = items.iter().any(|item| matches!(item, syntax::Item::Known { .. }));
    let read = resolve::resolve(&items, warnings, text.len());
    match (read, known) {
        (Ok((mut schema, found)), Some(known)) if takes && found.context == known.context => {
            schema.slots = known.slots;
            Ok((schema, found))
        }
        // The blocks mean something else here.
        (_, Some(_)) if takes => self::read(text, None),
        (read, _) => read,
    }
}
