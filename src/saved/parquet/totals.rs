//! Partial results as tables: what the executions of hosts add up to, by context and by length.
//!
//! In: sums of files of partial results. Out: for each task and host a file of `partials` and one of `lengths`, named
//! by what is in them, so that the same totals take the same place. Cost: one pass; in memory is a host.

use super::export::write_table;
use super::file::{ColumnData, ColumnKind, FileColumn, folder_value};
use super::{ParquetFileError, SCHEMA_VERSION};
use crate::base::ctx::Ctx;
use crate::base::digest::Digester;
use crate::base::packed::bytes_of;
use crate::model::Model;
use crate::model::context::ContextId;
use crate::model::partials::{ContextTotals, DurationHistogram, HostTotals};
use crate::model::table_columns::{context_keys, frame_name};
use crate::saved::partials::PartialSums;
use parquet::data_type::ByteArray;
use std::path::Path;

/// The largest number of a decimal column, of 38 digits.
const LARGEST: u128 = 99_999_999_999_999_999_999_999_999_999_999_999_999;

/// Write the tables of partial results below a folder.
pub fn export_partials(sums: &PartialSums<'_>, folder: &Path, ctx: &Ctx) -> Result<(), ParquetFileError> {
    let tasks: Vec<String> = sums.tasks().map(str::to_owned).collect();
    for (at, task) in tasks.iter().enumerate() {
        let Some((groups, tables)) = sums.task(at) else { continue };
        let model = Model { names: tables.names.clone(), contexts: tables.contexts.clone(), ..Model::default() };
        let contexts = ContextTexts::new(&model);
        sums.each_host(at, ctx, |host, totals| {
            let mut digester = Digester::default();
            [bytes_of(task), bytes_of(groups), bytes_of(&totals.sources)]
                .iter()
                .for_each(|bytes| digester.add_whole(bytes));
            let file = format!("host={}/{}.parquet", folder_value(host), digester.finish());
            let about =
                |table: &str| [("whyslow.schema", SCHEMA_VERSION.to_string()), ("whyslow.table", table.to_owned())];
            let path = |table: &str| folder.join(table).join(&file);
            if !groups.is_empty() {
                let columns = of_contexts(task, host, totals, &contexts);
                write_table(&path("partials"), &columns, 1, &about("partials"))?;
            }
            write_table(&path("lengths"), &of_lengths(task, host, totals), 1, &about("lengths"))
        })?;
    }
    Ok(())
}

/// What tables say of contexts, as cells.
struct ContextTexts {
    keys: Vec<ByteArray>,
    paths: Vec<ByteArray>,
    frames: Vec<ByteArray>,
    kinds: Vec<ByteArray>,
}

fn cell(text: &str) -> ByteArray {
    ByteArray::from(text.as_bytes().to_vec())
}

impl ContextTexts {
    fn new(model: &Model) -> ContextTexts {
        let contexts = &model.contexts;
        let all = || (0..contexts.len()).map(ContextId::at);
        let path = |id: ContextId| {
            let frames = contexts.path(id).into_iter().map(|id| model.names.function(contexts.frame(id).name));
            cell(&frames.collect::<Vec<_>>().join(";"))
        };
        ContextTexts {
            keys: context_keys(model).iter().map(|key| cell(&key.to_string())).collect(),
            paths: all().map(path).collect(),
            frames: all().map(|id| cell(frame_name(contexts.frame(id).kind))).collect(),
            kinds: all().map(|id| cell(contexts.spent(id).name())).collect(),
        }
    }
}

/// A column of one row group.
fn column<'a>(name: &str, kind: ColumnKind, values: impl Fn() -> ColumnData + 'a) -> FileColumn<'a> {
    FileColumn { name: name.to_owned(), kind, values: Box::new(move |_| values()) }
}

fn texts<'a>(name: &str, values: impl Iterator<Item = ByteArray> + Clone + 'a) -> FileColumn<'a> {
    column(name, ColumnKind::Texts, move || ColumnData::Texts(values.clone().map(Some).collect()))
}

fn numbers<'a>(name: &str, values: impl Iterator<Item = u64> + Clone + 'a) -> FileColumn<'a> {
    let number = |value: u64| i64::try_from(value).ok();
    column(name, ColumnKind::Numbers, move || ColumnData::Numbers(values.clone().map(number).collect()))
}

fn wide<'a>(name: &str, values: impl Iterator<Item = u128> + Clone + 'a) -> FileColumn<'a> {
    let number = |value: u128| (value <= LARGEST).then_some(value);
    column(name, ColumnKind::Wide, move || ColumnData::Wide(values.clone().map(number).collect()))
}

/// A row for each group and context.
fn of_contexts<'a>(task: &str, host: &str, totals: &'a HostTotals, texts_of: &'a ContextTexts) -> Vec<FileColumn<'a>> {
    let rows = ["slow", "fast"].into_iter().zip(&totals.groups).flat_map(|(side, group)| {
        group.contexts.iter().map(move |(context, sums)| (side, group.durations.n, context.index(), *sums))
    });
    let of_context = |name: &str, all: &'a [ByteArray]| {
        texts(name, rows.clone().map(move |(_, _, at, _)| all.get(at).cloned().unwrap_or_default()))
    };
    let (task, host) = (cell(task), cell(host));
    vec![
        texts("task", rows.clone().map(move |_| task.clone())),
        texts("host_name", rows.clone().map(move |_| host.clone())),
        texts("side", rows.clone().map(|(side, ..)| cell(side))),
        of_context("path_key", &texts_of.keys),
        of_context("path", &texts_of.paths),
        of_context("frame", &texts_of.frames),
        of_context("kind", &texts_of.kinds),
        numbers("executions", rows.clone().map(|(_, executions, ..)| executions)),
        numbers("having", rows.clone().map(|(.., ContextTotals { having, .. })| having)),
        wide("sum_ns", rows.clone().map(|(.., ContextTotals { sum, .. })| sum)),
        wide("squares_ns2", rows.clone().map(|(.., ContextTotals { squares, .. })| squares)),
    ]
}

/// A row for each length that occurs, of all executions and of both groups.
fn of_lengths<'a>(task: &str, host: &str, totals: &'a HostTotals) -> Vec<FileColumn<'a>> {
    let [slow, fast] = &totals.groups;
    let all = [("all", &totals.by_length), ("slow", &slow.by_length), ("fast", &fast.by_length)];
    let rows = all.into_iter().flat_map(|(side, DurationHistogram { counts })| {
        counts.iter().map(move |(bucket, count)| (side, DurationHistogram::bounds(*bucket), *count))
    });
    let bound = |ns: i64| u64::try_from(ns).unwrap_or(0);
    let (task, host) = (cell(task), cell(host));
    vec![
        texts("task", rows.clone().map(move |_| task.clone())),
        texts("host_name", rows.clone().map(move |_| host.clone())),
        texts("side", rows.clone().map(|(side, ..)| cell(side))),
        numbers("from_ns", rows.clone().map(move |(_, (from, _), _)| bound(from))),
        numbers("to_ns", rows.clone().map(move |(_, (_, to), _)| bound(to))),
        numbers("executions", rows.clone().map(|(.., count)| count)),
    ]
}
