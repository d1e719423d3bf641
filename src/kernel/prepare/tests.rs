//! Rows that a worker prepares, compared with the machine's own steps through all events.

mod chosen;

use super::{PrepareOptions, prepare};
use crate::base::names::NameId;
use crate::base::time::Timestamp;
use crate::event::descriptor::named_descriptor;
use crate::event::host::{HostId, TraceOrigin};
use crate::event::kind::{
    Context, Event, Kind, LossSource, RequestStep, SoftIrq, TextId, ThreadContextId, Vector, WakeSource, WeightId,
    WorkStep,
};
use crate::event::prev_state::Generation;
use crate::event::remark::{KernelWork, Priority, RemarkKind};
use crate::event::stack::{RawStackId, StackOrigin};
use crate::kernel::Handlers;
use crate::kernel::machine::Machine;
use crate::kernel::prepared::Prepared;
use crate::reading::batch::{
    Batch, BlockRequest, DumpStatus, DumpedThread, Flow, MarkBody, NetworkPacket, TcpSegment, ThreadContext, WeightBody,
};
use crate::reading::sources::HostName;
use crate::timeline::{Tables, TimelineDraft};
use proptest::prelude::*;

const CPUS: usize = 3;
const CALLS: [&str; 4] = ["read", "futex", "nanosleep", "poll"];

/// What happens next, by numbers.
#[derive(Clone, Copy, Debug)]
struct Step {
    what: u8,
    cpu: usize,
    a: u8,
    b: u8,
    after: i64,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (any::<u8>(), 0..CPUS, any::<u8>(), any::<u8>(), 0..3i64);
    let step = step.prop_map(|(what, cpu, a, b, after)| Step { what, cpu, a, b, after });
    prop::collection::vec(step, 0..400)
}

/// A machine of which most events agree: each CPU has a thread, calls and interrupts begin and end.
#[derive(Default)]
struct World {
    /// Number of thread ids.
    ids: u8,
    running: [i32; CPUS],
    inside: [Vec<Context>; CPUS],
    calls: [[Option<usize>; 8]; 1],
    time: i64,
    options: WorldOptions,
}

/// What is not the same in all worlds.
#[derive(Clone, Copy, Debug, Default)]
struct WorldOptions {
    /// Number of steps at the beginning of a batch of which none is a switch, and few end what is known.
    quiet: usize,
    /// Contexts do not name their threads.
    is_unnamed: bool,
    /// One thread has the name of one that runs soft interrupts, one that of a kernel worker.
    has_kernel_threads: bool,
}

fn world_options() -> impl Strategy<Value = WorldOptions> {
    let quiet = prop_oneof![Just(0), 0..30usize, 30..200usize];
    let options = (quiet, any::<bool>(), any::<bool>());
    options.prop_map(|(quiet, is_unnamed, has_kernel_threads)| WorldOptions { quiet, is_unnamed, has_kernel_threads })
}

impl WorldOptions {
    /// A step in the quiet part of a batch.
    fn calm(step: Step) -> Step {
        let what = match step.what {
            0..40 => step.what + 40,
            // Now and then an event that is always left.
            210.. if !step.a.is_multiple_of(8) => 40 + step.what % 80,
            _ => step.what,
        };
        Step { what, ..step }
    }
}

impl World {
    fn name(&self, tid: i32) -> String {
        match tid {
            1 if self.options.has_kernel_threads => "kworker/0:1".to_owned(),
            2 if self.options.has_kernel_threads => "ksoftirqd/0".to_owned(),
            _ => format!("thread {tid}"),
        }
    }

    fn context(&self, batch: &mut Batch, step: Step) -> ThreadContextId {
        // Some events have no context, some another thread's, some are in a container.
        let tid = if step.b % 37 == 36 { i32::from(step.a % self.ids) } else { self.running[step.cpu] };
        let name = match step.b % 29 {
            28 => "renamed".to_owned(),
            27 => "ksoftirqd/0".to_owned(),
            _ => self.name(tid),
        };
        let name = (!self.options.is_unnamed).then(|| batch.text(name.as_bytes()));
        let pid = tid / 2 * 2 + i32::from(step.b % 27 == 26);
        let ids = ThreadContext { tid: Some(tid), pid: Some(pid), name, ..ThreadContext::default() };
        match step.b % 13 {
            0 => ThreadContextId::ABSENT,
            1..6 => batch.context_id(ids),
            12 if tid == 5 => batch.context_id(ThreadContext { vtid: Some(1), vpid: Some(1), ..ids }),
            _ => batch.context_id(ThreadContext { ppid: Some(1 + i32::from(step.a % 19 == 18)), ..ids }),
        }
    }

