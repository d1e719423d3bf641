//! The tables of a profile in the processed format of the Firefox profiler, as its JSON has them.
//!
//! The tables are columns. Up to version 55 each thread has its own tables of stacks, frames, functions, resources and
//! texts; later ones are shared by all threads. Members that are not here are skipped. Sources: the format's change log
//! and types in the profiler's repository (its changelog of formats, and the types of a profile).

use serde::Deserialize;
use serde::de::IgnoredAny;

/// A column that may lack values, or be missing.
pub(super) type Column<T> = Option<Vec<Option<T>>>;

/// The value of a row.
pub(super) fn at<T: Copy>(column: &Column<T>, row: usize) -> Option<T> {
    column.as_ref()?.get(row).copied().flatten()
}

/// The whole file.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Profile {
    pub meta: Meta,
    pub libs: Vec<Library>,
    pub shared: Tables,
    pub threads: Vec<ProfiledThread>,
}

/// What holds for all of it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Meta {
    /// Milliseconds of the wall clock, to which all times are relative.
    pub start_time: f64,
    pub sample_units: Option<SampleUnits>,
    pub product: Option<String>,
    #[serde(rename = "oscpu")]
    pub system: Option<String>,
}

/// Units of columns.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct SampleUnits {
    #[serde(rename = "threadCPUDelta")]
    pub cpu_delta: Option<String>,
}

/// A file with code.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Library {
    pub name: String,
    pub path: String,
}

/// Stacks and what they are made of.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Tables {
    pub stack_table: StackTable,
    pub frame_table: FrameTable,
    pub func_table: FunctionTable,
    pub resource_table: ResourceTable,
    #[serde(alias = "stringTable")]
    pub string_array: Vec<String>,
}

/// Stacks: each a frame and the stack of its caller.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct StackTable {
    pub prefix: Column<usize>,
    pub frame: Column<usize>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct FrameTable {
    pub func: Column<usize>,
    /// In the file; -1 where there is none.
    pub address: Column<i64>,
}

/// Functions; `resource` is -1 where there is none.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct FunctionTable {
    pub name: Column<usize>,
    pub resource: Column<i64>,
}

/// Places that functions are from.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ResourceTable {
    pub lib: Column<i64>,
    pub name: Column<usize>,
}

/// A number, or a text with one.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Id {
    Number(f64),
    Text(String),
}

impl Id {
    /// The number; `1234.2` is the second thread that had the id.
    pub fn number(&self) -> Option<i32> {
        match self {
            Id::Number(number) => Some(*number as i32),
            Id::Text(text) => text.split('.').next()?.parse().ok(),
        }
        .filter(|id| *id >= 0)
    }
}

/// A thread with its samples.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ProfiledThread {
    pub name: String,
    pub process_name: Option<String>,
    pub is_main_thread: bool,
    pub pid: Option<Id>,
    pub tid: Option<Id>,
    pub samples: SampleTable,
    pub markers: MarkerTable,
    stack_table: StackTable,
    frame_table: FrameTable,
    func_table: FunctionTable,
    resource_table: ResourceTable,
    #[serde(alias = "stringTable")]
    string_array: Vec<String>,
}

impl ProfiledThread {
    /// Its own tables; without stacks where all threads share theirs.
    pub fn take_tables(&mut self) -> Tables {
        Tables {
            stack_table: std::mem::take(&mut self.stack_table),
            frame_table: std::mem::take(&mut self.frame_table),
            func_table: std::mem::take(&mut self.func_table),
            resource_table: std::mem::take(&mut self.resource_table),
            string_array: std::mem::take(&mut self.string_array),
        }
    }
}

/// What a thread noted beside its samples.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MarkerTable {
    pub name: Option<Vec<IgnoredAny>>,
}

/// Samples of a thread.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct SampleTable {
    pub stack: Column<usize>,
    /// In milliseconds.
    pub time: Column<f64>,
    /// In milliseconds, each from the sample before it.
    pub time_deltas: Column<f64>,
    pub weight: Column<f64>,
    pub weight_type: Option<String>,
    /// CPU time of the thread since its sample before.
    #[serde(rename = "threadCPUDelta")]
    pub cpu_delta: Column<f64>,
}

impl SampleTable {
    /// Rows, as far as any column has them.
    pub fn rows(&self) -> usize {
        let numbers = [&self.time, &self.time_deltas, &self.weight, &self.cpu_delta];
        let rows = numbers.into_iter().flatten().map(Vec::len).chain(self.stack.as_ref().map(Vec::len));
        rows.max().unwrap_or(0)
    }
}
