//! A recorder of the kernel's events that needs neither trace-cmd nor perf: tracefs itself.
//!
//! ```text
//! TracefsOptions -> instance.rs (a ring buffer of the kernel with its events)
//!                -> pages.rs (its raw pages, spliced to a file for each CPU)
//!                -> trace_dat.rs (one trace.dat of version 7), with threads.rs (names and mapped files of processes)
//! ```
//! `whyslow record` runs it as a program of its own, as it runs perf or trace-cmd: [`run`] records while a command runs
//! and writes the trace when that ends. Events of all threads are in one instance, those of chosen threads in a second
//! one, whose filter the kernel hands on to each thread that they begin, and switches with call stacks in a third,
//! because the kernel records user stacks with each event of an instance or with none. An instance is removed when its
//! value is dropped; the script of the recording removes it where this program was killed.

mod commands;
mod instance;
mod pages;
mod threads;
mod trace_dat;

pub(super) use commands::{TRACE, TracefsCommands, beside_perf, commands};
pub(super) use instance::{Instance, InstanceSetup, RecordedEvent, choose_this_thread};

use super::RecordError;
use super::recorder_commands::path_text;
use crate::base::figure;
use clap::Args;
use pages::{DrainedCpu, drain_all};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use threads::ProcessTable;
use trace_dat::{RecordedBuffer, TraceDat};

/// Time between two looks whether the recording ends.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The end of the name of the instance for switches with stacks, and of that for chosen threads.
const STACKS: &str = "_stacks";
const CHOSEN: &str = "_chosen";

