//! Traces of Perfetto with the kernel's events (data source `linux.ftrace`), and spans of programs (`track_event`).
//!
//! A trace is a sequence of packets, each a message with its length before it (`perfetto_messages.rs`); packets in
//! packets may be compressed by zlib. A bundle holds events of one CPU, and switches and wake-ups in columns whose
//! times are differences. Such a column has the next thread alone: the thread that leaves is that which came before, so
//! the first switch of a CPU only shows which thread runs. Text of `print` in the form of trace_marker begins and ends
//! tasks, and so do spans on tracks ([`Tracks`]). Names and processes of threads come from the process tree.

use super::about::About;
use super::error::TranslationError;
use super::event_place::{EventPlace, NamedThread};
use super::perfetto_devices;
use super::perfetto_messages::{
    self, ClockSnapshotMessage, CompactSchedMessage, FtraceEventBundleMessage, FtraceEventMessage, ProcessTreeMessage,
    TracePacket, WakeupMessage,
};
use super::thread_runs::{CpuSwitch, ThreadRuns};
use super::tracks::Tracks;
use super::translation::{FieldValue, Translation};
use crate::base::time::Timestamp;
use foldhash::HashMap;
use prost::Message;
use ruzstd::decoding::StreamingDecoder;
use std::io::{self, BufRead, Read};

/// The tag of a packet: field 1, with a length.
const PACKET: u8 = 0x0a;
/// The largest packet that is read; messages in memory are larger than their bytes.
const MOST_PACKET: u64 = 4 << 20;
/// The largest compression ratio.
const MOST_RATIO: u64 = 20;

/// Tags with which a packet of Perfetto begins: its events, process tree, user, clocks, time, sequence, configuration,
/// statistics, marks between parts, the system, the trace's id and compressed packets.
const FIRST_TAGS: [&[u8]; 12] = [
    &[0x0a],
    &[0x12],
    &[0x18],
    &[0x32],
    &[0x40],
    &[0x50],
    &[0x8a, 0x02],
    &[0x9a, 0x02],
    &[0xa2, 0x02],
    &[0xea, 0x02],
    &[0xca, 0x05],
    &[0x92, 0x03],
];

const REALTIME: u32 = 1;
const BOOTTIME: u32 = 6;
/// `CLONE_THREAD`.
const THREAD: u64 = 0x10000;

/// True for the begin of a trace.
pub(super) fn is_one(begin: &[u8]) -> bool {
    let Some((&PACKET, rest)) = begin.split_first() else { return false };
    let bytes = rest.iter().take(5).take_while(|byte| **byte & 0x80 != 0).count() + 1;
    let Some((length, inner)) = rest.split_at_checked(bytes) else { return false };
    let length = length.iter().rev().fold(0u64, |n, byte| n << 7 | u64::from(byte & 0x7f));
    let next = usize::try_from(length).ok().and_then(|n| inner.get(n));
    length > 0 && FIRST_TAGS.iter().any(|tag| inner.starts_with(tag)) && next.is_none_or(|tag| *tag == PACKET)
}

/// A time of the file as a moment of runs.
fn moment(time: u64) -> Timestamp {
    Timestamp::clamped(time.into())
}

/// What was read before and is needed again.
#[derive(Default)]
struct PerfettoState {
    about: About,
    names: HashMap<i32, Vec<u8>>,
    processes: HashMap<i32, i32>,
    /// The thread that runs on a CPU, from its last switch in columns.
    running: HashMap<u32, i32>,
    /// The last known offset of the clock.
    has_clock: bool,
    /// Of programs.
    tracks: Tracks,
    /// Of threads, for those.
    runs: ThreadRuns,
}

/// Read the events of a file.
pub(super) fn read(
    from: &mut impl BufRead,
    translation: &mut Translation,
) -> io::Result<Result<About, TranslationError>> {
    let mut state = PerfettoState::default();
    state.about.clock.name = "boot".to_owned();
    state.packets(from, translation, PacketDepth::File)?;
    if !translation.has_switches() && !state.tracks.spans.is_empty() {
        state.about.spans = Some(state.tracks.spans);
        return Ok(Ok(state.about));
    }
    if !translation.has_switches() {
        let remedy = "record the data source `linux.ftrace` with sched/sched_switch and sched/sched_waking";
        return Ok(Err(TranslationError::NoSwitches { remedy }));
    }
    state.runs.seal();
    state.tracks.spans.write(Some(&state.runs), 0, translation);
    Ok(Ok(state.about))
}

/// Where packets are: only those of the file may hold compressed ones.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PacketDepth {
    File,
    Compressed,
}