    fn kind(&mut self, batch: &mut Batch, step: Step) -> Kind {
        let Step { what, cpu, a, b, .. } = step;
        let (tid, other) = (self.running[cpu], i32::from(a % self.ids));
        match what {
            0..40 => {
                let prev = if b % 31 == 30 { other } else { tid };
                self.running[cpu] = if self.running.contains(&other) && b % 17 > 0 { 0 } else { other };
                self.inside[cpu].clear();
                let next = self.running[cpu];
                let prev_state = [0, 1, 2, 0x40, 0x402][usize::from(b % 5)] | if b % 41 == 40 { 0x10 } else { 0 };
                let priorities = [a, b].map(|of| Priority::from_kernel(Some(i64::from(of % 7) * 25)));
                let [prev_name, next_name] = [(prev, 42), (next, 41)].map(|(tid, without)| {
                    if b % 43 == without { TextId::NONE } else { batch.text(self.name(tid).as_bytes()) }
                });
                Kind::Switch { prev, next, prev_state, prev_name, next_name, priorities }
            }
            40..120 => match self.calls[0][tid as usize & 7].take().filter(|_| b % 23 > 0) {
                Some(call) => {
                    let ret = [0, -110, 5][usize::from(a % 3)];
                    let name = if b % 19 == 18 { TextId::NONE } else { batch.text(CALLS[call].as_bytes()) };
                    Kind::CallExit { name, ret }
                }
                None => {
                    let call = usize::from(a) % CALLS.len();
                    self.calls[0][tid as usize & 7] = Some(call);
                    let name = if b % 19 == 17 { TextId::NONE } else { batch.text(CALLS[call].as_bytes()) };
                    Kind::CallEntry {
                        name,
                        descriptor: named_descriptor(i64::from(b % 5) - 1, None, Some(i64::from(b % 2))),
                    }
                }
            },
            120..150 => {
                let origin = [StackOrigin::CallEntry, StackOrigin::Tick][usize::from(a % 2)];
                let event = batch.text(["cpu-clock", "cycles"][usize::from(b % 2)].as_bytes());
                let weight = batch.weight(WeightBody { event, amount: a.into() });
                let weight = if b.is_multiple_of(5) { WeightId::NONE } else { weight };
                let mut stack =
                    |number: u8| (!number.is_multiple_of(4)).then(|| batch.stacks.intern(&[u64::from(number % 16)]));
                Kind::Stack { origin, user: stack(a), kernel: stack(b), witness: b % 4 > 0, weight }
            }
            150..170 => {
                let soft = SoftIrq::of(u32::from(a % 5));
                let contexts = [Context::Timer, Context::Irq(3), Context::SoftIrq(soft), Context::Vector(Vector::Ipi)];
                let context = contexts[usize::from(b % 4)];
                self.inside[cpu].push(context);
                let name = if context == Context::Irq(3) && a % 2 == 0 { "" } else { "handler" };
                let name = if name.is_empty() { TextId::NONE } else { batch.text(name.as_bytes()) };
                Kind::Enter { context, name }
            }
            170..195 => {
                let inner = self.inside[cpu].pop().filter(|_| b % 11 > 0);
                Kind::Leave { context: inner.unwrap_or(Context::Timer) }
            }
            195 => Kind::IdleState { enters: a % 2 == 0 },
            196..200 => Kind::Raise { soft_irq: SoftIrq::of(u32::from(a % 5)) },
            200..215 => {
                let source = [WakeSource::Waking, WakeSource::Wakeup, WakeSource::Queued][usize::from(b % 3)];
                let name = match b % 7 {
                    0 => "renamed".to_owned(),
                    1 => "kworker/0:2".to_owned(),
                    _ => self.name(other),
                };
                let name = if b % 19 == 18 { TextId::NONE } else { batch.text(name.as_bytes()) };
                Kind::Wake { tid: other, cpu: u16::from(b % 3), source, name }
            }
            _ => self.rare_kind(batch, step),
        }
    }

