//! What was typed (clap) and its turn into what is meant ([`Request`]).
//!
//! Nothing below this file sees a raw option. A first word that is a command is the command; all else are traces
//! for the terminal interface. A wrong command line is one line and exit status 2; `--help` and `--version` are not
//! errors.

mod record;

use crate::input::Argument;
use crate::record::Wishes;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// If the output is a terminal and `NO_COLOR` is not set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Why are these executions slow, when those were fast?
///
/// Opens execution traces (LTTng CTF: kernel and user space) and shows what the slow executions of a task do that the
/// fast ones don't, down to the function and the thread that held them up.
#[derive(Parser, Debug)]
#[command(name = "whyslow", version, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(disable_help_subcommand = true)]
struct Typed {
    #[command(subcommand)]
    command: Option<TypedCommand>,
    #[command(flatten)]
    interface: Interface,
}

#[derive(Args, Debug)]
struct Interface {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    looks: Looks,
}

#[derive(Subcommand, Debug)]
enum TypedCommand {
    /// The ranked causes of the slow group's extra time, one sentence each
    Explain {
        #[command(flatten)]
        input: Input,
        #[command(flatten)]
        choice: Choice,
        /// Print one JSON document (schema whyslow.explain/1)
        #[arg(long)]
        json: bool,
        /// Exit with status 3 if this holds and is significant: `extra>2ms`, `p95>+5%`
        #[arg(long, value_name = "CONDITION")]
        fail_if: Option<String>,
    },
    /// What the interface exports: groups, histograms, differential tree, causes
    Diff {
        #[command(flatten)]
        input: Input,
        #[command(flatten)]
        choice: Choice,
        /// Print one JSON document (schema whyslow.diff/1)
        #[arg(long)]
        json: bool,
        /// Bound the tree in JSON; `truncated` says so
        #[arg(long, value_name = "N")]
        max_nodes: Option<usize>,
        /// Two executions by number, aligned moment by moment
        #[arg(long, value_name = "A,B")]
        executions: Option<String>,
    },
    /// Frequent patterns of each rank or thread, their abnormal occurrences, propagation paths
    Anomalies {
        #[command(flatten)]
        input: Input,
        /// Part of a pattern's occurrences, fastest first, that is its reference
        #[arg(short, value_name = "QUOTIENT", default_value_t = 0.75, value_parser = quotient)]
        q: f64,
        /// An occurrence is abnormal from this many times the slowest of the reference
        #[arg(short, value_name = "THRESHOLD", default_value_t = 2.0, value_parser = threshold)]
        s: f64,
        /// Limits by the median and its deviation, instead of by q
        #[arg(long)]
        robust: bool,
        /// The task whose delayed executions come first (default: as `explain` chooses)
        #[arg(long)]
        task: Option<String>,
        #[command(flatten)]
        symbols: Symbols,
        /// Print all sources, victims, waits and patterns, not the first of each
        #[arg(long)]
        all: bool,
        /// Print one JSON document (schema whyslow.anomalies/1)
        #[arg(long)]
        json: bool,
    },
    /// Events per type; CPU time per CPU and thread; bytes read and written per process
    Stats {
        /// What to count
        what: Stats,
        #[command(flatten)]
        input: Input,
        /// Print one JSON document (schema whyslow.stats.*/1)
        #[arg(long)]
        json: bool,
    },
    /// Values of the state history: at some times, over a range, at equal distances
    Query {
        #[command(flatten)]
        input: Input,
        /// A path or a pattern: threads/*/state, threads/123/syscall, cpus/0/thread
        #[arg(long, value_name = "PATH")]
        attribute: String,
        /// At this time: nanoseconds on the time line, or since the first event with a unit (12.5ms); repeatable
        #[arg(long, value_name = "T", conflicts_with_all = ["range", "points"])]
        at: Vec<String>,
        /// From A to B, written likewise (default: the whole recording)
        #[arg(long, value_name = "A..B")]
        range: Option<String>,
        /// Down-sampled to N cells: of states the one that held longest in each, else the value at its start
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
        points: Option<u32>,
        /// The N longest intervals only, longest first: the slowest calls of threads/*/syscall
        #[arg(long, value_name = "N", conflicts_with_all = ["at", "points"])]
        longest: Option<u32>,
        /// Print one JSON document (schema whyslow.query/1)
        #[arg(long)]
        json: bool,
    },
    /// Streams, clocks, hosts, lost events, names of tasks: from metadata and index alone, at once
    Info {
        #[command(flatten)]
        input: Input,
        /// Run the analysis: executions and percentiles per task, unknown waits by reason
        #[arg(long)]
        full: bool,
        /// Print one JSON document (schema whyslow.info/1)
        #[arg(long)]
        json: bool,
    },
    /// An execution database: small, shareable, opened in place of the trace
    Build {
        #[command(flatten)]
        input: Input,
        #[command(flatten)]
        symbols: Symbols,
        /// The file to write; a database that stands there is replaced
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
        /// A task to keep, as `--task` of `explain`; repeatable (default: all that are not system calls or interrupts)
        #[arg(long, value_name = "TASK")]
        task: Vec<String>,
    },
    /// Record with what this machine has (LTTng, perf or trace-cmd), then open the recording
    Record {
        #[command(flatten)]
        options: record::Options,
        #[command(flatten)]
        looks: Looks,
    },
    /// Every event in time order
    Dump {
        #[command(flatten)]
        input: Input,
        /// In the exact format in which CTF readers are compared (docs/CANONICAL.md)
        #[arg(long)]
        canonical: bool,
    },
}

