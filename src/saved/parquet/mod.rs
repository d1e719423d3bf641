//! Databases as Parquet files, for engines that know columns: DuckDB, Spark, pandas, ClickHouse.
//!
//! In: a database. Out: below a folder, the tables of docs/fleet/SCHEMA.md, each as many files. Executions and their
//! times are divided by day and host, as engines choose files (`day=2026-11-28/host=web-1/`). A file has the name of
//! the part that it is of, so that one that is exported again takes its own place. Cost: one pass over each part; in
//! memory is one part, and a row group of a file.

mod export;
mod file;
mod import;
mod paths;
mod read;
mod rest;
mod totals;

pub use export::export;
pub use import::import;
pub use totals::export_partials;

/// The version of the tables: a change of a column, or of its meaning, changes it.
pub const SCHEMA_VERSION: u32 = 3;

/// Why tables cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum ParquetFileError {
    /// The database.
    #[error(transparent)]
    Saved(#[from] super::SavedFileError),
    /// Partial results.
    #[error(transparent)]
    Sums(#[from] super::partials::SumsError),
    /// A file of the tables.
    #[error("{}: {error}", path.display())]
    Table {
        /// The file.
        path: std::path::PathBuf,
        error: parquet::errors::ParquetError,
    },
    /// A file that is none of the exported ones.
    #[error("{}: no table `{table}` of `whyslow export`", path.display())]
    NotOurs {
        /// The file.
        path: std::path::PathBuf,
        table: String,
    },
    /// A folder without tables.
    #[error("{}: no tables of `whyslow export`: name the folder that it wrote", path.display())]
    NoTables {
        /// The folder.
        path: std::path::PathBuf,
    },
    /// Tables of another version.
    #[error("{}: tables of version {found:?}, but this program reads version {SCHEMA_VERSION}: export them again",
        path.display())]
    Version {
        /// The file.
        path: std::path::PathBuf,
        found: String,
    },
    /// A column is missing, or of another type.
    #[error("{}: no column `{column}` as `whyslow export` writes it: export the tables again", path.display())]
    NoColumn {
        /// The file.
        path: std::path::PathBuf,
        column: String,
    },
    /// Rows of a part are missing or changed.
    #[error("{}: part {part}: {why}; export it again", path.display())]
    Incomplete {
        /// A file of the part.
        path: std::path::PathBuf,
        /// Its name.
        part: String,
        why: String,
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
