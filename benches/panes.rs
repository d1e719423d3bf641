//! A key in the panes of anomalies and propagation, from the key to the drawn screen, on the largest recordings of the corpus: moving,
//! ordering, opening, walking along a path, where each shows its counterpart in the other pane. The reference is 16 ms, a
//! frame of a screen that shows 60 a second. Needs the corpus in `target/corpus` or where `WHYSLOW_CORPUS` points.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use whyslow::analysis::patterns::measure::Settings;
use whyslow::analysis::symbols::files::Places;
use whyslow::base::work::Work;
use whyslow::cli::{self, Parsed};
use whyslow::compare::Request;
use whyslow::session::{self, Session};
use whyslow::view::tui::app::App;
use whyslow::view::tui::counts::Counter;
use whyslow::view::tui::jobs::Done;
use whyslow::view::tui::key::Key;
use whyslow::view::tui::patterns::Found;
use whyslow::view::tui::theme::Depth;
use whyslow::view::tui::update::{self, Message, update};
use whyslow::view::tui::{First, Looks, screen};

/// A frame, in ms.
const FRAME: f64 = 16.0;
/// Recordings, and where their programs are.
const RECORDINGS: [(&str, &[&str], Option<&str>); 5] = [
    ("cs1", &["kernel/cs1-cpu-contention/kernel"], Some("kernel/cs1-cpu-contention/bin")),
    (
        "cs3",
        &["kernel/cs3-lock-contention/kernel", "kernel/cs3-lock-contention/ust"],
        Some("kernel/cs3-lock-contention/bin"),
    ),
    ("cs6", &["kernel/cs6-many-threads/kernel"], Some("kernel/cs6-many-threads/bin")),
    ("master_worker", &["mpi/master_worker/trace"], None),
    ("lu.A", &["npb/lu.A.16/trace"], None),
];
/// What is pressed, in words and keys, and how often.
const KEYS: [(&str, &str, usize); 9] = [
    ("move", "3 Down", 100),
    ("order", "3 o", 10),
    ("open and close", "3 Home Enter Enter", 10),
    ("open, to the end", "3 Home Enter End", 2),
    ("page", "3 PgDn", 50),
    ("filter", "3 f m p i Enter f Backspace Backspace Backspace Enter", 3),
    ("path, next", "4 Right", 100),
    ("walk", "4 Down", 50),
    ("walk back", "4 Left", 100),
];

fn main() -> anyhow::Result<()> {
    let corpus = std::env::var_os("WHYSLOW_CORPUS").map_or_else(|| PathBuf::from("target/corpus"), PathBuf::from);
    let mut longest = 0.0_f64;
    for (name, traces, programs) in RECORDINGS {
        if traces.iter().any(|t| !corpus.join(t).exists()) {
            println!("{name}: skipped, nothing at {}", corpus.join(traces[0]).display());
            continue;
        }
        let mut app = interface(&corpus, traces, programs)?;
        let sources = app.patterns.found.as_ref().map_or(0, |f| f.anomalies.sources.len());
        let paths = app.patterns.found.as_ref().map_or(0, |f| f.anomalies.paths.len());
        println!("{name}: {sources} sources, {paths} paths");
        for (what, keys, times) in KEYS {
            let mut all: Vec<f64> = Vec::new();
            for key in std::iter::repeat_n(keys, times).flat_map(str::split_whitespace) {
                let Some(key) = Key::parse(key) else { anyhow::bail!("no key {key}") };
                let start = Instant::now();
                update(&mut app, Message::Key(key));
                std::hint::black_box(screen::draw(&app));
                all.push(start.elapsed().as_secs_f64() * 1e3);
            }
            all.sort_by(f64::total_cmp);
            let (median, most) = (all[all.len() / 2], all[all.len() - 1]);
            longest = longest.max(most);
            println!("  {what:18} median {median:7.3} ms, longest {most:7.3} ms = {:.2} of a frame", most / FRAME);
        }
    }
    println!("goal: no key takes longer than a frame (here {:.2} of one)", longest / FRAME);
    Ok(())
}

/// The interface over a recording, with all that it finds.
fn interface(corpus: &Path, traces: &[&str], programs: Option<&str>) -> anyhow::Result<App> {
    let traces = traces.iter().map(|t| corpus.join(t).into_os_string());
    let arguments = ["whyslow".into(), "anomalies".into()].into_iter().chain(traces);
    let Parsed::Run(common, _) = cli::parse(arguments) else { anyhow::bail!("no trace") };
    let work = Work::new(0);
    let places = Places { folders: programs.iter().map(|p| corpus.join(p)).collect(), ..Places::default() };
    let mut session = Session::open(&common, &work)?;
    session.fit_clocks(&work)?;
    let depth = Depth::True;
    let looks = Looks { theme: None, suits: depth.suits(|_| None), depth, ascii: false, mouse: false };
    let mut app = App::new("bench".into(), Request::default(), looks, (200, 60))?;
    update::start(&mut app, First::Executions);
    let mining = session.mine(None, &places, &work)?;
    if let Ok(model) = session.model(None, &places, &[], &work) {
        let model = Arc::new(model);
        update(&mut app, Message::Done(Done::Analysed(Ok(Arc::clone(&model)))));
        if let Ok(comparison) = session::compare(&model, &Request::default(), &work) {
            let mut counter = Counter::new(&model, &work)?;
            let groups = Request { slow: comparison.slow.filters.clone(), fast: comparison.fast.filters.clone() };
            update(&mut app, Message::Done(Done::Compared(Ok(Arc::new(comparison)))));
            update(&mut app, Message::Done(Done::Counted(Arc::new(counter.count(&groups)))));
        }
    }
    let settings = Settings::default();
    let found = Found::new(mining.anomalies(&settings, &work)?, mining.notices.clone());
    update(&mut app, Message::Key(Key::parse("3").ok_or_else(|| anyhow::anyhow!("no key 3"))?));
    update(&mut app, Message::Done(Done::Mined(settings, Ok(Arc::new(found)))));
    Ok(app)
}
