//! A simulated scheduler (`schedule/`) writes events and, beside them, the truth. The machine must find the truth from
//! the events, in any batches; the walk of the critical path must agree with the definition at every instant.

use crate::schedule;
use crate::support::spans;
use proptest::prelude::*;
use schedule::{CPUS, Instant, World, simulate, simulate_kernel};
use spans::span;
use whyslow::parts::analysis::path::{label, walk};
use whyslow::parts::base::time::{Ns, Span, Timestamp};
use whyslow::parts::event::host::{HostId, TraceOrigin};
use whyslow::parts::event::kind::{Context, Event, Kind, LossSource, SoftIrq, TextId, ThreadContextId, WakeSource};
use whyslow::parts::event::prev_state::Generation;
use whyslow::parts::event::remark::Priority;
use whyslow::parts::kernel::{Handlers, Machine};
use whyslow::parts::reading::batch::Batch;
use whyslow::parts::reading::sources::HostName;
use whyslow::parts::timeline::questions::Asker;
use whyslow::parts::timeline::{ThreadId, Timeline, TimelineDraft};

/// Run the machine over the events, cut into batches before the given times.
fn recorded(world: &World, cuts: &[Ns]) -> Timeline {
    let origin = TraceOrigin { host: HostId::at(0), kernel: true, generation: Generation::New };
    let mut machine =
        Machine::new(vec![HostName { name: String::new(), kernel_release: None }], vec![origin], Handlers::built_in());
    let mut bounds = vec![Timestamp::MIN, Timestamp::MAX];
    bounds.extend(cuts.iter().copied().map(Timestamp::new));
    bounds.sort_unstable();
    for window in bounds.windows(2) {
        let mut batch = Batch::default();
        let here = |e: &&Event| window[0] <= e.time && e.time < window[1];
        let mut streams = vec![Vec::new(); CPUS];
        for event in world.events.iter().filter(here) {
            streams[usize::from(event.cpu)].push(*event);
        }
        batch.merge(&streams);
        machine.absorb(&batch);
    }
    machine.close(Vec::new(), Vec::new()).0.seal()
}

fn instants(recording: &Timeline, thread: ThreadId) -> Vec<Instant> {
    let reader = recording.reader(Asker::Path);
    let edges: Vec<_> = reader.segments(thread).all().collect();
    let tid = |t: ThreadId| recording.threads()[t.index()].tid;
    edges.iter().flat_map(|e| (0..e.span.len()).map(|_| (e.kind, e.waker.map(|w| tid(w.thread))))).collect()
}

