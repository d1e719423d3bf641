//! `whyslow record`: prints the progress of a recording, then opens it.

use super::console::{STDOUT, print};
use super::interface::InterfaceOptions;
use crate::base::time::Ns;
use crate::base::{clean, figure, spelling};
use crate::input::Argument;
use crate::options::{AppearanceOptions, GroupOptions, InputOptions, SymbolOptions};
use crate::record::capabilities::Capabilities;
use crate::record::plan::{PlanUse, RecordingPlan, plan, probed};
use crate::record::script::ScriptMode;
use crate::record::shell::ShellCommand;
use crate::record::trial::Trial;
use crate::record::{self, RecordError, Recorder, RecordingEnd, RecordingProgress, RecordingRequest};
use crate::session::UsageError;
use crate::symbols::elf;
use crate::view::stderr::say;
use anyhow::Context;
use clap::Args;
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Args, Debug)]
pub struct RecordOptions {
    #[command(flatten)]
    request: RecordingRequest,
    /// Print the commands, to run them by hand or on another machine; record nothing
    #[arg(long, conflicts_with = "check")]
    dry_run: bool,
    /// List the usable recorders, obstacles with remedies, and the questions a recording answers; record nothing
    #[arg(long)]
    check: bool,
    /// Remove the probes, ring buffers and LTTng sessions that killed recordings have left, and list them; record
    /// nothing
    #[arg(long, conflicts_with_all = ["check", "dry_run"])]
    clean: bool,
    /// Don't open the recording when it has ended
    #[arg(long)]
    no_open: bool,
    /// The folder that holds /proc, /sys, /etc and /lib of the machine
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    root: PathBuf,
    #[command(flatten)]
    appearance: AppearanceOptions,
}

/// The step after recording.
pub(super) enum AfterRecording {
    /// The interface shows the recording.
    Open(Box<InterfaceOptions>),
    /// Nothing; the exit status.
    Done(u8),
}

/// Plan a recording, run it, and return the next step.
pub(super) fn run(options: &RecordOptions) -> anyhow::Result<AfterRecording> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let host = Capabilities::detect(&options.root, &path);
    if options.check {
        let record::CheckReport { text, is_usable } = record::report(&host);
        print(&text)?;
        return Ok(AfterRecording::Done(u8::from(!is_usable)));
    }
    if options.clean {
        return remove_leftovers(&options.root, &host).map(|()| AfterRecording::Done(0));
    }
    let request = &options.request;
    let folder = request.output.clone().unwrap_or_else(free_folder);
    let purpose = if options.dry_run { PlanUse::Print } else { PlanUse::Run };
    let identity = std::process::id();
    // A command has not begun yet, and what it will do is unknown.
    let is_tried = purpose == PlanUse::Run && request.command.is_empty();
    let tried = if is_tried { Trial::run(&host, &request.pids, identity) } else { Ok(None) };
    let trial = tried.unwrap_or_else(|error| {
        say(&format!("note: what the recording costs is unknown: {}", clean::line(&error.to_string())));
        None
    });
    let plan = plan(&host, request, &folder, identity, purpose, trial.as_ref()).map_err(|error| match error {
        // The command line is right, and the machine cannot.
        RecordError::NoRecorder(_) => anyhow::Error::from(error),
        _ => UsageError(error.to_string()).into(),
    })?;
    if options.dry_run {
        print(&script_by_hand(&plan, request))?;
        return Ok(AfterRecording::Done(0));
    }
    let sessions = match plan.recorder {
        Recorder::Lttng => record::left_sessions(&options.root, &host),
        // They do not wait for LTTng's daemon.
        Recorder::Perf | Recorder::TraceCmd | Recorder::Tracefs => Vec::new(),
    };
    let of_kernel = record::left_probes(&options.root).into_iter().chain(record::left_instances(&options.root));
    for left in of_kernel.chain(sessions) {
        if left.remove().is_ok() {
            say(&format!("note: removed {}, which a killed recording had left", clean::line(&left.to_string())));
        }
    }
    let ended = run_and_report(&plan, request)?;
    let terminals = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    if options.no_open || ended.quits || !terminals {
        if !ended.quits {
            let mut explain = ShellCommand::new(["whyslow", "explain"]).with([plan.folder.to_string_lossy()]);
            // A perf.data takes the symbols beside it.
            if let Some(symbols) = plan.kernel_symbols.as_ref().filter(|_| plan.recorder != Recorder::Perf) {
                explain = explain.with(["--kallsyms".into(), symbols.to_string_lossy()]);
            }
            writeln!(std::io::stdout(), "{explain}").context(STDOUT)?;
        }
        return Ok(AfterRecording::Done(0));
    }
    if let Some(user) = &ended.user {
        let failed = user.run_instead(words_to_open(&plan, &options.appearance));
        anyhow::bail!("{} cannot be opened as {}: {failed}", plan.folder.display(), user.name);
    }
    let input =
        InputOptions { traces: vec![Argument::parse(plan.folder.as_os_str()).located()], ..InputOptions::default() };
    let symbols = SymbolOptions { kernel: plan.kernel_symbols.iter().cloned().collect(), ..SymbolOptions::default() };
    let groups = GroupOptions { symbols, ..GroupOptions::default() };
    Ok(AfterRecording::Open(Box::new(InterfaceOptions {
        input,
        groups,
        appearance: options.appearance.clone(),
        plain: false,
        fresh: false,
        tour: false,
    })))
}

/// The words after `whyslow` that open a recording in the interface.
fn words_to_open(plan: &RecordingPlan, appearance: &AppearanceOptions) -> Vec<OsString> {
    let mut words = vec![plan.folder.clone().into_os_string()];
    if let Some(file) = &plan.kernel_symbols {
        words.extend(["--kallsyms".into(), file.clone().into_os_string()]);
    }
    words.extend(appearance.words());
    words
}

