//! The frames of each view: from a message, a key or the answer of a job, to the drawn screen.

use super::recorded::{self, ThreadsOverTime};
use super::{KEY_MS, ms};
use rustix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::time::{Duration, Instant};
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::compare::arranged::{TreeDirection, arrange, invert};
use whyslow::parts::model::Model;
use whyslow::parts::tui::app::App;
use whyslow::parts::tui::job::{ArrangedTrees, Done, Job};
use whyslow::parts::tui::key::KeyPress;
use whyslow::parts::tui::message::{UiEffect, UiMessage};
use whyslow::parts::tui::paint::Painter;
use whyslow::parts::tui::report::AnomalyReport;
use whyslow::parts::tui::screen;
use whyslow::parts::tui::update::update;

/// Times that the keys of a view are pressed.
const PASSES: usize = 40;

/// A view: its name, the keys that open it, those whose frames are measured, and those that lead back.
type ViewKeys = (&'static str, &'static str, &'static str, &'static str);

const VIEWS: [ViewKeys; 10] = [
    ("heat map", "1 Home", "Right Right Up Up Left Down Shift-Right Shift-Up Backspace PgDn PgUp", ""),
    ("list of executions", "E", "Down Down PgDn PgDn Up End Home 1 2 Backspace Backspace", "Esc Esc"),
    ("rows of the tree", "2 Home", "Down Down Right Down Right Down Down PgDn PgUp Left Up", ""),
    ("callees first", "I", "Down Down Right Down Right Down Down PgDn PgUp Left Up", "I"),
    ("icicle", "z |", "Down Down Right Left Up Right Enter Down - Up", "| z"),
    ("all threads", "t", "Down Down PgDn Right Right + Right PgUp End Home - Space Down Enter c c Space Up -", "Esc"),
    ("one execution", "2 Home v", "Right Right Down Right Down Left + Right PgDn + Right - - p p Tab Right 0", "Esc"),
    ("its calls as a tree", "2 Home v c", "Down Down Right Down Right Down Enter Down PgDn PgUp Left Up Up", "Esc Esc"),
    ("root causes", "3 Home", "Down Enter Down Down PgDn End PgUp Home Enter o o o", ""),
    ("propagation", "4", "Right Down Down Right Left Up Right End Home Down", "2"),
];

/// What is read of a recording for some of them.
pub struct Answers {
    pub model: Arc<Model>,
    pub threads: ThreadsOverTime,
    pub anomalies: Arc<AnomalyReport>,
}

impl Answers {
    pub fn new(model: &Arc<Model>) -> anyhow::Result<Answers> {
        let ctx = Ctx::new(2);
        let began = Instant::now();
        let threads = ThreadsOverTime::new(model.origin, &ctx)?;
        println!("{} threads over time: built in {:.0} ms", recorded::THREADS, ms(began.elapsed()));
        let began = Instant::now();
        let anomalies = Arc::new(recorded::anomalies(&ctx)?);
        let found = &anomalies.anomalies;
        println!(
            "{} anomalies, {} root causes, {} paths: found in {:.0} ms",
            found.anomalies.len(),
            found.sources.len(),
            found.paths.len(),
            ms(began.elapsed())
        );
        Ok(Answers { model: Arc::clone(model), threads, anomalies })
    }
}

/// The screen of an interface.
pub struct Screen<'a> {
    pub app: App,
    painter: Painter,
    answers: &'a Answers,
    /// The frames since they were last taken.
    frames: Vec<ViewFrame>,
}

/// What a message and its frame took.
struct ViewFrame {
    /// Milliseconds of the clock, which other programs lengthen, and of the CPU.
    wall: f64,
    cpu: f64,
    message: String,
}

