//! Databases of 100,000 executions each, merged: seconds and memory. The reference, in the same run, is reading all of
//! them twice with a checksum; the goals are that time and 512 MiB. `WHYSLOW_DATABASES=1000` merges as many (100).

use std::hint::black_box;
use std::process::Command;
use std::time::Instant;
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::base::file::Output;
use whyslow::parts::model::facts::Facts;
use whyslow::parts::saved::executions::Writer;

#[path = "../tests/support/model_parts.rs"]
mod model_parts;
#[path = "../tests/support/random.rs"]
mod random;
#[path = "../tests/support/random_model.rs"]
mod random_model;

const EXECUTIONS: usize = 100_000;

fn main() -> std::io::Result<()> {
    let count = std::env::var("WHYSLOW_DATABASES").ok().and_then(|n| n.parse().ok()).unwrap_or(100);
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name);
    std::fs::create_dir(path("all"))?;
    let (mut bytes, mut packing) = (0, 0.0);
    for seed in 0..count {
        let model = random_model::model(EXECUTIONS, seed);
        let started = Instant::now();
        let mut writer = Writer::new(Facts::default(), Default::default());
        writer.add(model, &Ctx::new(1)).ok();
        let output = Output::open(&path(&format!("all/{seed}.why")))?;
        bytes += writer.save(output).map_err(std::io::Error::other)?;
        packing += started.elapsed().as_secs_f64();
    }
    println!("{count} databases of {EXECUTIONS} executions, {} MB, packed in {packing:.1} s", bytes / 1_000_000);
    let started = Instant::now();
    for _ in 0..2 {
        for entry in std::fs::read_dir(path("all"))? {
            black_box(crc32fast::hash(&std::fs::read(entry?.path())?));
        }
    }
    let twice = started.elapsed().as_secs_f64();
    let started = Instant::now();
    let merged = Command::new(env!("CARGO_BIN_EXE_whyslow"))
        .args(["merge", "--timings", "--no-sandbox", "-o"])
        .args([path("merged.why"), path("all")])
        .output()?;
    let took = started.elapsed().as_secs_f64();
    let said = String::from_utf8_lossy(&merged.stderr).into_owned();
    assert!(merged.status.success(), "{said}");
    let memory = said.lines().filter(|line| line.trim_start().starts_with("memory")).collect::<String>();
    println!("merged in {took:.2} s, {:.1} times reading them twice ({twice:.2} s)", took / twice);
    println!("{} MB;{memory}", std::fs::metadata(path("merged.why"))?.len() / 1_000_000);
    Ok(())
}
