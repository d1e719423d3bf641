//! Running a plan: start, progress, end.
//!
//! The script of the plan runs in a process group of its own, so that Ctrl-C and a lost terminal reach this program alone.
//! It says `ready` on its standard output once the recorder records, and ends when its standard input ends: by us, or because
//! this process is gone. What the recorder says goes into `record.log` beside the recording.

use super::growth::{self, PerfData, RecordingSize};
use super::plan::{RecordingPlan, ScriptMode};
use super::trigger::OpenCalls;
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

/// Between two looks at what happens.
const PAUSE: Duration = Duration::from_millis(50);

/// Between two looks at how the recording grows.
const LOOK: Duration = Duration::from_millis(500);

/// How long a recorder may take until it records.
const START: Duration = Duration::from_secs(60);

/// Progress messages.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordingProgress {
    /// The recorder records.
    Recording,
    /// It has recorded for so long and so much.
    Grown(Duration, RecordingSize),
    /// It ends, and why.
    Ending(String),
    /// A signal came while the recorder writes its last pages.
    Patience,
}

/// How it ended.
#[derive(Clone, Debug)]
pub struct RecordingEnd {
    /// How long it recorded.
    pub took: Duration,
    /// Final size.
    pub grown: RecordingSize,
    /// How the command ended that was recorded around.
    pub command: Option<ExitStatus>,
    /// The terminal is gone or the program received a signal to end: the recording is not opened.
    pub leave: bool,
}

/// Run a plan until something that was wished ends it.
pub fn run(
    plan: &RecordingPlan,
    request: &RecordingRequest,
    report: &mut dyn FnMut(RecordingProgress),
) -> Result<RecordingEnd, RecordError> {
    let signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1]);
    let mut signals = signals.map_err(|e| RecordError(format!("cannot handle signals: {e}")))?;
    let mut script = Script::start(plan)?;
    script.await_ready(&mut signals)?;
    report(RecordingProgress::Recording);
    let began = Instant::now();
    let mut command = start_command(request)?;
    let mut meter = Meter::new(plan, request);
    let (reason, leave) = loop {
        if let Some(found) = script.interesting(request, PAUSE) {
            break (found, false);
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
            break (format!("{name} ended"), false);
        }
        if request.duration.is_some_and(|limit| began.elapsed() >= limit) {
            break ("the duration is over".to_owned(), false);
        }
        let there = request.until.iter().find_map(|trigger| match trigger {
            EndTrigger::File(path) if path.exists() => Some(path),
            _ => None,
        });
        if let Some(path) = there {
            break (format!("{} exists", path.display()), false);
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

/// Effect of a signal; SIGUSR1 only if requested.
fn signalled(signals: &mut Signals, request: &RecordingRequest) -> Option<(String, bool)> {
    signals.pending().find_map(|signal| match signal {
        SIGUSR1 if !request.until.contains(&EndTrigger::Signal) => None,
        SIGUSR1 => Some(("SIGUSR1 came".to_owned(), false)),
        SIGINT => Some(("stopped".to_owned(), false)),
        _ => Some(("ended by a signal".to_owned(), true)),
    })
}

fn start_command(request: &RecordingRequest) -> Result<Option<(String, Child)>, RecordError> {
    let Some((program, arguments)) = request.command.split_first() else { return Ok(None) };
    let name = program.to_string_lossy().into_owned();
    let child = Command::new(program).args(arguments).spawn();
    child.map(|child| Some((name.clone(), child))).map_err(|e| RecordError(format!("{name}: cannot start: {e}")))
}

/// How the command ended; one that runs on when the recording is over is left running, but where everything is to end.
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
        let at = |e: std::io::Error| RecordError(format!("{}: {e}", plan.folder.display()));
        let log = File::create(plan.folder.join("record.log")).map_err(at)?;
        let mut child = Command::new("sh")
            .arg("-c")
            .arg(plan.script(&ScriptMode::Input))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .process_group(0)
            .spawn()
            .map_err(|e| RecordError(format!("sh: cannot start: {e}")))?;
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
                        return Err(RecordError(format!("{}: {why}", self.plan.recorder.name())));
                    }
                }
                Err(_) => {
                    let status = self.finish(signals, &mut |_| {});
                    return Err(self.failure(status));
                }
            }
        }
    }

    /// Wait a little for what the script prints; a call that took too long ends the recording.
    fn interesting(&mut self, request: &RecordingRequest, pause: Duration) -> Option<String> {
        let limit = request.until.iter().find_map(|trigger| match trigger {
            EndTrigger::Latency(limit) => Some(*limit),
            _ => None,
        });
        match self.lines.recv_timeout(pause) {
            Ok(line) => {
                let (function, took) = self.calls.line(&line)?;
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

    /// Which line failed, and the last that it said.
    fn failure(&self, status: ExitStatus) -> RecordError {
        let log = self.plan.folder.join("record.log");
        let text = std::fs::read(&log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
        let finishing: Vec<String> = self.plan.finish.iter().map(|line| format!("+ {line}")).collect();
        let (mut step, mut said) = (None, None);
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            if finishing.iter().any(|known| known == line) {
                break;
            }
            match line.strip_prefix("+ ") {
                Some(line) => (step, said) = (Some(line), None),
                None => said = Some(line),
            }
        }
        let program = step.and_then(|line| line.split_whitespace().next()).unwrap_or(self.plan.recorder.name());
        let said = said.map_or_else(|| status.to_string(), str::to_owned);
        RecordError(format!("{program}: {said} (all of its output is in {})", log.display()))
    }
}

/// Make the folder of a recording, which must be new or empty: nothing is overwritten.
fn make_folder(folder: &Path) -> Result<(), RecordError> {
    let shown = folder.display();
    match std::fs::read_dir(folder).map(|mut entries| entries.next().is_some()) {
        Ok(true) => Err(RecordError(format!("--output {shown}: the folder is not empty; name a new one"))),
        Ok(false) => Ok(()),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            std::fs::create_dir_all(folder).map_err(|e| RecordError(format!("--output {shown}: {e}")))
        }
        Err(e) => Err(RecordError(format!("--output {shown}: {e}; name a folder"))),
    }
}

/// How much was recorded, asked now and then.
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

    /// A look when the last was some time ago.
    fn due(&mut self) -> Option<RecordingSize> {
        if self.looked.elapsed() < LOOK {
            return None;
        }
        self.looked = Instant::now();
        // A ring that keeps the past is written at the end.
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
