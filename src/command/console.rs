//! Output of a command: the answer as text or JSON on stdout; progress, times and memory on stderr.

use crate::base::ctx::{Ctx, StageTime};
use crate::base::file::Output;
use crate::base::heap::HeldPart;
use crate::base::large_blocks::LARGE_BLOCKS;
use crate::base::time_left::in_words;
use crate::view::page::{Glyphs, Page};
use crate::view::stderr::say;
use anyhow::Context;
use serde::Serialize;
use std::io::{IsTerminal, Write};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The beginning of the error of a failed write to stdout.
pub const STDOUT: &str = "stdout cannot be written: make room, or write to another file";

/// Time after which a job shows a progress line.
const PATIENCE: Duration = Duration::from_millis(400);

/// The least time of a part of a stage that is shown.
const LEAST_SHOWN: Duration = Duration::from_micros(100);

/// Stdout and stderr for one command.
pub(super) struct Console<'a> {
    /// The workers of the command.
    pub ctx: &'a Ctx,
    output: &'a Mutex<Option<Output>>,
    timings: bool,
    since: Instant,
}

impl<'a> Console<'a> {
    /// A console with the opened file of `--output`; with `timings` it prints the time of each stage.
    pub fn new(ctx: &'a Ctx, output: &'a Mutex<Option<Output>>, timings: bool) -> Self {
        Console { ctx, output, timings, since: Instant::now() }
    }

    /// The file of `--output`, which is written once.
    pub fn output(&self) -> anyhow::Result<Output> {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        output.take().context("the output is not open")
    }

    /// Print an answer as a JSON document or as text.
    pub fn answer<D: Serialize>(
        &self,
        json: bool,
        document: impl FnOnce() -> D,
        text: impl FnOnce(Page) -> String,
    ) -> anyhow::Result<()> {
        // Not an answer of which a part could not be read.
        self.ctx.cancel.check()?;
        self.ctx.progress.enter("answer", 0);
        if !json {
            return print(&text(page()));
        }
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        serde_json::to_writer_pretty(&mut out, &document()).context(STDOUT)?;
        out.write_all(b"\n").and_then(|()| out.flush()).context(STDOUT)
    }

    /// Run `job`, with a progress line if stderr is a terminal and the job takes long.
    pub fn with_progress<T: Send>(&self, job: impl FnOnce(&Ctx) -> anyhow::Result<T> + Send) -> anyhow::Result<T> {
        let job = |ctx: &Ctx| {
            let result = job(ctx)?;
            ctx.cancel.check()?;
            Ok(result)
        };
        if !std::io::stderr().is_terminal() {
            return job(self.ctx);
        }
        let style = |template| indicatif::ProgressStyle::with_template(template).context("progress line");
        // A stage without units has no bar.
        let (measured, unmeasured) = (style("{msg} {bar:30} {percent}%{prefix}")?, style("{msg}{prefix}")?);
        std::thread::scope(|scope| {
            let (done, ended) = mpsc::channel::<()>();
            let progress = Arc::clone(&self.ctx.progress);
            let show = move || {
                if ended.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
                let (bar, mut shown) = (indicatif::ProgressBar::new(0), ("", false));
                while ended.recv_timeout(Duration::from_millis(100)) == Err(RecvTimeoutError::Timeout) {
                    let (stage, total) = (progress.stage(), progress.total.load(Relaxed));
                    if shown != (stage, total > 0) {
                        shown = (stage, total > 0);
                        bar.set_style(if total > 0 { measured.clone() } else { unmeasured.clone() });
                        bar.set_message(stage);
                        bar.reset();
                    }
                    bar.set_length(total);
                    bar.set_position(progress.done.load(Relaxed));
                    bar.set_prefix(progress.left().map_or_else(String::new, |left| format!(", {}", in_words(left))));
                }
                bar.finish_and_clear();
            };
            // If the thread cannot start, there is no progress line.
            let _ = std::thread::Builder::new().name("progress".into()).spawn_scoped(scope, show);
            let result = job(self.ctx);
            drop(done);
            self.ctx.progress.expect(&[]);
            result
        })
    }

