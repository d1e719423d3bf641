//! A timeline while it is put together: all tables and rows open.
//!
//! The kernel machine fills a draft event by event; tests write theirs by hand. Sealing moves the rows after the
//! [`RowReader`](super::reader::RowReader)s, by which all analyses ask for them.

use super::recorded::RecordedTimeline;
use super::rows::{Counter, CpuTimeline, DiskRequest, HostCpu, Mark, PageFault, Service};
use super::sealed::Timeline;
use super::segments::{Thread, ThreadRows};
use super::store::counters::CounterStore;
use super::store::families::RowStores;
use super::store::parts::LineStore;
use super::store::row_builders::RowBuilders;
use super::tables::Tables;

/// A thread instance with its rows.
#[derive(Clone, Debug)]
pub struct ThreadDraft {
    pub thread: Thread,
    pub rows: ThreadRows,
}

/// The states of all threads and CPUs of a recording, while they are put together.
#[derive(Clone, Debug, Default)]
pub struct TimelineDraft {
    /// Names, hosts, stacks, ...
    pub tables: Tables,
    /// Threads by id.
    pub threads: Vec<ThreadDraft>,
    /// CPUs sorted by host and number.
    pub cpus: Vec<CpuTimeline>,
    /// Disk requests sorted by start.
    pub disk: Vec<DiskRequest>,
    /// Work of kernel threads for others, sorted by thread and time; that of one thread does not overlap.
    pub services: Vec<Service>,
    /// Delimiting events of the requested tasks.
    pub marks: Vec<Mark>,
    /// Page faults, sorted by thread and time; `None` when the recording has no such events.
    pub page_faults: Option<Vec<PageFault>>,
    /// Hardware counters, sorted by name.
    pub counters: Vec<Counter>,
}

impl TimelineDraft {
    /// The timeline that is read.
    #[cfg(not(program))]
    pub fn seal(self) -> Timeline {
        self.recorded(RowBuilders::default()).seal()
    }

    /// The timeline of these rows and of those that were moved to the store before them.
    pub fn recorded(mut self, earlier: RowBuilders) -> RecordedTimeline {
        let thread = |draft: &mut ThreadDraft| {
            let mut thread = Thread { names: std::mem::take(&mut draft.thread.names), ..draft.thread };
            thread.seal(&draft.rows);
            thread
        };
        let threads = self.threads.iter_mut().map(thread).collect();
        let cpus = self.cpus.iter().map(|cpu| HostCpu { host: cpu.host, cpu: cpu.cpu }).collect();
        let tables = std::mem::take(&mut self.tables);
        RecordedTimeline::new(Timeline { tables, threads, cpus, rows: self.stores(earlier), ..Timeline::default() })
    }

    /// The stores of its rows, and of those that were sealed before them.
    fn stores(self, mut builders: RowBuilders) -> RowStores {
        let (threads, cpus) = (self.threads.len(), self.cpus.len());
        let tids: Vec<i32> = self.threads.iter().map(|of| of.thread.tid).collect();
        for (thread, of) in self.threads.into_iter().enumerate() {
            builders.push_thread(thread, of.rows);
        }
        for (cpu, of) in self.cpus.into_iter().enumerate() {
            builders.runs.push(cpu, &of.runs);
        }
        builders.requests.push(0, &self.disk);
        builders.services.push_lines(&self.services, |service| service.thread.index());
        let has_faults = self.page_faults.is_some();
        builders.page_faults.push_lines(&self.page_faults.unwrap_or_default(), |fault| fault.thread.index());
        builders.marks.extend(self.marks);
        builders.seal_slabs();
        let counter = |Counter { name, mut values }: Counter| {
            let mut builder = builders.take_counter(name);
            builder.push(&mut values);
            builder.finish()
        };
        let counters: Vec<CounterStore> = self.counters.into_iter().map(counter).collect();
        let pool = builders.pool;
        let stores = RowStores {
            segments: builders.segments.finish(threads).into(),
            sums: Default::default(),
            calls: builders.calls.finish(threads).into(),
            samples: builders.samples.finish(threads).into(),
            runs: builders
                .runs
                .finish_with(cpus, |thread| Some(tids.get(thread as usize).copied().unwrap_or(0)))
                .into(),
            requests: builders.requests.finish(1).into(),
            services: builders.services.finish(threads).into(),
            page_faults: has_faults.then(|| builders.page_faults.finish(threads)).into(),
            counters: counters.into(),
            marks: builders.marks.into(),
            pool: None,
        };
        stores.kept_in(pool)
    }

    /// The rows and tables of a timeline, copied: for tests that look at all of them.
    #[cfg(not(program))]
    pub fn of(timeline: &Timeline) -> TimelineDraft {
        let Timeline { tables, threads, cpus, rows, questions: _, environments: _ } = timeline;
        let marks = rows.marks.all().map(|mark| mark.with_fields(rows.marks.fields(mark.number).collect()));
        let thread = |(line, thread): (usize, &Thread)| {
            let segments = rows.segments.line(line).all().collect();
            let calls = rows.calls.line(line).all().collect();
            let samples = rows.samples.line(line).all().collect();
            let rows = ThreadRows { segments, calls, samples, ..ThreadRows::default() };
            ThreadDraft { thread: thread.clone(), rows }
        };
        let cpu = |(line, cpu): (usize, &HostCpu)| {
            let HostCpu { host, cpu } = *cpu;
            CpuTimeline { host, cpu, runs: rows.runs.line(line).all().collect() }
        };
        let lines = 0..threads.len();
        let faults = |all: &LineStore<PageFault>| lines.clone().flat_map(|line| all.line(line).all()).collect();
        TimelineDraft {
            tables: tables.clone(),
            threads: threads.iter().enumerate().map(thread).collect(),
            cpus: cpus.iter().enumerate().map(cpu).collect(),
            disk: rows.requests.line(0).all().collect(),
            services: lines.clone().flat_map(|line| rows.services.line(line).all()).collect(),
            marks: marks.collect(),
            page_faults: rows.page_faults.as_ref().map(faults),
            counters: rows.counters.iter().map(CounterStore::to_counter).collect(),
        }
    }
}