/// Events without sense, in order of time.
fn nonsense() -> impl Strategy<Value = Vec<Event>> {
    let time = prop_oneof![8 => 0..200_i64, 1 => Just(Ns::MIN), 1 => Just(Ns::MAX - 1)];
    let cpu = prop_oneof![9 => 0..3_u16, 1 => Just(u16::MAX)];
    let what = (0..16_u8, -1..6_i32, -1..6_i32, any::<u16>());
    let event = (time, cpu, what).prop_map(|(time, cpu, (which, a, b, c))| {
        let time = Timestamp::new(time);
        let name = TextId::NONE;
        let context = [Context::Timer, Context::Irq(a), Context::SoftIrq(SoftIrq::of(b as u32))][usize::from(c % 3)];
        let source = [WakeSource::Waking, WakeSource::Wakeup, WakeSource::New][usize::from(c % 3)];
        let kind = match which {
            0..4 => Kind::Switch {
                prev: a,
                next: b,
                prev_state: c & 0x1ff,
                prev_name: name,
                next_name: name,
                priorities: [Priority::UNKNOWN; 2],
            },
            4 | 5 => Kind::Wake { tid: a, cpu: c, source, name },
            6 => Kind::Fork { parent: a, child: b, child_pid: a, child_vtid: i32::from(c % 3), name },
            7 => Kind::Exec { tid: a, old_tid: b, path: name },
            8 => Kind::Exit { tid: a },
            9 => Kind::Free { tid: a },
            10 => Kind::Migrate { tid: a, cpu: c },
            11 => Kind::Enter { context, name },
            12 => Kind::Leave { context },
            13 => Kind::Raise { soft_irq: SoftIrq::of(b as u32) },
            14 => Kind::CallExit { name, ret: -1 },
            _ => Kind::Lost { source: LossSource::Reported, until: time, resumes: time },
        };
        Event { time, who: ThreadContextId::ABSENT, trace: 0, cpu, kind }
    });
    prop::collection::vec(event, 0..120).prop_map(|mut events| {
        events.sort_by_key(|e| e.time);
        events
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn kernel_machine_equals_the_simulated_schedule(seed in any::<u64>(), steps in 1..160_usize) {
        let world = simulate_kernel(seed, steps);
        let recording = recorded(&world, &[]);
        for task in &world.tasks {
            let thread = recording.find_thread(HostId::at(0), task.tid, Timestamp::new(task.born)).unwrap();
            let waker = |w: Option<i32>| w.filter(|tid| *tid > 0);
            let truth: Vec<Instant> = task.truth.iter().map(|(kind, by)| (*kind, waker(*by))).collect();
            prop_assert_eq!(instants(&recording, thread), truth, "thread {}", task.tid);
        }
    }

    #[test]
    fn kernel_machine_keeps_threads_whole_on_random_events(events in nonsense()) {
        let origin = TraceOrigin { host: HostId::at(0), kernel: true, generation: Generation::New };
        let mut machine = Machine::new(vec![HostName { name: String::new(), kernel_release: None }], vec![origin], Handlers::built_in());
        let mut batch = Batch::default();
        batch.events = events;
        machine.absorb(&batch);
        let (recording, _) = machine.close(Vec::new(), Vec::new());
        let draft = TimelineDraft::of(&recording);
        for thread in draft.threads.iter().filter(|t| !t.thread.idle) {
            prop_assert!(thread.rows.segments.iter().all(|e| !e.span.is_empty()));
            prop_assert!(thread.rows.segments.windows(2).all(|w| w[0].span.end == w[1].span.start));
            let ends = thread.rows.segments.first().zip(thread.rows.segments.last());
            let whole = ends.map(|(first, last)| Span::new(first.span.start, last.span.end));
            prop_assert!(whole.is_none_or(|whole| whole == thread.thread.life), "{:?} {:?}", whole, thread.thread.life);
            prop_assert!(whole.is_some() || thread.thread.life.is_empty());
        }
        for cpu in &draft.cpus {
            prop_assert!(cpu.runs.windows(2).all(|w| w[0].span.end <= w[1].span.start));
        }
    }

    #[test]
    fn kernel_machine_does_not_depend_on_batches(seed in any::<u64>(), steps in 1..160_usize, cuts in prop::collection::vec(0..300_i64, 0..8)) {
        let world = simulate(seed, steps);
        let (whole, parts) = (recorded(&world, &[]), recorded(&world, &cuts));
        let [whole, parts] = [whole, parts].map(|recording| TimelineDraft::of(&recording));
        prop_assert_eq!(format!("{:?}{:?}", whole.threads, whole.cpus), format!("{:?}{:?}", parts.threads, parts.cpus));
    }

    #[test]
    fn path_walk_equals_the_definition_at_every_instant(seed in any::<u64>(), steps in 1..120_usize) {
        let world = simulate(seed, steps);
        let recording = recorded(&world, &[]);
        for at in 0..recording.threads().len() {
            let thread = ThreadId::at(at);
            if recording.threads()[at].idle {
                continue;
            }
            // Windows that begin before a thread's birth and end after its death are asked for, too.
            let path = walk(&recording, thread, span(0, world.now));
            let mut t = Timestamp::ZERO;
            for segment in &path {
                prop_assert_eq!(segment.span.start, t);
                for instant in spans::instants(segment.span) {
                    prop_assert_eq!(label(&recording, thread, instant), (segment.thread, segment.kind));
                }
                t = segment.span.end;
            }
            prop_assert_eq!(t.ns(), world.now);
        }
    }
}
