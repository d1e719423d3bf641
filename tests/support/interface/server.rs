//! A made-up server whose requests wait for a lock: the same numbers on every machine, so that drawn screens can be
//! compared.

use super::model_parts;
use super::random::Random;
use whyslow::parts::base::notice::Notice;
use whyslow::parts::base::time::{Span, Timestamp};
use whyslow::parts::model::carrier::Carrier;
use whyslow::parts::model::column_values::ColumnValues;
use whyslow::parts::model::context::ContextId;
use whyslow::parts::model::execution::{ContextTime, ExecutionId};
use whyslow::parts::model::execution_timeline::{
    ExecutionTimeline, TimelineEvent, TimelineEventKind, TimelineSegment, TimelineThread, TimelineWait,
};
use whyslow::parts::model::metric::{Column, Metric};
use whyslow::parts::model::wait_kind::WaitKind;
use whyslow::parts::model::{Model, ThreadInfoId, TraceId, TraceInfo, TraceLevel};

/// The name of the made-up host.
const HOST: &str = "db3";

const MS: u64 = 1_000_000;
/// The first event.
pub const START: Timestamp = Timestamp::new(1_700_000_000_000_000_000);

/// The path of every request.
const BASE: &str = "ledgerd;start_thread;worker_main;handle_request";

/// The metrics of an execution, in the order of [`Request::values`].
const METRICS: [Metric; 8] = [
    Metric::Duration,
    Metric::Time(WaitKind::Cpu),
    Metric::Time(WaitKind::Thread),
    Metric::Time(WaitKind::Disk),
    Metric::Syscalls,
    Metric::BytesWritten,
    Metric::Type,
    Metric::Trace,
];

/// Makes the contexts and threads of a model.
#[derive(Default)]
struct Builder {
    model: Model,
}

impl Builder {
    fn context(&mut self, path: &str) -> ContextId {
        model_parts::context(&mut self.model, HOST, path, 0)
    }

    fn who(&mut self, process: &str, pid: i32, thread: &str, tid: i32) -> ThreadInfoId {
        model_parts::thread(&mut self.model, HOST, (process, pid), (thread, tid))
    }
}

/// A time of `base`, give or take a third.
fn around(random: &mut Random, base: u64) -> u64 {
    random.around(base as i64, 33) as u64
}

/// The contexts in which requests spend their time.
struct Contexts {
    append: ContextId,
    lookup: ContextId,
    parse: ContextId,
    reply: ContextId,
    disk: ContextId,
    lock: ContextId,
    serialize: ContextId,
    checksum: ContextId,
    timer: ContextId,
    /// The frame of the journal thread, while a request waits for it.
    journal: ContextId,
}

impl Contexts {
    fn new(builder: &mut Builder) -> Contexts {
        let mut below = |path: &str| builder.context(&format!("{BASE};{path}"));
        let append = below("append_entry");
        let lookup = below("lookup_entry");
        let parse = below("parse_request;std::io::BufReader<R>::read_line");
        let reply = below("send_reply;[write]");
        let disk = below("append_entry;write_page;[pwrite64];{block device}");
        let lock = below("append_entry;pthread_mutex_lock;[futex]");
        let held = "append_entry;pthread_mutex_lock;[futex];thread journal;journal_tick;expensive_flush";
        let serialize = below(&format!("{held};serialize_entries"));
        let checksum = below(&format!("{held};checksum_block"));
        let timer = below("retry;[clock_nanosleep];{timer}");
        let journal = builder.model.contexts.path(serialize)[7];
        Contexts { append, lookup, parse, reply, disk, lock, serialize, checksum, timer, journal }
    }
}

/// One request: its time by context, and how long the journal thread held it up.
struct Request {
    parts: Vec<ContextTime>,
    is_append: bool,
    held_ns: u64,
    bytes: i64,
}

impl Request {
    /// One append in 12 waits for the lock that the journal thread holds while it flushes.
    fn new(contexts: &Contexts, is_append: bool, random: &mut Random) -> Request {
        let time = |context, ns| ContextTime { context, ns };
        let own = if is_append { (contexts.append, 4 * MS) } else { (contexts.lookup, 3 * MS) };
        let mut parts = vec![
            time(own.0, around(random, own.1)),
            time(contexts.parse, around(random, MS / 2)),
            time(contexts.reply, around(random, MS / 5)),
        ];
        let mut held_ns = 0;
        if is_append {
            parts.push(time(contexts.disk, around(random, MS)));
            if random.once_in(12) {
                held_ns = around(random, 48 * MS);
                parts.push(time(contexts.lock, around(random, MS / 10)));
                parts.push(time(contexts.serialize, held_ns * 2 / 3));
                parts.push(time(contexts.checksum, held_ns / 3));
            }
        }
        if random.once_in(90) {
            parts.push(time(contexts.timer, around(random, 2 * MS)));
        }
        let bytes = if is_append { 4096 * (1 + random.below(4) as i64) } else { 512 };
        Request { parts, is_append, held_ns, bytes }
    }

    fn sum(&self, contexts: &[ContextId]) -> i64 {
        self.parts.iter().filter(|time| contexts.contains(&time.context)).map(|time| time.ns as i64).sum()
    }

    fn duration(&self) -> i64 {
        self.parts.iter().map(|time| time.ns as i64).sum()
    }

    fn values(&self, contexts: &Contexts, kind: i64, trace: i64) -> [i64; METRICS.len()] {
        [
            self.duration(),
            self.sum(&[contexts.append, contexts.lookup, contexts.parse, contexts.reply]),
            self.sum(&[contexts.lock]) + self.held_ns as i64,
            self.sum(&[contexts.disk]),
            3 + i64::from(self.is_append) + i64::from(self.held_ns > 0),
            self.bytes,
            kind,
            trace,
        ]
    }
}

