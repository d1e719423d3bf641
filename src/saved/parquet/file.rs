//! One Parquet file: columns of numbers, texts and truth values.
//!
//! In: columns, each by row group. Out: a file with the statistics of each column of each row group, so that readers
//! pass over what a filter excludes. Texts and small numbers are encoded as positions in a dictionary, other
//! numbers as differences; all is deflated. Cost: one pass; in memory is a row group.

use crate::base::digest::Digester;
use parquet::basic::{Compression, ConvertedType, Encoding, GzipLevel, LogicalType, Repetition, Type as PhysicalType};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::{ByteArray, FixedLenByteArray};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type};
use std::io::Write;
use std::sync::Arc;

/// What a column holds, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnKind {
    /// Numbers, most of which differ.
    Numbers,
    /// Numbers, most of which occur again.
    Ids,
    Texts,
    Truth,
    /// Numbers of up to 38 digits.
    Wide,
}

/// Values of a column; `None` where there is none.
#[derive(Clone, Debug)]
pub(super) enum ColumnData {
    Numbers(Vec<Option<i64>>),
    Texts(Vec<Option<ByteArray>>),
    Truth(Vec<Option<bool>>),
    Wide(Vec<Option<u128>>),
}

/// A column of a file.
pub(super) struct FileColumn<'a> {
    pub name: String,
    pub kind: ColumnKind,
    /// The values of a row group, by its number.
    pub values: Box<dyn Fn(usize) -> ColumnData + 'a>,
}

/// Write a file of so many row groups. `about`: what it says of itself, by key.
pub(super) fn write(
    out: impl Write + Send,
    columns: &[FileColumn<'_>],
    groups: usize,
    about: &[(&str, String)],
) -> Result<()> {
    let fields = columns.iter().map(|column| field(column).map(Arc::new)).collect::<Result<_>>()?;
    let schema = Type::group_type_builder("whyslow").with_fields(fields).build()?;
    let mut file = SerializedFileWriter::new(out, Arc::new(schema), properties(columns, about)?)?;
    for group in 0..groups {
        let mut row_group = file.next_row_group()?;
        let mut all = columns.iter();
        while let Some(mut to) = row_group.next_column()? {
            let Some(column) = all.next() else { break };
            put(to.untyped(), &(column.values)(group))?;
            to.close()?;
        }
        row_group.close()?;
    }
    file.close().map(drop)
}

/// Bytes and digits of a wide number.
const WIDTH: i32 = 16;
const DIGITS: i32 = 38;

fn field(column: &FileColumn<'_>) -> Result<Type> {
    let physical = match column.kind {
        ColumnKind::Numbers | ColumnKind::Ids => PhysicalType::INT64,
        ColumnKind::Texts => PhysicalType::BYTE_ARRAY,
        ColumnKind::Truth => PhysicalType::BOOLEAN,
        ColumnKind::Wide => PhysicalType::FIXED_LEN_BYTE_ARRAY,
    };
    let builder = Type::primitive_type_builder(&column.name, physical).with_repetition(Repetition::OPTIONAL);
    match column.kind {
        ColumnKind::Texts => {
            builder.with_logical_type(Some(LogicalType::String)).with_converted_type(ConvertedType::UTF8).build()
        }
        ColumnKind::Wide => {
            let decimal = LogicalType::decimal(0, DIGITS);
            builder.with_length(WIDTH).with_logical_type(Some(decimal)).with_precision(DIGITS).with_scale(0).build()
        }
        _ => builder.build(),
    }
}

fn properties(columns: &[FileColumn<'_>], about: &[(&str, String)]) -> Result<WriterPropertiesPtr> {
    let keys = about.iter().map(|(key, value)| KeyValue::new((*key).to_owned(), value.clone())).collect();
    let mut properties = WriterProperties::builder()
        .set_created_by(format!("whyslow {}", env!("CARGO_PKG_VERSION")))
        .set_compression(Compression::GZIP(GzipLevel::try_new(LEVEL)?))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_key_value_metadata(Some(keys));
    for FileColumn { name, kind, .. } in columns {
        let path = ColumnPath::from(name.as_str());
        if matches!(kind, ColumnKind::Numbers | ColumnKind::Ids) {
            properties = properties.set_column_encoding(path.clone(), Encoding::DELTA_BINARY_PACKED);
        }
        if *kind == ColumnKind::Numbers {
            properties = properties.set_column_dictionary_enabled(path, false);
        }
    }
    Ok(Arc::new(properties.build()))
}

/// How hard the deflater tries: the fastest, since numbers are packed before.
const LEVEL: u32 = 1;

/// The values that are there, and for each row whether it is one.
fn present<T: Clone>(values: &[Option<T>]) -> (Vec<T>, Vec<i16>) {
    (values.iter().flatten().cloned().collect(), values.iter().map(|value| i16::from(value.is_some())).collect())
}

fn put(to: &mut ColumnWriter<'_>, data: &ColumnData) -> Result<()> {
    match (to, data) {
        (ColumnWriter::Int64ColumnWriter(to), ColumnData::Numbers(all)) => {
            let (values, levels) = present(all);
            to.write_batch(&values, Some(&levels), None)?;
        }
        (ColumnWriter::ByteArrayColumnWriter(to), ColumnData::Texts(all)) => {
            let (values, levels) = present(all);
            to.write_batch(&values, Some(&levels), None)?;
        }
        (ColumnWriter::BoolColumnWriter(to), ColumnData::Truth(all)) => {
            let (values, levels) = present(all);
            to.write_batch(&values, Some(&levels), None)?;
        }
        (ColumnWriter::FixedLenByteArrayColumnWriter(to), ColumnData::Wide(all)) => {
            let (values, levels) = present(all);
            let bytes = |value: u128| FixedLenByteArray::from(value.to_be_bytes().to_vec());
            let values: Vec<FixedLenByteArray> = values.into_iter().map(bytes).collect();
            to.write_batch(&values, Some(&levels), None)?;
        }
        _ => return Err(ParquetError::General("a column has values of another kind".to_owned())),
    }
    Ok(())
}

/// Letters of such a value, before the digest of one that is longer; file systems have names of 255 bytes.
const LONGEST_VALUE: usize = 160;

/// A part of the path of a file by which readers choose (`host=web-1`): a value from a trace with all but letters,
/// digits, `-`, `_` and `.` written as `%2F`.
pub(super) fn folder_value(value: &str) -> String {
    if value.is_empty() {
        return "__HIVE_DEFAULT_PARTITION__".to_owned();
    }
    let only_dots = value.bytes().all(|byte| byte == b'.');
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte) && !only_dots;
    let mut text = String::with_capacity(value.len());
    for byte in value.bytes() {
        if is_plain(byte) {
            text.push(byte.into());
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    if text.len() > LONGEST_VALUE {
        let mut digester = Digester::default();
        digester.add(value.as_bytes());
        text.truncate(LONGEST_VALUE);
        text.push_str(&format!("-{}", digester.finish()));
    }
    text
}
