//! Models for tests, from call paths written as text, and the six recorded problems in miniature.

use crate::base::statistics::Random;
use crate::base::time::Timestamp;
use crate::model::execution::ContextTime;
use crate::model::metric::{Column, Metric};
use crate::model::{Model, TraceId, TraceInfo, TraceLevel};

#[path = "../../tests/support/model_parts.rs"]
mod model_parts;

const HOST: &str = "h";

/// A model under construction.
pub struct ModelBuilder {
    pub model: Model,
    pub random: Random,
    types: Vec<i64>,
    at: Timestamp,
}

const MS: u64 = 1_000_000;

impl ModelBuilder {
    pub fn new(seed: u64) -> Self {
        let mut model = Model { tasks: vec!["app:request".into()].into(), ..Model::default() };
        model.traces.push(TraceInfo {
            label: "made-up".into(),
            level: TraceLevel::Machine,
            span: Default::default(),
            recorded: None,
        });
        ModelBuilder { model, random: Random::new(seed), types: Vec::new(), at: Timestamp::ZERO }
    }

    /// One execution of a type on a thread, as its parts.
    pub fn run(&mut self, kind: &str, process: &str, thread: &str, tid: i32, parts: &[(&str, u64)]) {
        let time = |&(path, ns): &(&str, u64)| {
            let context = model_parts::context(&mut self.model, HOST, path, ns);
            ContextTime { context, ns }
        };
        let own: Vec<ContextTime> = parts.iter().map(time).collect();
        let who = model_parts::thread(&mut self.model, HOST, (process, tid), (thread, tid));
        let kind = self.model.names.intern(kind);
        self.types.push(i64::from(kind.raw()));
        let e = &mut self.model.executions;
        let duration: u64 = parts.iter().map(|(_, ns)| ns).sum();
        e.start.push(self.at);
        e.duration.push(duration as i64);
        e.who.push(who);
        e.trace.push(TraceId::at(0));
        e.unsure.push(false);
        e.own.push(own);
        self.at += duration as i64 + 1000;
    }

    /// The sealed model.
    pub fn seal(mut self) -> Model {
        let e = &mut self.model.executions;
        let durations = (0..e.len()).map(|i| e.duration(i)).collect();
        e.columns.push(Column { metric: Metric::Duration, values: durations });
        e.columns.push(Column { metric: Metric::Type, values: self.types.into() });
        self.model
    }

    /// About `base` milliseconds: skewed as real run times are.
    pub fn around(&mut self, base: f64) -> u64 {
        let u = |r: &mut Random| (r.below(1 << 20) as f64 + 0.5) / f64::from(1 << 20);
        let noise = (0..6).map(|_| u(&mut self.random)).sum::<f64>() / 6.0 - 0.5;
        (base * (1.6 * noise).exp() * MS as f64) as u64
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.random.below(n) == 0
    }
}

/// cs1: preempted by a process whose stack is only sampled now and then.
pub fn cpu_contention(seed: u64) -> Model {
    let mut s = ModelBuilder::new(seed);
    for _ in 0..1850 {
        let work = s.around(2.9);
        let mut parts = vec![("ctl_task;main;control_cycle", work / 2), ("ctl_task;?", work / 2)];
        if s.one_in(11) {
            let burst = s.around(6.0);
            parts.push(("ctl_task;?;{preempted};thread telemetryd@telemetryd;?", burst / 2));
            let place = "ctl_task;main;control_cycle;{preempted};thread telemetryd@telemetryd;main;telemetry_burst";
            let deep = format!("{place};compress_frame;entropy_encode");
            parts.push((&deep, burst - burst / 2 - 7));
            parts.push((place, 7));
            s.run("cycle", "ctl_task", "ctl_task", 186, &parts);
            continue;
        }
        s.run("cycle", "ctl_task", "ctl_task", 186, &parts);
    }
    s.seal()
}

