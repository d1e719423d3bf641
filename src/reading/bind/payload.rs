//! The event that a record's own fields make.
//!
//! In: the values of a record, by the positions that `classes.rs` gives the fields of each shape. Out: a [`Kind`], its
//! texts and bodies in the batch. A field that is absent is 0, or its event is none.

use super::Bound;
use super::paths::{NOWHERE, Slot};
use super::recent::Recent;
use super::values::{Values, stack};
use crate::event::descriptor::{
    ADDRESS_ARGUMENT, NamedDescriptor, descriptor_fields, descriptor_use, named_descriptor,
};
use crate::event::image::{CODE, ImageChange};
use crate::event::kind::{Context, Kind, PacketId, RequestId, SoftIrq, TextId, WakeSource, WeightId};
use crate::event::remark::{Priority, RemarkKind};
use crate::input::record::Value;
use crate::reading::batch::{Batch, BlockRequest, DumpStatus, DumpedThread, Flow, NetworkPacket, TcpSegment};
use crate::reading::classes::Shape;
use crate::reading::syscalls;

/// LTTng's priorities are less than the kernel's by this, and below the end; others who write its format may not
/// subtract it.
const LTTNG_PRIORITY: i64 = 100;
const LTTNG_END: i64 = 40;

/// The state in `power:cpu_idle` of a CPU that has left its idle state (`PWR_EVENT_EXIT`).
const LEFT_IDLE_STATE: u32 = u32::MAX;

/// Numbers of the signals that stop a process: SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU.
const STOP_SIGNALS: [i64; 4] = [19, 20, 21, 22];

/// One record while its event is made.
pub(super) struct Payload<'r, 'a> {
    pub bound: &'r Bound,
    pub values: Values<'r, 'a>,
    /// Name of the class's system call or vector.
    pub text: TextId,
    /// The architecture, by which system calls are numbered.
    pub machine: Option<&'r str>,
    pub batch: &'r mut Batch,
    pub recent: &'r mut Recent,
}

impl Payload<'_, '_> {
    fn slot(&self, field: usize) -> Slot {
        self.bound.fields.get(field).copied().unwrap_or(NOWHERE)
    }

    fn id(&self, field: usize) -> i32 {
        self.values.id(self.slot(field))
    }

    fn word(&self, field: usize) -> Option<u64> {
        self.values.at(self.slot(field)).as_u64()
    }

    fn name(&mut self, field: usize) -> TextId {
        match self.values.at(self.slot(field)) {
            Value::Text(text) => self.batch.text(text),
            _ => TextId::NONE,
        }
    }

    fn thread_name(&mut self, tid: i32, field: usize) -> TextId {
        match self.values.at(self.slot(field)) {
            Value::Text(text) => self.recent.name(tid, text, self.batch),
            _ => TextId::NONE,
        }
    }

    /// The name of a system call by its number; the number itself where it has no name. None for a number below 0,
    /// which the kernel writes where a call set all registers (`rt_sigreturn`), and for the calls by which the code of
    /// probes enters the kernel: they belong to the recorder, not to the program.
    fn call(&mut self) -> TextId {
        let number = self.values.number(self.slot(0));
        match syscalls::name(self.machine, number) {
            Some("uretprobe" | "uprobe") => TextId::NONE,
            None if number < 0 => TextId::NONE,
            Some(name) => self.batch.text(name.as_bytes()),
            None => self.batch.text(format!("syscall {number}").as_bytes()),
        }
    }

    /// The open file that a call names.
    fn descriptor(&self) -> Option<NamedDescriptor> {
        let value = |field: usize| self.values.at(self.slot(field)).as_i64();
        // A call of several purposes has a second field, one that may name an address a third.
        let command = if self.bound.fields.len() == 2 { Some(value(1)?) } else { None };
        named_descriptor(value(0)?, command, value(2))
    }

    /// The open file that a call by its number names, where its arguments were recorded.
    fn numbered_descriptor(&self) -> Option<NamedDescriptor> {
        let arguments = self.values.at(self.slot(1)).as_words()?;
        let call = syscalls::name(self.machine, self.values.number(self.slot(0)))?;
        descriptor_use(call)?;
        let argument = |at: usize| arguments.iter().nth(at).map(|word| word as i64);
        let (command, address) = match descriptor_fields(call).len() {
            2 => (argument(1), None),
            3 => (None, argument(ADDRESS_ARGUMENT)),
            _ => (None, None),
        };
        named_descriptor(argument(0)?, command, address)
    }