/// A number of seven bits a byte; `None` at the end.
fn varint(from: &mut impl Read) -> io::Result<Option<u64>> {
    let mut number = 0u64;
    for shift in (0..63).step_by(7) {
        let mut byte = [0];
        if from.read(&mut byte)? == 0 {
            return Ok(None);
        }
        number |= u64::from(byte[0] & 0x7f) << shift;
        if byte[0] & 0x80 == 0 {
            return Ok(Some(number));
        }
    }
    Ok(None)
}

impl PerfettoState {
    fn packets(&mut self, from: &mut impl Read, translation: &mut Translation, depth: PacketDepth) -> io::Result<()> {
        let (mut bytes, mut number) = (Vec::new(), 0u64);
        loop {
            let mut tag = [0];
            if from.read(&mut tag)? == 0 {
                return Ok(());
            }
            number += 1;
            let length = varint(from)?.filter(|length| tag[0] == PACKET && *length <= MOST_PACKET);
            let Some(length) = length else {
                translation.unreadable_record(|| format!("packet {number}, and what is after it"));
                return Ok(());
            };
            bytes.clear();
            from.take(length).read_to_end(&mut bytes)?;
            match TracePacket::decode(bytes.as_slice()) {
                Ok(packet) if bytes.len() as u64 == length => {
                    let before = translation.records.account.read;
                    self.packet(packet, translation, depth)?;
                    if translation.records.account.read == before {
                        whole_packet(&bytes, translation);
                    }
                }
                _ => translation.unreadable_record(|| format!("packet {number}")),
            }
        }
    }

    fn packet(&mut self, packet: TracePacket, translation: &mut Translation, depth: PacketDepth) -> io::Result<()> {
        self.tracks.packet(&packet, translation);
        if let Some(tree) = packet.process_tree {
            self.process_tree(tree, packet.timestamp.unwrap_or(0), translation);
        }
        if let Some(info) = packet.system_info.and_then(|info| info.utsname) {
            let names = [("sysname", info.sysname), ("kernel_release", info.release), ("architecture", info.machine)];
            let known = names.into_iter().filter_map(|(name, value)| Some((name, value?)));
            self.about.environment = known.collect();
        }
        if let Some(snapshot) = packet.clock_snapshot.filter(|_| !self.has_clock) {
            self.clock(&snapshot);
        }
        if let Some(bundle) = packet.ftrace_events {
            self.bundle(bundle, translation);
        }
        let zlib = packet.compressed_packets.as_deref();
        let zstd = packet.zstd_compressed_packets.as_deref();
        match zlib.or(zstd) {
            Some(packed) if depth == PacketDepth::File => {
                let most = (packed.len() as u64).saturating_mul(MOST_RATIO);
                let plain: Box<dyn Read> = match zlib {
                    Some(packed) => Box::new(flate2::read::ZlibDecoder::new(packed)),
                    None => match StreamingDecoder::new(packed) {
                        Ok(plain) => Box::new(plain),
                        Err(_) => Box::new(io::empty()),
                    },
                };
                let mut plain = plain.take(most);
                if self.packets(&mut plain, translation, PacketDepth::Compressed).is_err() {
                    translation.unreadable_record(|| "compressed packets".to_owned());
                }
                if plain.limit() == 0 {
                    translation.unreadable_record(|| "what is after the bound of compressed packets".to_owned());
                }
            }
            Some(_) => translation.unreadable_record(|| "compressed packets in compressed packets".to_owned()),
            None => {}
        }
        Ok(())
    }

    /// Wall-clock time: the events have the clock that counts from the start of the machine.
    fn clock(&mut self, snapshot: &ClockSnapshotMessage) {
        let of = |id| snapshot.clocks.iter().find(|clock| clock.clock_id == Some(id)).and_then(|clock| clock.timestamp);
        if let (Some(wall), Some(boot)) = (of(REALTIME), of(BOOTTIME)) {
            self.about.clock.base = i128::from(wall) - i128::from(boot);
            self.has_clock = true;
        }
    }

    fn process_tree(&mut self, tree: ProcessTreeMessage, time: u64, translation: &mut Translation) {
        for process in tree.processes {
            let Some(pid) = process.pid else { continue };
            self.processes.insert(pid, pid);
            if let Some(path) = process.cmdline.first() {
                let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
                self.names.entry(pid).or_insert_with(|| name.to_vec());
            }
            translation.know(time, self.thread(pid, None));
        }
        for thread in tree.threads {
            let Some(tid) = thread.tid else { continue };
            self.processes.extend(thread.tgid.map(|pid| (tid, pid)));
            self.names.extend(thread.name.filter(|name| !name.is_empty()).map(|name| (tid, name)));
            translation.know(time, self.thread(tid, None));
        }
    }

