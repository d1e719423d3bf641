//! Errors and warnings about metadata text, with their places.

use std::fmt::Write;

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
    /// The constructs around the error, innermost first, and where each begins.
    within: Vec<Construct>,
}

#[derive(Debug)]
struct Construct {
    name: String,
    at: usize,
}

impl MetadataError {
    /// An error at byte `at` of the text.
    #[cold]
    pub(super) fn at(at: usize, what: impl Into<String>) -> Self {
        MetadataError(Box::new(Context { at, what: what.into(), within: Vec::new() }))
    }

    /// The same error, met while reading the construct `name`, which begins at byte `at`.
    #[cold]
    pub(super) fn within(mut self, name: impl Into<String>, at: usize) -> Self {
        self.0.within.push(Construct { name: name.into(), at });
        self
    }

    /// The same for a construct whose place is not known apart from the error's.
    pub(super) fn within_here(self, name: impl Into<String>) -> Self {
        let at = self.0.at;
        self.within(name, at)
    }

    /// One line: place, error, and the constructs around it.
    pub(super) fn render(&self, text: &str) -> String {
        let mut line = format!("{}: {}", line_and_column(text, self.0.at), self.0.what);
        for Construct { name, at } in &self.0.within {
            let _ = write!(line, ", {name} ({})", line_and_column(text, *at));
        }
        line
    }
}

/// `line:column` of a byte offset, both from 1.
fn line_and_column(text: &str, at: usize) -> String {
    let before = text.as_bytes().get(..at.min(text.len())).unwrap_or(&[]);
    let line = 1 + memchr::memchr_iter(b'\n', before).count();
    let column = 1 + before.len() - memchr::memrchr(b'\n', before).map_or(0, |i| i + 1);
    format!("{line}:{column}")
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

    /// As [`line_and_column`].
    pub(super) fn line_and_column(&mut self, at: usize) -> String {
        if self.begins.is_empty() {
            let after_newlines = memchr::memchr_iter(b'\n', self.text.as_bytes()).map(|i| i + 1);
            self.begins = std::iter::once(0).chain(after_newlines).collect();
        }
        let at = at.min(self.text.len());
        let line = self.begins.partition_point(|begin| *begin <= at);
        let begin = line.checked_sub(1).and_then(|i| self.begins.get(i)).copied().unwrap_or(0);
        format!("{line}:{}", 1 + at - begin)
    }
}