    /// The priority of a thread of a switch.
    fn priority(&self, field: usize) -> Priority {
        let recorded = self.values.at(self.slot(field)).as_i64();
        let is_lttng = self.slot(7) != NOWHERE;
        let is_less = |prio: i64| is_lttng && prio < LTTNG_END;
        Priority::from_kernel(
            recorded.map(|prio| if is_less(prio) { prio.saturating_add(LTTNG_PRIORITY) } else { prio }),
        )
    }

    fn wake(&mut self, source: WakeSource) -> Kind {
        let source = source.flagged(self.word(3).unwrap_or(0));
        let tid = self.id(0);
        Kind::Wake { tid, cpu: self.values.cpu(self.slot(1)), source, name: self.thread_name(tid, 2) }
    }

    /// The event; `None` where the record makes none.
    pub fn kind(&mut self) -> Option<Kind> {
        Some(match self.bound.shape {
            Shape::Switch => Kind::Switch {
                prev: self.id(0),
                next: self.id(1),
                prev_state: self.values.number(self.slot(2)) as u16,
                prev_name: self.thread_name(self.id(0), 3),
                next_name: self.thread_name(self.id(1), 4),
                priorities: [5, 6].map(|field| self.priority(field)),
            },
            Shape::Waking => self.wake(WakeSource::Waking),
            Shape::Wakeup => self.wake(WakeSource::Wakeup),
            Shape::Queued => self.wake(WakeSource::Queued),
            Shape::WakeNew => self.wake(WakeSource::New),
            Shape::Fork => {
                let vtids = self.values.at(self.slot(3)).as_words();
                let child_vtid = vtids.and_then(|w| w.iter().last()).unwrap_or(0) as i32;
                let (parent, child, child_pid) = (self.id(0), self.id(1), self.values.at(self.slot(2)).as_i64());
                let child_pid = child_pid.map_or(child, |pid| pid as i32);
                Kind::Fork { parent, child, child_pid, child_vtid, name: self.name(4) }
            }
            Shape::Exec => {
                let tid = self.id(0);
                let old_tid = self.values.at(self.slot(1)).as_i64().map_or(tid, |old| old as i32);
                Kind::Exec { tid, old_tid, path: self.name(2) }
            }
            Shape::Exit => Kind::Exit { tid: self.id(0) },
            Shape::Free => Kind::Free { tid: self.id(0) },
            Shape::Leaves => Kind::Leaves { tid: self.id(0), prev_state: self.values.number(self.slot(1)) as u16 },
            Shape::Returns => Kind::Returns { tid: self.id(0) },
            Shape::Migrate => Kind::Migrate { tid: self.id(0), cpu: self.values.cpu(self.slot(1)) },
            Shape::CallEntry => Kind::CallEntry { name: self.text, descriptor: self.descriptor() },
            Shape::CallExit => Kind::CallExit { name: self.text, ret: self.values.number(self.slot(0)) },
            Shape::NumberedEntry => Kind::CallEntry { name: self.call(), descriptor: self.numbered_descriptor() },
            Shape::NumberedExit => Kind::CallExit { name: self.call(), ret: self.values.number(self.slot(1)) },
            Shape::Send => Kind::Send(self.packet()),
            Shape::Receive => Kind::Receive(self.packet()),
            Shape::Block(step) => Kind::Block { step, request: self.block_request() },
            Shape::Process => {
                let cpu = self.values.at(self.slot(4)).as_i64().and_then(|cpu| u16::try_from(cpu).ok());
                let name = self.name(5);
                let process = DumpedThread {
                    tid: self.id(0),
                    pid: self.id(1),
                    ppid: self.id(2),
                    status: DumpStatus::of(self.id(3)),
                    cpu,
                    name,
                };
                Kind::Process(self.batch.process(process))
            }
            Shape::Name => {
                let pid = self.values.at(self.slot(1)).as_i64().map_or(0, |pid| pid as i32);
                Kind::Name { tid: self.id(0), pid, name: self.name(2) }
            }
            Shape::Namespace => {
                Kind::Namespace { tid: self.id(0), vtid: self.id(1), vpid: self.id(2), level: self.id(3) }
            }
            Shape::Line => Kind::Line { irq: self.id(0), name: self.name(1) },
            Shape::PageFault => Kind::PageFault,
            Shape::FunctionEntry => Kind::Function { enters: true, address: self.word(0)? },
            Shape::FunctionExit => Kind::Function { enters: false, address: self.word(0).unwrap_or(0) },
            Shape::Sample(origin) => Kind::Stack {
                origin,
                user: stack(self.values.at(self.slot(0)), self.batch),
                kernel: None,
                witness: true,
                weight: WeightId::NONE,
            },
            Shape::Work(step) => Kind::Work { step, address: self.word(0)? },
            Shape::Latency => Kind::Latency { ns: self.values.number(self.slot(0)) },
            Shape::Tick | Shape::Other => return None,
            _ => return self.interrupt().or_else(|| self.image()).or_else(|| self.remark()),
        })
    }

