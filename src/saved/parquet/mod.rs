//! Databases as Parquet files, for engines that know columns: DuckDB, Spark, pandas, ClickHouse.
//!
//! In: a database. Out: below a folder, the tables of docs/fleet/SCHEMA.md, each as many files. Executions and their
//! times are divided by day and host, as engines choose files (`day=2026-11-28/host=web-1/`). A file has the name of
//! the part that it is of, so that one that is exported again takes its own place. Cost: one pass over each part; in
//! memory is one part, and a row group of a file.

mod export;
mod file;
mod paths;

pub use export::export;

/// The version of the tables: a change of a column, or of its meaning, changes it.
pub const SCHEMA_VERSION: u32 = 2;

/// Why tables cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum ParquetFileError {
    /// The database.
    #[error(transparent)]
    Saved(#[from] super::SavedFileError),
    /// A file of the tables.
    #[error("{}: {error}", path.display())]
    Table {
        /// The file.
        path: std::path::PathBuf,
        error: parquet::errors::ParquetError,
    },
    /// A tree that only a hostile file has.
    #[error(
        "the calling contexts of `{part}` are so deep that their paths have more than 268,435,456 rows: not written"
    )]
    Deep { part: String },
    /// A folder or file cannot be made.
    #[error("{}: {error}", path.display())]
    Io {
        /// The folder or file.
        path: std::path::PathBuf,
        error: std::io::Error,
    },
    #[error(transparent)]
    Cancelled(#[from] crate::base::ctx::Cancelled),
}
