//! Rows of devices, kernel threads and counters that move to the store early, late or never: the rows are the same, and
//! what is in no leaf stays small.

use super::machine::Machine;
use super::requests::RequestBounds;
use crate::base::time::Timestamp;
use crate::event::host::{HostId, TraceOrigin};
use crate::event::kind::{Event, Kind, LossSource, RequestStep, ThreadContextId, WakeSource, WorkStep};
use crate::event::prev_state::Generation;
use crate::event::remark::Priority;
use crate::kernel::Handlers;
use crate::reading::batch::{Batch, BlockRequest};
use crate::reading::sources::HostName;
use crate::timeline::TimelineDraft;
use proptest::prelude::*;

const NAMES: [&str; 5] = ["swapper/0", "kworker/0:1", "jbd2/sda1-8", "reader", "writer"];
const COUNTERS: [&str; 3] = ["perf_thread_instructions", "perf_cpu_cache_misses", "perf_thread_cycles"];
const STEPS: [RequestStep; 3] = [RequestStep::Insert, RequestStep::Issue, RequestStep::Complete];

fn machine(seal_every: usize) -> Machine {
    let host = HostName { name: String::new(), kernel_release: None };
    let origin = TraceOrigin { host: HostId::at(0), kernel: true, generation: Generation::New };
    let mut machine = Machine::new(vec![host], vec![origin], Handlers::built_in());
    machine.expect_page_faults();
    machine.set_seal_every(seal_every);
    machine
}

/// What happens next, by numbers.
#[derive(Clone, Copy, Debug)]
struct Step {
    what: u8,
    cpu: u16,
    a: u8,
    b: u8,
    after: i64,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (any::<u8>(), 0..2u16, any::<u8>(), any::<u8>(), 0..3i64);
    let step = step.prop_map(|(what, cpu, a, b, after)| Step { what, cpu, a, b, after });
    prop::collection::vec(step, 0..600)
}

fn request(batch: &mut Batch, step: RequestStep, device: u32, sector: u64) -> Kind {
    let request = BlockRequest { device, sector, bytes: 512, write: device == 9, tid: None };
    Kind::Block { step, request: batch.request(request) }
}

fn kind(batch: &mut Batch, step: Step, running: &mut i32, time: i64) -> Kind {
    let Step { what, a, b, .. } = step;
    let mut name = |tid: i32| batch.text(NAMES[tid as usize].as_bytes());
    let other = i32::from(a % 5);
    match what {
        0..30 => {
            let (prev, next) = (std::mem::replace(running, other), other);
            let [prev_name, next_name] = [prev, next].map(&mut name);
            Kind::Switch {
                prev,
                next,
                prev_state: u16::from(b % 3),
                prev_name,
                next_name,
                priorities: [Priority::UNKNOWN; 2],
            }
        }
        30..45 => Kind::Wake { tid: other, cpu: 0, source: WakeSource::Waking, name: name(other) },
        45..50 => {
            let until = Timestamp::new(time + 2);
            Kind::Lost { source: LossSource::Reported, until, resumes: until }
        }
        50..80 => {
            let step = [WorkStep::Queue, WorkStep::Begin, WorkStep::End][usize::from(b % 3)];
            Kind::Work { step, address: u64::from(a % 3) }
        }
        80..110 => Kind::PageFault,
        110..150 => {
            let name = batch.text(COUNTERS[usize::from(b % 3)].as_bytes());
            Kind::Counter { name, value: a.into() }
        }
        // A flush completes without a sector.
        150..155 => request(batch, RequestStep::Complete, 8, u64::MAX),
        _ => request(batch, STEPS[usize::from(b % 3)], 8 + u32::from(a % 2), u64::from(a / 2 % 24)),
    }
}

fn batch(steps: &[Step]) -> Batch {
    let (mut batch, mut running, mut time) = (Batch::default(), [0; 2], 0);
    for step in steps {
        time += step.after;
        let kind = kind(&mut batch, *step, &mut running[usize::from(step.cpu)], time);
        push(&mut batch, time, step.cpu, kind);
    }
    batch
}

fn push(batch: &mut Batch, time: i64, cpu: u16, kind: Kind) {
    let time = Timestamp::new(time);
    batch.events.push(Event { time, who: ThreadContextId::ABSENT, trace: 0, cpu, kind });
}

