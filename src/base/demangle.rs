//! Names of functions as their authors wrote them, from the names that linkers know.

use std::borrow::Cow;

/// The name a programmer knows a symbol by: Rust without its hash, C++ without parameters.
pub fn demangle(name: &str) -> String {
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    let options = cpp_demangle::DemangleOptions::new().no_params().no_return_type();
    if name.starts_with("_Z")
        && let Ok(symbol) = cpp_demangle::Symbol::new(name)
        && let Ok(text) = symbol.demangle(&options)
    {
        return text;
    }
    // Versions (`memcpy@@GLIBC_2.14`) and parts of split functions (`f.cold`, `f.part.0`) are the same function.
    let cut = |at: &str| name.find(at).filter(|i| *i > 0).unwrap_or(name.len());
    let end = [".cold", ".part.", ".constprop.", ".isra.", ".llvm.", "@"].map(cut).into_iter().min();
    name.get(..end.unwrap_or(name.len())).unwrap_or(name).to_owned()
}
/// Names up to this number of characters are whole in sentences and paths.
const WHOLE: usize = 60;

/// A long name without the arguments of its generics, for sentences and paths: `Vec<…>::push`. The type that a name
/// begins with stays, without arguments of its own: `<Reader<…> as Read>::read`.
pub fn abbreviated(name: &str) -> Cow<'_, str> {
    // `operator<` opens no arguments.
    if name.chars().count() <= WHOLE || name.contains("operator") {
        return Cow::Borrowed(name);
    }
    let leading = name.strip_prefix('<').and_then(|rest| rest.split_at_checked(closing_bracket(rest)?));
    let short = match leading {
        Some((first, rest)) => without_arguments(first).zip(without_arguments(rest)).map(|(a, b)| format!("<{a}{b}")),
        None => without_arguments(name),
    };
    short.map_or(Cow::Borrowed(name), Cow::Owned)
}

/// Where the bracket closes that was opened before `text`.
fn closing_bracket(text: &str) -> Option<usize> {
    let mut depth = 1;
    brackets(text).find_map(|(at, bracket)| {
        depth = if bracket == '<' { depth + 1 } else { depth - 1 };
        (depth == 0).then_some(at)
    })
}

/// The text with `<…>` for each pair of brackets; `None` if they are not in pairs. A `>` without its `<` at the begin
/// belongs to the text before.
fn without_arguments(text: &str) -> Option<String> {
    let (mut short, mut depth, mut from) = (String::new(), 0_usize, 0);
    for (at, bracket) in brackets(text) {
        match (bracket, depth) {
            ('<', 0) => short.push_str(&format!("{}<…", text.get(from..at)?)),
            ('>', 0) if at > 0 => return None,
            ('>', 0 | 1) => from = at,
            _ => {}
        }
        depth = if bracket == '<' { depth + 1 } else { depth.saturating_sub(1) };
    }
    short.push_str(text.get(from..)?);
    (depth == 0).then_some(short)
}

/// The angle brackets of a name; those of arrows (`->`) are none.
fn brackets(text: &str) -> impl Iterator<Item = (usize, char)> + '_ {
    let is_bracket =
        |(at, c): &(usize, char)| *c == '<' || *c == '>' && !text.get(..*at).is_some_and(|t| t.ends_with('-'));
    text.char_indices().filter(is_bracket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abbreviated_leaves_out_arguments_of_generics() {
        let long = "alloc::vec::Vec<core::option::Option<whyslow::model::Anomalies>, alloc::alloc::Global>::push";
        assert_eq!(abbreviated(long), "alloc::vec::Vec<…>::push");
        let method = "<core::iter::adapters::map::Map<I, F> as core::iter::traits::iterator::Iterator>::fold<u32, u64>";
        let short = "<core::iter::adapters::map::Map<…> as core::iter::traits::iterator::Iterator>::fold<…>";
        assert_eq!(abbreviated(method), short);
        let arrow =
            "core::ops::FnOnce<(core::option::Option<u64>, fn(u64) -> core::cmp::Ordering)>::call_once::{closure}";
        assert_eq!(abbreviated(arrow), "core::ops::FnOnce<…>::call_once::{closure}");
        // Short names, operators and brackets without partners stay.
        let operator = format!("std::ostream& std::operator<< <std::char_traits<char>>{}", "x".repeat(60));
        let half = format!("f<{}", "x".repeat(100));
        for whole in ["Vec<u8>::push", operator.as_str(), half.as_str(), "keysCommand"] {
            assert_eq!(abbreviated(whole), whole);
        }
    }
}