    /// An interrupt context begins or ends.
    fn interrupt(&mut self) -> Option<Kind> {
        Some(match self.bound.shape {
            Shape::IrqEnter => Kind::Enter { context: Context::Irq(self.id(0)), name: self.name(1) },
            Shape::IdleState => Kind::IdleState { enters: self.word(0)? as u32 != LEFT_IDLE_STATE },
            Shape::IrqLeave => Kind::Leave { context: Context::Irq(self.id(0)) },
            Shape::SoftIrqRaise => Kind::Raise { soft_irq: SoftIrq::of(self.id(0) as u32) },
            Shape::SoftIrqEnter => {
                let soft_irq = SoftIrq::of(self.id(0) as u32);
                let name = soft_irq.name().map_or(TextId::NONE, |n| self.batch.text(n.as_bytes()));
                Kind::Enter { context: Context::SoftIrq(soft_irq), name }
            }
            Shape::SoftIrqLeave => Kind::Leave { context: Context::SoftIrq(SoftIrq::of(self.id(0) as u32)) },
            Shape::TimerEnter => Kind::Enter { context: Context::Timer, name: self.text },
            Shape::TimerLeave => Kind::Leave { context: Context::Timer },
            Shape::VectorEnter(vector) => Kind::Enter { context: Context::Vector(vector), name: self.text },
            Shape::VectorLeave(vector) => Kind::Leave { context: Context::Vector(vector) },
            Shape::ReceptionEnter => Kind::Enter { context: Context::PacketReceive, name: TextId::NONE },
            Shape::ReceptionLeave => Kind::Leave { context: Context::PacketReceive },
            _ => return None,
        })
    }

    /// An event that changes no state.
    fn remark(&self) -> Option<Kind> {
        match self.bound.shape {
            Shape::Remark(kind) => Some(Kind::Remark(kind)),
            Shape::Signal => {
                let number = self.values.number(self.slot(0));
                let to = self.id(1);
                if STOP_SIGNALS.contains(&number) {
                    return Some(Kind::Remark(RemarkKind::Stops(to)));
                }
                let number = u8::try_from(number).ok().filter(|number| *number > 0)?;
                Some(Kind::Remark(RemarkKind::Signal { number, to }))
            }
            Shape::Frequency => {
                let khz = u32::try_from(self.word(0)?).ok().filter(|khz| *khz > 0)?;
                let cpu = self.values.cpu(self.slot(1));
                (cpu != u16::MAX).then_some(Kind::Remark(RemarkKind::Frequency { cpu, khz }))
            }
            _ => None,
        }
    }

    fn block_request(&mut self) -> RequestId {
        let write = match self.values.at(self.slot(4)) {
            Value::Text(text) => text.contains(&b'W'),
            value => value.as_u64().unwrap_or(0) & 1 != 0,
        };
        let bytes = self.word(3).unwrap_or_else(|| self.word(2).unwrap_or(0).saturating_mul(512));
        let tid = self.values.at(self.slot(5)).as_i64().map(|tid| tid as i32);
        let device = self.word(0).unwrap_or(0) as u32;
        self.batch.request(BlockRequest { device, sector: self.word(1).unwrap_or(0), bytes, write, tid })
    }

