//! Exported tables as a database again.
//!
//! In: folders of tables. Out: the database that they were exported from, or the merged one of several. The table
//! `recordings` says which parts there are; each part is read as a model, whose digest must be that of the exported
//! one: so rows that are missing, there twice or changed are found. Cost: one pass over the columns that are not
//! derived; in memory are the tables of one part, and the packed parts of all. ALGORITHMS.md section 6.4.

use super::ParquetFileError;
use super::read::TableFile;
use super::rest::RestOfPart;
use crate::base::ctx::Ctx;
use crate::base::digest::Digest;
use crate::base::file::Output;
use crate::base::names::{NameId, Names};
use crate::base::packed::bytes_of;
use crate::base::time::{Span, Timestamp};
use crate::model::column_values::ColumnValues;
use crate::model::context::{ContextId, Contexts, Frame};
use crate::model::execution::ContextTime;
use crate::model::metric::{ABSENT, Column, Metric, Unit};
use crate::model::table_columns::frame_kind;
use crate::model::wait_kind::WaitKind;
use crate::model::{Model, ThreadInfo, ThreadInfoId, TraceId, TraceInfo, TraceLevel};
use crate::saved::executions::recordings::StoredRecording;
use crate::saved::executions::restored::RestoredDatabase;
use parquet::data_type::ByteArray;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The files of a part, by table.
type PartFiles = BTreeMap<&'static str, Vec<PathBuf>>;

/// A part with its files.
type FoundPart = (RestOfPart, PartFiles);

/// The tables that are read, with the depth of the folders in which their files are.
const READ: [(&str, usize); 5] = [("recordings", 0), ("contexts", 0), ("threads", 0), ("executions", 2), ("spent", 2)];

/// Write the database of the tables below folders. Returns its length.
pub fn import(folders: &[PathBuf], output: Output, ctx: &Ctx) -> Result<u64, ParquetFileError> {
    let mut parts: BTreeMap<String, PartFiles> = BTreeMap::new();
    for folder in folders {
        for (table, depth) in READ {
            for path in files(&folder.join(table), depth)? {
                let name = path.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
                let of_table = parts.entry(name).or_default().entry(table).or_default();
                of_table.push(path);
            }
        }
    }
    // By what they say of their recordings.
    let mut by_recording: BTreeMap<(Digest, Vec<u8>), Vec<FoundPart>> = BTreeMap::new();
    for (name, files) in parts {
        let recordings = files.get("recordings").and_then(|files| files.first());
        let Some(path) = recordings else {
            let path = files.values().flatten().next().cloned().unwrap_or_default();
            return Err(ParquetFileError::Incomplete { path, part: name, why: "it is not in `recordings`".to_owned() });
        };
        let rest = rest(path)?;
        if rest.part.content.to_string() != name {
            return Err(changed(path, &name));
        }
        let key = (rest.recording.digest, bytes_of(&rest.recording));
        by_recording.entry(key).or_default().push((rest, files));
    }
    if by_recording.is_empty() {
        let path = folders.first().cloned().unwrap_or_default();
        return Err(ParquetFileError::NoTables { path });
    }
    ctx.progress.enter("importing", by_recording.values().map(Vec::len).sum::<usize>() as u64);
    let mut restored = RestoredDatabase::default();
    for mut parts in by_recording.into_values() {
        parts.sort_by_key(|(rest, _)| rest.place);
        let Some((first, _)) = parts.first() else { continue };
        restored.recording(StoredRecording { parts: Vec::new(), ..first.recording.clone() });
        for (rest, files) in parts {
            ctx.cancel.check()?;
            let model = PartReader { rest: &rest, files: &files, model: Model::default() }.model()?;
            if !restored.part(rest.part.clone(), rest.digest, &model) {
                let path = recordings_of(&files);
                return Err(changed(&path, &rest.part.content.to_string()));
            }
            ctx.progress.step(1);
        }
    }
    Ok(restored.save(output)?)
}

