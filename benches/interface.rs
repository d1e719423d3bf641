//! The interface under load: time to the first frame and to the verdict beside `explain`, time from a key to its drawn
//! frame while another thread counts and compares without a pause, and bytes of a navigation key. The references are
//! those of the contract: 100 ms for the first frame, the time of `explain` for the verdict, 16 ms for the 99th
//! percentile of the keys, and of the frames of each view, with 1,000,000 executions and a tree of 100,000 nodes, 1 KB
//! a key at 80x24, 4 KB at 200x60.
//!
//! Times of frames are those of the CPU, since a machine has others to serve; that of the clock is beside them.
//!
//! `cargo bench --bench interface -- execution` measures the views whose name has that word. `WHYSLOW_EXECUTIONS` sets
//! another number of executions. The kernel recordings of the corpus are used where they are
//! in `target/corpus`.

#[path = "../tests/support/model_parts.rs"]
mod model_parts;
#[path = "interface/recorded.rs"]
mod recorded;
#[path = "interface/views.rs"]
mod views;

use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use views::{Answers, Screen};
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::base::time::{Span, Timestamp};
use whyslow::parts::compare::{ComparisonRequest, compare};
use whyslow::parts::model::column_values::ColumnValues;
use whyslow::parts::model::context::ContextId;
use whyslow::parts::model::execution::ContextTime;
use whyslow::parts::model::metric::{Column, Metric};
use whyslow::parts::model::{Model, TraceId, TraceInfo, TraceLevel};
use whyslow::parts::tui::app::App;
use whyslow::parts::tui::counts::HistogramCounter;
use whyslow::parts::tui::job::{ArrangedTrees, ComparedGroups, Done};
use whyslow::parts::tui::key::KeyPress;
use whyslow::parts::tui::message::UiMessage;
use whyslow::parts::tui::paint::Painter;
use whyslow::parts::tui::theme::ColourDepth;
use whyslow::parts::tui::update::{self, update};
use whyslow::parts::tui::{FirstQuestion, UiOptions, screen};

const PROGRAM: &str = env!("CARGO_BIN_EXE_whyslow");
const FIRST_FRAME_MS: f64 = 100.0;
const KEY_MS: f64 = 16.0;
/// Functions on each of three levels of the tree: 10 + 1,000 + 100,000 nodes and the process.
const LEVELS: [usize; 3] = [10, 100, 100];
/// Times that the program is started.
const STARTS: usize = 5;

/// Keys of navigation, for the bytes and the times.
const NAVIGATION: &str = "Enter Down Down Right Down Down Right Down Down Down PgDn PgDn Down Up Up PgUp Left Left Home \
                          End Up Down 1 Right Right Left Down Down Up End Home 2 Down Down";

fn main() -> anyhow::Result<()> {
    starts()?;
    let executions = std::env::var("WHYSLOW_EXECUTIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(1_000_000);
    let model = Arc::new(model(executions)?);
    let ctx = Ctx::new(1);
    let began = Instant::now();
    let comparison = Arc::new(compare(&model, &ComparisonRequest::default(), &ctx)?);
    let compared = began.elapsed();
    let mut counter = HistogramCounter::new(&model, &ctx)?;
    let counts = Arc::new(counter.count(&comparison.request()));
    let answers = Answers::new(&model)?;
    println!(
        "{executions} executions, a tree of {} nodes: compared in {:.0} ms",
        comparison.tree.nodes.len(),
        ms(compared)
    );
    let stop = AtomicBool::new(false);
    let recounts = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                std::hint::black_box(counter.count(&comparison.request()));
                std::hint::black_box(compare(&model, &ComparisonRequest::default(), &Ctx::new(1)).is_ok());
                recounts.fetch_add(1, Ordering::Relaxed);
            }
        });
        let measured = [(80, 24, 1024), (200, 60, 4096)].map(|(columns, lines, most_bytes)| -> anyhow::Result<()> {
            let mut screen = Screen::new(app(columns, lines)?, &answers);
            screen.take(UiMessage::Done(Done::Analysed(Ok(Arc::clone(&model)))))?;
            let (comparison, trees) = (Arc::clone(&comparison), ArrangedTrees::default());
            screen.take(UiMessage::Done(Done::Compared(Ok(ComparedGroups { comparison, trees }))))?;
            screen.take(UiMessage::Done(Done::Counted(Arc::clone(&counts))))?;
            keys(&mut screen.app, most_bytes)?;
            screen.measure()
        });
        stop.store(true, Ordering::Relaxed);
        measured.into_iter().collect::<anyhow::Result<()>>()
    })?;
    println!("recounts meanwhile: {}", recounts.load(Ordering::Relaxed));
    Ok(())
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn app(columns: u16, lines: u16) -> anyhow::Result<App> {
    let depth = ColourDepth::True;
    let suits = depth.suits(|_| None);
    let options = UiOptions { theme: None, suits, depth, ascii: false, mouse: false, keys: Arc::default() };
    let mut app = App::new("bench".into(), ComparisonRequest::default(), options, (columns, lines))?;
    update::start(&mut app, FirstQuestion::Executions);
    Ok(app)
}