    /// The images of a process change.
    fn image(&mut self) -> Option<Kind> {
        Some(match self.bound.shape {
            Shape::Restart => Kind::Image(self.batch.image(ImageChange::Restart)),
            Shape::Load => {
                let (base, size) = (self.word(0)?, self.word(1).unwrap_or(0));
                let position_independent = self.word(3).is_none_or(|pic| pic != 0);
                let path = self.name(2);
                Kind::Image(self.batch.image(ImageChange::Load {
                    base,
                    size,
                    path,
                    position_independent,
                    offset: None,
                }))
            }
            Shape::Map => {
                let (base, size, pid) = (self.word(0)?, self.word(1).unwrap_or(0), self.id(4));
                // The kernel's own files belong to no process.
                if pid <= 0 {
                    return None;
                }
                // perf's records in CTF lack size and offset; they are about mappings of code.
                let is_file = self.values.at(self.slot(2)).as_text().is_some_and(|path| path.starts_with(b"/"));
                let size = if self.word(1).is_none() && is_file { CODE } else { size };
                let path = self.name(2);
                let load = ImageChange::Load { base, size, path, position_independent: true, offset: self.word(3) };
                let image = self.batch.image(load);
                let id: Option<Box<[u8]>> = self.values.at(self.slot(5)).as_words().map(|id| {
                    let length = self.word(6).and_then(|length| usize::try_from(length).ok()).unwrap_or(usize::MAX);
                    id.iter().take(length).map(|b| b as u8).collect()
                });
                let id = id.filter(|id| !id.is_empty());
                let build_id = id.map(|id| self.batch.image(ImageChange::BuildId { base, id }));
                Kind::Mapped { pid, image, build_id }
            }
            Shape::BuildId => {
                let bytes = self.values.at(self.slot(1)).as_words()?.iter().map(|b| b as u8).collect();
                Kind::Image(self.batch.image(ImageChange::BuildId { base: self.word(0)?, id: bytes }))
            }
            Shape::DebugLink => {
                let (base, file, crc) = (self.word(0)?, self.name(1), self.word(2).unwrap_or(0) as u32);
                Kind::Image(self.batch.image(ImageChange::DebugLink { base, file, crc }))
            }
            Shape::Unload => Kind::Image(self.batch.image(ImageChange::Unload { base: self.word(0)? })),
            _ => return None,
        })
    }

    /// A packet from the fields of `classes::TCP_FIELDS`.
    fn packet(&mut self) -> PacketId {
        let packet = NetworkPacket { buffer: self.word(0).unwrap_or(0), tcp: self.tcp() };
        self.batch.packet(packet)
    }

    /// Its TCP header: that of IPv4, else that of IPv6. IPv4 counts its own header in the length, IPv6 does not.
    fn tcp(&self) -> Option<TcpSegment> {
        let v4 = self.word(3).map(|total| total.saturating_sub(self.word(4).unwrap_or(5) * 4));
        self.segment(1, 2, v4, 8).or_else(|| self.segment(5, 6, self.word(7), 14))
    }

    /// A segment of `bytes` bytes, whose TCP fields are `first` and the following ones.
    fn segment(&self, source: usize, dest: usize, bytes: Option<u64>, first: usize) -> Option<TcpSegment> {
        let header = self.word(first + 4).unwrap_or(5) * 4;
        Some(TcpSegment {
            flow: Flow {
                source: self.address(source)?,
                dest: self.address(dest)?,
                source_port: self.word(first)? as u16,
                dest_port: self.word(first + 1)? as u16,
            },
            seq: self.word(first + 2)? as u32,
            ack: self.word(first + 3)? as u32,
            flags: self.word(first + 5).unwrap_or(0) as u16,
            len: bytes.unwrap_or(0).saturating_sub(header) as u32,
        })
    }

    fn address(&self, field: usize) -> Option<u128> {
        let words = self.values.at(self.slot(field)).as_words()?;
        let bits = u32::from(words.width) * 8;
        Some(words.iter().fold(0u128, |sum, word| sum.checked_shl(bits).unwrap_or(0) | u128::from(word)))
    }
}