/// The kinds of `stats`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Stats {
    /// Events per type.
    Count,
    /// CPU time per CPU and thread.
    Cpu,
    /// Bytes read and written per process.
    Io,
}

#[derive(Args, Debug)]
struct Input {
    /// Trace directories (CTF) or databases, or LABEL=PATH to name one
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<OsString>,
    /// Worker threads (default: all cores)
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    threads: usize,
    /// Exit with 1 if anything in the input is malformed
    #[arg(long)]
    strict: bool,
    /// Print times and peak memory per stage to stderr
    #[arg(long)]
    timings: bool,
    /// Verify all invariants of what was built
    #[arg(long)]
    check: bool,
    /// Tasks declared in a TOML file, with conditions and keys
    #[arg(long, value_name = "FILE")]
    tasks: Option<PathBuf>,
    /// Take no more memory than this: 512MiB, 4GiB
    #[arg(long, value_name = "LIMIT", value_parser = memory)]
    memory: Option<u64>,
    /// What names of interrupt handlers mean, before what is built in (default: handlers.toml of the configuration)
    #[arg(long, value_name = "FILE")]
    handlers: Option<PathBuf>,
    /// Keep the right to read and write every file, and to run programs
    #[arg(long)]
    no_sandbox: bool,
    /// Bytes of trace in one piece of work (default: balanced over the workers)
    #[arg(long, value_name = "BYTES", hide = true)]
    chunk: Option<u64>,
}

#[derive(Args, Debug)]
struct Choice {
    /// A task that `info` lists, or begin=EVENT,end=EVENT[,key=FIELD][,type=FIELD]
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
    /// The slow group: `METRIC OP VALUE` or `METRIC in A..B`; repeatable (default: proposed)
    #[arg(long, value_name = "FILTER")]
    slow: Vec<String>,
    /// The fast group, likewise
    #[arg(long, value_name = "FILTER")]
    fast: Vec<String>,
    /// New names of functions, to compare versions: a TOML file of lines `"old" = "new"`
    #[arg(long, value_name = "FILE")]
    functions: Option<PathBuf>,
    #[command(flatten)]
    symbols: Symbols,
}