    /// A thread with the name that an event gives, or the last known one.
    fn thread<'a>(&'a self, tid: i32, name: Option<&'a [u8]>) -> NamedThread<'a> {
        if tid == 0 {
            return NamedThread { tid, pid: 0, name: b"swapper" };
        }
        let known = || self.names.get(&tid).map_or(&b""[..], |name| name);
        let name = name.filter(|name| !name.is_empty()).unwrap_or_else(known);
        NamedThread { tid, pid: self.processes.get(&tid).copied().unwrap_or(-1), name }
    }

    fn bundle(&mut self, bundle: FtraceEventBundleMessage, translation: &mut Translation) {
        let cpu = bundle.cpu.unwrap_or(0);
        if bundle.clock.unwrap_or(0) != 0 {
            let rows = bundle.compact_sched.as_ref().map_or(0, CompactSchedMessage::rows);
            for _ in 0..bundle.event.len() + rows {
                translation.unreadable_record(|| format!("events of CPU {cpu} on another clock than `boot`"));
            }
            return;
        }
        if bundle.lost_events == Some(true) {
            let columns = bundle.compact_sched.as_ref();
            let first =
                columns.into_iter().flat_map(|all| [all.switch_timestamp.first(), all.waking_timestamp.first()]);
            let event = bundle.event.first().and_then(|event| FtraceEventMessage::decode(event.as_slice()).ok());
            let first = first.flatten().copied().chain(event.and_then(|event| event.timestamp)).min();
            translation.lost(cpu, first.unwrap_or(0), None);
        }
        if let Some(columns) = &bundle.compact_sched {
            self.columns(cpu, columns, translation);
        }
        for event in bundle.event {
            translation.begin_record();
            match FtraceEventMessage::decode(event.as_slice()) {
                Ok(event) if self.event(cpu, &event, translation).is_some() => {}
                Ok(_) => translation.unused(|| "events of other kinds".to_owned()),
                Err(_) => translation.unreadable(|| format!("an event of CPU {cpu}")),
            }
            translation.end_record();
        }
    }

    /// Switches and wake-ups in columns, in order of time.
    fn columns(&mut self, cpu: u32, all: &CompactSchedMessage, translation: &mut Translation) {
        let times = |differences: &[u64]| {
            differences
                .iter()
                .scan(0u64, |time, more| {
                    *time = time.wrapping_add(*more);
                    Some(*time)
                })
                .collect::<Vec<_>>()
        };
        // Rows to which a column has no value cannot be read.
        let [switches, wakings] = all.whole_rows();
        for _ in switches + wakings..all.rows() {
            translation.unreadable_record(|| format!("a row of CPU {cpu} that is not in all columns"));
        }
        let times = |differences: &[u64], rows: usize| times(differences.get(..rows).unwrap_or(differences));
        let (switches, wakings) = (times(&all.switch_timestamp, switches), times(&all.waking_timestamp, wakings));
        let name = |index: Option<&u32>| index.and_then(|at| all.intern_table.get(*at as usize)).map(Vec::as_slice);
        let (mut switch, mut waking) = (0, 0);
        loop {
            let waking_first = match (switches.get(switch), wakings.get(waking)) {
                (None, None) => break,
                (Some(switch), Some(waking)) => waking <= switch,
                (None, Some(_)) => true,
                (Some(_), None) => false,
            };
            let running = self.running.get(&cpu).copied();
            if waking_first {
                let at = waking;
                waking += 1;
                let (Some(time), Some(tid)) = (wakings.get(at), all.waking_pid.get(at)) else { break };
                // Before the first switch the waker is not known.
                let waker = self.thread(running.unwrap_or(-1), None);
                let moment = EventPlace { time: *time, cpu, thread: waker };
                let woken = self.thread(*tid, name(all.waking_comm_index.get(at)));
                let target = all.waking_target_cpu.get(at).and_then(|cpu| u32::try_from(*cpu).ok());
                let flags = all.waking_common_flags.get(at).copied().unwrap_or(0);
                translation.begin_record();
                translation.waking(moment, woken, target, flags.into());
                translation.end_record();
                continue;
            }
            let at = switch;
            switch += 1;
            let (Some(time), Some(next)) = (switches.get(at), all.switch_next_pid.get(at)) else { break };
            translation.begin_record();
            // The first only shows which thread runs.
            translation.describes();
            let own_name = name(all.switch_next_comm_index.get(at));
            if let Some(prev) = running {
                let moment = EventPlace { time: *time, cpu, thread: self.thread(prev, None) };
                let state = all.switch_prev_state.get(at).copied().unwrap_or(0);
                translation.switch_by_number(moment, state, self.thread(*next, own_name));
            }
            self.runs.switched(CpuSwitch { time: moment(*time), cpu, prev: running, next: *next });
            self.names.extend(own_name.filter(|name| !name.is_empty()).map(|name| (*next, name.to_vec())));
            self.running.insert(cpu, *next);
            translation.end_record();
        }
    }

