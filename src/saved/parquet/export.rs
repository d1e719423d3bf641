//! The tables of a part: executions, the times that they spent in contexts, contexts, threads, recordings.
//!
//! In: a part of a database as a model. Out: its files. Numbers that other tables refer to are those of the part.

use super::file::{self, ColumnData, ColumnKind, FileColumn, folder_value};
use super::rest::RestOfPart;
use super::{ParquetFileError, SCHEMA_VERSION, paths};
use crate::base::ctx::Ctx;
use crate::base::file::{Existing, Output};
use crate::base::names::NameId;
use crate::model::column_values::ColumnValues;
use crate::model::context::ContextId;
use crate::model::execution::ContextTime;
use crate::model::metric::{ABSENT, Column, Unit};
use crate::model::table_columns::{column_of, context_keys, frame_name, metric_columns, wait_of};
use crate::model::{Model, TraceLevel};
use crate::saved::executions::Database;
use crate::saved::executions::recordings::{StoredPart, StoredRecording};
use parquet::data_type::ByteArray;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

/// Executions, or rows of another table, of a row group.
const GROUP: usize = 1 << 17;

const DAY_NS: i64 = 86_400_000_000_000;

/// Write the tables of a database below a folder. Returns the number of files.
pub fn export(database: &Database, folder: &Path, ctx: &Ctx) -> Result<u64, ParquetFileError> {
    let parts = database.contents.recordings.iter().map(|recording| recording.parts.len() as u64).sum();
    ctx.progress.enter("exporting", parts);
    let mut files = 0;
    database.each_part(ctx, |(recording, part), placed, model| {
        let (own, digest) = placed.own_tables()?;
        let rest = RestOfPart::new((recording, part), &model, &own.names, digest);
        let tables = PartTables { folder, recording, part, model: &model, texts: texts(&model), rest };
        let mut groups: BTreeMap<(i64, NameId), Vec<u32>> = BTreeMap::new();
        for (number, (start, who)) in model.executions.start.iter().zip(model.executions.who.iter()).enumerate() {
            let host = model.who.get(who.index()).map_or(crate::base::names::Names::MISSING, |who| who.host);
            groups.entry((start.ns().div_euclid(DAY_NS), host)).or_default().push(number as u32);
        }
        for ((day, host), numbers) in &groups {
            ctx.cancel.check()?;
            let below = format!("day={}/host={}", date(*day), folder_value(model.names.get(*host)));
            tables.executions(&below, numbers)?;
            tables.spent(&below, numbers)?;
            files += 2;
        }
        tables.contexts()?;
        tables.paths()?;
        tables.threads()?;
        tables.recordings()?;
        files += 4;
        ctx.progress.step(1);
        Ok::<(), ParquetFileError>(())
    })?;
    Ok(files)
}

/// All names, as cells.
fn texts(model: &Model) -> Vec<ByteArray> {
    (0..model.names.len()).map(|at| ByteArray::from(model.names.get(NameId::at(at)).as_bytes().to_vec())).collect()
}

/// A day since 1970 as a date (Howard Hinnant, "chrono-compatible low-level date algorithms").
fn date(day: i64) -> String {
    let z = day + 719_468;
    let era = z.div_euclid(146_097);
    let of_era = z.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let (month, day) = (if shifted < 10 { shifted + 3 } else { shifted - 9 }, of_year - (153 * shifted + 2) / 5 + 1);
    format!("{:04}-{month:02}-{day:02}", year + era * 400 + i64::from(month <= 2))
}

/// True where a column has so many values that a dictionary of them would be longer than they are: numbers of requests.
fn mostly_differ(values: &ColumnValues) -> bool {
    const LOOKED_AT: usize = 4_096;
    let some: BTreeSet<i64> = values.iter().take(LOOKED_AT).collect();
    some.len() > LOOKED_AT / 4
}

