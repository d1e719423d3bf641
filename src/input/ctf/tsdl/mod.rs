//! TSDL, the metadata language of CTF 1.8: text to tokens, tokens to a syntax tree, the tree to the schema.
//!
//! Parsing groups the tokens; resolving finds the meaning of names (types by scope, clocks, stream classes). Lengths
//! and selectors stay locations until `locate` binds them, as in CTF 2. Errors have the byte offset and the constructs
//! around it. CTF 1.8.3, section 7 and appendix C.

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

/// The schema that a TSDL text describes, and the blocks that other texts may reuse; `locate` has not run yet.
pub(super) fn read<'t>(text: &'t str, known: Option<&'t Known<'t>>) -> Result<(Schema, Blocks<'t>), MetadataError> {
    let (items, warnings) = parse::parse(text, known)?;
    let takes = items.iter().any(|item| matches!(item, syntax::Item::Known { .. }));
    let read = resolve::resolve(&items, warnings, text.len());
    match (read, known) {
        (Ok((mut schema, found)), Some(known)) if takes && found.context == known.context => {
            schema.slots = known.slots;
            Ok((schema, found))
        }
        // The declarations differ, so the blocks may have another meaning here.
        (_, Some(_)) if takes => self::read(text, None),
        (read, _) => read,
    }
}
