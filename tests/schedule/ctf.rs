//! The simulated schedule as a kernel recording in CTF 1.8: one stream per CPU, packets of a few dozen events, system calls
//! that read and write mixed in. On demand it is damaged as recordings are: packets are missing or tell of lost
//! events, ids of threads are exchanged, forks come twice.

use super::{CPUS, Random, World, simulate, simulate_kernel};
use std::path::{Path, PathBuf};
use whyslow::base::time::Ns;
use whyslow::event::kind::{Context, Kind};

const METADATA: &str = r#"/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 16; align = 8; signed = false; } := uint16_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 32; align = 8; signed = true; } := int32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
typealias integer { size = 64; align = 8; signed = true; } := int64_t;
trace {
    major = 1; minor = 8; byte_order = le;
    packet.header := struct { uint32_t magic; uint32_t stream_id; };
};
env { domain = "kernel"; hostname = "simulated"; kernel_release = "6.1.0"; };
clock { name = monotonic; freq = 1000000000; offset_s = 0; offset = 0; };
typealias integer { size = 64; align = 8; signed = false; map = clock.monotonic.value; } := clock_t;
stream {
    id = 0;
    packet.context := struct {
        clock_t timestamp_begin; clock_t timestamp_end; uint64_t content_size; uint64_t packet_size;
        uint64_t packet_seq_num; uint64_t events_discarded; uint32_t cpu_id;
    };
    event.header := struct { uint16_t id; clock_t timestamp; };
};
event { name = sched_switch; id = 0; stream_id = 0; fields := struct { int32_t prev_tid; int64_t prev_state; int32_t next_tid; string prev_comm; string next_comm; }; };
event { name = sched_waking; id = 1; stream_id = 0; fields := struct { int32_t tid; int32_t target_cpu; }; };
event { name = sched_process_fork; id = 2; stream_id = 0; fields := struct { int32_t parent_tid; int32_t child_tid; int32_t child_pid; string child_comm; }; };
event { name = sched_migrate_task; id = 3; stream_id = 0; fields := struct { int32_t tid; int32_t dest_cpu; }; };
event { name = irq_softirq_entry; id = 4; stream_id = 0; fields := struct { uint32_t vec; }; };
event { name = irq_softirq_exit; id = 5; stream_id = 0; fields := struct { uint32_t vec; }; };
event { name = timer_hrtimer_expire_entry; id = 6; stream_id = 0; fields := struct { uint64_t hrtimer; }; };
event { name = timer_hrtimer_expire_exit; id = 7; stream_id = 0; fields := struct { uint64_t hrtimer; }; };
event { name = syscall_entry_read; id = 8; stream_id = 0; fields := struct { uint32_t fd; }; };
event { name = syscall_exit_read; id = 9; stream_id = 0; fields := struct { int64_t ret; }; };
event { name = syscall_entry_sendto; id = 10; stream_id = 0; fields := struct { uint32_t fd; }; };
event { name = syscall_exit_sendto; id = 11; stream_id = 0; fields := struct { int64_t ret; }; };
event { name = sys_pread64; id = 12; stream_id = 0; fields := struct { uint32_t fd; }; };
event { name = sys_futex; id = 13; stream_id = 0; fields := struct { uint32_t op; }; };
event { name = exit_syscall; id = 14; stream_id = 0; fields := struct { int64_t ret; }; };
"#;

/// Entries and their exits, by id.
const CALLS: [(u16, u16); 4] = [(8, 9), (10, 11), (12, 14), (13, 14)];

/// An event of one CPU.
#[derive(Clone)]
struct Recorded {
    time: Ns,
    id: u16,
    fields: Vec<u8>,
}