/// Write a file of so many row groups, and the folders above it.
pub(super) fn write_table(
    path: &Path,
    columns: &[FileColumn<'_>],
    groups: usize,
    about: &[(&str, String)],
) -> Result<(), ParquetFileError> {
    let io = |error| ParquetFileError::Io { path: path.to_owned(), error };
    path.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(io)?;
    let mut failed = None;
    let written = Output::open(path).map_err(io)?.write(Existing::Replace, |out| {
        file::write(&*out, columns, groups, about).map_err(|error| {
            failed = Some(error);
            io::Error::other("not finished")
        })
    });
    match failed {
        Some(error) => Err(ParquetFileError::Table { path: path.to_owned(), error }),
        None => written.map_err(io),
    }
}

/// A part on its way into files.
struct PartTables<'a> {
    folder: &'a Path,
    recording: &'a StoredRecording,
    part: &'a StoredPart,
    model: &'a Model,
    /// By name.
    texts: Vec<ByteArray>,
    /// What no column has.
    rest: RestOfPart,
}

/// The positions of a row group among so many.
fn rows(group: usize, all: usize) -> std::ops::Range<usize> {
    (group * GROUP).min(all)..((group + 1) * GROUP).min(all)
}

fn groups(all: usize) -> usize {
    all.div_ceil(GROUP)
}