impl<'a> Screen<'a> {
    pub fn new(app: App, answers: &'a Answers) -> Screen<'a> {
        Screen { app, painter: Painter::default(), answers, frames: Vec::new() }
    }

    /// Take a message, draw, then do what it asks for; the answers are messages.
    pub fn take(&mut self, message: UiMessage) -> anyhow::Result<()> {
        let name = match &message {
            UiMessage::Key(key) => key.to_string(),
            _ => "an answer".to_owned(),
        };
        let (began, used) = (Instant::now(), clock_gettime(ClockId::ThreadCPUTime));
        let effects = update(&mut self.app, message);
        self.painter.paint(&screen::draw(&self.app), &mut Vec::new());
        let used = Duration::try_from(clock_gettime(ClockId::ThreadCPUTime) - used)?;
        self.frames.push(ViewFrame { wall: ms(began.elapsed()), cpu: ms(used), message: name });
        for effect in effects {
            if let UiEffect::Start(job) = effect
                && let Some(done) = self.perform(job)?
            {
                self.take(UiMessage::Done(done))?;
            }
        }
        Ok(())
    }

    fn press(&mut self, keys: &str) -> anyhow::Result<()> {
        for text in keys.split_whitespace() {
            let key = KeyPress::parse(text).ok_or_else(|| anyhow::anyhow!("no key {text}"))?;
            self.take(UiMessage::Key(key))?;
        }
        Ok(())
    }

    /// The answer of a job, whose time is that of no frame.
    fn perform(&self, job: Job) -> anyhow::Result<Option<Done>> {
        let ctx = Ctx::new(1);
        let began = Instant::now();
        let done = match job {
            Job::CountCells { question } => {
                let cells = question.clone().count();
                Done::Cells(Box::new(question), Box::new(Ok(cells)))
            }
            Job::Arrange { model, comparison, arrangement, direction, has_callers_first } => {
                let callees_first = match direction {
                    TreeDirection::CallersFirst => None,
                    TreeDirection::CalleesFirst => Some(Arc::new(invert(&model, &comparison, &arrangement, &ctx)?)),
                };
                let callers_first = match has_callers_first {
                    true => None,
                    false => arrange(&model, &comparison, &arrangement, &ctx)?.map(Arc::new),
                };
                println!("the tree arranged in {:.0} ms, {direction:?}", ms(began.elapsed()));
                Done::Arranged(arrangement, Ok(ArrangedTrees { callers_first, callees_first }))
            }
            Job::Threads { question } => {
                let answer = self.answers.threads.answer(&question, &ctx)?;
                Done::Threads(question, Ok(Box::new(answer)))
            }
            Job::Timelines { ref executions, .. } => {
                let executions = executions.clone();
                let Some(read) = recorded::timelines(&self.answers.model, &job)? else { return Ok(None) };
                Done::Timelines(executions, Ok(read))
            }
            Job::Mine { settings } => Done::Mined(settings, Ok(Arc::clone(&self.answers.anomalies))),
            _ => return Ok(None),
        };
        Ok(Some(done))
    }

    /// Press the keys of each view, or of those that are named, again and again; print the times of its frames, and the
    /// longest of those that open it.
    pub fn measure(&mut self) -> anyhow::Result<()> {
        let wanted = std::env::args().skip(1).find(|word| !word.starts_with('-'));
        let is_wanted = |name: &str| wanted.as_ref().is_none_or(|wanted| name.contains(wanted.as_str()));
        for (name, open, pressed, back) in VIEWS.into_iter().filter(|(name, ..)| is_wanted(name)) {
            self.frames.clear();
            self.press(open)?;
            let opened = self.frames.drain(..).map(|frame| frame.cpu).fold(0.0, f64::max);
            for _ in 0..PASSES {
                self.press(pressed)?;
            }
            let frames = std::mem::take(&mut self.frames);
            self.press(back)?;
            let rank = |of: fn(&ViewFrame) -> f64, part: f64| {
                let mut times: Vec<f64> = frames.iter().map(of).collect();
                times.sort_by(f64::total_cmp);
                times[((times.len() as f64 * part).ceil() as usize).clamp(1, times.len()) - 1]
            };
            let (columns, lines) = self.app.size;
            let p99 = rank(|frame| frame.cpu, 0.99);
            let longest = frames.iter().max_by(|a, b| a.cpu.total_cmp(&b.cpu));
            println!(
                "{columns}x{lines} {name}: frame p50 {:.2} ms, p99 {p99:.2} ms = {:.2} of {KEY_MS} ms (of the clock \
                 {:.2}), longest {:.1} ms after {}; opened in {opened:.1} ms",
                rank(|frame| frame.cpu, 0.5),
                p99 / KEY_MS,
                rank(|frame| frame.wall, 0.99),
                longest.map_or(0.0, |frame| frame.cpu),
                longest.map_or("", |frame| frame.message.as_str()),
            );
        }
        Ok(())
    }
}