/// Press the keys of navigation again and again; print times and bytes.
fn keys(app: &mut App, most_bytes: usize) -> anyhow::Result<()> {
    const PASSES: usize = 60;
    let (columns, lines) = app.size;
    let mut painter = Painter::default();
    painter.paint(&screen::draw(app), &mut Vec::new());
    let (mut times, mut bytes) = (Vec::new(), Vec::new());
    for text in std::iter::repeat_n(NAVIGATION, PASSES).flat_map(str::split_whitespace) {
        let key = KeyPress::parse(text).ok_or_else(|| anyhow::anyhow!("no key {text}"))?;
        let mut out = Vec::new();
        let began = Instant::now();
        update(app, UiMessage::Key(key));
        painter.paint(&screen::draw(app), &mut out);
        times.push(ms(began.elapsed()));
        // Another pane is another picture, not a navigation in one.
        if !matches!(text, "1" | "2") {
            bytes.push(out.len());
        }
    }
    times.sort_by(f64::total_cmp);
    bytes.sort_unstable();
    let rank = |count: usize, part: f64| ((count as f64 * part).ceil() as usize).clamp(1, count) - 1;
    let (p50, p99) = (times[rank(times.len(), 0.5)], times[rank(times.len(), 0.99)]);
    let (median, most) = (bytes[rank(bytes.len(), 0.5)], bytes[bytes.len() - 1]);
    println!(
        "{columns}x{lines}: key to frame p50 {p50:.2} ms, p99 {p99:.2} ms = {:.2} of {KEY_MS} ms; {median} bytes a key, at \
         most {most} = {:.2} of {most_bytes}",
        p99 / KEY_MS,
        most as f64 / most_bytes as f64
    );
    Ok(())
}

/// Executions with time below one of 100,000 functions each; one in 20 is slow.
fn model(executions: usize) -> anyhow::Result<Model> {
    const START: Timestamp = Timestamp::new(1_700_000_000_000_000_000);
    let mut model = Model { tasks: vec!["app:request".to_owned()].into(), origin: START, ..Model::default() };
    let [above, middle, below] = LEVELS;
    let mut leaves: Vec<ContextId> = Vec::new();
    for at in 0..above * middle * below {
        let (a, b, c) = (at / (middle * below), at / below % middle, at % below);
        leaves.push(model_parts::context(&mut model, "host", &format!("server;outer_{a};inner_{b};leaf_{c}"), 0));
    }
    let who = model_parts::thread(&mut model, "host", ("server", 1), ("worker", 2));
    let mut columns =
        [Metric::Duration, Metric::Syscalls].map(|metric| Column { metric, values: ColumnValues::default() });
    let mut at = START;
    for number in 0..executions {
        let slow = number % 20 == 0;
        let spread = (number as u64).wrapping_mul(2_654_435_761) % 100_000;
        let parts = [
            ContextTime { context: leaves[number % leaves.len()], ns: 400_000 + spread },
            ContextTime { context: leaves[7], ns: if slow { 4_000_000 } else { 90_000 } },
        ];
        let duration: i64 = parts.iter().map(|time| time.ns as i64).sum();
        columns[0].values.push(duration);
        columns[1].values.push(3 + (number % 5) as i64);
        let all = &mut model.executions;
        all.start.push(at);
        all.duration.push(duration);
        all.who.push(who);
        all.trace.push(TraceId::at(0));
        all.unsure.push(false);
        all.own.push(parts.into());
        at += 1_000_000;
    }
    model.executions.columns = columns.into();
    model.traces.push(TraceInfo {
        label: "bench".into(),
        level: TraceLevel::Machine,
        span: Span::new(START, at),
        recorded: None,
    });
    Ok(model)
}