impl<'a> PartTables<'a> {
    /// Write a table of so many row groups.
    fn write(
        &self,
        table: &str,
        below: &str,
        columns: &[FileColumn<'_>],
        groups: usize,
        metrics: Option<String>,
    ) -> Result<(), ParquetFileError> {
        let path = self.folder.join(table).join(below).join(format!("{}.parquet", self.part.content));
        let mut about = vec![("whyslow.schema", SCHEMA_VERSION.to_string()), ("whyslow.table", table.to_owned())];
        about.extend(metrics.map(|metrics| ("whyslow.metrics", metrics)));
        write_table(&path, columns, groups, &about)
    }

    fn text(&self, name: NameId) -> Option<ByteArray> {
        self.texts.get(name.index()).cloned()
    }

    fn constant(text: &str) -> ByteArray {
        ByteArray::from(text.as_bytes().to_vec())
    }

    /// A column of texts of some executions.
    fn texts_of<'b>(name: &str, numbers: &'b [u32], text: impl Fn(usize) -> Option<ByteArray> + 'b) -> FileColumn<'b> {
        let values = move |group| {
            let rows = &numbers[rows(group, numbers.len())];
            ColumnData::Texts(rows.iter().map(|number| text(*number as usize)).collect())
        };
        FileColumn { name: name.to_owned(), kind: ColumnKind::Texts, values: Box::new(values) }
    }

    /// A column of numbers of some executions.
    fn numbers_of<'b>(
        name: &str,
        kind: ColumnKind,
        numbers: &'b [u32],
        value: impl Fn(usize) -> Option<i64> + 'b,
    ) -> FileColumn<'b> {
        let values = move |group| {
            let rows = &numbers[rows(group, numbers.len())];
            ColumnData::Numbers(rows.iter().map(|number| value(*number as usize)).collect())
        };
        FileColumn { name: name.to_owned(), kind, values: Box::new(values) }
    }

    fn executions(&self, below: &str, numbers: &[u32]) -> Result<(), ParquetFileError> {
        let (model, e) = (self.model, &self.model.executions);
        let [part, task] = [self.part.content.to_string(), self.part.task.clone()].map(|text| Self::constant(&text));
        let labels: Vec<ByteArray> = model.traces.iter().map(|trace| Self::constant(&trace.label)).collect();
        let who = |i: usize| e.who.get(i).and_then(|who| model.who.get(who.index()));
        let id = |i: usize| Some(i64::try_from(i).unwrap_or(i64::MAX));
        let (many, few) = (ColumnKind::Numbers, ColumnKind::Ids);
        let weights = e.weights();
        let cpu = |i: usize| e.cpu.get(i).filter(|cpu| *cpu != u16::MAX).map(i64::from);
        let unsure = |group| {
            let rows = &numbers[rows(group, numbers.len())];
            ColumnData::Truth(rows.iter().map(|number| e.unsure.get(*number as usize)).collect())
        };
        let mut columns = vec![
            Self::texts_of("part", numbers, move |_| Some(part.clone())),
            Self::texts_of("task", numbers, move |_| Some(task.clone())),
            Self::numbers_of("execution", many, numbers, id),
            Self::texts_of("label", numbers, move |i| labels.get(e.trace.get(i)?.index()).cloned()),
            Self::numbers_of("start_ns", many, numbers, |i| e.start.get(i).map(|start| start.ns())),
            Self::numbers_of("duration_ns", many, numbers, |i| e.duration.get(i)),
            Self::numbers_of("weight", few, numbers, move |i| i64::try_from(weights.of(i)).ok()),
            Self::texts_of("process", numbers, move |i| self.text(who(i)?.process)),
            Self::texts_of("thread", numbers, move |i| self.text(who(i)?.thread)),
            Self::numbers_of("pid", few, numbers, move |i| Some(who(i)?.pid.into())),
            Self::numbers_of("tid", few, numbers, move |i| Some(who(i)?.tid.into())),
            Self::numbers_of("thread_id", few, numbers, |i| e.who.get(i).map(|who| who.raw().into())),
            Self::numbers_of("trace_id", few, numbers, |i| e.trace.get(i).map(|trace| trace.raw().into())),
            Self::numbers_of("cpu", few, numbers, cpu),
            FileColumn { name: "unsure".to_owned(), kind: ColumnKind::Truth, values: Box::new(unsure) },
            Self::texts_of("host_name", numbers, move |i| self.text(who(i)?.host)),
        ];
        let mut listed = Vec::new();
        for (metric, name) in metric_columns(model) {
            let (Some(Column { values, .. }), unit) = (e.column(&metric), metric.unit()) else { continue };
            listed.push(serde_json::json!({ "metric": metric.name(), "column": name, "unit": unit_name(unit) }));
            if column_of(&metric).is_some() {
                continue;
            }
            let value = move |i: usize| values.get(i).filter(|value| *value != ABSENT);
            columns.push(match unit {
                Unit::Name => {
                    Self::texts_of(&name, numbers, move |i| self.text(NameId::from_raw(u32::try_from(value(i)?).ok()?)))
                }
                Unit::Ns => Self::numbers_of(&name, many, numbers, value),
                Unit::Bytes | Unit::Count if mostly_differ(values) => Self::numbers_of(&name, many, numbers, value),
                Unit::Bytes | Unit::Count => Self::numbers_of(&name, few, numbers, value),
            });
        }
        let metrics = serde_json::Value::from(listed).to_string();
        self.write("executions", below, &columns, groups(numbers.len()), Some(metrics))
    }

    fn spent(&self, below: &str, numbers: &[u32]) -> Result<(), ParquetFileError> {
        let (own, contexts) = (&self.model.executions.own, &self.model.contexts);
        let part = Self::constant(&self.part.content.to_string());
        let of_group = move |group: usize| {
            let rows = numbers[rows(group, numbers.len())].iter();
            rows.flat_map(|number| own.row(*number as usize).map(move |time| (*number, time)))
        };
        let number = |name: &str, kind, value: fn((u32, ContextTime)) -> i64| {
            let values = move |group| ColumnData::Numbers(of_group(group).map(|row| Some(value(row))).collect());
            FileColumn { name: name.to_owned(), kind, values: Box::new(values) as Box<dyn Fn(usize) -> ColumnData> }
        };
        let parts = move |group| ColumnData::Texts(of_group(group).map(|_| Some(part.clone())).collect());
        let kind = move |group| {
            let name = |time: ContextTime| Self::constant(contexts.spent(time.context).name());
            ColumnData::Texts(of_group(group).map(|(_, time)| Some(name(time))).collect())
        };
        let columns = [
            FileColumn { name: "part".to_owned(), kind: ColumnKind::Texts, values: Box::new(parts) },
            number("execution", ColumnKind::Numbers, |(number, _)| number.into()),
            number("context", ColumnKind::Ids, |(_, time)| time.context.raw().into()),
            number("spent_ns", ColumnKind::Numbers, |(_, time)| i64::try_from(time.ns).unwrap_or(i64::MAX)),
            FileColumn { name: "kind".to_owned(), kind: ColumnKind::Texts, values: Box::new(kind) },
        ];
        self.write("spent", below, &columns, groups(numbers.len()), None)
    }

    fn contexts(&self) -> Result<(), ParquetFileError> {
        let Model { names, contexts, .. } = self.model;
        let all: Vec<u32> = (0..contexts.len() as u32).collect();
        let part = Self::constant(&self.part.content.to_string());
        let at = |i: usize| ContextId::at(i);
        let frame = move |i: usize| contexts.frame(at(i));
        let path = move |i: usize| {
            let frames = contexts.path(at(i));
            let shown: Vec<_> = frames.into_iter().map(|id| names.function(contexts.frame(id).name)).collect();
            Some(Self::constant(&shown.join(";")))
        };
        let marked = |ids: Vec<NameId>| ids.into_iter().collect::<BTreeSet<NameId>>();
        let truth = |name: &str, marked: BTreeSet<NameId>| {
            let count = contexts.len();
            let values = move |group| {
                ColumnData::Truth(rows(group, count).map(|i| Some(marked.contains(&frame(i).name))).collect())
            };
            FileColumn {
                name: name.to_owned(),
                kind: ColumnKind::Truth,
                values: Box::new(values) as Box<dyn Fn(usize) -> ColumnData + '_>,
            }
        };
        let keys = context_keys(self.model);
        let parent = |i: usize| contexts.parent(at(i)).map(|parent| i64::from(parent.raw()));
        let columns = [
            Self::texts_of("part", &all, move |_| Some(part.clone())),
            Self::numbers_of("context", ColumnKind::Numbers, &all, |i| i64::try_from(i).ok()),
            Self::texts_of("path_key", &all, move |i| Some(Self::constant(&keys.get(i)?.to_string()))),
            Self::numbers_of("parent", ColumnKind::Ids, &all, parent),
            Self::numbers_of("depth", ColumnKind::Ids, &all, |i| Some(contexts.depth(at(i)).into())),
            Self::texts_of("frame", &all, |i| Some(Self::constant(frame_name(frame(i).kind)))),
            Self::texts_of("wait", &all, |i| Some(Self::constant(wait_of(frame(i).kind)?.name()))),
            Self::texts_of("kind", &all, |i| Some(Self::constant(contexts.spent(at(i)).name()))),
            Self::texts_of("name", &all, |i| self.text(frame(i).name)),
            Self::texts_of("path", &all, path),
            truth("unproven", marked(names.unproven().collect())),
            truth("runtime", marked(names.runtime().collect())),
        ];
        self.write("contexts", "", &columns, groups(all.len()), None)
    }

    fn paths(&self) -> Result<(), ParquetFileError> {
        let contexts = &self.model.contexts;
        let groups = paths::groups(contexts).ok_or_else(|| ParquetFileError::Deep { part: self.part.task.clone() })?;
        let part = Self::constant(&self.part.content.to_string());
        self.write("paths", "", &paths::columns(part, contexts, &groups), groups.len(), None)
    }

    /// The threads of the part, and of thread frames how long each of them was the one.
    fn threads(&self) -> Result<(), ParquetFileError> {
        let Model { who, contexts, .. } = self.model;
        let held: Vec<_> = contexts.who.iter().map(|((context, thread), ns)| (*context, *thread, *ns)).collect();
        let all: Vec<u32> = (0..(who.len() + held.len()) as u32).collect();
        let part = Self::constant(&self.part.content.to_string());
        // First the threads, then their times.
        let thread_at = |i: usize| i.checked_sub(who.len()).and_then(|at| held.get(at)).map_or(i, |row| row.1.index());
        let thread = move |i: usize| who.get(thread_at(i));
        let row = |i: usize| i.checked_sub(who.len()).and_then(|at| held.get(at));
        let (many, few) = (ColumnKind::Numbers, ColumnKind::Ids);
        let columns = [
            Self::texts_of("part", &all, move |_| Some(part.clone())),
            Self::numbers_of("thread_id", few, &all, |i| i64::try_from(thread_at(i)).ok()),
            Self::texts_of("host", &all, |i| self.text(thread(i)?.host)),
            Self::texts_of("process", &all, |i| self.text(thread(i)?.process)),
            Self::texts_of("thread", &all, |i| self.text(thread(i)?.thread)),
            Self::numbers_of("pid", few, &all, |i| Some(thread(i)?.pid.into())),
            Self::numbers_of("tid", few, &all, |i| Some(thread(i)?.tid.into())),
            Self::numbers_of("context", few, &all, |i| Some(row(i)?.0.raw().into())),
            Self::numbers_of("held_ns", many, &all, |i| i64::try_from(row(i)?.2).ok()),
        ];
        self.write("threads", "", &columns, groups(all.len()), None)
    }

    /// A row for each trace of the part's recording.
    fn recordings(&self) -> Result<(), ParquetFileError> {
        let (StoredRecording { digest, labelled, facts, .. }, model) = (self.recording, self.model);
        // A part without traces has a row as well.
        let all: Vec<u32> = (0..model.traces.len().max(1) as u32).collect();
        let constants = [self.part.content.to_string(), self.part.task.clone(), digest.to_string()];
        let [part, task, recording] = constants.map(|text| Self::constant(&text));
        let trace = |i: usize| model.traces.get(i);
        let level = |i: usize| Some(if trace(i)?.level == TraceLevel::MpiRun { "MPI run" } else { "machine" });
        let counts = [facts.lost.events, facts.lost.packets, self.part.count].map(|n| i64::try_from(n).ok());
        let [events, packets, executions] = counts;
        let truth = |_| ColumnData::Truth(all.iter().map(|_| Some(*labelled)).collect());
        let many = ColumnKind::Numbers;
        let rest = Self::constant(&self.rest.to_text());
        let sentences = model.notices.sentences().join("\n");
        let columns = [
            Self::texts_of("part", &all, move |_| Some(part.clone())),
            Self::texts_of("task", &all, move |_| Some(task.clone())),
            Self::texts_of("recording", &all, move |_| Some(recording.clone())),
            Self::numbers_of("trace_id", many, &all, |i| i64::try_from(i).ok()),
            Self::texts_of("label", &all, |i| Some(Self::constant(&trace(i)?.label))),
            FileColumn { name: "labelled".to_owned(), kind: ColumnKind::Truth, values: Box::new(truth) },
            Self::texts_of("level", &all, move |i| Some(Self::constant(level(i)?))),
            Self::numbers_of("begin_ns", many, &all, |i| Some(trace(i)?.span.start.ns())),
            Self::numbers_of("end_ns", many, &all, |i| Some(trace(i)?.span.end.ns())),
            Self::numbers_of("origin_ns", many, &all, |_| Some(model.origin.ns())),
            Self::numbers_of("executions", many, &all, move |_| executions),
            Self::numbers_of("lost_events", many, &all, move |_| events),
            Self::numbers_of("lost_packets", many, &all, move |_| packets),
            Self::texts_of("notices", &all, move |_| Some(Self::constant(&sentences))),
            Self::texts_of("rest", &all, move |i| (i == 0).then(|| rest.clone())),
        ];
        self.write("recordings", "", &columns, groups(all.len()), None)
    }
}

fn unit_name(unit: Unit) -> &'static str {
    match unit {
        Unit::Ns => "ns",
        Unit::Bytes => "bytes",
        Unit::Count => "count",
        Unit::Name => "name",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn date_counts_leap_years() {
        let known = [(0, "1970-01-01"), (-1, "1969-12-31"), (19_782, "2024-02-29"), (19_783, "2024-03-01")];
        known.into_iter().for_each(|(day, text)| assert_eq!(date(day), text));
    }
}
