//! Runs a plan: start, progress, end.
//!
//! The script of the plan runs in a process group of its own, so that Ctrl-C and a lost terminal reach this program
//! alone. It says `ready` on its standard output once the recorder records, and ends when its standard input ends: by
//! us, or because this process is gone. The output of the recorder goes into `record.log` beside the recording.

use super::growth::{self, PerfData, RecordingSize};
use super::plan::{RecordingPlan, ScriptMode, shown};
use super::trigger::{EndedCall, OpenCalls};
use super::{EndTrigger, RecordError, Recorder, RecordingRequest};
use crate::base::figure;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Time between two checks of the conditions.
const PAUSE: Duration = Duration::from_millis(50);

/// Time between two looks at the growth of the recording.
const LOOK: Duration = Duration::from_millis(500);

/// Time that a recorder may take to start.
const START: Duration = Duration::from_secs(60);

/// Progress messages.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordingProgress {
    /// The recorder records.
    Recording,
    /// Time and size of the recording so far.
    Grown(Duration, RecordingSize),
    /// The recording ends; the reason.
    Ending(String),
    /// A signal arrived while the recorder writes its last pages.
    Patience,
}

/// The end of a recording.
#[derive(Clone, Debug)]
pub struct RecordingEnd {
    /// Duration of the recording.
    pub took: Duration,
    /// Final size.
    pub grown: RecordingSize,
    /// Exit status of the recorded command.
    pub command: Option<ExitStatus>,
    /// True if the terminal is gone or a signal ended the program: the recording is not opened.
    pub leave: bool,
}

/// Run a plan until a condition of the request ends it.
pub fn run(
    plan: &RecordingPlan,
    request: &RecordingRequest,
    report: &mut dyn FnMut(RecordingProgress),
) -> Result<RecordingEnd, RecordError> {
    let signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1]);
    let mut signals = signals.map_err(|e| RecordError::Signals(e.to_string()))?;
    let mut script = Script::start(plan)?;
    script.await_ready(&mut signals)?;
    report(RecordingProgress::Recording);
    let began = Instant::now();
    let mut command = start_command(request)?;
    let mut meter = Meter::new(plan, request);
    let RecordingStop { reason, leave } = loop {
        if let Some(found) = script.slow_call(request, PAUSE) {
            break RecordingStop::because(found);
        }
        if let Some(status) = script.ended() {
            return Err(script.failure(status));
        }
        if let Some(found) = signalled(&mut signals, request) {
            break found;
        }
        if let Some((name, child)) = &mut command
            && let Ok(Some(_)) = child.try_wait()
        {
            break RecordingStop::because(format!("{name} ended"));
        }
        if request.duration.is_some_and(|limit| began.elapsed() >= limit) {
            break RecordingStop::because("the duration is over");
        }
        let there = request.until.iter().find_map(|trigger| match trigger {
            EndTrigger::File(path) if path.exists() => Some(path),
            _ => None,
        });
        if let Some(path) = there {
            break RecordingStop::because(format!("{} exists", path.display()));
        }
        if let Some(grown) = meter.due() {
            report(RecordingProgress::Grown(began.elapsed(), grown));
        }
    };
    let took = began.elapsed();
    report(RecordingProgress::Ending(reason));
    let status = script.finish(&mut signals, report);
    if !status.success() {
        return Err(script.failure(status));
    }
    let command = command.map(|(_, child)| stopped(child, leave));
    Ok(RecordingEnd { took, grown: meter.look(), command: command.flatten(), leave })
}

/// The end of a recording.
struct RecordingStop {
    reason: String,
    /// The program ends as well.
    leave: bool,
}

impl RecordingStop {
    fn because(reason: impl Into<String>) -> RecordingStop {
        RecordingStop { reason: reason.into(), leave: false }
    }
}

/// Effect of a signal; SIGUSR1 only if requested.
fn signalled(signals: &mut Signals, request: &RecordingRequest) -> Option<RecordingStop> {
    signals.pending().find_map(|signal| match signal {
        SIGUSR1 if !request.until.contains(&EndTrigger::Signal) => None,
        SIGUSR1 => Some(RecordingStop::because("SIGUSR1 arrived")),
        SIGINT => Some(RecordingStop::because("stopped")),
        _ => Some(RecordingStop { reason: "ended by a signal".to_owned(), leave: true }),
    })
}

fn start_command(request: &RecordingRequest) -> Result<Option<(String, Child)>, RecordError> {
    let Some((program, arguments)) = request.command.split_first() else { return Ok(None) };
    let name = program.to_string_lossy().into_owned();
    let child = Command::new(program).args(arguments).spawn();
    child.map(|child| Some((name.clone(), child))).map_err(|e| RecordError::failed(&name, format!("cannot start: {e}")))
}

