//! Options that several commands share, as clap reads them. clap parses each value into its type, so a wrong value is
//! refused before any file is opened.

pub mod configuration;

use crate::base::op::Op;
use crate::base::quantity;
use crate::compare;
use crate::compare::filter::{Filter, Filters};
use crate::event::profile::ProfileTask;
use crate::event::task::Asked;
use crate::input::Argument;
use crate::model::execution::ExecutionId;
use crate::model::metric::Metric;
use crate::saved::{FilesBelow, SavedKind};
use crate::tui::key_map::KeySetting;
use crate::view::report::Invocation;
use clap::builder::{NonEmptyStringValueParser, OsStringValueParser, TypedValueParser};
use clap::{Args, ValueEnum};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The traces, and the options for reading them.
#[derive(Args, Clone, Debug, Default)]
pub struct InputOptions {
    /// Trace directories (CTF), OTF2 archives, perf.data, trace.dat, files of DTrace, ETW or Perfetto, databases, or
    /// LABEL=PATH to name one
    #[arg(required = true, value_name = "TRACE", value_parser = OsStringValueParser::new().map(located))]
    pub traces: Vec<Argument>,
    /// Tasks declared in a TOML file, with conditions and keys
    #[arg(long, value_name = "FILE")]
    pub tasks: Option<PathBuf>,
    /// Custom names of interrupt handlers: a table that takes precedence over the built-in one (default: handlers.toml
    /// in the configuration folder)
    #[arg(long, value_name = "FILE")]
    pub handlers: Option<PathBuf>,
    /// Exit with 1 if anything in the input is malformed
    #[arg(long)]
    pub strict: bool,
    /// Memory limit: 512M, 4GiB (default: what the machine or the control group leaves)
    #[arg(long, value_name = "LIMIT", value_parser = quantity::size)]
    pub memory: Option<u64>,
    /// Worker threads (default: all cores)
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub threads: usize,
    /// Disable the sandbox: whyslow otherwise gives up the right to write files and to start programs
    #[arg(long)]
    pub no_sandbox: bool,
    /// Print times and peak memory per stage to stderr
    #[arg(long)]
    pub timings: bool,
    /// Verify internal consistency; a failure ends the command with status 1
    #[arg(long)]
    pub check: bool,
    /// Bytes of trace in one chunk (default: balanced over the workers)
    #[arg(long, value_name = "BYTES", hide = true)]
    pub chunk: Option<u64>,
    /// Bytes of leaves of the state history in memory (default: half of what other parts leave of the budget)
    #[arg(long, value_name = "BYTES", hide = true)]
    pub leaf_memory: Option<u64>,
}

impl InputOptions {
    /// The traces, with the files that patterns and folders of databases stand for.
    pub fn files(&self) -> Vec<Argument> {
        self.traces.iter().cloned().flat_map(matching).collect()
    }
}

/// The task, and whose executions of it.
#[derive(Args, Clone, Debug, Default)]
pub struct TaskOptions {
    /// A task.
    #[arg(
        long,
        value_name = "TASK",
        help = "A task that `info` lists, serve:PROCESS, call:PROCESS, or begin=EVENT,end=EVENT[,key=FIELD]"
    )]
    pub task: Option<String>,
    /// Executions of these processes only, by name or pid; without --task those that answer
    #[arg(long, value_name = "PROCESS", value_parser = NonEmptyStringValueParser::new())]
    pub process: Option<String>,
}

impl TaskOptions {
    /// What is asked about, as one text.
    pub fn asked(&self) -> Option<String> {
        let asked = Asked { task: self.task.as_deref(), process: self.process.as_deref() };
        (asked != Asked::default()).then(|| asked.to_string())
    }
}

/// The executions that are compared.
#[derive(Args, Clone, Debug, Default)]
pub struct GroupOptions {
    /// The task whose executions are compared.
    #[command(flatten)]
    pub asked: TaskOptions,
    /// The slow group: `duration>20ms`, `type=append, start in 1s..2s`; repeatable (default: proposed, or the rest of
    /// --fast)
    #[arg(long, value_name = "FILTER")]
    pub slow: Vec<Filters>,
    /// The fast group, in the same syntax (default: proposed, or the rest of --slow)
    #[arg(long, value_name = "FILTER")]
    pub fast: Vec<Filters>,
    /// Compare executions of this type only
    #[arg(long = "type", value_name = "NAME")]
    pub kind: Option<String>,
    /// Compare with OLD, the fast side: a trace, a database, or the label of one of the traces
    #[arg(long, value_name = "OLD")]
    pub baseline: Option<OsString>,
    /// Map of renamed functions, for comparing versions: a TOML file of lines `"old" = "new"`
    #[arg(long, value_name = "FILE")]
    pub functions: Option<PathBuf>,
    /// Of a profile: the event whose samples count (default: a clock, else the event with most samples)
    #[arg(long, value_name = "EVENT", conflicts_with = "task")]
    pub event: Option<String>,
    /// Compare profiles by what a run takes, or as if both had done the same work
    #[arg(long, value_name = "UNIT", default_value = "run", hide_default_value = true)]
    pub per: PerUnit,
    /// Sources of function names.
    #[command(flatten)]
    pub symbols: SymbolOptions,
}

