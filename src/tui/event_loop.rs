//! The loop: messages come in from three threads, the update takes them one by one, and the screen is drawn.
//!
//! In: [`Setup`]. Out: bytes to the terminal, until the user quits or a signal ends the program. All messages that have
//! come by now make one frame, so that the loop keeps up with a held key over a slow line.

use super::app::App;
use super::background;
use super::job::{Busy, Done, JobLane, LANES};
use super::jobs::{Jobs, Ticket};
use super::keeping;
use super::keyboard::{self, TerminalEvent};
use super::message::{UiEffect, UiMessage};
use super::paint::Painter;
use super::saved::SavedView;
use super::screen;
use super::setup::{Setup, write_file};
use super::svg;
use super::terminal::{self, SignalRequest, Terminal, die_by};
use super::theme::ColourDepth;
use super::tour::TourProgress;
use super::update::{self, update};
use crate::base::allocator::room_for_threads;
use crate::base::ctx::Progress;
use anyhow::Context;
use std::io::IsTerminal;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// How often progress is drawn while a job runs.
const TICK: Duration = Duration::from_millis(100);

enum Incoming {
    Terminal(TerminalEvent),
    Job(Ticket, Done),
    Signal(SignalRequest),
}

/// Run the interface until the user quits.
pub fn run(setup: Setup) -> anyhow::Result<()> {
    if !std::io::stdout().is_terminal() {
        anyhow::bail!("standard output is not a terminal; use `whyslow explain TRACE` instead");
    }
    let Setup {
        title,
        command_line,
        baseline,
        request,
        first,
        has_events,
        options,
        ctx,
        tour,
        saved,
        saved_notice,
        keep,
        backend,
    } = setup;
    let mouse = options.mouse;
    // Only the built-in themes depend on the background.
    let asks = options.theme.is_none() && options.depth >= ColourDepth::Indexed;
    let mut app = App { command_line, baseline, has_events, ..App::new(title, request, options, (80, 24))? };
    app.restoring = saved.map(Box::new);
    app.tour = tour.then(TourProgress::default);
    if let Some(notice) = saved_notice {
        app.say(notice);
    }
    let (sender, incoming) = channel();
    let jobs = {
        let sender = sender.clone();
        Jobs::start(backend, ctx, move |ticket, done| drop(sender.send(Incoming::Job(ticket, done))))?
    };
    let signals = sender.clone();
    terminal::watch_signals(move |signal| drop(signals.send(Incoming::Signal(signal))))
        .context("watching for signals")?;
    let mut terminal = Terminal::enter(mouse).context("taking over the terminal")?;
    let began = Instant::now();
    if asks {
        terminal.write(background::QUERY)?;
    }
    app.size = terminal.size();
    let effects = update::start(&mut app, first);
    let mut running = Loop {
        app,
        terminal,
        jobs,
        keep,
        painter: Painter::default(),
        progress: [const { None }; LANES],
        bytes: Vec::new(),
    };
    // The terminal may answer late or never: the frame gets the colours of its background when it does.
    running.draw()?;
    read_inputs(sender)?;
    running.perform(effects)?;
    let ended = running.until_end(&incoming);
    (running.keep)(&keeping::view(&running.app));
    // A late answer of the terminal would go to the shell as input.
    while asks && let Some(rest) = background::LATEST.checked_sub(began.elapsed()) {
        if let Ok(Incoming::Terminal(TerminalEvent::Background(_))) | Err(_) = incoming.recv_timeout(rest) {
            break;
        }
    }
    match ended {
        // The terminal went away: no error can be shown.
        Err(error) if is_broken_pipe(&error) => Ok(()),
        other => other,
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|e| {
        matches!(e.kind(), std::io::ErrorKind::BrokenPipe)
            || e.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error())
    })
}

/// Send the terminal's input to the loop, on a thread of its own.
fn read_inputs(sender: Sender<Incoming>) -> std::io::Result<()> {
    let (resized, writer) = UnixStream::pair()?;
    writer.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(signal_hook::consts::SIGWINCH, writer)?;
    room_for_threads(1)?;
    std::thread::Builder::new().name("keys".into()).spawn(move || {
        if keyboard::read(&resized, |input| sender.send(Incoming::Terminal(input)).is_ok()).is_err() {
            drop(sender.send(Incoming::Terminal(TerminalEvent::Closed)));
        }
    })?;
    Ok(())
}

struct Loop {
    app: App,
    terminal: Terminal,
    jobs: Jobs,
    keep: Box<dyn FnMut(&SavedView)>,
    painter: Painter,
    /// By lane.
    progress: [Option<Arc<Progress>>; LANES],
    /// The bytes of a frame.
    bytes: Vec<u8>,
}

/// The next step after a message.
enum LoopStep {
    Go,
    End,
    Die(i32),
}

