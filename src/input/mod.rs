//! Bytes to records: which formats there are, and what a record is before anybody knows what it means.
//!
//! [`record`] is the face that `event/` sees; each format has a folder.

pub mod ctf;
pub mod record;

/// A trace as given on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// `LABEL` of `LABEL=PATH`.
    pub label: Option<String>,
    /// Where it lies.
    pub path: std::path::PathBuf,
}