#[derive(Args, Debug)]
struct Symbols {
    /// Where to look for the traced ELF files; repeatable (default: the recorded paths)
    #[arg(long, value_name = "DIR")]
    symbols: Vec<PathBuf>,
    /// Kernel symbols (kallsyms, System.map, module symbols) for kernel stacks; repeatable
    #[arg(long, value_name = "FILE")]
    kallsyms: Vec<PathBuf>,
}

/// How the interface looks.
#[derive(Args, Clone, Debug)]
pub struct Looks {
    /// When to use colours
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub color: When,
    /// A built-in theme or a theme file
    #[arg(long, value_name = "THEME")]
    pub theme: Option<OsString>,
    /// Draw with ASCII characters only
    #[arg(long)]
    pub ascii: bool,
    /// Take the mouse
    #[arg(long)]
    pub mouse: bool,
}

/// What all commands are given.
#[derive(Clone, Debug, Default)]
pub struct Common {
    /// The traces.
    pub arguments: Vec<Argument>,
    /// Worker threads; 0 for all cores.
    pub threads: usize,
    /// Malformed input is a failure.
    pub strict: bool,
    /// Print times and peak memory.
    pub timings: bool,
    /// Verify invariants.
    pub check: bool,
    /// A table of interrupt handlers of the user's own.
    pub handlers: Option<PathBuf>,
    /// Bytes of trace in one chunk.
    pub chunk: Option<u64>,
    /// Bytes of memory that may be taken.
    pub memory: Option<u64>,
    /// A file that declares tasks.
    pub tasks: Option<PathBuf>,
    /// Give up what the command does not need.
    pub sandbox: bool,
}

/// What is compared, as typed: filters and tasks can only be understood once the trace is open.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// `--task`
    pub task: Option<String>,
    /// `--slow`
    pub slow: Vec<String>,
    /// `--fast`
    pub fast: Vec<String>,
    /// `--functions`
    pub functions: Option<PathBuf>,
    /// Where functions get their names.
    pub symbols: SymbolFiles,
}

/// Where functions get their names.
#[derive(Clone, Debug, Default)]
pub struct SymbolFiles {
    /// `--symbols`
    pub folders: Vec<PathBuf>,
    /// `--kallsyms`
    pub kernel: Vec<PathBuf>,
}

/// How to record.
#[derive(Clone, Debug)]
pub struct Recording {
    /// What.
    pub wishes: Wishes,
    /// Print the commands only.
    pub dry_run: bool,
    /// Say only what could be recorded.
    pub check: bool,
    /// Leave the recording closed.
    pub no_open: bool,
    /// Below this folder lie the machine's files.
    pub root: PathBuf,
    /// How the interface looks that shows the recording.
    pub looks: Looks,
}