impl GroupOptions {
    /// The task that is asked about: as it is typed, or the samples of an event.
    pub fn asked(&self) -> Option<String> {
        let of_event = |event: &String| {
            let (program, event) = (self.asked.process.clone(), Some(event.clone()));
            ProfileTask { program, event }.to_string()
        };
        self.event.as_ref().map(of_event).or_else(|| self.asked.asked())
    }

    /// The traces of `input`, and the baseline if it is another trace.
    pub fn traces(&self, input: &InputOptions) -> Vec<Argument> {
        let baseline = self.baseline(input).and_then(|(_, trace)| trace);
        input.traces.iter().cloned().chain(baseline).flat_map(matching).collect()
    }

    /// The filters of both groups.
    pub fn request(&self, input: &InputOptions) -> compare::ComparisonRequest {
        let all = |groups: &[Filters]| groups.iter().flat_map(|filters| filters.0.clone()).collect();
        let (mut slow, mut fast): (Vec<Filter>, Vec<Filter>) = (all(&self.slow), all(&self.fast));
        if let Some((label, _)) = self.baseline(input) {
            slow.push(Filter::named(Metric::Trace, Op::NotEqual, &label));
            fast.push(Filter::named(Metric::Trace, Op::Equal, &label));
        }
        let within = self.kind.iter().map(|kind| Filter::named(Metric::Type, Op::Equal, kind)).collect();
        let by_trace = slow.is_empty() && fast.is_empty() && has_two_labels(input);
        let per = self.per.into();
        compare::ComparisonRequest { slow, fast, within, by_trace, per }
    }

    /// The words of a command line with these traces and options, without the filters.
    pub fn command_line(&self, input: &InputOptions) -> Invocation {
        let trace = |trace: &Argument| {
            let path = trace.path.display();
            trace.label.as_ref().map_or_else(|| path.to_string(), |label| format!("{label}={path}"))
        };
        let mut words: Vec<String> = self.traces(input).iter().map(trace).collect();
        let one = |path: &Option<PathBuf>| path.iter().cloned().collect::<Vec<_>>();
        for (option, paths) in [
            ("--tasks", one(&input.tasks)),
            ("--handlers", one(&input.handlers)),
            ("--functions", one(&self.functions)),
            ("--symbols", self.symbols.folders.clone()),
            ("--symbols-only", self.symbols.only.clone()),
            ("--kallsyms", self.symbols.kernel.clone()),
        ] {
            words.extend(paths.iter().flat_map(|path| [option.to_owned(), path.display().to_string()]));
        }
        Invocation { words, task: self.asked() }
    }

    /// The label of the baseline, and its trace if that is not among those of `input`.
    fn baseline(&self, input: &InputOptions) -> Option<(String, Option<Argument>)> {
        let old = self.baseline.as_deref()?;
        let known = input.traces.iter().filter_map(|trace| trace.label.as_deref()).find(|label| old == *label);
        if let Some(label) = known {
            return Some((label.to_owned(), None));
        }
        let trace = Argument::parse(old).located();
        let label = trace.label.clone().unwrap_or_else(|| compare::BASELINE.to_owned());
        Some((label.clone(), Some(Argument { label: Some(label), ..trace })))
    }
}

/// The files that a pattern names, `old-*.data`, or the databases of a folder, each with its label; the argument itself
/// where it is neither, or where no file matches.
fn matching(argument: Argument) -> Vec<Argument> {
    if argument.is_plain_folder() {
        let FilesBelow { found, mut unsearched } = SavedKind::Executions.below(&argument.path);
        if !found.is_empty() {
            let database = |path| Argument { path, unopened: std::mem::take(&mut unsearched), ..argument.clone() };
            return found.into_iter().map(database).collect();
        }
    }
    let is_pattern = |name: &&str| name.contains(['*', '?']) && !argument.path.exists();
    let Some(pattern) = argument.path.file_name().and_then(|name| name.to_str()).filter(is_pattern) else {
        return vec![argument];
    };
    let folder = argument.path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let entries = std::fs::read_dir(folder.unwrap_or(Path::new("."))).into_iter().flatten().flatten();
    let is_meant = |name: &OsString| matches(pattern.as_bytes(), name.as_bytes());
    let mut names: Vec<OsString> = entries.map(|entry| entry.file_name()).filter(is_meant).collect();
    names.sort();
    if names.is_empty() {
        return vec![argument];
    }
    let file = |name| Argument { path: argument.path.with_file_name(name), ..argument.clone() };
    names.into_iter().map(file).collect()
}