/// The file that says what the part is, by which errors about all of its files name it.
fn recordings_of(files: &PartFiles) -> PathBuf {
    files.get("recordings").and_then(|files| files.first()).cloned().unwrap_or_default()
}

fn changed(path: &Path, part: &str) -> ParquetFileError {
    let why = "its rows are not those that were exported".to_owned();
    ParquetFileError::Incomplete { path: path.to_owned(), part: part.to_owned(), why }
}

/// The Parquet files in a folder, this many folders below it; none where there is no such folder.
fn files(folder: &Path, depth: usize) -> Result<Vec<PathBuf>, ParquetFileError> {
    let io = |error| ParquetFileError::Io { path: folder.to_owned(), error };
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(io)?,
    };
    let mut found = Vec::new();
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>().map_err(io)?;
    paths.sort();
    for path in paths {
        if depth > 0 && path.is_dir() {
            found.extend(files(&path, depth - 1)?);
        } else if depth == 0 && path.extension().is_some_and(|ending| ending == "parquet") {
            found.push(path);
        }
    }
    Ok(found)
}

/// What no column of a part has.
fn rest(path: &Path) -> Result<RestOfPart, ParquetFileError> {
    let file = TableFile::read(path, "recordings", |name| name == "rest")?;
    let text = file.texts("rest")?.iter().flatten().next();
    let rest = text.and_then(|text| RestOfPart::of_text(text.data()));
    rest.ok_or_else(|| changed(path, &path.file_stem().unwrap_or_default().to_string_lossy()))
}

/// A part on its way from files.
struct PartReader<'a> {
    rest: &'a RestOfPart,
    files: &'a PartFiles,
    model: Model,
}

/// A value of a column, which must be there.
fn at<T: Copy>(values: &[Option<T>], row: usize) -> Option<T> {
    values.get(row).copied().flatten()
}

fn text_at(values: &[Option<ByteArray>], row: usize) -> Option<&str> {
    values.get(row)?.as_ref()?.as_utf8().ok()
}