/// What is meant.
#[derive(Clone, Debug)]
pub enum Request {
    /// Record, then open the recording.
    Record(Box<Recording>),
    /// Open the terminal interface.
    Interface {
        /// What is compared.
        selection: Selection,
        /// When to use colours.
        color: When,
        /// Theme name or file.
        theme: Option<OsString>,
        /// ASCII characters only.
        ascii: bool,
        /// Take the mouse.
        mouse: bool,
    },
    /// The ranked causes.
    Explain {
        /// What is compared.
        selection: Selection,
        /// JSON instead of text.
        json: bool,
        /// Condition for exit status 3.
        fail_if: Option<String>,
    },
    /// Everything about the two groups.
    Diff {
        /// What is compared.
        selection: Selection,
        /// JSON instead of text.
        json: bool,
        /// Bound of the tree.
        max_nodes: Option<usize>,
        /// Two executions to align, as typed.
        executions: Option<String>,
    },
    /// Patterns and what breaks them.
    Anomalies {
        /// Part of the occurrences that is the reference, in (0, 1].
        q: f64,
        /// Threshold, above 1.
        s: f64,
        /// Limits by the median and its deviation, instead of by q.
        robust: bool,
        /// The task whose executions count.
        task: Option<String>,
        /// Names of functions.
        symbols: SymbolFiles,
        /// Text without bounds.
        all: bool,
        /// JSON instead of text.
        json: bool,
    },
    /// Counts.
    Stats {
        /// Of what.
        what: Stats,
        /// JSON instead of text.
        json: bool,
    },
    /// Values of the state history.
    Query {
        /// A path or a pattern.
        attribute: String,
        /// Times, as typed.
        at: Vec<String>,
        /// `A..B`, as typed.
        range: Option<String>,
        /// Number of cells.
        points: Option<u32>,
        /// Number of intervals, longest first.
        longest: Option<u32>,
        /// JSON instead of text.
        json: bool,
    },
    /// What the trace is.
    Info {
        /// With executions.
        full: bool,
        /// JSON instead of text.
        json: bool,
    },
    /// Write a database.
    Build {
        /// Where to.
        output: PathBuf,
        /// Tasks, as typed; none for those worth a look unasked.
        tasks: Vec<String>,
        /// Where functions get their names.
        symbols: SymbolFiles,
    },
    /// Every event.
    Dump {
        /// In the exact format.
        canonical: bool,
    },
}

/// What came of the command line.
#[derive(Debug)]
pub enum Parsed {
    /// Run this.
    Run(Box<Common>, Request),
    /// Print this (help, version) and end well.
    Print(String),
    /// One line that says what is wrong and what to do.
    Wrong(String),
}

/// Read a command line (program name first).
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Parsed {
    let typed = match Typed::try_parse_from(words) {
        Ok(typed) => typed,
        Err(e) if !e.use_stderr() => return Parsed::Print(e.render().to_string()),
        Err(e) => return Parsed::Wrong(one_line(&e.render().to_string())),
    };
    let (input, request) = match typed.command {
        None => {
            let Interface { input, choice, looks } = typed.interface;
            let Looks { color, theme, ascii, mouse } = looks;
            (input, Request::Interface { selection: choice.meant(), color, theme, ascii, mouse })
        }
        Some(TypedCommand::Explain { input, choice, json, fail_if }) => {
            (input, Request::Explain { selection: choice.meant(), json, fail_if })
        }
        Some(TypedCommand::Diff { input, choice, json, max_nodes, executions }) => {
            (input, Request::Diff { selection: choice.meant(), json, max_nodes, executions })
        }
        Some(TypedCommand::Anomalies { input, q, s, robust, task, symbols, all, json }) => {
            (input, Request::Anomalies { q, s, robust, task, symbols: symbols.meant(), all, json })
        }
        Some(TypedCommand::Stats { what, input, json }) => (input, Request::Stats { what, json }),
        Some(TypedCommand::Query { input, attribute, at, range, points, longest, json }) => {
            (input, Request::Query { attribute, at, range, points, longest, json })
        }
        Some(TypedCommand::Info { input, full, json }) => (input, Request::Info { full, json }),
        Some(TypedCommand::Build { input, symbols, output, task }) => {
            (input, Request::Build { output, tasks: task, symbols: symbols.meant() })
        }
        Some(TypedCommand::Dump { input, canonical }) => (input, Request::Dump { canonical }),
        Some(TypedCommand::Record { options, looks }) => {
            let (dry_run, check, no_open) = (options.dry_run, options.check, options.no_open);
            let root = options.root.clone();
            let recording = Recording { wishes: options.meant(), dry_run, check, no_open, root, looks };
            let common = Common { sandbox: true, ..Common::default() };
            return Parsed::Run(Box::new(common), Request::Record(Box::new(recording)));
        }
    };
    Parsed::Run(Box::new(input.meant()), request)
}

impl Choice {
    fn meant(self) -> Selection {
        let Choice { task, slow, fast, functions, symbols } = self;
        Selection { task, slow, fast, functions, symbols: symbols.meant() }
    }
}

