//! Many recordings of one time: `cargo bench --bench labels`. The CPU time of `explain`, one worker, of a recording
//! under ever more labels, beside that of the same bytes in time, one copy of it after the other, in the same run: the
//! reference. Then of ever more small recordings. Between two numbers of labels is the exponent: 1 where twice as many
//! take twice as long. The least of some runs counts, which are taken in turns.
//!
//! The recording is one of the corpus, or that at `WHYSLOW_RECORDING` (LTTng's); else a fixture, which is small.
#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
#[path = "../examples/lengthen.rs"]
mod lengthen;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const RUNS: usize = 3;
/// Labels of the recording, and copies of it in time.
const LABELS: [usize; 4] = [1, 4, 16, 64];
/// Labels of each small recording.
const MANY: [usize; 4] = [16, 64, 250, 1000];
const SMALL: [&str; 3] = ["traces/snap", "recorders/v6.dat", "recorders/switch.data"];

fn recording() -> PathBuf {
    let corpus = std::env::var_os("WHYSLOW_CORPUS").map_or_else(|| "target/corpus".into(), PathBuf::from);
    let named = std::env::var_os("WHYSLOW_RECORDING").map(PathBuf::from);
    let choices = [named.unwrap_or_default(), corpus.join("kernel/cs3-lock-contention/kernel"), fixture("lost-events")];
    choices.into_iter().find(|path| path.is_dir()).unwrap()
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces").join(name)
}

/// Seconds of the processor that the processes which have ended used.
fn ended() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after = stat.rsplit(") ").next().unwrap_or_default();
    after.split(' ').skip(13).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// Seconds of the processor that `explain` of some arguments takes.
fn seconds(arguments: &[String]) -> f64 {
    let before = ended();
    let mut command = Command::new(env!("CARGO_BIN_EXE_whyslow"));
    let command = command.args(["explain", "--threads", "1"]).args(arguments).stdin(Stdio::null());
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    assert!(status.success(), "{arguments:?}");
    ended() - before
}

fn labelled(path: &Path, labels: usize) -> Vec<String> {
    (0..labels).map(|label| format!("l{label}={}", path.display())).collect()
}

/// The least of some runs of each, taken in turns.
fn least(all: &[Vec<String>]) -> Vec<f64> {
    let mut least = vec![f64::MAX; all.len()];
    for _ in 0..RUNS {
        least.iter_mut().zip(all).for_each(|(least, arguments)| *least = least.min(seconds(arguments)));
    }
    least
}

/// By how much the cost grows from each number of labels to the next, as an exponent.
fn exponents(labels: &[usize], seconds: &[f64]) -> Vec<String> {
    let steps = labels.windows(2).zip(seconds.windows(2));
    let exponent = |(n, s): (&[usize], &[f64])| (s[1] / s[0]).ln() / (n[1] as f64 / n[0] as f64).ln();
    steps.map(|step| format!("{:.2}", exponent(step))).collect()
}

fn main() {
    let recording = recording();
    let folder = tempfile::tempdir().unwrap();
    println!("{}: CPU seconds of `explain`", recording.display());
    println!("{:>7} {:>9} {:>9} {:>7}", "labels", "labelled", "in time", "ratio");
    let mut all = Vec::new();
    for labels in LABELS {
        let lengthened = folder.path().join(labels.to_string());
        lengthen::lengthen(&recording, &lengthened, labels as u64).unwrap();
        all.push([least(&[labelled(&recording, labels), vec![lengthened.display().to_string()]])].concat());
        std::fs::remove_dir_all(lengthened).unwrap();
        let [labelled, in_time] = all[all.len() - 1][..] else { continue };
        println!("{labels:>7} {labelled:>9.2} {in_time:>9.2} {:>7.2}", labelled / in_time);
    }
    let seconds: Vec<f64> = all.iter().map(|of| of[0]).collect();
    println!("exponents {}\n", exponents(&LABELS, &seconds).join(", "));
    for small in SMALL {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(small);
        let seconds = least(&MANY.map(|labels| labelled(&path, labels)));
        let shown: Vec<String> = seconds.iter().map(|seconds| format!("{seconds:.2}")).collect();
        let exponents = exponents(&MANY, &seconds).join(", ");
        println!("{small}, labels {MANY:?}: {} s, exponents {exponents}", shown.join(", "));
    }
}
