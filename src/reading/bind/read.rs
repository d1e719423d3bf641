//! Records to events, by what was decided for their class.
//!
//! In: the values of a record. Out: its events, in their batch. A slot that the class has not is an absent value, which
//! makes a field 0 or its event none. Cost: the fields of the event; a context is interned where it changes.

use super::recent::Recent;
use super::{Binding, Bound, NOWHERE, Slot};
use crate::base::time::Span;
use crate::event::image::{CODE, ImageChange};
use crate::event::kind::SOFT_IRQS;
use crate::event::kind::{Context, Event, Kind, TextId, WakeSource, WhoId};
use crate::event::stack::RawStackId;
use crate::input::record::{Record, Value};
use crate::reading::batch::{Batch, BlockRequest, DumpedThread, Flow, NetworkPacket, TcpSegment};
use crate::reading::classes::Shape;
use crate::reading::dialect::split_chain;
use crate::reading::syscalls;

/// Turns the records of one stream into events of a batch.
#[derive(Debug)]
pub struct Binder<'b> {
    binding: &'b Binding,
    trace: u16,
    /// Names and contexts of the threads that took turns.
    recent: Recent,
    /// Names of classes in the batch.
    texts: Vec<TextId>,
}

/// The values of a record by slot.
#[derive(Clone, Copy)]
pub(super) struct Values<'r, 'a>(&'r [Value<'a>]);

impl<'a> Values<'_, 'a> {
    pub(super) fn at(self, slot: Slot) -> Value<'a> {
        self.0.get(usize::from(slot)).copied().unwrap_or_default()
    }

    fn number(self, slot: Slot) -> i64 {
        self.at(slot).as_i64().unwrap_or(0)
    }

    fn id(self, slot: Slot) -> i32 {
        self.number(slot) as i32
    }

    fn cpu(self, slot: Slot) -> u16 {
        u16::try_from(self.number(slot)).unwrap_or(u16::MAX)
    }
}