fn fields(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

/// What the tracer would write; `None` for what this recording does not declare.
fn written(kind: &Kind) -> Option<(u16, Vec<u8>)> {
    let comm = |tid: i32| format!("thread-{tid}\0").into_bytes();
    Some(match kind {
        Kind::Switch { prev, next, prev_state, .. } => {
            let state = i64::from(*prev_state).to_le_bytes();
            (0, fields(&[&prev.to_le_bytes(), &state, &next.to_le_bytes(), &comm(*prev), &comm(*next)]))
        }
        Kind::Wake { tid, cpu, .. } => (1, fields(&[&tid.to_le_bytes(), &i32::from(*cpu).to_le_bytes()])),
        Kind::Fork { parent, child, child_pid, .. } => {
            (2, fields(&[&parent.to_le_bytes(), &child.to_le_bytes(), &child_pid.to_le_bytes(), &comm(*child)]))
        }
        Kind::Migrate { tid, cpu } => (3, fields(&[&tid.to_le_bytes(), &i32::from(*cpu).to_le_bytes()])),
        Kind::Enter { context: Context::SoftIrq(vec), .. } => (4, vec.to_le_bytes().to_vec()),
        Kind::Leave { context: Context::SoftIrq(vec) } => (5, vec.to_le_bytes().to_vec()),
        Kind::Enter { .. } => (6, 7u64.to_le_bytes().to_vec()),
        Kind::Leave { .. } => (7, 7u64.to_le_bytes().to_vec()),
        _ => return None,
    })
}

/// The events of each CPU, with system calls of the threads that run there.
fn streams(world: &World, dice: &mut Random) -> Vec<Vec<Recorded>> {
    let mut streams = vec![Vec::new(); CPUS];
    let mut running = [0; CPUS];
    let mut inside: std::collections::BTreeMap<i32, u16> = std::collections::BTreeMap::new();
    for event in &world.events {
        let cpu = usize::from(event.cpu);
        let stream: &mut Vec<Recorded> = &mut streams[cpu];
        let mut call = |stream: &mut Vec<Recorded>, tid: i32, dice: &mut Random| {
            let (id, fields) = match inside.remove(&tid) {
                Some(exit) => (exit, (dice.below(5000) as i64 - 50).to_le_bytes().to_vec()),
                None => {
                    let (entry, exit) = CALLS[dice.below(CALLS.len())];
                    inside.insert(tid, exit);
                    (entry, 3u32.to_le_bytes().to_vec())
                }
            };
            stream.push(Recorded { time: event.time, id, fields });
        };
        // Before a switch the thread that goes may still enter or leave, after it the one that comes.
        if running[cpu] != 0 && dice.below(3) == 0 {
            call(stream, running[cpu], dice);
        }
        if let Some((id, fields)) = written(&event.kind) {
            stream.push(Recorded { time: event.time, id, fields });
        }
        if let Kind::Switch { next, .. } = event.kind {
            running[cpu] = next;
            if next != 0 && dice.below(2) == 0 {
                call(stream, next, dice);
            }
        }
    }
    streams
}

/// Exchange ids, repeat forks, let events vanish, let time run backwards and leap.
fn hurt(stream: &mut Vec<Recorded>, dice: &mut Random) {
    let mut hurt = Vec::new();
    for mut event in stream.drain(..) {
        match (event.id, dice.below(40)) {
            (_, 0) => continue,
            (0, 1) => event.fields[..4].copy_from_slice(&(dice.below(9) as i32).to_le_bytes()),
            (0, 2) => event.fields[12..16].copy_from_slice(&(dice.below(9) as i32).to_le_bytes()),
            (2, 0..8) => hurt.push(event.clone()),
            (_, 8) => event.time -= dice.below(3000) as Ns,
            (_, 9) => event.time += dice.below(3000) as Ns,
            _ => {}
        }
        hurt.push(event);
    }
    *stream = hurt;
}

fn packets(cpu: usize, events: &[Recorded], end: Ns, damaged: bool, dice: &mut Random) -> Vec<u8> {
    let (mut file, mut left, mut discarded, mut number) = (Vec::new(), events, 0u64, 0u64);
    while !left.is_empty() {
        let (own, rest) = left.split_at((5 + dice.below(40)).min(left.len()));
        left = rest;
        number += 1;
        if damaged && dice.below(8) == 0 {
            // Lost: the next packet tells of the events, or only the gap in the numbers does.
            discarded += if dice.below(2) == 0 { own.len() as u64 } else { 0 };
            continue;
        }
        let mut body = Vec::new();
        for event in own {
            body.extend(event.id.to_le_bytes());
            body.extend((event.time as u64).to_le_bytes());
            body.extend(&event.fields);
        }
        // When tracing stops, the last packet of each CPU is closed.
        let last = if left.is_empty() { end } else { own[own.len() - 1].time };
        let (first, last) = (own[0].time as u64, last as u64);
        let size = (8 + 6 * 8 + 4 + body.len() as u64) * 8;
        file.extend(0xc1fc_1fc1u32.to_le_bytes());
        file.extend(0u32.to_le_bytes());
        for word in [first, last, size, size, number, discarded] {
            file.extend(word.to_le_bytes());
        }
        file.extend((cpu as u32).to_le_bytes());
        file.extend(body);
    }
    file
}

/// Write a recording of a schedule of so many steps into `folder`.
pub fn write(folder: &Path, seed: u64, steps: usize, damaged: bool) -> PathBuf {
    // Every other pair of seeds nests contexts in any way.
    let world = if (seed / 2).is_multiple_of(2) { simulate(seed, steps) } else { simulate_kernel(seed, steps) };
    let mut dice = Random::new(seed);
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("metadata"), METADATA).unwrap();
    for (cpu, mut events) in streams(&world, &mut dice).into_iter().enumerate() {
        if damaged {
            hurt(&mut events, &mut dice);
        }
        std::fs::write(folder.join(format!("channel_{cpu}")), packets(cpu, &events, world.now, damaged, &mut dice))
            .unwrap();
    }
    folder.to_owned()
}