/// Start the program on recordings: time to the first frame and to the verdict, and the time of `explain`.
fn starts() -> anyhow::Result<()> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    let recordings = [
        ("fixture lock-contention", repository.join("fixtures/traces/lock-contention")),
        ("cs3", repository.join("target/corpus/kernel/cs3-lock-contention")),
        ("cs6", repository.join("target/corpus/kernel/cs6-many-threads")),
    ];
    for (name, recording) in recordings.into_iter().filter(|(_, path)| path.join("kernel").exists()) {
        let best = |measure: &dyn Fn() -> anyhow::Result<Started>| -> anyhow::Result<Started> {
            let mut all = (0..STARTS).map(|_| measure()).collect::<anyhow::Result<Vec<_>>>()?;
            all.sort_by(|a, b| a.verdict_ms.total_cmp(&b.verdict_ms));
            all.into_iter().next().ok_or_else(|| anyhow::anyhow!("never started"))
        };
        let interface = best(&|| interface(&recording))?;
        let explain = best(&|| explain(&recording))?;
        println!(
            "{name}: first frame {:.0} ms = {:.2} of {FIRST_FRAME_MS} ms, verdict {:.0} ms = {:.2} of explain's {:.0} ms",
            interface.frame_ms,
            interface.frame_ms / FIRST_FRAME_MS,
            interface.verdict_ms,
            interface.verdict_ms / explain.verdict_ms,
            explain.verdict_ms
        );
    }
    Ok(())
}

/// Times since the program was started.
struct Started {
    frame_ms: f64,
    verdict_ms: f64,
}

fn explain(recording: &Path) -> anyhow::Result<Started> {
    let began = Instant::now();
    let status =
        Command::new(PROGRAM).arg("explain").arg(recording).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    anyhow::ensure!(status.success(), "explain: {status}");
    Ok(Started { frame_ms: 0.0, verdict_ms: ms(began.elapsed()) })
}

fn interface(recording: &Path) -> anyhow::Result<Started> {
    let pty = native_pty_system().openpty(PtySize { rows: 24, cols: 80, pixel_width: 0, pixel_height: 0 })?;
    let mut command = CommandBuilder::new(PROGRAM);
    command.args(["--fresh".as_ref(), recording.as_os_str()]);
    command.env("TERM", "xterm-256color");
    command.env("XDG_STATE_HOME", "/dev/null/none");
    let mut reader = pty.master.try_clone_reader()?;
    let began = Instant::now();
    let mut child = pty.slave.spawn_command(command)?;
    let mut terminal = vt100::Parser::new(24, 80, 0);
    let (mut frame, mut bytes) = (None, [0; 65536]);
    loop {
        let count = reader.read(&mut bytes)?;
        terminal.process(&bytes[..count]);
        let shown = terminal.screen().contents();
        if frame.is_none() && shown.contains("Flame tree") {
            frame = Some(ms(began.elapsed()));
        }
        if shown.contains("▌ ") {
            break;
        }
    }
    let verdict_ms = ms(began.elapsed());
    child.kill()?;
    child.wait()?;
    Ok(Started { frame_ms: frame.unwrap_or(verdict_ms), verdict_ms })
}