/// Remove the probes, ring buffers and sessions of ended recordings, and list them.
fn remove_leftovers(root: &Path, host: &Capabilities) -> anyhow::Result<()> {
    let mut text = String::new();
    let of_kernel = record::left_probes(root).into_iter().chain(record::left_instances(root));
    for left in of_kernel.chain(record::left_sessions(root, host)) {
        let what = left.to_string();
        let what = clean::line(&what);
        left.remove().with_context(|| format!("{what} of the ended process {} stays", left.pid))?;
        text.push_str(&format!("removed {what} of the ended process {}\n", left.pid));
    }
    print(if text.is_empty() { "no recording has left a probe, a ring buffer or a session\n" } else { &text })
}

/// The first folder of the default name that does not exist.
fn free_folder() -> PathBuf {
    let names = std::iter::once("whyslow-recording".to_owned());
    let mut names = names.chain((2_u32..).map(|n| format!("whyslow-recording-{n}"))).map(PathBuf::from);
    names.find(|name| std::fs::symlink_metadata(name).is_err()).unwrap_or_default()
}

/// The plan as a script to run by hand.
fn script_by_hand(plan: &RecordingPlan, request: &RecordingRequest) -> String {
    let during = match (request.command.as_slice(), request.duration) {
        ([], None) => ScriptMode::ByHand,
        ([], Some(time)) => {
            ScriptMode::Command(ShellCommand::new(["sleep".to_owned(), time.as_secs_f64().to_string()]))
        }
        (command, _) => ScriptMode::Command(ShellCommand::new(command.iter().map(|word| word.to_string_lossy()))),
    };
    let notes = plan.notes.iter().map(|note| format!("# {note}\n"));
    let why = format!("# {}, because {}\n", plan.recorder.name(), plan.why);
    std::iter::once(why).chain(notes).chain([plan.script(&during)]).collect()
}

/// The error of a recording, with the functions whose names are nearest to those that `--uprobe` names and that their
/// files don't have.
fn with_near_functions(error: RecordError, request: &RecordingRequest) -> anyhow::Error {
    let near = probed(request).into_iter().find_map(|(file, function, typed)| {
        let names = elf::function_names(&file).ok()?;
        if names.is_empty() {
            return Some(format!("--uprobe {typed}: {} has no names of functions (it is stripped)", file.display()));
        }
        let is_there = names.contains(&function);
        let near = spelling::did_you_mean(&function, names.iter().map(String::as_str)).filter(|_| !is_there)?;
        Some(format!("--uprobe {typed}: {near}"))
    });
    match near {
        Some(near) => anyhow::anyhow!("{error}; {}", clean::line(&near)),
        None => error.into(),
    }
}

/// Run a plan, and report its progress on stderr.
fn run_and_report(plan: &RecordingPlan, request: &RecordingRequest) -> anyhow::Result<RecordingEnd> {
    say(&format!("recording with {}, because {}", plan.recorder.name(), clean::line(&plan.why)));
    plan.notes.iter().for_each(|note| say(&format!("note: {}", clean::line(note))));
    let live = std::io::stderr().is_terminal() && request.command.is_empty();
    let mut last = (Duration::ZERO, 0);
    let mut report = |progress: RecordingProgress| match progress {
        RecordingProgress::Recording => {
            let end = match (&request.command[..], request.duration) {
                ([], None) => "Ctrl-C ends it",
                ([], Some(_)) => "Ctrl-C ends it earlier",
                _ => "it ends with the command",
            };
            say(&format!("recording into {}; {end}", clean::line(&plan.folder.to_string_lossy())));
        }
        RecordingProgress::Grown { time, size } if live => {
            let mut line = format!("{:>6} s", figure::seconds(time.as_nanos() as Ns, 1));
            if let Some(events) = size.events {
                let rate = (events - last.1) as f64 / (time - last.0).as_secs_f64().max(1e-3);
                last = (time, events);
                line.push_str(&format!("  {events} events  {rate:.0}/s"));
            }
            if size.bytes > 0 {
                line.push_str(&format!("  {}", figure::bytes(size.bytes as f64)));
            }
            if let Some(lost) = size.lost {
                line.push_str(&format!("  {lost} lost"));
            }
            let _ = write!(std::io::stderr(), "\r{line}\x1b[K");
        }
        RecordingProgress::Grown { .. } => {}
        RecordingProgress::Ending(why) => {
            let new_line = if live { "\r\x1b[K" } else { "" };
            say(&format!("{new_line}{}; {} writes the rest of its buffers", clean::line(&why), plan.recorder.name()));
        }
        RecordingProgress::StillWriting => {
            say("still writing the recording: please wait, an unfinished one cannot be opened")
        }
    };
    let ended = record::run(plan, request, &mut report).map_err(|error| with_near_functions(error, request))?;
    let lost = match ended.size.lost {
        Some(0) => ", nothing lost".to_owned(),
        Some(lost) => format!(", {lost} events lost: record with a larger --buffer, or less by --comm or --pid"),
        None => String::new(),
    };
    let events = ended.size.events.filter(|n| *n > 0).map_or(String::new(), |n| format!(", {n} events"));
    let (time, size) = (figure::time(ended.took.as_secs_f64() * 1e9), figure::bytes(ended.size.bytes as f64));
    say(&format!("recorded {time}{events}, {size}{lost}"));
    for reason in &ended.unfinished {
        say(&format!("note: {}; all of its output is in record.log", clean::line(reason)));
    }
    if let Some(status) = ended.command.filter(|status| !status.success()) {
        say(&format!("note: the command ended with {status}"));
    }
    Ok(ended)
}
