//! Runs a plan: start, progress, end.
//!
//! The script of the plan runs in a process group of its own, so that Ctrl-C and a lost terminal reach this program
//! alone. It prints `ready` once the recorder records, and ends when its standard input ends: this program closes it,
//! or the kernel does when this process is gone. The recorder's output goes into `record.log` beside the recording.

use super::environment::{EnvironmentFile, SampledProcesses};
use super::folder::RecordingFolder;
use super::growth::RecordingSize;
use super::log::{LastStep, ScriptLog};
use super::meter::Meter;
use super::plan::RecordingPlan;
use super::recorder_commands::path_text;
use super::script::ScriptMode;
use super::trigger::{EndedCall, OpenCalls};
use super::{EndTrigger, RecordError, RecordingRequest, RecordingUser, code_maps, tracefs};
use crate::base::figure;
use crate::model::environment::ENVIRONMENT_FILE;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime};

/// The file in the folder with the recorder's output.
const LOG: &str = "record.log";

/// Time between two checks of the end conditions.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The longest time that a recorder may take to start.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Progress messages.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordingProgress {
    /// The recorder has started.
    Recording,
    /// The recording has grown.
    Grown {
        /// Time since the recorder started.
        time: Duration,
        /// Size of the recording so far.
        size: RecordingSize,
    },
    /// The recording ends, for this reason.
    Ending(String),
    /// A signal arrived while the recorder writes the rest of its buffers.
    StillWriting,
}

/// The result of a recording.
#[derive(Clone, Debug)]
pub struct RecordingEnd {
    /// Duration of the recording.
    pub took: Duration,
    /// Size at its end.
    pub size: RecordingSize,
    /// Exit status of the recorded command; `None` without a command, or if it runs on.
    pub command: Option<ExitStatus>,
    /// The owner of the recording, if that is another user.
    pub user: Option<RecordingUser>,
    /// What failed beside the recording itself, a sentence each: a full disk took the names of kernel functions.
    pub unfinished: Vec<String>,
    /// True if a signal (of a closed terminal, too) asked this program to end: the recording is not opened.
    pub quits: bool,
}

/// Run a plan until a condition of the request ends it.
pub fn run(
    plan: &RecordingPlan,
    request: &RecordingRequest,
    report: &mut dyn FnMut(RecordingProgress),
) -> Result<RecordingEnd, RecordError> {
    let signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1]);
    let mut signals = signals.map_err(|e| RecordError::Signals(e.to_string()))?;
    let user = RecordingUser::of(request)?;
    let folder = RecordingFolder::create(&plan.folder)?;
    let mut script = Script::start(plan, &folder)?;
    script.await_ready(&mut signals)?;
    report(RecordingProgress::Recording);
    let (began, since) = (Instant::now(), SystemTime::now());
    let mut command = RecordedCommand::start(plan, request, user.as_ref())?;
    let mut meter = Meter::new(plan, request, &folder);
    let mut environment = RecordedEnvironment::start(request, command.as_ref(), &folder);
    let RecordingStop { reason, quits } = loop {
        if let Some(reason) = script.slow_call(request, POLL_INTERVAL) {
            break RecordingStop::because(reason);
        }
        match script.ended() {
            // This program was stopped, and the script's own limit has ended it.
            Some(status) if status.success() && request.duration.is_some() => {
                break RecordingStop::because("the recorder ended");
            }
            Some(status) => return Err(script.failure(status)),
            None => {}
        }
        if let Some(stop) = stop_by_signal(&mut signals, request) {
            break stop;
        }
        if let Some(RecordedCommand { name, child }) = &mut command
            && let Ok(Some(_)) = child.try_wait()
        {
            break RecordingStop::because(format!("{name} ended"));
        }
        if request.duration.is_some_and(|limit| began.elapsed() >= limit) {
            break RecordingStop::because("the duration is over");
        }
        let appeared = request.until.iter().find_map(|trigger| match trigger {
            EndTrigger::File(path) if path.exists() => Some(path),
            _ => None,
        });
        if let Some(path) = appeared {
            break RecordingStop::because(format!("{} exists", path.display()));
        }
        environment.sample(EnvironmentFile::sample_each_second);
        if let Some(size) = meter.measure_if_due() {
            report(RecordingProgress::Grown { time: began.elapsed(), size });
        }
    };
    let took = began.elapsed();
    environment.sample(EnvironmentFile::sample);
    meter.measure();
    report(RecordingProgress::Ending(reason));
    let status = script.finish(&mut signals, report);
    if !status.success() {
        return Err(script.failure(status));
    }
    code_maps::copy(Path::new("/"), since, &folder.join(""));
    let command = command.and_then(|command| command.status_at_end(quits));
    let size = meter.measure();
    let cost = measured_cost(plan, size, took);
    environment.sample(|file| file.sample_at_end(cost));
    let unfinished = script.log().unfinished().into_iter().chain(environment.failed).collect();
    if let Some(user) = &user {
        let given = folder.give_to(user.uid, user.gid);
        given
            .map_err(|e| RecordError::failed(path_text(folder.path()), format!("{} cannot own it: {e}", user.name)))?;
    }
    Ok(RecordingEnd { took, size, command, user, unfinished, quits })
}