impl Symbols {
    fn meant(self) -> SymbolFiles {
        SymbolFiles { folders: self.symbols, kernel: self.kallsyms }
    }
}

impl Input {
    fn meant(self) -> Common {
        Common {
            arguments: self.traces.iter().map(Argument::parse).collect(),
            threads: self.threads,
            strict: self.strict,
            timings: self.timings,
            check: self.check,
            handlers: self.handlers,
            chunk: self.chunk,
            memory: self.memory,
            tasks: self.tasks,
            sandbox: !self.no_sandbox,
        }
    }
}

fn memory(typed: &str) -> Result<u64, String> {
    let number = typed.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match &typed[number.len()..] {
        "" | "B" => Some(0),
        "KiB" => Some(10),
        "MiB" => Some(20),
        "GiB" => Some(30),
        _ => None,
    };
    let bytes = shift.and_then(|s| number.parse::<u64>().ok()?.checked_mul(1 << s)).filter(|bytes| *bytes > 0);
    bytes.ok_or_else(|| "give a whole number of B, KiB, MiB or GiB, such as 512MiB".to_owned())
}

fn quotient(typed: &str) -> Result<f64, String> {
    typed.parse().ok().filter(|q| *q > 0.0 && *q <= 1.0).ok_or_else(|| "give a part in (0, 1], such as 0.75".to_owned())
}

fn threshold(typed: &str) -> Result<f64, String> {
    typed.parse().ok().filter(|s| *s > 1.0 && *s < 1e9).ok_or_else(|| "give a factor above 1, such as 2".to_owned())
}

/// The most characters of a word that a message repeats.
const LONGEST_QUOTED: usize = 200;

/// The essence of clap's message: what is wrong, what it suggests, where help is.
fn one_line(message: &str) -> String {
    let lines: Vec<&str> = message.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    let is_usage = |l: &&&str| !l.starts_with("Usage:") && !l.starts_with("For more information");
    let said: Vec<&str> = lines.iter().filter(is_usage).map(|l| l.trim_start_matches("error: ")).collect();
    // clap quotes what was typed as 'this'.
    let cut = |(i, piece): (usize, &str)| match piece.char_indices().nth(LONGEST_QUOTED) {
        Some((end, _)) if i % 2 == 1 => format!("{}...", &piece[..end]),
        _ => piece.to_owned(),
    };
    let said: Vec<String> = said.join(" ").split('\'').enumerate().map(cut).collect();
    format!("{}; see `whyslow --help`", said.join("'"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn parse_words(line: &str) -> Parsed {
        parse(line.split_whitespace().map(Into::into))
    }

    #[test]
    fn the_definition_is_sound() {
        use clap::CommandFactory;
        Typed::command().debug_assert();
    }

    #[test]
    fn a_first_word_that_is_a_command_is_the_command() {
        assert!(matches!(parse_words("whyslow explain t"), Parsed::Run(_, Request::Explain { .. })));
        let Parsed::Run(common, Request::Interface { .. }) = parse_words("whyslow ./explain old=t2") else { panic!() };
        assert_eq!(common.arguments[0].path, Path::new("./explain"));
        assert_eq!((common.arguments[1].label.as_deref(), &*common.arguments[1].path), (Some("old"), Path::new("t2")));
    }

    #[test]
    fn wrong_lines_are_one_line() {
        for line in [
            "whyslow",
            "whyslow explain",
            "whyslow explain --sloow x t",
            "whyslow stats size t",
            "whyslow --memory 3x t",
        ] {
            let Parsed::Wrong(said) = parse_words(line) else { panic!("{line}") };
            assert!(!said.contains('\n') && said.ends_with("--help`"), "{said}");
        }
        assert!(matches!(parse_words("whyslow --help"), Parsed::Print(_)));
    }
}
