//! A key in the panes of anomalies and propagation, from the key to the drawn screen, on the largest recordings of the
//! corpus: moving, ordering, opening, walking along a path, where each shows its counterpart in the other pane. The
//! reference is 16 ms, a frame of a screen that shows 60 a second. All is pressed three times, and of each key the
//! shortest time counts: what other programs took of the CPU is not the interface's. Needs the corpus in
//! `target/corpus` or where `WHYSLOW_CORPUS` points; and for the run of 1,024 ranks, where `WHYSLOW_STENCIL` points,
//! what `cargo run --release --example stencil -- FOLDER` wrote.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::compare::ComparisonRequest;
use whyslow::parts::input::Argument;
use whyslow::parts::model::settings::Settings;
use whyslow::parts::session::{self, OpenOptions, Session};
use whyslow::parts::symbols::files::SymbolPaths;
use whyslow::parts::tui::app::App;
use whyslow::parts::tui::counts::HistogramCounter;
use whyslow::parts::tui::job::{ArrangedTrees, ComparedGroups, Done};
use whyslow::parts::tui::key::KeyPress;
use whyslow::parts::tui::message::UiMessage;
use whyslow::parts::tui::report::AnomalyReport;
use whyslow::parts::tui::theme::ColourDepth;
use whyslow::parts::tui::update::{self, update};
use whyslow::parts::tui::{FirstQuestion, UiOptions, screen};

/// A frame, in ms.
const FRAME: f64 = 16.0;
/// Times that everything is pressed.
const PASSES: usize = 3;
/// Recordings, where their programs are, and the threshold.
const RECORDINGS: [(&str, &[&str], Option<&str>, f64); 6] = [
    ("cs1", &["kernel/cs1-cpu-contention/kernel"], Some("kernel/cs1-cpu-contention/bin"), 2.0),
    (
        "cs3",
        &["kernel/cs3-lock-contention/kernel", "kernel/cs3-lock-contention/ust"],
        Some("kernel/cs3-lock-contention/bin"),
        2.0,
    ),
    ("cs6", &["kernel/cs6-many-threads/kernel"], Some("kernel/cs6-many-threads/bin"), 2.0),
    ("cs6, all that varies", &["kernel/cs6-many-threads/kernel"], Some("kernel/cs6-many-threads/bin"), 1.05),
    ("master_worker", &["mpi/master_worker/trace"], None, 2.0),
    ("lu.A", &["npb/lu.A.16/trace"], None, 2.0),
];
/// The keys pressed, described and as keys, and how often.
const KEYS: [(&str, &str, usize); 9] = [
    ("move", "3 Down", 100),
    ("order", "3 o", 10),
    ("open and close", "3 Home Enter Enter", 10),
    ("open, to the end", "3 Home Enter End", 2),
    ("page", "3 PgDn", 50),
    ("filter", "3 & m p i Enter & Backspace Backspace Backspace Enter", 3),
    ("path, next", "4 Right", 100),
    ("walk", "4 Down", 50),
    ("walk back", "4 Left", 100),
];

fn main() -> anyhow::Result<()> {
    let corpus = std::env::var_os("WHYSLOW_CORPUS").map_or_else(|| PathBuf::from("target/corpus"), PathBuf::from);
    let mut longest = 0.0_f64;
    for (name, traces, programs, s) in RECORDINGS {
        let traces: Vec<PathBuf> = traces.iter().map(|t| corpus.join(t)).collect();
        longest = longest.max(measure(name, &traces, programs.map(|p| corpus.join(p)), s)?);
    }
    if let Some(stencil) = std::env::var_os("WHYSLOW_STENCIL").map(PathBuf::from) {
        longest = longest.max(measure("stencil", &[stencil], None, 2.0)?);
    }
    println!("goal: no key takes longer than a frame (here {:.2} of one)", longest / FRAME);
    Ok(())
}