impl Loop {
    fn until_end(&mut self, incoming: &Receiver<Incoming>) -> anyhow::Result<()> {
        loop {
            let first = match self.progress.iter().any(Option::is_some) {
                true => incoming.recv_timeout(TICK),
                false => incoming.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            // All messages that have come by now make one frame.
            let began = Instant::now();
            let mut message = match first {
                Ok(message) => Some(message),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            };
            while let Some(incoming_message) = message {
                match self.take(incoming_message)? {
                    LoopStep::Go => {}
                    LoopStep::End => return Ok(()),
                    LoopStep::Die(signal) => {
                        (self.keep)(&keeping::view(&self.app));
                        die_by(signal)
                    }
                }
                message = if began.elapsed() < TICK { incoming.try_recv().ok() } else { None };
            }
            self.update_progress();
            self.draw()?;
        }
    }

    fn take(&mut self, incoming: Incoming) -> anyhow::Result<LoopStep> {
        let message = match incoming {
            Incoming::Job(ticket, done) if self.jobs.is_newest(ticket) => Some(UiMessage::Done(done)),
            Incoming::Job(..) => None,
            Incoming::Signal(SignalRequest::Die(signal)) => return Ok(LoopStep::Die(signal)),
            Incoming::Signal(SignalRequest::Suspend) => {
                self.suspend()?;
                None
            }
            Incoming::Signal(SignalRequest::Continued) => {
                self.terminal.retake()?;
                self.painter.forget();
                let (columns, lines) = self.terminal.size();
                Some(UiMessage::Resize(columns, lines))
            }
            Incoming::Terminal(input) => Some(match input {
                TerminalEvent::Key(key) => UiMessage::Key(key),
                TerminalEvent::Paste(text) => UiMessage::Paste(text),
                TerminalEvent::Wheel(lines) => UiMessage::Wheel(lines),
                TerminalEvent::Click(column, line) => UiMessage::Click(column, line),
                TerminalEvent::Drag(column, line) => UiMessage::Drag(column, line),
                TerminalEvent::Background(background) => UiMessage::Background(background),
                TerminalEvent::Resized => {
                    let (columns, lines) = self.terminal.size();
                    UiMessage::Resize(columns, lines)
                }
                TerminalEvent::Closed => return Ok(LoopStep::End),
            }),
        };
        match message {
            Some(message) => {
                let effects = update(&mut self.app, message);
                self.perform(effects)
            }
            None => Ok(LoopStep::Go),
        }
    }

    fn perform(&mut self, effects: Vec<UiEffect>) -> anyhow::Result<LoopStep> {
        for effect in effects {
            match effect {
                UiEffect::Start(job) => {
                    let (ticket, progress) = self.jobs.request(job);
                    self.progress[ticket.lane as usize] = Some(progress);
                }
                UiEffect::Copy(text) => self.terminal.copy(&text)?,
                UiEffect::SavePicture { path, existing } => {
                    let ground = if self.app.theme.name == "light" { svg::Ground::LIGHT } else { svg::Ground::DARK };
                    let picture = svg::picture(&screen::draw(&self.app), ground);
                    let outcome = write_file(&path, picture.as_bytes(), existing);
                    update(&mut self.app, UiMessage::Saved(path, outcome));
                }
                UiEffect::KeepState => (self.keep)(&keeping::view(&self.app)),
                UiEffect::Redraw => self.painter.forget(),
                UiEffect::Suspend => {
                    let effects = self.suspend()?;
                    self.perform(effects)?;
                }
                UiEffect::Quit => return Ok(LoopStep::End),
            }
        }
        Ok(LoopStep::Go)
    }

    /// Give the terminal back until the program continues; the effects of the size that it then has.
    fn suspend(&mut self) -> anyhow::Result<Vec<UiEffect>> {
        self.terminal.suspend()?;
        self.painter.forget();
        let (columns, lines) = self.terminal.size();
        Ok(update(&mut self.app, UiMessage::Resize(columns, lines)))
    }

    fn update_progress(&mut self) {
        for lane in JobLane::ALL {
            let progress = &mut self.progress[lane as usize];
            if self.app.busy(lane).is_none() {
                *progress = None;
            }
            if let Some(progress) = progress {
                let busy = Busy {
                    what: "",
                    stage: progress.stage(),
                    done: progress.done.load(Ordering::Relaxed),
                    total: progress.total.load(Ordering::Relaxed),
                    events: progress.events.load(Ordering::Relaxed),
                    left: progress.left(),
                };
                update(&mut self.app, UiMessage::Progress(lane, busy));
            }
        }
    }

    fn draw(&mut self) -> anyhow::Result<()> {
        self.bytes.clear();
        self.painter.paint(&screen::draw(&self.app), &mut self.bytes);
        if !self.bytes.is_empty() {
            self.terminal.write(&self.bytes)?;
        }
        Ok(())
    }
}