/// What to record, and for how long.
#[derive(Args, Clone, Debug, Default)]
pub struct TracefsOptions {
    /// The trace.dat to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// The mounted tracefs
    #[arg(long, value_name = "DIR")]
    tracefs: PathBuf,
    /// The beginning of the names of the instances
    #[arg(long, value_name = "NAME")]
    name: String,
    /// KiB of buffer for each CPU
    #[arg(short, long, value_name = "KIB")]
    buffer: u64,
    /// An event of all threads, as SYSTEM:NAME; repeatable
    #[arg(short, long = "event", value_name = "EVENT")]
    events: Vec<String>,
    /// An event that is recorded with the stacks of kernel and program; repeatable
    #[arg(long = "stacks", value_name = "EVENT")]
    stacks: Vec<String>,
    /// An event of the threads of --pid, and of those that they begin; repeatable
    #[arg(long = "chosen", value_name = "EVENT")]
    chosen: Vec<String>,
    /// A thread; repeatable
    #[arg(long = "pid", value_name = "TID")]
    pids: Vec<u32>,
    /// The condition of the events of --filtered, in the kernel's filter language
    #[arg(long, value_name = "CONDITION")]
    filter: Option<String>,
    /// An event of the threads for which --filter holds; repeatable
    #[arg(long = "filtered", value_name = "EVENT")]
    filtered: Vec<String>,
    /// Beside another recorder: do not record until tracing is switched on in the instances, and leave names of threads
    /// and functions to the other
    #[arg(long)]
    paused: bool,
    /// Record the --chosen events of the command
    #[arg(long)]
    choose_command: bool,
    /// Keep the last events in the buffers, and write them at the end
    #[arg(long)]
    overwrite: bool,
    /// The command to record around (default: until a signal)
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl TracefsOptions {
    /// The instances that record these events.
    fn setups(&self) -> Vec<InstanceSetup> {
        let of = |events: &[String], filter: Option<&String>| -> Vec<RecordedEvent> {
            events.iter().map(|name| RecordedEvent { name: name.clone(), filter: filter.cloned() }).collect()
        };
        let setup = |end: &str, events, chosen, has_stacks| InstanceSetup {
            name: format!("{}{end}", self.name),
            buffer: self.buffer,
            events,
            chosen,
            has_stacks,
        };
        let mut machine = of(&self.events, None);
        machine.extend(of(&self.filtered, self.filter.as_ref()));
        let all = [
            setup("", machine, None, false),
            setup(STACKS, of(&self.stacks, None), None, true),
            setup(CHOSEN, of(&self.chosen, None), Some(self.pids.clone()), false),
        ];
        all.into_iter().filter(|setup| !setup.events.is_empty()).collect()
    }
}

/// Record until the command ends, or a signal arrives, and write the trace. Returns the status of the command.
pub fn run(options: &TracefsOptions) -> Result<Option<ExitStatus>, RecordError> {
    let asked_to_end = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // A command that is begun later gets the signal's usual action: only ignored signals are inherited.
        let taken = signal_hook::flag::register(signal, Arc::clone(&asked_to_end));
        taken.map_err(|e| RecordError::Signals(e.to_string()))?;
    }
    let failed = |path: &Path, e: &std::io::Error| RecordError::failed(path_text(path), e.to_string());
    let folder = options.output.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let instances = options.setups().into_iter().map(|setup| Instance::create(&options.tracefs, setup));
    let instances: Vec<Instance> = instances.collect::<Result<_, _>>()?;
    let mut processes = (!options.paused).then(ProcessTable::default);
    if let Some(table) = &mut processes {
        table.add_living(Path::new("/proc"));
    }
    let mut cpus: Vec<Vec<DrainedCpu>> = Vec::new();
    for instance in &instances {
        cpus.push(instance.cpus(folder).map_err(|e| failed(instance.path(), &e))?);
    }
    let ends = AtomicBool::new(false);
    let status = std::thread::scope(|scope| {
        if !options.overwrite {
            for cpu in cpus.iter_mut().flatten() {
                scope.spawn(|| cpu.drain_until(&ends));
            }
        }
        let status = record(options, &instances, &asked_to_end);
        ends.store(true, Ordering::Release);
        status
    })?;
    cpus.iter_mut().flatten().for_each(drain_all);
    if let Some(table) = &mut processes {
        table.add_living(Path::new("/proc"));
        table.add_saved_names(&options.tracefs);
    }
    let mut buffers = Vec::new();
    for (instance, cpus) in instances.iter().zip(cpus) {
        buffers.push(RecordedBuffer { name: instance.name().to_owned(), stats: instance.stats(), cpus });
    }
    let full = buffers.iter().flat_map(|buffer| &buffer.cpus).find_map(|cpu| cpu.failure());
    let events = instances.iter().flat_map(Instance::event_folders).collect();
    let trace = TraceDat { tracefs: &options.tracefs, events, buffers, processes };
    let written = trace.write(&options.output).map_err(|e| failed(&options.output, &e))?;
    if let Some(why) = full {
        return Err(RecordError::failed(path_text(&options.output), format!("it ends early: {why}")));
    }
    eprintln!("wrote {} of pages", figure::bytes(written as f64));
    Ok(status)
}

/// Switch recording on, and off when the command ends or a signal arrives.
fn record(
    options: &TracefsOptions,
    instances: &[Instance],
    asked_to_end: &AtomicBool,
) -> Result<Option<ExitStatus>, RecordError> {
    if !options.paused {
        instances.iter().try_for_each(|instance| instance.switch(true))?;
    }
    let status = match options.command.split_first() {
        Some((program, arguments)) => {
            let failed =
                |e: std::io::Error| RecordError::failed(program.to_string_lossy(), format!("cannot start: {e}"));
            let chosen = instances.iter().filter(|instance| instance.name().ends_with(CHOSEN));
            if options.choose_command {
                // What a chosen thread begins is chosen, too.
                chosen.into_iter().try_for_each(Instance::choose_this_thread)?;
            }
            // It ends by itself when it is asked to: a signal of a terminal reaches it, too.
            Some(Command::new(program).args(arguments).status().map_err(failed)?)
        }
        None => {
            while !asked_to_end.load(Ordering::Acquire) {
                std::thread::sleep(POLL_INTERVAL);
            }
            None
        }
    };
    instances.iter().try_for_each(|instance| instance.switch(false))?;
    Ok(status)
}
