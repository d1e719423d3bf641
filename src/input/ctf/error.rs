//! Errors and warnings about metadata text, with their places.

use std::fmt;

/// An irregularity in a metadata text that does not stop the reader.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MetadataWarning {
    /// Byte of the text.
    pub(super) at: usize,
    /// The sentence that the notice shows.
    pub(super) what: String,
}

/// An error in a metadata text. Boxed, because every step of parsing may return one.
#[derive(Debug)]
pub(super) struct MetadataError(Box<Context>);

#[derive(Debug)]
struct Context {
    at: usize,
    what: String,
    /// The constructs around the error, innermost first.
    within: Vec<Enclosing>,
}

/// A construct around an error that begins at byte `at`.
#[derive(Debug)]
struct Enclosing {
    name: String,
    at: usize,
}

/// An error in a metadata text, with lines and columns.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct MetadataTextError {
    /// The place of the error.
    pub place: TextPlace,
    /// The expectation that does not hold there.
    pub what: String,
    /// The constructs around it, innermost first.
    pub within: Vec<Construct>,
}

impl fmt::Display for MetadataTextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)?;
        self.within.iter().try_for_each(|Construct { name, begin }| write!(f, ", {name} ({begin})"))
    }
}

/// A construct of the metadata language around an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Construct {
    /// Its kind and name, in words.
    pub name: String,
    /// Its beginning.
    pub begin: TextPlace,
}

/// A place in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextPlace {
    /// Line, from 1.
    pub line: usize,
    /// Byte of the line, from 1.
    pub column: usize,
}

impl fmt::Display for TextPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

impl TextPlace {
    /// The place of a byte offset.
    fn of(text: &str, at: usize) -> TextPlace {
        let before = text.as_bytes().get(..at.min(text.len())).unwrap_or(&[]);
        let line = 1 + memchr::memchr_iter(b'\n', before).count();
        let column = 1 + before.len() - memchr::memrchr(b'\n', before).map_or(0, |i| i + 1);
        TextPlace { line, column }
    }
}

impl MetadataError {
    /// An error at byte `at` of the text.
    #[cold]
    pub(super) fn at(at: usize, what: impl Into<String>) -> Self {
        MetadataError(Box::new(Context { at, what: what.into(), within: Vec::new() }))
    }

    /// The same error, inside the construct `name`, which begins at byte `at`.
    #[cold]
    pub(super) fn within(mut self, name: impl Into<String>, at: usize) -> Self {
        self.0.within.push(Enclosing { name: name.into(), at });
        self
    }

    /// The error, inside a construct whose place is that of the error.
    pub(super) fn within_here(self, name: impl Into<String>) -> Self {
        let at = self.0.at;
        self.within(name, at)
    }

    /// The error with places in `text`, which is the text that was read.
    pub(super) fn located(self, text: &str) -> MetadataTextError {
        let Context { at, what, within } = *self.0;
        let within = within
            .into_iter()
            .map(|Enclosing { name, at }| Construct { name, begin: TextPlace::of(text, at) })
            .collect();
        MetadataTextError { place: TextPlace::of(text, at), what, within }
    }
}

/// Finds lines and columns of many places in one text: the beginnings of lines are searched once.
pub(super) struct LineTable<'t> {
    text: &'t str,
    begins: Vec<usize>,
}

impl<'t> LineTable<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        LineTable { text, begins: Vec::new() }
    }

    /// As [`TextPlace::of`].
    pub(super) fn place(&mut self, at: usize) -> TextPlace {
        if self.begins.is_empty() {
            let after_newlines = memchr::memchr_iter(b'\n', self.text.as_bytes()).map(|i| i + 1);
            self.begins = std::iter::once(0).chain(after_newlines).collect();
        }
        let at = at.min(self.text.len());
        let line = self.begins.partition_point(|begin| *begin <= at);
        let begin = line.checked_sub(1).and_then(|i| self.begins.get(i)).copied().unwrap_or(0);
        TextPlace { line, column: 1 + at - begin }
    }
}
