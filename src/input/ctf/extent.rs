//! The largest schema that a metadata text may describe.
//!
//! A named type is a copy wherever it is used, so a few lines of types within types could demand more fields, or deeper
//! ones, than a machine can hold. The schemas of real metadata grow with the text: the number of fields is therefore
//! bounded by the length of the text, and counted before they are copied. LTTng's metadata has one field for 30 bytes
//! of it, or fewer.

use super::error::MetadataError;
use super::schema::{Field, Kind};

/// Fields that a text of any length may have.
const FEW: usize = 1 << 16;

/// Fields for each byte of the text.
const PER_BYTE: usize = 4;

/// Structures, arrays, variants and optionals within one another; it protects the stack.
pub(super) const DEEPEST: usize = 128;

/// The number of fields so far, and the largest that there may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    fields: usize,
    most: usize,
}

impl Extent {
    /// The extent of a metadata text of `text` bytes, before its fields are counted.
    pub(super) fn new(text: usize) -> Self {
        Extent { fields: 0, most: text.saturating_mul(PER_BYTE).saturating_add(FEW) }
    }

    /// Adds the `fields` of the construct at byte `at`.
    pub(super) fn add(&mut self, fields: usize, at: usize) -> Result<(), MetadataError> {
        self.fields = self.fields.saturating_add(fields);
        if self.fields > self.most {
            let what = format!("types within types hold more than {} fields, too many for so short a text", self.most);
            return Err(MetadataError::at(at, what));
        }
        Ok(())
    }
}

/// Refuses a field at byte `at` that is nested too deeply.
pub(super) fn check_depth(depth: usize, at: usize) -> Result<(), MetadataError> {
    if depth > DEEPEST {
        return Err(MetadataError::at(at, format!("types are nested deeper than {DEEPEST}")));
    }
    Ok(())
}

/// The size of a field with all fields in it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FieldSize {
    /// The field itself and the fields in it.
    pub(super) fields: usize,
    /// Levels of nesting, 1 for a field without others in it.
    pub(super) depth: usize,
}

impl FieldSize {
    /// The size of two sets of fields side by side.
    fn beside(self, other: FieldSize) -> FieldSize {
        FieldSize { fields: self.fields + other.fields, depth: self.depth.max(other.depth) }
    }
}

/// The size of a field.
pub(super) fn size(field: &Field) -> FieldSize {
    let inner = match &field.kind {
        Kind::Struct(members) => members.iter().map(|m| size(&m.field)).fold(FieldSize::default(), FieldSize::beside),
        Kind::Variant { options, .. } => {
            options.iter().map(|o| size(&o.field)).fold(FieldSize::default(), FieldSize::beside)
        }
        Kind::Array { element: inner, .. } | Kind::Optional { field: inner, .. } => size(inner),
        _ => FieldSize::default(),
    };
    FieldSize { fields: inner.fields + 1, depth: inner.depth + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::ctf::{json, tsdl};

    const TRACE: &str = "trace { major = 1; minor = 8; byte_order = le; };\nstream { };\n";

    /// The error with which a text is refused.
    fn refused(text: &str) -> Option<String> {
        let read = if text.starts_with('\x1e') { json::read(text).map(drop) } else { tsdl::read(text, None).map(drop) };
        read.err().map(|error| format!("{error:?}"))
    }

    fn doubling(levels: usize) -> String {
        let level = |i: usize| format!("typedef struct {{ t{i} a; t{i} b; }} t{};\n", i + 1);
        let types: String = (0..levels).map(level).collect();
        let event = format!("event {{ name = \"e\"; fields := struct {{ t{levels} x; }}; }};");
        format!("typealias integer {{ size = 8; }} := t0;\n{types}{TRACE}{event}")
    }

    #[test]
    fn extent_counts_fields_before_they_are_copied() {
        // A type of n levels has 2^(n+1) - 1 fields. It is copied twice into the next, which adds up to twice as many;
        // so levels up to 13 pass, and those that are refused are refused at the first type that does not fit.
        assert_eq!(refused(&doubling(13)), None);
        for levels in [16, 20, 24] {
            let text = doubling(levels);
            let most = FEW + PER_BYTE * text.len();
            let said = refused(&text).unwrap();
            assert!(said.contains(&format!("more than {most} fields")) && most < 2 * FEW, "{said}");
            let at: usize = said.split("at: ").nth(1).and_then(|s| s.split(',').next()).unwrap().parse().unwrap();
            let line = text[..at].lines().count();
            assert_eq!(
                text.lines().nth(line - 1).map(|l| l.contains("t14 a; t14 b;") || l.contains("t15 a;")),
                Some(true)
            );
        }
    }

    #[test]
    fn extent_allows_long_metadata_of_many_classes() {
        let fields: String = (0..24).map(|i| format!("ctx_t _field_{i};\n")).collect();
        let event =
            |i: usize| format!("event {{ name = \"provider:e{i}\"; id = {i}; fields := struct {{\n{fields}}}; }};\n");
        let header = "stream { event.header := struct { integer { size = 32; } id; }; };\n";
        let types =
            "typealias integer { size = 32; align = 8; } := u32;\ntypedef struct { u32 a; u32 b; u32 c; } ctx_t;\n";
        let text =
            format!("{types}{}{}", TRACE.replace("stream { };\n", header), (0..6000).map(event).collect::<String>());
        assert_eq!(refused(&text), None);
    }

    #[test]
    fn check_depth_bounds_both_languages() {
        let chain = |n: usize| {
            let types: String = (0..n).map(|i| format!("typedef struct {{ t{i} a; }} t{};\n", i + 1)).collect();
            format!("/* {} */typealias integer {{ size = 8; }} := t0;\n{types}{TRACE}", " ".repeat(1 << 20))
        };
        assert_eq!(refused(&chain(DEEPEST - 1)), None);
        assert!(refused(&chain(DEEPEST)).unwrap().contains("nested deeper than 128"));
        assert!(refused(&chain(2500)).unwrap().contains("nested deeper than 128"));
        let open = "struct { ".repeat(30);
        let close = format!("}} a{}; ", "[1]".repeat(60)).repeat(30);
        let dimensions = format!("{TRACE}event {{ name = \"e\"; fields := struct {{ {open} string x; {close} }}; }};");
        assert!(refused(&dimensions).unwrap().contains("nested deeper than 128"));
    }
}
