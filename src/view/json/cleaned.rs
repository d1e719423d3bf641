//! Text of a trace for JSON, without control characters.

use crate::base::clean;

pub(super) fn cleaned(text: &str) -> String {
    clean::text(text).into_owned()
}