    fn rare_kind(&mut self, batch: &mut Batch, step: Step) -> Kind {
        let Step { what, cpu, a, b, .. } = step;
        let (tid, other) = (self.running[cpu], i32::from(a % self.ids));
        let mut text = |text: &str| batch.text(text.as_bytes());
        match what {
            215..218 => {
                let name = text("child");
                Kind::Fork { parent: tid, child: other, child_pid: other, child_vtid: i32::from(b % 3), name }
            }
            218 => Kind::Exec { tid: other, old_tid: tid, path: text("/bin/program") },
            219 => Kind::Exit { tid },
            220 => Kind::Free { tid: other },
            221 => Kind::Migrate { tid: other, cpu: u16::from(b % 3) },
            222 => Kind::Lost {
                source: LossSource::Reported,
                until: Timestamp::new(self.time + 2),
                resumes: Timestamp::new(self.time + 2),
            },
            223 => Kind::Line { irq: 3, name: text(["disk", "network"][usize::from(b % 2)]) },
            224 => Kind::Name { tid: other, pid: 2, name: text("ksoftirqd/0") },
            225 => Kind::Namespace { tid: other, vtid: 2, vpid: 2, level: i32::from(b % 3) },
            226 => {
                let status = [DumpStatus::Runnable, DumpStatus::Waiting, DumpStatus::Ended][usize::from(b % 3)];
                let name = text("dumped");
                Kind::Process(batch.process(DumpedThread { tid: other, pid: 2, ppid: 1, status, cpu: None, name }))
            }
            227..231 => Kind::Send(batch.packet(packet(a, b))),
            231..235 => Kind::Receive(batch.packet(packet(a, b))),
            235..240 => {
                let tid = (b % 3 == 0).then_some(other);
                let request = BlockRequest { device: 8, sector: u64::from(a % 3), bytes: 512, write: false, tid };
                let step = [RequestStep::Insert, RequestStep::Issue, RequestStep::Complete][usize::from(b % 3)];
                Kind::Block { step, request: batch.request(request) }
            }
            240..243 => {
                let step = [WorkStep::Queue, WorkStep::Begin, WorkStep::End][usize::from(b % 3)];
                Kind::Work { step, address: u64::from(a % 3) }
            }
            243 => Kind::Remark(RemarkKind::Begins(KernelWork::Reclaim)),
            244 => Kind::Remark(RemarkKind::Stops(tid)),
            245 => Kind::PageFault,
            246..248 => Kind::Counter { name: text("perf_thread_cycles"), value: u64::from(a) },
            248 => Kind::Function { enters: b % 2 == 0, address: u64::from(a % 4) },
            249 => Kind::Latency { ns: i64::from(a % 4) },
            _ => {
                let body = MarkBody { task: u32::from(a % 3), begins: b % 2 == 0, key: None, kind: None };
                Kind::Mark(batch.mark(body))
            }
        }
    }

    /// The next event, into its batch.
    fn next(&mut self, batch: &mut Batch, step: Step) {
        self.time += step.after;
        let who = self.context(batch, step);
        let kind = self.kind(batch, step);
        // Some events are of a user-space trace.
        let is_user = matches!(kind, Kind::Mark(_) | Kind::Function { .. } | Kind::CallExit { .. }) && step.b % 9 == 8;
        let (time, cpu) = (Timestamp::new(self.time), step.cpu as u16);
        batch.events.push(Event { time, who, trace: u16::from(is_user), cpu, kind });
    }
}

/// Some packet of a few.
fn packet(a: u8, b: u8) -> NetworkPacket {
    let flow = Flow { source: 1, dest: 2, source_port: u16::from(a % 2), dest_port: 8 };
    let (seq, len) = (u32::from(b % 4) * 10, [10, 20][usize::from(a % 5 == 4)]);
    let tcp = (!b.is_multiple_of(3)).then_some(TcpSegment { flow, seq, ack: 0, flags: 0, len });
    NetworkPacket { buffer: u64::from(a % 3), tcp }
}