/// Exit status of the command. A command that runs on after the recording is left running, unless the program ends.
fn stopped(mut child: Child, leave: bool) -> Option<ExitStatus> {
    if let Ok(Some(status)) = child.try_wait() {
        return Some(status);
    }
    if leave && let Some(pid) = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap_or(0)) {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        return child.wait().ok();
    }
    None
}

/// The running script.
struct Script<'a> {
    plan: &'a RecordingPlan,
    child: Child,
    lines: Receiver<String>,
    calls: OpenCalls,
}

impl Script<'_> {
    fn start(plan: &RecordingPlan) -> Result<Script<'_>, RecordError> {
        make_folder(&plan.folder)?;
        let at = |e: std::io::Error| RecordError::failed(shown(&plan.folder), e.to_string());
        let log = File::create(plan.folder.join("record.log")).map_err(at)?;
        let mut child = Command::new("sh")
            .arg("-c")
            .arg(plan.script(&ScriptMode::Input))
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
        Ok(Script { plan, child, lines, calls: OpenCalls::default() })
    }

    fn await_ready(&mut self, signals: &mut Signals) -> Result<(), RecordError> {
        let began = Instant::now();
        loop {
            match self.lines.recv_timeout(PAUSE) {
                Ok(line) if line == "ready" => return Ok(()),
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) if self.ended().is_none() => {
                    let interrupted = signals.pending().any(|signal| signal != SIGUSR1);
                    if interrupted || began.elapsed() > START {
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

    /// Wait a little for a line of the script; a call over the latency limit ends the recording.
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

    /// End the script, and wait until the recorder has written what it holds.
    fn finish(&mut self, signals: &mut Signals, report: &mut dyn FnMut(RecordingProgress)) -> ExitStatus {
        drop(self.child.stdin.take());
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return status,
                Ok(None) => std::thread::sleep(PAUSE),
                // No other thread waits for it, so this cannot fail.
                Err(_) => return ExitStatus::default(),
            }
            if signals.pending().any(|signal| signal != SIGUSR1) {
                report(RecordingProgress::Patience);
            }
        }
    }

    /// The command that failed, and the last line of its output.
    fn failure(&self, status: ExitStatus) -> RecordError {
        let log = self.plan.folder.join("record.log");
        let text = std::fs::read(&log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
        let finishing: Vec<String> = self.plan.finish.iter().map(|line| format!("+ {line}")).collect();
        let (mut step, mut last) = (None, None);
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            if finishing.iter().any(|known| known == line) {
                break;
            }
            match line.strip_prefix("+ ") {
                Some(line) => (step, last) = (Some(line), None),
                None => last = Some(line),
            }
        }
        let program = step.and_then(|line| line.split_whitespace().next()).unwrap_or(self.plan.recorder.name());
        let last = last.map_or_else(|| status.to_string(), str::to_owned);
        RecordError::failed(program, format!("{last} (all of its output is in {})", log.display()))
    }
}

/// Make the folder of a recording, which must be new or empty: nothing is overwritten.
fn make_folder(folder: &Path) -> Result<(), RecordError> {
    let wrong = |reason: String| RecordError::option(format!("--output {}", folder.display()), reason);
    match std::fs::read_dir(folder).map(|mut entries| entries.next().is_some()) {
        Ok(true) => Err(wrong("the folder is not empty; name a new one".to_owned())),
        Ok(false) => Ok(()),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            std::fs::create_dir_all(folder).map_err(|e| wrong(e.to_string()))
        }
        Err(e) => Err(wrong(format!("{e}; name a folder"))),
    }
}

/// Measures the size of the recording from time to time.
struct Meter<'a> {
    plan: &'a RecordingPlan,
    perf: Option<PerfData>,
    looked: Instant,
    quiet: bool,
}

impl Meter<'_> {
    fn new<'a>(plan: &'a RecordingPlan, request: &RecordingRequest) -> Meter<'a> {
        let perf = (plan.recorder == Recorder::Perf).then(|| PerfData::new(plan.trace.clone()));
        Meter { plan, perf, looked: Instant::now(), quiet: request.overwrite.is_some() }
    }

    /// The size, if the last look was [`LOOK`] ago.
    fn due(&mut self) -> Option<RecordingSize> {
        if self.looked.elapsed() < LOOK {
            return None;
        }
        self.looked = Instant::now();
        // A flight recorder's buffer is written at the end.
        Some(if self.quiet { RecordingSize::default() } else { self.look() })
    }

    fn look(&mut self) -> RecordingSize {
        match (&mut self.perf, self.plan.recorder) {
            (Some(perf), _) => perf.look(),
            (None, Recorder::TraceCmd) => {
                let lost = growth::lost_by_ftrace(Path::new("/sys/kernel/tracing"));
                RecordingSize { bytes: growth::bytes_below(&self.plan.folder), events: None, lost }
            }
            (None, _) => RecordingSize { bytes: growth::bytes_below(&self.plan.folder), ..RecordingSize::default() },
        }
    }
}