/// What a recording cost, in words: events, bytes and losses as they were measured, and the trial's part of the busiest
/// CPU in proportion to the events.
fn measured_cost(plan: &RecordingPlan, size: RecordingSize, took: Duration) -> String {
    let seconds = took.as_secs_f64().max(1e-3);
    let mut text = format!("{} a second", figure::bytes(size.bytes as f64 / seconds));
    if let Some(events) = size.events.map(|events| events as f64 / seconds) {
        text = format!("{events:.0} events and {text}");
        if let Some(cost) = plan.cost.filter(|cost| cost.events > 0.0) {
            let added = figure::percent(cost.share * events / cost.events, 1);
            text = format!("about {added} of the busiest CPU, {text}");
        }
    }
    match size.lost {
        Some(0) => text + ", nothing lost",
        Some(lost) => format!("{text}, {} lost", figure::counted(lost, "event")),
        None => text,
    }
}

/// The decision to end a recording.
struct RecordingStop {
    reason: String,
    /// True if this program ends with it.
    quits: bool,
}

impl RecordingStop {
    fn because(reason: impl Into<String>) -> RecordingStop {
        RecordingStop { reason: reason.into(), quits: false }
    }
}

/// The stop that a pending signal causes. SIGUSR1 causes one only if the request says so.
fn stop_by_signal(signals: &mut Signals, request: &RecordingRequest) -> Option<RecordingStop> {
    signals.pending().find_map(|signal| match signal {
        SIGUSR1 if !request.until.contains(&EndTrigger::Signal) => None,
        SIGUSR1 => Some(RecordingStop::because("SIGUSR1 arrived")),
        SIGINT => Some(RecordingStop::because("stopped")),
        _ => Some(RecordingStop { reason: "ended by a signal".to_owned(), quits: true }),
    })
}

/// The command that the user records.
struct RecordedCommand {
    name: String,
    child: Child,
}

impl RecordedCommand {
    /// Start the command of the request, on a thread of its own: where the kernel records the system calls of chosen
    /// threads, this thread is one of them when it begins the command, so that the command is another one from its
    /// first instruction on.
    fn start(
        plan: &RecordingPlan,
        request: &RecordingRequest,
        user: Option<&RecordingUser>,
    ) -> Result<Option<RecordedCommand>, RecordError> {
        let Some((program, arguments)) = request.command.split_first() else { return Ok(None) };
        let name = program.to_string_lossy().into_owned();
        let mut command = Command::new(program);
        command.args(arguments);
        let start = || {
            if let Some(list) = &plan.ring_buffers.chosen {
                tracefs::choose_this_thread(list)?;
            }
            match user {
                Some(user) => user.spawn(&mut command),
                None => command.spawn(),
            }
        };
        let started = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().spawn_scoped(scope, start)?;
            thread.join().unwrap_or_else(|_| Err(std::io::Error::other("the thread ended")))
        });
        match started {
            Ok(child) => Ok(Some(RecordedCommand { name, child })),
            Err(e) => Err(RecordError::failed(name, format!("cannot start: {e}"))),
        }
    }

    /// Its exit status after the recording. A command that still runs is terminated if this program quits, and left
    /// running otherwise.
    fn status_at_end(mut self, quits: bool) -> Option<ExitStatus> {
        if let Ok(Some(status)) = self.child.try_wait() {
            return Some(status);
        }
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.child.id()).unwrap_or(0)).filter(|_| quits)?;
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        self.child.wait().ok()
    }
}

/// The environment of the recording, sampled into its folder.
struct RecordedEnvironment {
    file: Option<EnvironmentFile<File>>,
    /// Why it ended before the recording.
    failed: Option<String>,
}

impl RecordedEnvironment {
    /// Of the command and the processes of `--pid`; without both, of all processes.
    fn start(
        request: &RecordingRequest,
        command: Option<&RecordedCommand>,
        folder: &RecordingFolder,
    ) -> RecordedEnvironment {
        let pids = request.pids.iter().copied().chain(command.map(|command| command.child.id())).collect();
        let mut environment = RecordedEnvironment { file: None, failed: None };
        match folder.create_file(OsStr::new(ENVIRONMENT_FILE)) {
            Ok(file) => {
                environment.file = Some(EnvironmentFile::new(file, Path::new("/"), SampledProcesses { pids }));
            }
            Err(e) => environment.failed = Some(format!("{ENVIRONMENT_FILE} cannot be written: {e}")),
        }
        environment
    }