fn batches(steps: &[Step], ids: u8, cuts: usize, options: WorldOptions) -> Vec<Batch> {
    let mut world = World { ids, options, ..World::default() };
    let batch = |steps: &[Step]| {
        let mut batch = Batch::default();
        for (at, step) in steps.iter().enumerate() {
            let step = if at < options.quiet { WorldOptions::calm(*step) } else { *step };
            world.next(&mut batch, step);
        }
        batch
    };
    steps.chunks(steps.len() / cuts + 1).map(batch).collect()
}

fn machine(pairs: bool, seal_every: usize) -> Machine {
    let host = HostName { name: String::new(), kernel_release: None };
    let origin = |kernel| TraceOrigin { host: HostId::at(0), kernel, generation: Generation::New };
    let mut machine = Machine::new(vec![host], vec![origin(true), origin(false)], Handlers::built_in());
    machine.expect_page_faults();
    machine.set_seal_every(seal_every);
    if pairs {
        machine.expect_pairs(2, ["pair"].into_iter());
    }
    machine
}

fn text(machine: Machine) -> String {
    let (timeline, notices) = machine.close(Vec::new(), Vec::new());
    let TimelineDraft { tables, threads, cpus, disk, services, marks, page_faults, counters } =
        TimelineDraft::of(&timeline);
    let Tables { names, stacks, images, quality, lossy, span, wake_stacks, remarks, .. } = tables;
    let names: Vec<&str> = (0..names.len()).map(|at| names.get(NameId::at(at))).collect();
    let stacks: Vec<&[u64]> = (0..stacks.len()).map(|at| stacks.get(RawStackId::at(at))).collect();
    let rows = format!("{threads:#?}{cpus:#?}{disk:#?}{services:#?}{marks:#?}{page_faults:#?}{counters:#?}");
    let tables = format!("{names:#?}{stacks:#?}{images:#?}{quality:#?}{lossy:#?}{span:#?}{wake_stacks:#?}{remarks:#?}");
    rows + &tables + &format!("{:#?}\n{:?}", notices.sentences(), timeline.parts().rows)
}

/// The timelines of batches, stepped event by event and with rows that a worker made.
pub(super) fn both(batches: Vec<Batch>, pairs: bool, seal_every: usize) -> [String; 2] {
    let [mut stepped, mut prepared] = [0; 2].map(|_| machine(pairs, seal_every));
    // Without room for open rows it makes leaves itself: they are the same.
    stepped.bound_open_rows(Some(0));
    for mut batch in batches {
        stepped.absorb(&batch);
        let open = stepped.sealed.open_bytes();
        assert_eq!(open.all, open.spare);
        // The worker knows the losses before its chunk.
        let mut worker = machine(false, seal_every);
        worker.losses = prepared.losses.clone();
        let options = PrepareOptions { has_pairs: pairs, seal_moments: prepared.seal_moments };
        let all = batch.events.clone();
        let mut rows = prepare(&mut batch, worker, options, Prepared::default());
        if prepared.fits(&rows) {
            prepared.absorb_prepared(&batch, &mut rows);
        } else {
            batch.events = all;
            prepared.absorb(&batch);
        }
    }
    [stepped, prepared].map(text)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn prepared_rows_and_leaves_equal_the_steps_of_the_machine(
        steps in steps(),
        ids in 3..9u8,
        cuts in 1..5usize,
        options in world_options(),
        pairs: bool,
        seal_every in prop_oneof![Just(1), 20..100usize],
    ) {
        let [stepped, prepared] = both(batches(&steps, ids, cuts, options), pairs, seal_every);
        let differs = stepped.lines().zip(prepared.lines()).position(|(a, b)| a != b);
        let part = |text: &str| text.lines().skip(differs.unwrap_or(0).saturating_sub(12)).take(16).collect::<String>();
        prop_assert!(stepped == prepared, "{}\n{}", part(&stepped), part(&prepared));
    }
}
