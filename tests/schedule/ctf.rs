//! The simulated schedule as a kernel recording in CTF 1.8: one stream per CPU, packets of a few dozen events, system
//! calls that read and write mixed in. On demand it is damaged as recordings are: packets and events are missing, ids
//! of threads are exchanged, forks come twice, time goes back.

use super::ctf_writer::{Channel, Event, Packets, Task, TraceWriter, Value};
use super::random::Random;
use super::{CPUS, World, simulate, simulate_kernel};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use whyslow::parts::base::time::Ns;
use whyslow::parts::event::kind::{Context, Kind};

/// System calls as new and old tracers name them: entry, its field, exit.
const CALLS: [(&str, &str, &str); 4] = [
    ("syscall_entry_read", "fd", "syscall_exit_read"),
    ("syscall_entry_sendto", "fd", "syscall_exit_sendto"),
    ("sys_pread64", "fd", "exit_syscall"),
    ("sys_futex", "op", "exit_syscall"),
];

fn event(time: Ns, cpu: usize, name: &'static str, fields: Vec<(&'static str, Value)>) -> Event {
    Event { time, cpu: cpu as u32, name: name.into(), fields, on: Rc::new(Task::default()), stack: None }
}

/// The event that the tracer writes; `None` for one that this recording does not declare.
fn recorded(time: Ns, cpu: usize, kind: &Kind) -> Option<Event> {
    let comm = |tid: i32| Value::Text(format!("thread-{tid}"));
    let (name, fields) = match kind {
        Kind::Switch { prev, next, prev_state, .. } => (
            "sched_switch",
            vec![
                ("prev_tid", Value::I32(*prev)),
                ("prev_state", Value::I64(i64::from(*prev_state))),
                ("next_tid", Value::I32(*next)),
                ("prev_comm", comm(*prev)),
                ("next_comm", comm(*next)),
            ],
        ),
        Kind::Wake { tid, cpu, .. } => {
            ("sched_waking", vec![("tid", Value::I32(*tid)), ("target_cpu", Value::I32(i32::from(*cpu)))])
        }
        Kind::Fork { parent, child, child_pid, .. } => (
            "sched_process_fork",
            vec![
                ("parent_tid", Value::I32(*parent)),
                ("child_tid", Value::I32(*child)),
                ("child_pid", Value::I32(*child_pid)),
                ("child_comm", comm(*child)),
            ],
        ),
        Kind::Migrate { tid, cpu } => {
            ("sched_migrate_task", vec![("tid", Value::I32(*tid)), ("dest_cpu", Value::I32(i32::from(*cpu)))])
        }
        Kind::Enter { context: Context::SoftIrq(vec), .. } => {
            ("irq_softirq_entry", vec![("vec", Value::U32(vec.vector()))])
        }
        Kind::Leave { context: Context::SoftIrq(vec) } => ("irq_softirq_exit", vec![("vec", Value::U32(vec.vector()))]),
        Kind::Enter { .. } => ("timer_hrtimer_expire_entry", vec![("hrtimer", Value::U64(7))]),
        Kind::Leave { .. } => ("timer_hrtimer_expire_exit", vec![("hrtimer", Value::U64(7))]),
        _ => return None,
    };
    Some(event(time, cpu, name, fields))
}

/// The events of each CPU, with system calls of the threads that run there.
fn streams(world: &World, random: &mut Random) -> Vec<Vec<Event>> {
    let mut streams = vec![Vec::new(); CPUS];
    let mut running = [0; CPUS];
    // By thread, the exit of its call.
    let mut inside: BTreeMap<i32, &'static str> = BTreeMap::new();
    for simulated in &world.events {
        let (time, cpu) = (simulated.time.ns(), usize::from(simulated.cpu));
        let stream: &mut Vec<Event> = &mut streams[cpu];
        let mut call = |stream: &mut Vec<Event>, tid: i32, random: &mut Random| {
            stream.push(match inside.remove(&tid) {
                Some(exit) => event(time, cpu, exit, vec![("ret", Value::I64(random.between(-50, 4950)))]),
                None => {
                    let (entry, field, exit) = CALLS[random.below(CALLS.len())];
                    inside.insert(tid, exit);
                    event(time, cpu, entry, vec![(field, Value::U32(3))])
                }
            });
        };
        // Before a switch the thread that leaves may still enter or leave a call, after it the one that comes.
        if running[cpu] != 0 && random.once_in(3) {
            call(stream, running[cpu], random);
        }
        stream.extend(recorded(time, cpu, &simulated.kind));
        if let Kind::Switch { next, .. } = simulated.kind {
            running[cpu] = next;
            if next != 0 && random.once_in(2) {
                call(stream, next, random);
            }
        }
    }
    streams
}

/// Exchange ids, repeat forks, let events vanish, let time run backwards and leap.
fn damage(stream: &mut Vec<Event>, random: &mut Random) {
    let mut damaged = Vec::new();
    for mut event in stream.drain(..) {
        match (event.name.as_ref(), random.below(40)) {
            (_, 0) => continue,
            ("sched_switch", 1) => event.fields[0].1 = Value::I32(random.below(9) as i32),
            ("sched_switch", 2) => event.fields[2].1 = Value::I32(random.below(9) as i32),
            ("sched_process_fork", 0..8) => damaged.push(event.clone()),
            (_, 8) => event.time -= random.below(3000) as Ns,
            (_, 9) => event.time += random.below(3000) as Ns,
            _ => {}
        }
        damaged.push(event);
    }
    *stream = damaged;
}

/// Write a recording of a schedule of this many steps into `folder`.
pub fn write(folder: &Path, seed: u64, steps: usize, damaged: bool) -> PathBuf {
    // Every other pair of seeds nests contexts in any way.
    let world = if (seed / 2).is_multiple_of(2) { simulate(seed, steps) } else { simulate_kernel(seed, steps) };
    let mut random = Random::new(seed);
    let mut events = streams(&world, &mut random);
    if damaged {
        events.iter_mut().for_each(|stream| damage(stream, &mut random));
    }
    let mut trace = TraceWriter::new("simulated", "kernel", 1, 2);
    // The tracer begins with the first event of each CPU; when it ends, the last packet of each CPU is closed.
    trace.span = (Ns::MAX, world.now);
    trace.packets = if damaged { Packets::DrawnAndLost(seed) } else { Packets::Drawn(seed) };
    let events = events.concat();
    trace.channels.push(Channel { name: "channel".into(), contexts: Vec::new(), events, discarded: Vec::new() });
    let _ = std::fs::remove_dir_all(folder);
    trace.write(folder);
    folder.to_owned()
}