    /// Take a sample. The recording is good without: a failure ends the samples alone.
    fn sample(&mut self, how: impl FnOnce(&mut EnvironmentFile<File>) -> std::io::Result<()>) {
        let Some(file) = &mut self.file else { return };
        if let Err(e) = how(file) {
            self.failed = Some(format!("{ENVIRONMENT_FILE} ends early: {e}"));
            self.file = None;
        } else if file.is_full() {
            self.failed = Some(format!("{ENVIRONMENT_FILE} ends early: it has as many bytes as it may have"));
            self.file = None;
        }
    }
}

/// The running script.
struct Script<'a> {
    plan: &'a RecordingPlan,
    folder: &'a RecordingFolder,
    child: Child,
    lines: Receiver<String>,
    calls: OpenCalls,
}

impl<'a> Script<'a> {
    fn start(plan: &'a RecordingPlan, folder: &'a RecordingFolder) -> Result<Script<'a>, RecordError> {
        let log = folder.create_file(OsStr::new(LOG));
        let log = log.map_err(|e| RecordError::failed(path_text(&folder.path().join(LOG)), e.to_string()))?;
        let mut child = Command::new("sh")
            .arg("-c")
            .arg(plan.script(&ScriptMode::Input))
            .current_dir(folder.join(""))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .process_group(0)
            .spawn()
            .map_err(|e| RecordError::failed("sh", format!("cannot start: {e}")))?;
        let (send, lines) = mpsc::channel();
        if let Some(output) = child.stdout.take() {
            std::thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    if send.send(line).is_err() {
                        return;
                    }
                }
            });
        }
        Ok(Script { plan, folder, child, lines, calls: OpenCalls::default() })
    }

    fn await_ready(&mut self, signals: &mut Signals) -> Result<(), RecordError> {
        let began = Instant::now();
        loop {
            match self.lines.recv_timeout(POLL_INTERVAL) {
                Ok(line) if line == "ready" => return Ok(()),
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) if self.ended().is_none() => {
                    let interrupted = signals.pending().any(|signal| signal != SIGUSR1);
                    if interrupted || began.elapsed() > START_TIMEOUT {
                        self.finish(signals, &mut |_| {});
                        let why = if interrupted { "stopped before it began" } else { "the recorder did not start" };
                        return Err(RecordError::failed(self.plan.recorder.name(), why));
                    }
                }
                Err(_) => {
                    let status = self.finish(signals, &mut |_| {});
                    return Err(self.failure(status));
                }
            }
        }
    }

    /// Wait at most `pause` for a line of the script. The result is the reason to end the recording: the line's call
    /// took longer than the limit.
    fn slow_call(&mut self, request: &RecordingRequest, pause: Duration) -> Option<String> {
        let limit = request.until.iter().find_map(|trigger| match trigger {
            EndTrigger::Latency(limit) => Some(*limit),
            _ => None,
        });
        match self.lines.recv_timeout(pause) {
            Ok(line) => {
                let EndedCall { function, took } = self.calls.line(&line)?;
                let slow = limit.is_some_and(|limit| took > limit);
                slow.then(|| format!("{function} took {}", figure::time(took.as_secs_f64() * 1e9)))
            }
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                std::thread::sleep(pause);
                None
            }
        }
    }

    fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// End the script, and wait until the recorder has written its buffers.
    fn finish(&mut self, signals: &mut Signals, report: &mut dyn FnMut(RecordingProgress)) -> ExitStatus {
        drop(self.child.stdin.take());
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return status,
                Ok(None) => std::thread::sleep(POLL_INTERVAL),
                // Impossible: no other thread waits for this child.
                Err(_) => return ExitStatus::default(),
            }
            if signals.pending().any(|signal| signal != SIGUSR1) {
                report(RecordingProgress::StillWriting);
            }
        }
    }

    fn log(&self) -> ScriptLog {
        let bytes = std::fs::read(self.folder.join(LOG)).unwrap_or_default();
        ScriptLog(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The command that failed, and the last line of its output.
    fn failure(&self, status: ExitStatus) -> RecordError {
        let log = self.log();
        let LastStep { program, said } = log.last_step(self.plan);
        let program = program.unwrap_or(self.plan.recorder.name());
        let said = said.map_or_else(|| status.to_string(), str::to_owned);
        let place = self.folder.path().join(LOG);
        RecordError::failed(program, format!("{said} (all of its output is in {})", place.display()))
    }
}