impl<'b> Binder<'b> {
    /// A binder for one stream of the trace at position `trace`.
    pub fn new(binding: &'b Binding, trace: u16) -> Binder<'b> {
        Binder { binding, trace, recent: Recent::default(), texts: vec![TextId::NONE; binding.classes.len()] }
    }

    /// Append what a record means.
    pub fn read(&mut self, record: &Record<'_, '_>, batch: &mut Batch, events: &mut Vec<Event>) {
        let binding = self.binding;
        let Some(Some(bound)) = binding.classes.get(record.class.index()) else { return };
        let values = Values(record.values);
        let who = bound.context.map_or(WhoId::NOBODY, |slots| self.who(values, slots, batch));
        let cpu = values.at(bound.cpu).as_u64().unwrap_or_else(|| record.cpu.into());
        let cpu = u16::try_from(cpu).unwrap_or(u16::MAX);
        let event = |kind| Event { time: record.time, who, trace: self.trace, cpu, kind };
        let followed = !bound.twin && !bound.told_elsewhere.is_some_and(|span: Span| span.contains(record.time));
        if let Some((origin, user, kernel)) = bound.stack {
            let (user, kernel) = if user == kernel {
                chain(values.at(user), batch)
            } else {
                (stack(values.at(user), batch), stack(values.at(kernel), batch))
            };
            if user.is_some() || kernel.is_some() {
                let witness = followed && bound.shape != Shape::Switch;
                events.push(event(Kind::Stack { origin, user, kernel, witness }));
            }
        }
        if !followed {
            return;
        }
        for (name, slot) in &bound.counters {
            if let Some(value) = values.at(*slot).as_u64() {
                events.push(event(Kind::Counter { name: batch.text(name.as_bytes()), value }));
            }
        }
        for mark in &bound.marks {
            if let Some(body) = mark.read(values, batch) {
                let id = batch.mark(body);
                events.push(event(Kind::Mark(id)));
            }
        }
        let text = &mut self.texts[record.class.index()];
        if let (&mut TextId::NONE, Some(name)) = (&mut *text, &bound.text)
            && !name.is_empty()
        {
            *text = batch.text(name.as_bytes());
        }
        let text = *text;
        if let Some(kind) = kind(bound, values, text, self.binding.machine.as_deref(), (batch, &mut self.recent)) {
            events.push(Event { time: record.time, who, trace: self.trace, cpu, kind });
        }
    }

    fn who(&mut self, values: Values<'_, '_>, slots: [Slot; 6], batch: &mut Batch) -> WhoId {
        let ids = std::array::from_fn(|i| values.at(slots[i]).as_i64());
        self.recent.context(ids, values.at(slots[5]).as_text().unwrap_or(b""), batch)
    }
}

/// Addresses of a call stack without the mark of truncation at their end.
fn stack(value: Value<'_>, batch: &mut Batch) -> Option<RawStackId> {
    let mut addresses: smallvec::SmallVec<[u64; 128]> = value.as_words()?.iter().collect();
    if addresses.last() == Some(&u64::MAX) {
        addresses.pop();
    }
    (!addresses.is_empty()).then(|| batch.stacks.intern(&addresses))
}

/// The user's and the kernel's part of a call chain.
fn chain(value: Value<'_>, batch: &mut Batch) -> (Option<RawStackId>, Option<RawStackId>) {
    let Some(words) = value.as_words() else { return (None, None) };
    let (user, kernel) = split_chain(words.iter());
    let mut intern = |addresses: Vec<u64>| (!addresses.is_empty()).then(|| batch.stacks.intern(&addresses));
    (intern(user), intern(kernel))
}

/// The name of a system call by its number; the number itself where it has no name.
fn call(machine: Option<&str>, number: i64, batch: &mut Batch) -> TextId {
    match syscalls::name(machine, number) {
        Some(name) => batch.text(name.as_bytes()),
        None => batch.text(format!("syscall {number}").as_bytes()),
    }
}

/// The event itself. `machine` says how system calls are numbered.
fn kind(
    bound: &Bound,
    values: Values<'_, '_>,
    text: TextId,
    machine: Option<&str>,
    (batch, recent): (&mut Batch, &mut Recent),
) -> Option<Kind> {
    let slot = |i: usize| bound.fields.get(i).copied().unwrap_or(NOWHERE);
    let id = |i: usize| values.id(slot(i));
    let word = |i: usize| values.at(slot(i)).as_u64();
    let name = |i: usize, batch: &mut Batch| match values.at(slot(i)) {
        Value::Text(text) => batch.text(text),
        _ => TextId::NONE,
    };
    let mut thread_name = |tid: i32, i: usize, batch: &mut Batch| match values.at(slot(i)) {
        Value::Text(text) => recent.name(tid, text, batch),
        _ => TextId::NONE,
    };
    let mut wake = |source: WakeSource, batch: &mut Batch| {
        let source = source.flagged(word(3).unwrap_or(0));
        Kind::Wake { tid: id(0), cpu: values.cpu(slot(1)), source, name: thread_name(id(0), 2, batch) }
    };
    Some(match bound.shape {
        Shape::Switch => Kind::Switch {
            prev: id(0),
            next: id(1),
            prev_state: values.number(slot(2)) as u16,
            prev_name: thread_name(id(0), 3, batch),
            next_name: thread_name(id(1), 4, batch),
        },
        Shape::Waking => wake(WakeSource::Waking, batch),
        Shape::Wakeup => wake(WakeSource::Wakeup, batch),
        Shape::Queued => wake(WakeSource::Queued, batch),
        Shape::WakeNew => wake(WakeSource::New, batch),
        Shape::Fork => {
            let vtids = values.at(slot(3)).as_words();
            let child_vtid = vtids.and_then(|w| w.iter().last()).unwrap_or(0) as i32;
            let (parent, child, child_pid) = (id(0), id(1), values.at(slot(2)).as_i64());
            let child_pid = child_pid.map_or(child, |pid| pid as i32);
            Kind::Fork { parent, child, child_pid, child_vtid, name: name(4, batch) }
        }
        Shape::Exec => {
            let tid = id(0);
            let old_tid = values.at(slot(1)).as_i64().map_or(tid, |old| old as i32);
            Kind::Exec { tid, old_tid, path: name(2, batch) }
        }
        Shape::Exit => Kind::Exit { tid: id(0) },
        Shape::Free => Kind::Free { tid: id(0) },
        Shape::Migrate => Kind::Migrate { tid: id(0), cpu: values.cpu(slot(1)) },
        Shape::IrqEnter => Kind::Enter { context: Context::Irq(id(0)), name: name(1, batch) },
        Shape::IrqLeave => Kind::Leave { context: Context::Irq(id(0)) },
        Shape::SoftIrqRaise => Kind::Raise { vector: id(0) as u32 },
        Shape::SoftIrqEnter => {
            let vector = id(0) as u32;
            let name = SOFT_IRQS.get(vector as usize).map_or(TextId::NONE, |n| batch.text(n.as_bytes()));
            Kind::Enter { context: Context::SoftIrq(vector), name }
        }
        Shape::SoftIrqLeave => Kind::Leave { context: Context::SoftIrq(id(0) as u32) },
        Shape::TimerEnter => Kind::Enter { context: Context::Timer, name: text },
        Shape::TimerLeave => Kind::Leave { context: Context::Timer },
        Shape::VectorEnter(vector) => Kind::Enter { context: Context::Vector(vector), name: text },
        Shape::VectorLeave(vector) => Kind::Leave { context: Context::Vector(vector) },
        Shape::ReceptionEnter => Kind::Enter { context: Context::Reception, name: TextId::NONE },
        Shape::ReceptionLeave => Kind::Leave { context: Context::Reception },
        Shape::CallEntry => Kind::CallEntry { name: text },
        Shape::CallExit => Kind::CallExit { name: text, ret: values.number(slot(0)) },
        Shape::NumberedEntry => Kind::CallEntry { name: call(machine, values.number(slot(0)), batch) },
        Shape::NumberedExit => {
            Kind::CallExit { name: call(machine, values.number(slot(0)), batch), ret: values.number(slot(1)) }
        }
        Shape::Send => Kind::Send(batch.packet(packet(values, slot))),
        Shape::Receive => Kind::Receive(batch.packet(packet(values, slot))),
        Shape::Block(step) => {
            let write = match values.at(slot(4)) {
                Value::Text(text) => text.contains(&b'W'),
                value => value.as_u64().unwrap_or(0) & 1 != 0,
            };
            let bytes = word(3).unwrap_or_else(|| word(2).unwrap_or(0).saturating_mul(512));
            let tid = values.at(slot(5)).as_i64().map(|tid| tid as i32);
            let device = word(0).unwrap_or(0) as u32;
            let request = batch.request(BlockRequest { device, sector: word(1).unwrap_or(0), bytes, write, tid });
            Kind::Block { step, request }
        }
        Shape::Process => {
            let cpu = values.at(slot(4)).as_i64().and_then(|cpu| u16::try_from(cpu).ok());
            let name = name(5, batch);
            let process = DumpedThread { tid: id(0), pid: id(1), ppid: id(2), status: id(3), cpu, name };
            Kind::Process(batch.process(process))
        }
        Shape::Name => {
            let pid = values.at(slot(1)).as_i64().map_or(0, |pid| pid as i32);
            Kind::Name { tid: id(0), pid, name: name(2, batch) }
        }
        Shape::Namespace => Kind::Namespace { tid: id(0), vtid: id(1), vpid: id(2), level: id(3) },
        Shape::Line => Kind::Line { irq: id(0), name: name(1, batch) },
        Shape::PageFault => Kind::PageFault,
        Shape::FunctionEntry => Kind::Function { enters: true, address: word(0)? },
        Shape::FunctionExit => Kind::Function { enters: false, address: word(0).unwrap_or(0) },
        Shape::Sample(origin) => {
            Kind::Stack { origin, user: stack(values.at(slot(0)), batch), kernel: None, witness: true }
        }
        Shape::Work(step) => Kind::Work { step, address: word(0)? },
        Shape::Latency => Kind::Latency { ns: values.number(slot(0)) },
        Shape::Restart => Kind::Image(batch.image(ImageChange::Restart)),
        Shape::Load => {
            let (base, size) = (word(0)?, word(1).unwrap_or(0));
            let position_independent = word(3).is_none_or(|pic| pic != 0);
            let path = name(2, batch);
            Kind::Image(batch.image(ImageChange::Load { base, size, path, position_independent, offset: None }))
        }
        Shape::Map => {
            let (base, size, pid) = (word(0)?, word(1).unwrap_or(0), id(4));
            // The kernel's own files belong to no process.
            if pid <= 0 {
                return None;
            }
            // perf's records in CTF leave size and offset out: what it tells of is where code was mapped.
            let is_file = values.at(slot(2)).as_text().is_some_and(|path| path.starts_with(b"/"));
            let size = if word(1).is_none() && is_file { CODE } else { size };
            let path = name(2, batch);
            let load = ImageChange::Load { base, size, path, position_independent: true, offset: word(3) };
            Kind::Mapped { pid, image: batch.image(load) }
        }
        Shape::BuildId => {
            let bytes = values.at(slot(1)).as_words()?.iter().map(|b| b as u8).collect();
            Kind::Image(batch.image(ImageChange::BuildId { base: word(0)?, id: bytes }))
        }
        Shape::DebugLink => {
            let (base, file, crc) = (word(0)?, name(1, batch), word(2).unwrap_or(0) as u32);
            Kind::Image(batch.image(ImageChange::DebugLink { base, file, crc }))
        }
        Shape::Unload => Kind::Image(batch.image(ImageChange::Unload { base: word(0)? })),
        Shape::Tick | Shape::Other => return None,
    })
}

/// A packet from the fields of `classes::TCP_FIELDS`.
fn packet(values: Values<'_, '_>, slot: impl Fn(usize) -> Slot) -> NetworkPacket {
    let word = |i: usize| values.at(slot(i)).as_u64();
    let address = |i: usize| {
        let words = values.at(slot(i)).as_words()?;
        let bits = u32::from(words.width) * 8;
        Some(words.iter().fold(0u128, |sum, word| sum.checked_shl(bits).unwrap_or(0) | u128::from(word)))
    };
    // IPv4 counts its own header in the length, IPv6 does not.
    let tcp = |source: usize, dest: usize, bytes: Option<u64>, first: usize| {
        let header = word(first + 4).unwrap_or(5) * 4;
        Some(TcpSegment {
            flow: Flow {
                source: address(source)?,
                dest: address(dest)?,
                source_port: word(first)? as u16,
                dest_port: word(first + 1)? as u16,
            },
            seq: word(first + 2)? as u32,
            ack: word(first + 3)? as u32,
            flags: word(first + 5).unwrap_or(0) as u16,
            len: bytes.unwrap_or(0).saturating_sub(header) as u32,
        })
    };
    let v4 = word(3).map(|total| total.saturating_sub(word(4).unwrap_or(5) * 4));
    NetworkPacket { buffer: word(0).unwrap_or(0), tcp: tcp(1, 2, v4, 8).or_else(|| tcp(5, 6, word(7), 14)) }
}