/// Requests of a server, one in 24 of which waits for a lock that the journal thread holds while it flushes.
pub fn server(executions: usize) -> Model {
    let mut b = Builder::default();
    let mut random = Random::new(7);
    b.model.tasks = vec!["app:request".into(), "syscall:futex".into(), "syscall:read".into()].into();
    b.model.origin = START;
    let contexts = Contexts::new(&mut b);
    let workers: Vec<ThreadInfoId> = (0..3).map(|i| b.who("ledgerd", 311, "worker", 312 + i)).collect();
    let journal = b.who("ledgerd", 311, "journal", 319);
    let kinds = ["append", "lookup"].map(|name| i64::from(b.model.names.intern(name).raw()));
    let trace = i64::from(b.model.names.intern("ledger").raw());
    let mut columns = METRICS.map(|metric| Column { metric, values: ColumnValues::default() });
    let mut at = START;
    for i in 0..executions {
        let is_append = i % 2 == 0;
        let request = Request::new(&contexts, is_append, &mut random);
        if request.held_ns > 0 {
            *b.model.contexts.who.entry((contexts.journal, journal)).or_insert(0) += request.held_ns;
        }
        for (column, value) in columns.iter_mut().zip(request.values(&contexts, kinds[usize::from(!is_append)], trace))
        {
            column.values.push(value);
        }
        let e = &mut b.model.executions;
        e.start.push(at);
        e.duration.push(request.duration());
        e.who.push(workers[i % 3]);
        e.trace.push(TraceId::at(0));
        e.unsure.push(i % 97 == 5);
        e.own.push(request.parts);
        at += 2_700_000;
    }
    b.model.executions.columns = columns.into();
    b.model.traces.push(TraceInfo {
        label: "ledger".into(),
        level: TraceLevel::Machine,
        span: Span::new(START, at),
        recorded: None,
    });
    b.model.notices.add(Notice::DiscardedEvents, 1723, || "kernel/kchan_1, packet 88".into());
    b.model.notices.add(Notice::UnresolvedWaits, 41, String::new);
    b.model
}

/// The timeline of a request: its contexts in their order, those below the journal thread on a line of its own.
pub fn timeline(model: &Model, id: ExecutionId) -> ExecutionTimeline {
    let e = &model.executions;
    let start = e.start.at(id.index());
    let who = &model.who[e.who.at(id.index()).index()];
    let thread = |name: &str, tid| TimelineThread {
        host: HOST.into(),
        process: "ledgerd".into(),
        name: name.into(),
        pid: 311,
        tid,
    };
    let mut timeline = ExecutionTimeline {
        start,
        ns: e.duration(id.index()),
        threads: vec![thread("worker", who.tid), thread("journal", 319)],
        ..ExecutionTimeline::default()
    };
    let mut at = 0;
    for ContextTime { context, ns } in e.own.row(id.index()).filter(|time| time.ns > 0) {
        let frames: Vec<&str> =
            model.contexts.path(context).iter().map(|c| model.names.get(model.contexts.frame(*c).name)).collect();
        let of_journal = frames.contains(&"journal_tick");
        let state = match frames.last() {
            Some(&"block device") => WaitKind::Disk,
            Some(&"timer") => WaitKind::Timer,
            Some(&"futex") => WaitKind::Preempted,
            _ => WaitKind::Cpu,
        };
        let (thread, ns) = (u32::from(of_journal), ns as i64);
        let cpu = (state == WaitKind::Cpu).then_some(2);
        timeline.segments.push(TimelineSegment { start_ns: at, ns, thread, state, cpu, context });
        if frames.contains(&"write") || frames.contains(&"pwrite64") {
            let (name, kind) = ("pwrite64".to_owned(), TimelineEventKind::Call);
            let (result, error) = match frames.contains(&"pwrite64") {
                true => (Some(-11), Some("EAGAIN".to_owned())),
                false => (Some(4096), None),
            };
            timeline.events.push(TimelineEvent { at_ns: at, ns, thread, kind, name, result, error });
        }
        at += ns;
    }
    let held = timeline.segments.iter().filter(|s| s.thread == 1);
    if let (Some(first), Some(last)) = (held.clone().next(), held.clone().next_back()) {
        let (start_ns, end_ns) = (first.start_ns, last.end_ns());
        timeline.waits.push(TimelineWait { start_ns, end_ns, waiter: 0, waits_for: 1, carrier: Carrier::Lock });
        let (name, kind) = ("lock".to_owned(), TimelineEventKind::Message);
        let point =
            |at_ns, kind, name| TimelineEvent { at_ns, ns: 0, thread: 0, kind, name, result: None, error: None };
        timeline.events.push(point(end_ns, kind, name));
        timeline.events.push(point(end_ns + 1, TimelineEventKind::Migration, "CPU 2 to 3".to_owned()));
    } else {
        timeline.threads.truncate(1);
    }
    timeline.events.sort_by_key(|event| event.at_ns);
    timeline
}

/// Say that every other pair of executions is of the trace `new`, the others of `old`.
pub fn label(model: &mut Model) {
    let labels = ["old", "new"].map(|name| i64::from(model.names.intern(name).raw()));
    let column = model.executions.columns.iter_mut().find(|c| c.metric == Metric::Trace).unwrap();
    column.values = (0..column.values.len()).map(|i| labels[i / 2 % 2]).collect();
}
