//! Tables read back from their files.
//!
//! In: a Parquet file, and the columns that are wanted. Out: the values of these columns, of all its row groups. A file
//! of another program, of another version of the tables, cut off or without a column is an error that names it. Cost:
//! one pass over the wanted columns; in memory are their values.

use super::file::ColumnData;
use super::{ParquetFileError, SCHEMA_VERSION};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Once;

/// Values that are read at once.
const BATCH: usize = 8_192;

/// Columns of a file.
pub(super) struct TableFile {
    path: PathBuf,
    columns: BTreeMap<String, ColumnData>,
    /// The list of its metrics.
    pub metrics: Option<String>,
}

impl TableFile {
    /// Open a file of a table, and read those columns that are wanted, by name.
    pub fn read(path: &Path, table: &str, is_wanted: impl Fn(&str) -> bool) -> Result<TableFile, ParquetFileError> {
        let damaged = || ParquetError::General("its pages are not those of its footer".to_owned());
        contained(|| TableFile::read_whole(path, table, is_wanted))
            .unwrap_or_else(|| Err(ParquetFileError::Table { path: path.to_owned(), error: damaged() }))
    }

    fn read_whole(path: &Path, table: &str, is_wanted: impl Fn(&str) -> bool) -> Result<TableFile, ParquetFileError> {
        let error = |error| ParquetFileError::Table { path: path.to_owned(), error };
        let io = |error| ParquetFileError::Io { path: path.to_owned(), error };
        let reader = SerializedFileReader::new(File::open(path).map_err(io)?).map_err(error)?;
        let about = reader.metadata().file_metadata();
        let value = |key: &str| {
            let pairs = about.key_value_metadata().into_iter().flatten();
            pairs.filter(|pair| pair.key == key).find_map(|pair| pair.value.clone())
        };
        if value("whyslow.table").as_deref() != Some(table) {
            return Err(ParquetFileError::NotOurs { path: path.to_owned(), table: table.to_owned() });
        }
        let version = value("whyslow.schema").unwrap_or_default();
        if version != SCHEMA_VERSION.to_string() {
            return Err(ParquetFileError::Version { path: path.to_owned(), found: version.chars().take(20).collect() });
        }
        let names: Vec<String> = about.schema_descr().columns().iter().map(|column| column.name().to_owned()).collect();
        let mut columns: BTreeMap<String, ColumnData> = BTreeMap::new();
        for group in 0..reader.num_row_groups() {
            let group = reader.get_row_group(group).map_err(error)?;
            for (at, name) in names.iter().enumerate().filter(|(_, name)| is_wanted(name)) {
                let more = values(group.get_column_reader(at).map_err(error)?).map_err(error)?;
                match (columns.get_mut(name), more) {
                    (Some(ColumnData::Numbers(all)), ColumnData::Numbers(more)) => all.extend(more),
                    (Some(ColumnData::Texts(all)), ColumnData::Texts(more)) => all.extend(more),
                    (Some(ColumnData::Truth(all)), ColumnData::Truth(more)) => all.extend(more),
                    (_, more) => drop(columns.insert(name.clone(), more)),
                }
            }
        }
        Ok(TableFile { path: path.to_owned(), columns, metrics: value("whyslow.metrics") })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn missing(&self, column: &str) -> ParquetFileError {
        ParquetFileError::NoColumn { path: self.path.clone(), column: column.to_owned() }
    }

    /// A column of numbers; a file without rows has none of any.
    pub fn numbers(&self, column: &str) -> Result<&[Option<i64>], ParquetFileError> {
        match self.columns.get(column) {
            Some(ColumnData::Numbers(all)) => Ok(all),
            None if self.columns.is_empty() => Ok(&[]),
            _ => Err(self.missing(column)),
        }
    }

    /// A column of texts.
    pub fn texts(&self, column: &str) -> Result<&[Option<ByteArray>], ParquetFileError> {
        match self.columns.get(column) {
            Some(ColumnData::Texts(all)) => Ok(all),
            None if self.columns.is_empty() => Ok(&[]),
            _ => Err(self.missing(column)),
        }
    }

    /// A column of truth values.
    pub fn truth(&self, column: &str) -> Result<&[Option<bool>], ParquetFileError> {
        match self.columns.get(column) {
            Some(ColumnData::Truth(all)) => Ok(all),
            None if self.columns.is_empty() => Ok(&[]),
            _ => Err(self.missing(column)),
        }
    }
}

thread_local! {
    /// This thread reads a file whose bytes may make the reader panic.
    static READS: Cell<bool> = const { Cell::new(false) };
}

/// What `read` returns; `None` where it panicked. The crate that reads Parquet files presumes that pages are as the
/// footer and other pages say, and panics where damage made them differ; that is an error about the file, not about the
/// program, so that the hook for panics must not print it.
fn contained<T>(read: impl FnOnce() -> T) -> Option<T> {
    static SILENCED: Once = Once::new();
    SILENCED.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |about| {
            if !READS.get() {
                usual(about);
            }
        }));
    });
    READS.set(true);
    let result = catch_unwind(AssertUnwindSafe(read)).ok();
    READS.set(false);
    result
}

/// The values of a column in a row group.
fn values(reader: ColumnReader) -> Result<ColumnData, ParquetError> {
    Ok(match reader {
        ColumnReader::Int64ColumnReader(reader) => ColumnData::Numbers(all(reader)?),
        ColumnReader::ByteArrayColumnReader(reader) => ColumnData::Texts(all(reader)?),
        ColumnReader::BoolColumnReader(reader) => ColumnData::Truth(all(reader)?),
        _ => return Err(ParquetError::General("a column is of another type than exported ones".to_owned())),
    })
}

/// All values, with the rows that have none.
fn all<T: DataType>(mut reader: ColumnReaderImpl<T>) -> Result<Vec<Option<T::T>>, ParquetError> {
    let mut rows = Vec::new();
    loop {
        let (mut values, mut levels) = (Vec::new(), Vec::new());
        let (records, ..) = reader.read_records(BATCH, Some(&mut levels), None, &mut values)?;
        if records == 0 {
            return Ok(rows);
        }
        let mut values = values.into_iter();
        rows.extend(levels.into_iter().map(|level| if level > 0 { values.next() } else { None }));
    }
}