impl PartReader<'_> {
    fn model(mut self) -> Result<Model, ParquetFileError> {
        let contexts = self.table("contexts", &["context", "parent", "frame", "wait", "name"])?;
        let of_threads = ["thread_id", "host", "process", "thread", "pid", "tid", "context", "held_ns"];
        let threads = self.table("threads", &of_threads)?;
        self.names(&contexts, &threads)?;
        for file in &contexts {
            self.contexts(file)?;
        }
        for file in &threads {
            self.threads(file)?;
        }
        self.recording()?;
        self.executions()?;
        Ok(self.model)
    }

    fn changed(&self, file: &TableFile) -> ParquetFileError {
        changed(file.path(), &self.rest.part.content.to_string())
    }

    /// The files of a table.
    fn table(&self, table: &'static str, columns: &[&str]) -> Result<Vec<TableFile>, ParquetFileError> {
        let paths = self.files.get(table).into_iter().flatten();
        paths.map(|path| TableFile::read(path, table, |name| columns.contains(&name))).collect()
    }

    /// All names, by their bytes, with their marks.
    fn names(&mut self, contexts: &[TableFile], threads: &[TableFile]) -> Result<(), ParquetFileError> {
        let mut all: BTreeSet<&str> = self.rest.names.iter().map(String::as_str).collect();
        for file in contexts {
            all.extend((0..file.texts("name")?.len()).filter_map(|row| text_at(file.texts("name").ok()?, row)));
        }
        for file in threads {
            for column in ["host", "process", "thread"] {
                let values = file.texts(column)?;
                all.extend((0..values.len()).filter_map(|row| text_at(values, row)));
            }
        }
        let mut names = Names::default();
        for name in all {
            names.intern(name);
        }
        for name in self.rest.unproven.iter().filter_map(|name| names.find(name)).collect::<Vec<NameId>>() {
            names.mark_unproven(name);
        }
        for name in self.rest.runtime.iter().filter_map(|name| names.find(name)).collect::<Vec<NameId>>() {
            names.mark_runtime(name);
        }
        self.model.names = names;
        Ok(())
    }

    fn contexts(&mut self, file: &TableFile) -> Result<(), ParquetFileError> {
        let (numbers, parents) = (file.numbers("context")?, file.numbers("parent")?);
        let (frames, waits, names) = (file.texts("frame")?, file.texts("wait")?, file.texts("name")?);
        for row in 0..numbers.len() {
            let contexts = &mut self.model.contexts;
            let added = Self::context(contexts, &self.model.names, at(parents, row), |column| match column {
                "frame" => text_at(frames, row),
                "wait" => text_at(waits, row),
                _ => text_at(names, row),
            });
            if added.is_none_or(|added| Some(i64::from(added.raw())) != at(numbers, row)) {
                return Err(self.changed(file));
            }
        }
        Ok(())
    }

    /// Add a context; `None` where the row is none.
    fn context<'b>(
        contexts: &mut Contexts,
        names: &Names,
        parent: Option<i64>,
        text: impl Fn(&str) -> Option<&'b str>,
    ) -> Option<ContextId> {
        let wait = match text("wait") {
            Some(name) => Some(WaitKind::ALL.into_iter().find(|kind| kind.name() == name)?),
            None => None,
        };
        let parent = match parent {
            Some(parent) => {
                Some(usize::try_from(parent).ok().filter(|parent| *parent < contexts.len()).map(ContextId::at)?)
            }
            None => None,
        };
        let frame = Frame { kind: frame_kind(text("frame")?, wait)?, name: names.find(text("name")?)? };
        Some(contexts.child(parent, frame))
    }

    fn threads(&mut self, file: &TableFile) -> Result<(), ParquetFileError> {
        let numbers = |column| file.numbers(column);
        let (ids, pids, tids) = (numbers("thread_id")?, numbers("pid")?, numbers("tid")?);
        let (contexts, held) = (numbers("context")?, numbers("held_ns")?);
        let [hosts, processes, threads] = [file.texts("host")?, file.texts("process")?, file.texts("thread")?];
        for row in 0..ids.len() {
            let model = &mut self.model;
            let name = |values| text_at(values, row).and_then(|text| model.names.find(text));
            let number = |values| at(values, row).and_then(|number| i32::try_from(number).ok());
            let id = at(ids, row).and_then(|id| usize::try_from(id).ok());
            let added = match (at(contexts, row), at(held, row)) {
                (None, None) => (|| {
                    let [host, process, thread] = [name(hosts)?, name(processes)?, name(threads)?];
                    let who = ThreadInfo { host, process, pid: number(pids)?, tid: number(tids)?, thread };
                    (id? == model.who.len()).then(|| model.who.push(who))
                })(),
                (Some(context), Some(held)) => (|| {
                    let context = usize::try_from(context).ok().filter(|at| *at < model.contexts.len())?;
                    let who = id.filter(|id| *id < model.who.len()).map(ThreadInfoId::at)?;
                    let held = u64::try_from(held).ok()?;
                    model.contexts.who.insert((ContextId::at(context), who), held).is_none().then_some(())
                })(),
                _ => None,
            };
            if added.is_none() {
                return Err(self.changed(file));
            }
        }
        Ok(())
    }

    /// Traces and hosts.
    fn recording(&mut self) -> Result<(), ParquetFileError> {
        for file in self.table("recordings", &["label", "level", "begin_ns", "end_ns", "origin_ns"])? {
            let [labels, levels] = [file.texts("label")?, file.texts("level")?];
            let [begins, ends, origins] =
                [file.numbers("begin_ns")?, file.numbers("end_ns")?, file.numbers("origin_ns")?];
            for (row, recorded) in self.rest.recorded.iter().enumerate() {
                let trace = || {
                    let (start, end) = (at(begins, row)?, at(ends, row)?);
                    let level = match text_at(levels, row)? {
                        "MPI run" => TraceLevel::MpiRun,
                        "machine" => TraceLevel::Machine,
                        _ => return None,
                    };
                    let span = (start <= end).then(|| Span::new(Timestamp::new(start), Timestamp::new(end)))?;
                    Some(TraceInfo { label: text_at(labels, row)?.to_owned(), level, span, recorded: recorded.clone() })
                };
                let trace = trace().ok_or_else(|| self.changed(&file))?;
                self.model.traces.push(trace);
            }
            self.model.origin = Timestamp::new(at(origins, 0).ok_or_else(|| self.changed(&file))?);
        }
        self.model.quality.clone_from(&self.rest.quality);
        Ok(())
    }

    /// Executions with their times and metrics.
    fn executions(&mut self) -> Result<(), ParquetFileError> {
        let paths = self.files.get("executions").into_iter().flatten();
        let files: Vec<TableFile> =
            paths.map(|path| TableFile::read(path, "executions", |_| true)).collect::<Result<_, _>>()?;
        let spent = self.table("spent", &["execution", "context", "spent_ns"])?;
        let order = self.order(&files)?;
        self.rows(&files, &order)?;
        self.own(&spent)?;
        for metric in self.rest.metrics.iter().filter_map(|name| Metric::named(name)) {
            self.model.executions.columns.push(Column { metric, values: ColumnValues::default() });
        }
        let listed = files.first().map(|file| (file, file.metrics.clone().unwrap_or_default()));
        if let Some((first, listed)) = listed {
            if let Some(other) = files.iter().find(|file| file.metrics != first.metrics) {
                return Err(self.changed(other));
            }
            self.metrics(first, &listed, &files, &order)?;
        }
        Ok(())
    }

    /// Where each execution is: its file and row.
    fn order(&self, files: &[TableFile]) -> Result<Vec<(usize, usize)>, ParquetFileError> {
        let mut order: Vec<(i64, usize, usize)> = Vec::new();
        for (at, file) in files.iter().enumerate() {
            let numbers = file.numbers("execution")?;
            order.extend(numbers.iter().enumerate().map(|(row, number)| (number.unwrap_or(-1), at, row)));
        }
        order.sort_unstable();
        let is_whole = order.iter().enumerate().all(|(at, (number, ..))| i64::try_from(at) == Ok(*number));
        if !is_whole || order.len() as u64 != self.rest.part.count {
            let (found, count) = (order.len(), self.rest.part.count);
            let path = recordings_of(self.files);
            let part = self.rest.part.content.to_string();
            let why = format!("{found} of its {count} executions are there: a partition is missing, or there twice");
            return Err(ParquetFileError::Incomplete { path, part, why });
        }
        Ok(order.into_iter().map(|(_, file, row)| (file, row)).collect())
    }

    fn rows(&mut self, files: &[TableFile], order: &[(usize, usize)]) -> Result<(), ParquetFileError> {
        const COLUMNS: [&str; 5] = ["start_ns", "duration_ns", "thread_id", "trace_id", "cpu"];
        let mut columns = Vec::new();
        for file in files {
            let mut numbers = [&[][..]; 5];
            for (numbers, column) in numbers.iter_mut().zip(COLUMNS) {
                *numbers = file.numbers(column)?;
            }
            columns.push((numbers, file.truth("unsure")?));
        }
        for (file, row) in order {
            let ([starts, durations, threads, traces, cpus], unsure) = columns[*file];
            let model = &mut self.model;
            let added = (|| {
                let start = Timestamp::new(at(starts, *row)?);
                let duration = at(durations, *row).filter(|duration| *duration >= 0)?;
                start.checked_add(duration)?;
                let index = |values, end: usize| {
                    at(values, *row).and_then(|id| usize::try_from(id).ok()).filter(|id| *id < end)
                };
                let thread = ThreadInfoId::at(index(threads, model.who.len())?);
                let trace = TraceId::at(index(traces, model.traces.len())?);
                let cpu = at(cpus, *row).map_or(Some(u16::MAX), |cpu| u16::try_from(cpu).ok())?;
                let e = &mut model.executions;
                e.start.push(start);
                e.duration.push(duration);
                e.who.push(thread);
                e.trace.push(trace);
                e.cpu.push(cpu);
                e.unsure.push(at(unsure, *row)?);
                Some(())
            })();
            if added.is_none() {
                return Err(self.changed(&files[*file]));
            }
        }
        Ok(())
    }

    /// The own times, by execution and context, which add up to the durations.
    fn own(&mut self, files: &[TableFile]) -> Result<(), ParquetFileError> {
        let count = self.model.executions.len();
        let mut rows: Vec<(u32, ContextTime)> = Vec::new();
        for file in files {
            let numbers = |column| file.numbers(column);
            let (executions, contexts, times) = (numbers("execution")?, numbers("context")?, numbers("spent_ns")?);
            for row in 0..executions.len() {
                let time = || {
                    let execution = u32::try_from(at(executions, row)?).ok().filter(|i| (*i as usize) < count)?;
                    let context = usize::try_from(at(contexts, row)?).ok();
                    let context = ContextId::at(context.filter(|at| *at < self.model.contexts.len())?);
                    Some((execution, ContextTime { context, ns: u64::try_from(at(times, row)?).ok()? }))
                };
                rows.push(time().ok_or_else(|| self.changed(file))?);
            }
        }
        rows.sort_unstable();
        let (mut from, mut row) = (0, Vec::new());
        for execution in 0..count {
            let end = from + rows[from..].partition_point(|(of, _)| *of as usize <= execution);
            row.clear();
            row.extend(rows[from..end].iter().map(|(_, time)| *time));
            let sum = row.iter().try_fold(0_u64, |sum, time| sum.checked_add(time.ns));
            let is_sorted = row.is_sorted_by(|a, b| a.context < b.context);
            if !is_sorted || sum != u64::try_from(self.model.executions.duration(execution)).ok() {
                let path = recordings_of(self.files);
                let part = self.rest.part.content.to_string();
                let why = format!("the times of execution {execution} in `spent` do not add up to its duration");
                return Err(ParquetFileError::Incomplete { path, part, why });
            }
            self.model.executions.own.push_sorted(&row);
            from = end;
        }
        self.model.executions.own.shrink();
        Ok(())
    }

    /// The columns of the metrics that the first file lists.
    fn metrics(
        &mut self,
        first: &TableFile,
        listed: &str,
        files: &[TableFile],
        order: &[(usize, usize)],
    ) -> Result<(), ParquetFileError> {
        let listed: Vec<serde_json::Value> = serde_json::from_str(listed).map_err(|_| self.changed(first))?;
        for one in listed {
            let text = |key: &str| one.get(key).and_then(serde_json::Value::as_str);
            let metric = text("metric").and_then(Metric::named).ok_or_else(|| self.changed(first))?;
            let column = text("column").ok_or_else(|| self.changed(first))?;
            let (origin, e) = (self.model.origin, &self.model.executions);
            let values: ColumnValues = if metric == Metric::Trace {
                order.iter().map(|_| ABSENT).collect()
            } else if metric == Metric::Start {
                e.start.iter().map(|start| start.since(origin)).collect()
            } else if metric.unit() == Unit::Name {
                let columns = files.iter().map(|file| file.texts(column)).collect::<Result<Vec<_>, _>>()?;
                let name = |(file, row): &(usize, usize)| {
                    let found = text_at(columns[*file], *row).and_then(|text| self.model.names.find(text));
                    found.map_or(ABSENT, |name| name.raw().into())
                };
                order.iter().map(name).collect()
            } else {
                let columns = files.iter().map(|file| file.numbers(column)).collect::<Result<Vec<_>, _>>()?;
                order.iter().map(|(file, row)| at(columns[*file], *row).unwrap_or(ABSENT)).collect()
            };
            self.model.executions.columns.push(Column { metric, values });
        }
        Ok(())
    }
}
