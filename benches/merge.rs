//! Databases merged: seconds and memory. The references, in the same run, are reading all of them twice: as executions
//! in memory, and their bytes with a checksum. The goals are the time of the first and 512 MiB.
//! `WHYSLOW_DATABASES=1000` merges as many (100), `WHYSLOW_EXECUTIONS=2000` with so many executions each (100,000).

use std::hint::black_box;
use std::process::Command;
use std::time::Instant;
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::base::file::Output;
use whyslow::parts::model::facts::Facts;
use whyslow::parts::saved::executions::{Database, Writer};

#[path = "../tests/support/model_parts.rs"]
mod model_parts;
#[path = "../tests/support/random.rs"]
mod random;
#[path = "../tests/support/random_model.rs"]
mod random_model;

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(otherwise)
}

fn main() -> std::io::Result<()> {
    let (count, executions) = (number("WHYSLOW_DATABASES", 100), number("WHYSLOW_EXECUTIONS", 100_000));
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name);
    std::fs::create_dir(path("all"))?;
    let (mut bytes, mut packing) = (0, 0.0);
    for seed in 0..count {
        let model = random_model::model(executions as usize, seed);
        let started = Instant::now();
        let mut writer = Writer::new(Facts::default(), Default::default());
        writer.add(model, &Ctx::new(1)).ok();
        let output = Output::open(&path(&format!("all/{seed}.why")))?;
        bytes += writer.save(output).map_err(std::io::Error::other)?;
        packing += started.elapsed().as_secs_f64();
    }
    println!("{count} databases of {executions} executions, {} MB, packed in {packing:.1} s", bytes / 1_000_000);
    let started = Instant::now();
    for _ in 0..2 {
        for entry in std::fs::read_dir(path("all"))? {
            black_box(crc32fast::hash(&std::fs::read(entry?.path())?));
        }
    }
    let bytes_twice = started.elapsed().as_secs_f64();
    let started = Instant::now();
    for _ in 0..2 {
        for entry in std::fs::read_dir(path("all"))? {
            let model = Database::open(&entry?.path()).and_then(|database| database.model(0, &Ctx::new(1)));
            black_box(model.map_err(std::io::Error::other)?);
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
    println!("merged in {took:.2} s: {:.2} times reading them twice ({twice:.2} s),", took / twice);
    println!("{:.1} times reading their bytes twice ({bytes_twice:.3} s)", took / bytes_twice);
    println!("{} MB;{memory}", std::fs::metadata(path("merged.why"))?.len() / 1_000_000);
    Ok(())
}