    /// Add an event; `None` where it is of no use.
    fn event(&mut self, cpu: u32, event: &FtraceEventMessage, translation: &mut Translation) -> Option<()> {
        let tid = i32::try_from(event.pid?).ok()?;
        let at = EventPlace { time: event.timestamp?, cpu, thread: self.thread(tid, None) };
        let number = |n: Option<i32>| FieldValue::Number(n.unwrap_or(0).into());
        let flags = i64::from(event.common_flags.unwrap_or(0));
        let woken = |wake: &WakeupMessage| Some((wake.pid?, wake.target_cpu.and_then(|cpu| u32::try_from(cpu).ok())));
        if let Some(switch) = &event.sched_switch {
            let prev = self.thread(switch.prev_pid?, switch.prev_comm.as_deref());
            let next = self.thread(switch.next_pid?, switch.next_comm.as_deref());
            translation.switch_by_number(EventPlace { thread: prev, ..at }, switch.prev_state.unwrap_or(0), next);
            self.running.insert(cpu, switch.next_pid?);
            let (time, prev) = (moment(event.timestamp?), switch.prev_pid);
            self.runs.switched(CpuSwitch { time, cpu, prev, next: switch.next_pid? });
        } else if let Some(wake) = &event.sched_waking {
            let (tid, target) = woken(wake)?;
            translation.waking(at, self.thread(tid, wake.comm.as_deref()), target, flags);
        } else if let Some(wake) = event.sched_wakeup.as_ref().or(event.sched_wakeup_new.as_ref()) {
            let name = if event.sched_wakeup.is_some() { "sched:sched_wakeup" } else { "sched:sched_wakeup_new" };
            let (tid, target) = woken(wake)?;
            let fields = [
                ("comm", FieldValue::Text(wake.comm.as_deref().unwrap_or(b""))),
                ("pid", FieldValue::Number(tid.into())),
                ("target_cpu", FieldValue::Number(target.map_or(-1, i64::from))),
                ("common_flags", FieldValue::Number(flags)),
            ];
            translation.event(at, name, &fields);
        } else if let Some(call) = &event.sys_enter {
            translation.event(at, "raw_syscalls:sys_enter", &[("id", FieldValue::Number(call.id?))]);
        } else if let Some(call) = &event.sys_exit {
            let fields = [("id", FieldValue::Number(call.id?)), ("ret", FieldValue::Number(call.ret.unwrap_or(0)))];
            translation.event(at, "raw_syscalls:sys_exit", &fields);
        } else if let Some(exit) = &event.sched_process_exit {
            translation.event(at, "sched:sched_process_exit", &[("pid", number(exit.pid))]);
        } else if let Some(exec) = &event.sched_process_exec {
            let file = FieldValue::Text(exec.filename.as_deref().unwrap_or(b""));
            let fields = [("filename", file), ("pid", number(exec.pid)), ("old_pid", number(exec.old_pid))];
            translation.event(at, "sched:sched_process_exec", &fields);
        } else if let Some(print) = &event.print {
            return perfetto_devices::marker(at, print.buf.as_deref()?, translation);
        } else {
            return self
                .process_event(at, event, translation)
                .or_else(|| perfetto_devices::event(at, event, translation));
        }
        Some(())
    }

    /// Events that begin and rename threads.
    fn process_event(
        &self,
        at: EventPlace<'_>,
        event: &FtraceEventMessage,
        translation: &mut Translation,
    ) -> Option<()> {
        if let Some(fork) = &event.sched_process_fork {
            let name = FieldValue::Text(fork.child_comm.as_deref().unwrap_or(b""));
            let id = |n: Option<i32>| FieldValue::Number(n.unwrap_or(0).into());
            let fields = [("parent_pid", id(fork.parent_pid)), ("child_comm", name), ("child_pid", id(fork.child_pid))];
            translation.event(at, "sched:sched_process_fork", &fields);
        } else if let Some(new) = &event.task_newtask {
            let own = new.clone_flags.unwrap_or(0) & THREAD == 0;
            let pid = if own { new.pid? } else { at.thread.pid };
            translation.know(at.time, NamedThread { tid: new.pid?, pid, name: new.comm.as_deref().unwrap_or(b"") });
        } else if let Some(rename) = &event.task_rename {
            let name = rename.newcomm.as_deref().unwrap_or(b"");
            translation.know(at.time, NamedThread { tid: rename.pid?, pid: -1, name });
        } else {
            return None;
        }
        Some(())
    }
}

/// A packet without events: it describes the trace, or is of a source that no analysis uses.
fn whole_packet(packet: &[u8], translation: &mut Translation) {
    translation.begin_record();
    match perfetto_messages::source(packet) {
        None => translation.describes(),
        Some(field) => translation.unused(|| format!("packets of other data sources (field {field} of TracePacket)")),
    }
    translation.end_record();
}