fn rows(machine: Machine) -> TimelineDraft {
    let (timeline, _) = machine.close(Vec::new(), Vec::new());
    assert_eq!(timeline.check(), None);
    TimelineDraft::of(&timeline)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rows_do_not_depend_on_when_they_are_sealed(
        steps in steps(),
        most_rows in prop_oneof![Just(0), 1..9usize, Just(1 << 14)],
        most_open in prop_oneof![1..20usize, Just(1 << 14)],
    ) {
        let batch = batch(&steps);
        let [often, never] = [1, usize::MAX].map(|seal_every| {
            let mut machine = machine(seal_every);
            machine.requests.bounds = RequestBounds { rows: most_rows, open: most_open };
            machine.absorb(&batch);
            let TimelineDraft { threads, cpus, disk, services, page_faults, counters, .. } = rows(machine);
            format!("{threads:#?}{cpus:#?}{disk:#?}{services:#?}{page_faults:#?}{counters:#?}")
        });
        let differs = often.lines().zip(never.lines()).position(|(a, b)| a != b);
        let part = |text: &str| text.lines().skip(differs.unwrap_or(0).saturating_sub(12)).take(16).collect::<String>();
        prop_assert!(often == never, "{}\n{}", part(&often), part(&never));
    }
}

/// A thread runs, and this many batches follow of which each has the events that `add` makes of the numbers of one.
fn follow(machine: &mut Machine, batches: i64, add: impl Fn(&mut Batch, i64)) -> usize {
    const EACH: i64 = 5_000;
    let mut most = 0;
    for number in 0..batches {
        let mut batch = Batch::default();
        if number == 0 {
            let [prev_name, next_name] = [0, 3].map(|tid| batch.text(NAMES[tid].as_bytes()));
            push(
                &mut batch,
                0,
                0,
                Kind::Switch {
                    prev: 0,
                    next: 3,
                    prev_state: 0,
                    prev_name,
                    next_name,
                    priorities: [Priority::UNKNOWN; 2],
                },
            );
        }
        (number * EACH..(number + 1) * EACH).for_each(|i| add(&mut batch, i));
        machine.absorb(&batch);
        machine.seal_slabs();
        most = most.max(machine.most_open_bytes());
    }
    most
}

#[test]
fn rows_in_no_leaf_are_bounded() {
    let mut machine = machine(1 << 12);
    let most = follow(&mut machine, 40, |batch, i| {
        let step = |batch: &mut Batch, step, sector| {
            let kind = request(batch, step, 8, sector);
            push(batch, i, 0, kind);
        };
        step(batch, RequestStep::Issue, i as u64);
        // One is never completed, the others in time.
        if i > 101 {
            step(batch, RequestStep::Complete, i as u64 - 100);
        }
        push(batch, i, 0, Kind::PageFault);
        let name = batch.text(COUNTERS[i as usize % 3].as_bytes());
        push(batch, i, 0, Kind::Counter { name, value: i as u64 });
        let work = [WorkStep::Queue, WorkStep::Begin, WorkStep::End][i as usize % 3];
        push(batch, i, 0, Kind::Work { step: work, address: 7 });
    });
    let rows = rows(machine);
    let values: usize = rows.counters.iter().map(|counter| counter.values.len()).sum();
    assert_eq!((rows.disk.len(), rows.page_faults.map(|all| all.len()), values), (200_000, Some(200_000), 200_000));
    assert_eq!(rows.services.len(), 66_666);
    // All rows have 25 MB; those after the first request, which stays open, 1.2 MB, and room for as many.
    assert!(most < 6 << 20, "{most}");
}

#[test]
fn requests_that_are_never_completed_are_bounded() {
    const ALL: i64 = 300_000;
    let mut machine = machine(1 << 12);
    let most = follow(&mut machine, ALL / 5_000, |batch, i| {
        let kind = request(batch, RequestStep::Issue, 8, i as u64);
        push(batch, i, 0, kind);
    });
    // The first is not followed any more when it completes, the last is.
    let mut batch = Batch::default();
    for sector in [0, ALL - 1] {
        let kind = request(&mut batch, RequestStep::Complete, 8, sector as u64);
        push(&mut batch, ALL, 0, kind);
    }
    push(&mut batch, 2 * ALL, 0, Kind::PageFault);
    machine.absorb(&batch);
    let ends: Vec<i64> = rows(machine).disk.iter().map(|request| request.span.end.ns()).collect();
    assert_eq!(ends.len(), ALL as usize);
    // The last one overtakes those that are still followed.
    let (unended, overtaken) = ends.split_at(ends.partition_point(|end| *end == 2 * ALL));
    assert!(!unended.is_empty() && !overtaken.is_empty() && overtaken.iter().all(|end| *end == ALL));
    // Rows have 22 MB, and a table of all that are open as much again; their order takes 2 MB at most.
    assert!(most < 14 << 20, "{most}");
}
