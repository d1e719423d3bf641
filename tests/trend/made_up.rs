//! Databases of made-up recordings: the time that each execution spends in a few contexts is what a test plants.

use crate::support::{model_parts, random};
use random::Random;
use std::path::{Path, PathBuf};
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::base::file::Output;
use whyslow::parts::base::notice::Notices;
use whyslow::parts::base::time::{Span, Timestamp};
use whyslow::parts::model::execution::ContextTime;
use whyslow::parts::model::facts::{Facts, TraceFacts};
use whyslow::parts::model::metric::{Column, Metric};
use whyslow::parts::model::{Model, TraceId, TraceInfo, TraceLevel};
use whyslow::parts::saved::executions::Writer;

pub const DAY: i64 = 86_400_000_000_000;
/// 2026-11-01 03:00 UTC.
pub const NOVEMBER: i64 = 1_793_502_000_000_000_000;

pub const WORK: &str = "shop;main;handle;render";
pub const DISK: &str = "shop;main;handle;load;[pread64];{disk}";
pub const LOCK: &str = "shop;main;handle;[futex];thread journal@ledgerd;main;flush";
pub const SLEEP: &str = "shop;main;retry;[nanosleep];{timer}";

/// A recording that a test describes.
#[derive(Clone)]
pub struct Recording {
    pub host: String,
    pub label: String,
    pub begin: i64,
    pub executions: usize,
    /// Paths, with the mean milliseconds of an execution there.
    pub parts: Vec<(&'static str, f64)>,
    pub task: &'static str,
    pub seed: u64,
}

impl Recording {
    /// The nightly recording of a day, on a host.
    pub fn nightly(day: i64, host: &str) -> Recording {
        Recording {
            host: host.to_owned(),
            label: format!("nightly-{:02}", day + 1),
            begin: NOVEMBER + day * DAY,
            executions: 60,
            parts: vec![(WORK, 3.0), (DISK, 1.0)],
            task: "app:request",
            seed: day as u64 * 977 + host.bytes().map(u64::from).sum::<u64>(),
        }
    }

    /// The same, with so many more milliseconds in a path.
    pub fn with(mut self, path: &'static str, more: f64) -> Recording {
        match self.parts.iter_mut().find(|(known, _)| *known == path) {
            Some((_, ms)) => *ms += more,
            None => self.parts.push((path, more)),
        }
        self
    }

    pub fn model(&self) -> Model {
        let mut random = Random::new(self.seed);
        let mut model = Model { tasks: vec![self.task.into()].into(), ..Model::default() };
        model.origin = Timestamp::new(self.begin);
        model.traces.push(TraceInfo {
            label: self.label.clone(),
            level: TraceLevel::Machine,
            span: Span::new(model.origin, model.origin + 3_600_000_000_000),
            recorded: None,
        });
        let label = i64::from(model.names.intern(&self.label).raw());
        let kinds = ["get", "put"].map(|kind| i64::from(model.names.intern(kind).raw()));
        let names = [Metric::Duration, Metric::Start, Metric::Trace, Metric::Type];
        let mut columns: Vec<Column> =
            names.into_iter().map(|metric| Column { metric, values: Default::default() }).collect();
        let mut at = model.origin;
        for i in 0..self.executions {
            let mut own = Vec::new();
            for (path, ms) in &self.parts {
                // A triangle around the mean, as wide as it is.
                let ns = (ms * 1e6 * (0.5 + (random.below(1000) + random.below(1000)) as f64 / 2000.0)) as u64;
                own.push(ContextTime { context: model_parts::context(&mut model, &self.host, path, ns), ns });
            }
            let duration = own.iter().map(|time| time.ns as i64).sum::<i64>();
            let who = model_parts::thread(&mut model, &self.host, ("shop", 100), ("worker", 101 + i as i32 % 3));
            for column in &mut columns {
                column.values.push(match column.metric {
                    Metric::Duration => duration,
                    Metric::Start => at - model.origin,
                    Metric::Trace => label,
                    _ => kinds[i % 2],
                });
            }
            let e = &mut model.executions;
            e.start.push(at);
            e.duration.push(duration);
            e.who.push(who);
            e.trace.push(TraceId::at(0));
            e.unsure.push(false);
            e.cpu.push(u16::MAX);
            e.own.push(own);
            at += 1_000_000_000;
        }
        model.executions.columns = columns;
        model
    }

    /// Write its database.
    pub fn write(&self, path: &Path) {
        let trace = TraceFacts {
            path: format!("{}/kernel", self.label),
            format: "CTF 1.8".into(),
            host: Some(self.host.clone()),
            begin: Some(Timestamp::new(self.begin)),
            ..TraceFacts::default()
        };
        let facts = Facts { traces: vec![trace], ..Facts::default() };
        let mut writer = Writer::new(facts, Notices::default()).labelled(!self.label.starts_with("/"));
        writer.add(self.model(), &Ctx::new(1)).unwrap();
        writer.save(Output::open(path).unwrap()).unwrap();
    }
}

/// A folder with the databases of recordings; their paths in order.
pub fn written(recordings: &[Recording]) -> (tempfile::TempDir, Vec<PathBuf>) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = |at: usize| folder.path().join(format!("{at:03}.why"));
    recordings.iter().enumerate().for_each(|(at, recording)| recording.write(&path(at)));
    let paths = (0..recordings.len()).map(path).collect();
    (folder, paths)
}