/// True where a name has the form of a pattern: `*` matches any number of letters, `?` one.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern.split_first(), name.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), _) => (0..=name.len()).any(|skipped| matches(rest, &name[skipped..])),
        (Some((b'?', rest)), Some((_, others))) => matches(rest, others),
        (Some((letter, rest)), Some((other, others))) => letter == other && matches(rest, others),
        _ => false,
    }
}

fn located(text: OsString) -> Argument {
    Argument::parse(text).located()
}

/// True if every trace has a label and there are two labels.
fn has_two_labels(input: &InputOptions) -> bool {
    let labels: Option<BTreeSet<&str>> = input.traces.iter().map(|trace| trace.label.as_deref()).collect();
    labels.is_some_and(|labels| labels.len() == 2)
}

/// Sources of function names.
#[derive(Args, Clone, Debug, Default)]
pub struct SymbolOptions {
    /// Folder of traced ELF files, looked in before the recorded paths; repeatable
    #[arg(long = "symbols", value_name = "DIR")]
    pub folders: Vec<PathBuf>,
    /// The same, without the recorded paths: no file but those in DIR gives names
    #[arg(long = "symbols-only", value_name = "DIR")]
    pub only: Vec<PathBuf>,
    /// Kernel symbols (kallsyms, System.map, module symbols) for kernel stacks; repeatable
    #[arg(long = "kallsyms", value_name = "FILE")]
    pub kernel: Vec<PathBuf>,
}

impl SymbolOptions {
    /// All named folders, in the order in which they are looked in.
    pub fn all_folders(&self) -> impl Iterator<Item = &PathBuf> {
        self.only.iter().chain(&self.folders)
    }
}

/// By what profiles are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum PerUnit {
    /// By the run.
    #[default]
    Run,
    /// By the sample: scaled to the same total.
    Sample,
}

impl From<PerUnit> for compare::ProfileUnit {
    fn from(unit: PerUnit) -> Self {
        match unit {
            PerUnit::Run => compare::ProfileUnit::Run,
            PerUnit::Sample => compare::ProfileUnit::Sample,
        }
    }
}

/// Use of colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum ColorChoice {
    /// If the output is a terminal and `NO_COLOR` is not set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl AppearanceOptions {
    /// The words of a command line that say the same.
    pub fn words(&self) -> Vec<OsString> {
        let mut words = vec![format!("--color={}", self.color.name()).into()];
        words.extend(self.theme.iter().flat_map(|theme| ["--theme".into(), theme.clone()]));
        words.extend([("ascii", self.ascii), ("mouse", self.mouse)].map(|(name, is)| format!("--{name}={is}").into()));
        let keys = self.keys.iter().map(|KeySetting { action, keys }| format!("--key={action}={keys}").into());
        words.extend(keys);
        words
    }
}

impl ColorChoice {
    /// The value of `--color`.
    fn name(self) -> &'static str {
        match self {
            ColorChoice::Auto => "auto",
            ColorChoice::Always => "always",
            ColorChoice::Never => "never",
        }
    }
}

/// Appearance of the interface.
#[derive(Args, Clone, Debug, Default)]
pub struct AppearanceOptions {
    /// Use of colours
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub color: ColorChoice,
    /// A built-in theme or a theme file
    #[arg(long, value_name = "THEME")]
    pub theme: Option<OsString>,
    /// Draw with ASCII characters only
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value = "false", hide_possible_values = true)]
    pub ascii: bool,
    /// Use the mouse (the terminal then does not select text with it)
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value = "false", hide_possible_values = true)]
    pub mouse: bool,
    /// Other keys for an action of the interface: `export=Z`, `slow group=S Alt-s`; repeatable
    #[arg(long = "key", value_name = "ACTION=KEYS")]
    pub keys: Vec<KeySetting>,
}

/// Two executions by number: `A,B`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecutionPair {
    /// The first.
    pub a: ExecutionId,
    /// The second; `None` for a fast execution of typical length.
    pub b: Option<ExecutionId>,
}

impl FromStr for ExecutionPair {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let number = |n: &str| n.trim().parse().ok().map(ExecutionId::from_raw);
        let pair = match text.split_once(',') {
            Some((a, b)) => number(a).zip(number(b)).map(|(a, b)| ExecutionPair { a, b: Some(b) }),
            None => number(text).map(|a| ExecutionPair { a, b: None }),
        };
        pair.ok_or("write one or two execution numbers, `A` or `A,B`; `samples` in `diff --json` lists them")
    }
}

/// `-q`: a fraction in (0, 1].
pub fn quotient(text: &str) -> Result<f64, &'static str> {
    text.parse().ok().filter(|q| *q > 0.0 && *q <= 1.0).ok_or("write a fraction above 0 and at most 1: 0.75")
}

/// `-s`: a factor above 1.
pub fn threshold(text: &str) -> Result<f64, &'static str> {
    text.parse().ok().filter(|s| *s > 1.0 && *s < 1e9).ok_or("write a factor above 1: 2")
}
