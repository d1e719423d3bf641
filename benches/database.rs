//! Databases of 200,000 and a million executions: bytes per execution, time to open one and have its model. The
//! reference, in the same run, is the checksum over the file's bytes, which each reader has to pay; the goal is 200 ms
//! for 200,000.

use std::hint::black_box;
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

fn median(times: usize, mut run: impl FnMut()) -> f64 {
    let mut all: Vec<f64> = (0..times)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

fn main() {
    let Ok(folder) = tempfile::tempdir() else { return };
    let path = folder.path().join("bench.why");
    for n in [200_000, 1_000_000] {
        let model = random_model::model(n, 1);
        let mut writer = Writer::new(Facts::default(), Default::default());
        let write = median(1, || {
            writer.add(model.clone(), &Ctx::new(1)).ok();
        });
        let saved = Output::open(&path).map(|output| writer.save(output));
        let Ok(Ok(length)) = saved else { return };
        let Ok(bytes) = std::fs::read(&path) else { return };
        let sum = median(9, || {
            black_box(crc32fast::hash(&bytes));
        });
        println!("{n} executions: {:.1} bytes each, packed in {write:.0} ms", length as f64 / n as f64);
        for threads in [1, 2] {
            let ctx = Ctx::new(threads);
            let open = median(9, || drop(black_box(Database::open(&path).and_then(|d| d.model(0, &ctx)))));
            println!(
                "  opened in {open:.1} ms on {threads} workers, {:.0} times its checksum ({sum:.2} ms)",
                open / sum
            );
        }
    }
}