    /// End a stage and report its time.
    pub fn stage(&mut self, name: &str) {
        let now = Instant::now();
        self.time(name, now.duration_since(self.since));
        self.since = now;
        for StageTime { name, took } in self.ctx.progress.take_stages() {
            if self.timings && took >= LEAST_SHOWN && !name.is_empty() {
                say(&format!("{:>10} {:9.3} ms {name}", "", took.as_secs_f64() * 1e3));
            }
        }
    }

    /// Report a time that was measured elsewhere.
    pub fn time(&self, name: &str, took: Duration) {
        if self.timings {
            say(&format!("{name:>10} {:9.3} ms", took.as_secs_f64() * 1e3));
        }
    }

    /// Report the last stage, chunks that ran twice, peak memory, and the most that each part of it held.
    pub fn finish(&mut self) {
        self.stage("write");
        if !self.timings {
            return;
        }
        if let bytes @ 1.. = LARGE_BLOCKS.most_in_file() {
            say(&format!("{:>10} {} kB in a file", "large", bytes.div_ceil(1024)));
        }
        let replayed = self.ctx.progress.replayed.load(Relaxed);
        if replayed > 0 {
            say(&format!("{:>10} {replayed} chunks", "run again"));
        }
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        if let Some(peak) = status.lines().find_map(|l| l.strip_prefix("VmHWM:")) {
            say(&format!("{:>10} {}", "memory", peak.trim()));
        }
        for HeldPart { part, most, given } in self.ctx.progress.parts.held() {
            let given = given.map_or(String::new(), |given| format!(" of {} kB", given.div_ceil(1024)));
            say(&format!("{:>10} {} kB{given}", part.name(), most.div_ceil(1024)));
        }
        self.ctx.questions.iter().flat_map(|questions| questions.lines()).for_each(|line| say(&line));
        let progress = &self.ctx.progress;
        let [leaves, written, read] =
            [&progress.leaf_budget, &progress.leaves_written, &progress.leaves_read].map(|count| count.load(Relaxed));
        if let Some(budget) = self.ctx.budget.as_ref().filter(|_| leaves > 0 || written > 0) {
            let whole = budget.bytes.div_ceil(1024);
            say(&format!("{:>10} {whole} kB, of them {} kB for leaves", "budget", leaves.div_ceil(1024)));
            let place = budget.file.as_ref().filter(|_| written > 0);
            let place = place.map_or(String::new(), |file| format!(", in {}", file.folder().display()));
            say(&format!("{:>10} {written} leaves written, {read} read back{place}", "file"));
        }
    }
}

/// Print a text.
pub(super) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context(STDOUT)
}

/// A page as wide as the terminal, else 100 columns; ASCII if the terminal shows nothing else.
pub(super) fn page() -> Page {
    let out = std::io::stdout();
    // Some terminals do not know their size and say 0.
    let size = || crossterm::terminal::size().ok().map(|(columns, _)| usize::from(columns)).filter(|n| *n > 0);
    let width = if out.is_terminal() { size().unwrap_or(80) } else { 100 };
    let glyphs = if out.is_terminal() && shows_ascii_only() { Glyphs::Ascii } else { Glyphs::Unicode };
    Page { width, glyphs }
}

/// True if the locale is not UTF-8, or the terminal is the Linux console, whose font has little else than ASCII.
pub(super) fn shows_ascii_only() -> bool {
    let variable = |name: &&str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(variable);
    let is_utf8 = |locale: String| locale.to_ascii_lowercase().replace('-', "").contains("utf8");
    locale.is_some_and(|locale| !is_utf8(locale)) || variable(&"TERM").is_some_and(|term| term == "linux")
}