/// Press all keys on a recording; the longest time in ms.
fn measure(name: &str, traces: &[PathBuf], programs: Option<PathBuf>, s: f64) -> anyhow::Result<f64> {
    if let Some(missing) = traces.iter().find(|t| !t.exists()) {
        println!("{name}: skipped, nothing at {}", missing.display());
        return Ok(0.0);
    }
    let mut app = interface(traces, programs, s)?;
    let found = app.patterns.found.as_ref();
    let count = |of: fn(&AnomalyReport) -> usize| found.map_or(0, |f| of(f));
    let (sources, paths) = (count(|f| f.anomalies.sources.len()), count(|f| f.anomalies.paths.len()));
    println!("{name}: {} streams, {sources} sources, {paths} paths", count(|f| f.anomalies.streams.len()));
    let mut longest = 0.0_f64;
    for (what, keys, times) in KEYS {
        let mut best: Vec<f64> = Vec::new();
        for _ in 0..PASSES {
            press(&mut app, "3")?;
            press(&mut app, "Home")?;
            for (at, key) in std::iter::repeat_n(keys, times).flat_map(str::split_whitespace).enumerate() {
                let took = press(&mut app, key)?;
                match best.get_mut(at) {
                    Some(best) => *best = best.min(took),
                    None => best.push(took),
                }
            }
        }
        best.sort_by(f64::total_cmp);
        let (median, most) = (best[best.len() / 2], best[best.len() - 1]);
        longest = longest.max(most);
        println!("  {what:18} median {median:7.3} ms, longest {most:7.3} ms = {:.2} of a frame", most / FRAME);
    }
    Ok(longest)
}

/// Press a key and draw the screen; the time in ms.
fn press(app: &mut App, key: &str) -> anyhow::Result<f64> {
    let Some(key) = KeyPress::parse(key) else { anyhow::bail!("no key {key}") };
    let start = Instant::now();
    update(app, UiMessage::Key(key));
    std::hint::black_box(screen::draw(app));
    Ok(start.elapsed().as_secs_f64() * 1e3)
}

/// The interface over a recording, with all that it finds.
fn interface(traces: &[PathBuf], programs: Option<PathBuf>, s: f64) -> anyhow::Result<App> {
    let traces: Vec<Argument> = traces.iter().map(Argument::parse).collect();
    let ctx = Ctx::new(0);
    let places = SymbolPaths { folders: programs.into_iter().collect(), ..SymbolPaths::default() };
    let mut session = Session::open(&traces, &OpenOptions::default(), &ctx)?;
    let depth = ColourDepth::True;
    let options = UiOptions {
        theme: None,
        suits: depth.suits(|_| None),
        depth,
        ascii: false,
        mouse: false,
        keys: Arc::default(),
    };
    let mut app = App::new("bench".into(), ComparisonRequest::default(), options, (200, 60))?;
    update::start(&mut app, FirstQuestion::Executions);
    let mining = session.mine(None, &places, &ctx)?;
    if let Ok(model) = session.model(None, &places, &[], &ctx) {
        let model = Arc::new(model);
        update(&mut app, UiMessage::Done(Done::Analysed(Ok(Arc::clone(&model)))));
        if let Ok(comparison) = session::compare(&model, &ComparisonRequest::default(), &ctx) {
            let mut counter = HistogramCounter::new(&model, &ctx)?;
            let groups = comparison.request();
            update(
                &mut app,
                UiMessage::Done(Done::Compared(Ok(ComparedGroups {
                    comparison: Arc::new(comparison),
                    trees: ArrangedTrees::default(),
                }))),
            );
            update(&mut app, UiMessage::Done(Done::Counted(Arc::new(counter.count(&groups)))));
        }
    }
    let settings = Settings { s, ..Settings::default() };
    let found = AnomalyReport::new(mining.anomalies(&settings, &ctx)?, mining.notices.clone());
    update(&mut app, UiMessage::Key(KeyPress::parse("3").ok_or_else(|| anyhow::anyhow!("no key 3"))?));
    app.patterns.settings = settings;
    update(&mut app, UiMessage::Done(Done::Mined(settings, Ok(Arc::new(found)))));
    Ok(app)
}
