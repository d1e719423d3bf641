//! `whyslow snapshot`: the environment of a recording that is made by hand, as `record` writes it.

use super::console::STDOUT;
use crate::base::quantity::{self, QuantityError};
use crate::record::environment::{EnvironmentFile, EnvironmentSampler, SampledProcesses};
use anyhow::Context;
use clap::Args;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The longest time until a signal ends the samples.
const PAUSE: Duration = Duration::from_millis(50);
/// The shortest time between two samples.
const LEAST: Duration = Duration::from_millis(100);

#[derive(Args, Debug)]
pub struct SnapshotOptions {
    /// The file to write, to be put beside the recording as environment.jsonl; it must not exist (default: stdout)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Sample this process and its descendants only; repeatable (default: all processes)
    #[arg(long = "pid", value_name = "PID")]
    pids: Vec<u32>,
    /// Sample for this time: 500ms, 10s, 2min (default: until Ctrl-C)
    #[arg(short, long, value_name = "TIME", value_parser = quantity::duration)]
    duration: Option<Duration>,
    /// Time between two samples, 100ms or more
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    interval: Duration,
    /// The folder that holds /proc and /sys of the machine
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    root: PathBuf,
}

fn interval(text: &str) -> Result<Duration, QuantityError> {
    let time = quantity::duration(text)?;
    if time >= LEAST { Ok(time) } else { Err(QuantityError("sample at most ten times a second: 100ms")) }
}

/// Sample until the time is over or a signal comes.
pub(super) fn run(options: &SnapshotOptions) -> anyhow::Result<u8> {
    let ends = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        flag::register(signal, Arc::clone(&ends)).context("cannot handle signals")?;
    }
    let sampler = EnvironmentSampler::new(&options.root, SampledProcesses { pids: options.pids.clone() });
    match &options.output {
        None => samples(&mut EnvironmentFile::with(std::io::stdout(), sampler), options, &ends, STDOUT),
        Some(path) => {
            let name = path.display().to_string();
            let file = new_file(path).with_context(|| format!("{name} cannot be written"))?;
            samples(&mut EnvironmentFile::with(file, sampler), options, &ends, &name)
        }
    }
}

/// A file of this user alone: it shows what other processes are.
fn new_file(path: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    File::options().write(true).create_new(true).mode(0o600).open(path)
}

fn samples<W: Write>(
    file: &mut EnvironmentFile<W>,
    options: &SnapshotOptions,
    ends: &AtomicBool,
    name: &str,
) -> anyhow::Result<u8> {
    let began = Instant::now();
    let is_over = || options.duration.is_some_and(|limit| began.elapsed() >= limit);
    while !ends.load(Ordering::Relaxed) && !is_over() && !file.is_full() {
        file.sample_if_due(options.interval).with_context(|| name.to_owned())?;
        std::thread::sleep(PAUSE);
    }
    file.sample().with_context(|| name.to_owned())?;
    Ok(0)
}
