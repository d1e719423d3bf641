//! The options of `whyslow record`.

use crate::record::{Recorder, Trigger, Wishes, duration};
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Recorders, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum With {
    /// LTTng: kernel and user space
    Lttng,
    /// perf
    Perf,
    /// trace-cmd
    TraceCmd,
}

#[derive(Args, Debug)]
pub(super) struct Options {
    /// The folder to write (default: whyslow-recording, or the first free whyslow-recording-N)
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Record for so long: 500ms, 10s, 2min (default: until COMMAND ends, or until Ctrl-C)
    #[arg(short, long, value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,
    /// The recorder to use (default: the first of these that the machine has and allows)
    #[arg(long, value_name = "RECORDER")]
    with: Option<With>,
    /// Record the system calls of this process only; repeatable. Who ran and who woke whom stays recorded for all
    #[arg(long, value_name = "PID")]
    pid: Vec<u32>,
    /// Record the system calls of threads of this name only; repeatable
    #[arg(long, value_name = "NAME", value_parser = comm)]
    comm: Vec<String>,
    /// Each call of this function is an execution: FUNCTION of the command or of --pid, or FILE:FUNCTION; repeatable
    #[arg(long, value_name = "FUNCTION")]
    uprobe: Vec<String>,
    /// Keep only about the last TIME in memory, and write that when it ends (a flight recorder)
    #[arg(long, value_name = "TIME", value_parser = duration)]
    overwrite: Option<Duration>,
    /// End when this holds: latency>20ms (of a --uprobe), signal (SIGUSR1), file=PATH (it appears); repeatable
    #[arg(long, value_name = "CONDITION")]
    until: Vec<Trigger>,
    /// Buffer for each CPU: 4MiB, 64MiB (default: 16MiB, or by --overwrite)
    #[arg(long, value_name = "SIZE", value_parser = super::memory)]
    buffer: Option<u64>,
    /// Print the commands, to run them by hand or on another machine; record nothing
    #[arg(long, conflicts_with = "check")]
    pub dry_run: bool,
    /// Say what this machine can record, what is missing, how to get it and what it would tell; record nothing
    #[arg(long)]
    pub check: bool,
    /// Don't open the recording when it has ended
    #[arg(long)]
    pub no_open: bool,
    /// Below this folder lie the files by which the machine is known (/proc, /sys, /etc, /lib)
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    pub root: PathBuf,
    /// The command to record around
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Options {
    pub fn meant(self) -> Wishes {
        let with = self.with.map(|with| match with {
            With::Lttng => Recorder::Lttng,
            With::Perf => Recorder::Perf,
            With::TraceCmd => Recorder::TraceCmd,
        });
        Wishes {
            output: self.output,
            duration: self.duration,
            command: self.command,
            with,
            pids: self.pid,
            comms: self.comm,
            uprobes: self.uprobe,
            overwrite: self.overwrite,
            until: self.until,
            buffer: self.buffer,
        }
    }
}

/// The name of a thread as the kernel's filters take it.
fn comm(typed: &str) -> Result<String, String> {
    let fits = !typed.is_empty() && typed.len() <= 15 && !typed.contains(['"', '\'', '\\']);
    if fits { Ok(typed.to_owned()) } else { Err("give a thread's name of at most 15 bytes, without quotes".to_owned()) }
}