/// cs2: the disk shared with a process that flushes, the waits at one place.
pub fn disk_contention(seed: u64) -> Model {
    let mut s = ModelBuilder::new(seed);
    let wait = "blockd;start;serve_get;fetch_block;[pread64];{disk}";
    for i in 0..858 {
        let (cpu, io) = (s.around(0.8), s.around(2.4));
        let tid = 170 + i % 3;
        let mut parts = vec![("blockd;start;serve_get", cpu), (wait, io)];
        let shared = format!("{wait};thread auditlogd@auditlogd;main;flush_audit_log;commit_log;[fsync]");
        let fellow = format!("{wait};thread blk-worker@blockd;start;serve_get;fetch_block;[pread64]");
        if s.one_in(28) {
            let long = s.around(140.0);
            parts.push((&shared, long / 2));
            parts.push((&fellow, long / 3));
            parts.push((wait, long / 6));
        }
        s.run("get", "blockd", "blk-worker", tid, &parts);
    }
    s.seal()
}

/// cs3 (and cs5 with `hold_ms` near zero): a lock held by another thread, reached directly or through a worker.
pub fn lock_contention(seed: u64, hold_ms: f64) -> Model {
    let mut s = ModelBuilder::new(seed);
    let site = "ledgerd;start_thread;worker;handle_request;append_entry;[futex]";
    let flush = "thread journal@ledgerd;start_thread;journal_tick;expensive_flush";
    for i in 0..2160 {
        let append = s.one_in(2);
        let cpu = s.around(if append { 2.0 } else { 1.6 });
        let tail = if s.one_in(20) { s.around(5.0) } else { 0 };
        let preempted = if s.one_in(9) { s.around(0.5) } else { 0 };
        let own = if append { "append_entry" } else { "lookup_entry" };
        let busy = format!("ledgerd;start_thread;worker;handle_request;{own}");
        let mut parts = vec![
            (busy.clone(), cpu / 2),
            ("ledgerd;?".to_string(), cpu / 2 + tail),
            ("ledgerd;?;{preempted};thread ledgerclient@ledgerclient;?".to_string(), preempted),
        ];
        if append && s.one_in(10) {
            let held = s.around(hold_ms);
            let through = if s.one_in(3) {
                format!("{site};thread worker@ledgerd;{};[futex]", &site[8..site.len() - 8])
            } else {
                site.to_string()
            };
            parts.push((format!("{through};{flush};serialize_entries"), held / 2));
            parts.push((format!("{through};{flush};checksum_block"), held / 4));
            parts.push((format!("{through};thread journal@ledgerd;?"), held / 8));
            parts.push((format!("{through};{flush};{{preempted}};thread worker@ledgerd;?"), held / 8));
        }
        let parts: Vec<(&str, u64)> = parts.iter().map(|(p, ns)| (p.as_str(), *ns)).collect();
        s.run(if append { "append" } else { "lookup" }, "ledgerd", "worker", 196 + i % 3, &parts);
    }
    s.seal()
}

/// cs4: one in 200 sleeps.
pub fn rare_sleep(seed: u64) -> Model {
    let mut s = ModelBuilder::new(seed);
    for i in 0..3000 {
        let cpu = s.around(2.6);
        let mut parts = vec![("batchd;main;process_request;store_row", cpu)];
        if i % 190 == 77 {
            let sleep = s.around(75.0);
            let path =
                "batchd;main;process_request;store_row;acquire_hazard_pointer;retry_backoff;[clock_nanosleep];{timer}";
            parts.push((path, sleep));
        }
        let kind = if s.one_in(3) { "update" } else { "insert" };
        s.run(kind, "batchd", "batchd", 181, &parts);
    }
    s.seal()
}

/// cs6: 4000 threads with their own names, one in 90 does much more.
pub fn many_threads(seed: u64) -> Model {
    let mut s = ModelBuilder::new(seed);
    for i in 0..4000 {
        let cpu = s.around(0.4);
        let name = format!("job-{i}");
        let mut parts = vec![("indexer;?", cpu / 2), ("indexer;start;run_job;scan_segment", cpu / 2)];
        if i % 90 == 1 {
            let long = s.around(45.0);
            parts.push(("indexer;?", long / 20));
            parts.push(("indexer;start;run_job;rebuild_index", long * 6 / 10));
            parts.push(("indexer;start;run_job;rebuild_index;mix", long * 3 / 10));
        }
        s.run("job", "indexer", &name, 1000 + i, &parts);
    }
    s.seal()
}
