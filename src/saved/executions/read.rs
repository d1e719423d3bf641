//! Reads a database. None of its contents are trusted; any defect is an error of one line.
//!
//! Opening looks at header, table and the three shared sections; a task's sections are looked at when it is asked for.

use super::{DatabaseError, ENTRY, HEADER, Kind, MAGIC, SHARED, VERSION, columns};
use crate::base::ctx::Ctx;
use crate::base::cursor::{ByteOrder, Bytes};
use crate::base::mapped::Mapped;
use crate::base::names::{NameId, Names};
use crate::base::notice::{Notice, Notices};
use crate::base::pack::Unpack;
use crate::base::time::{Ns, Span, Timestamp};
use crate::model::context::{ContextId, Contexts, Frame, FrameKind};
use crate::model::execution::{ContextTime, Executions, Sparse};
use crate::model::facts::{Facts, HostQuality, Lost, Quality, TraceFacts};
use crate::model::recorded::{Recorded, StackKind};
use crate::model::recorder::TraceRecorder;
use crate::model::wait_kind::WaitKind;
use crate::model::{Model, ThreadInfo, ThreadInfoId, TraceId, TraceInfo, TraceLevel};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The most numbers that a file may unpack to, per byte of it and in addition: 200,000 executions of three contexts
/// each have about two per byte.
const PER_BYTE: u64 = 128;
const FREE: u64 = 1 << 20;

/// An opened database.
#[derive(Debug)]
pub struct Database {
    path: PathBuf,
    file: Mapped,
    sections: Vec<Section>,
    /// Facts about the traces.
    pub facts: Facts,
    /// The tasks whose executions it holds.
    pub tasks: Vec<String>,
    /// Notices about the traces.
    pub notices: Notices,
}

/// A section as the table describes it; it is inside the file and has at least a byte per item.
#[derive(Clone, Copy, Debug)]
struct Section {
    kind: u32,
    task: u32,
    items: usize,
    checksum: u32,
    from: usize,
    to: usize,
}

impl Database {
    /// Open a database.
    pub fn open(path: &Path) -> Result<Database, DatabaseError> {
        let file = Mapped::open(path).map_err(|error| DatabaseError::Io { path: path.to_owned(), error })?;
        let damaged = |what| DatabaseError::Damaged { path: path.to_owned(), at: 0, what };
        let bytes = file.bytes();
        let mut cursor = Bytes::new(bytes);
        if cursor.take(MAGIC.len()) != Some(&MAGIC) {
            return Err(damaged("it does not begin as a database does"));
        }
        let cut = || damaged("it ends within its header");
        let version = cursor.u32(ByteOrder::Little).ok_or_else(cut)?;
        if version != VERSION {
            return Err(DatabaseError::Version { path: path.to_owned(), found: version });
        }
        let count = cursor.u32(ByteOrder::Little).ok_or_else(cut)? as usize;
        let length = cursor.u64(ByteOrder::Little).ok_or_else(cut)?;
        if length != bytes.len() as u64 {
            let shorter = (bytes.len() as u64) < length;
            return Err(damaged(if shorter { "its end is missing" } else { "something follows its end" }));
        }
        let zero = cursor.u32(ByteOrder::Little).ok_or_else(cut)?;
        let checksum = cursor.u32(ByteOrder::Little).ok_or_else(cut)?;
        let begin = count.checked_mul(ENTRY).and_then(|t| t.checked_add(HEADER)).filter(|b| *b <= bytes.len());
        let begin = begin.ok_or_else(|| damaged("its table does not fit into it"))?;
        let mut sum = crc32fast::Hasher::new();
        sum.update(&bytes[..HEADER - 4]);
        sum.update(&[0; 4]);
        sum.update(&bytes[HEADER..begin]);
        if zero != 0 || sum.finalize() != checksum {
            return Err(damaged("the checksum of its table is wrong"));
        }
        let mut sections = Vec::with_capacity(count);
        let mut until = begin;
        for _ in 0..count {
            let section = Section::read(&mut cursor, until, bytes.len());
            let section = section.ok_or_else(|| damaged("a section is outside of the file"))?;
            until = section.to;
            sections.push(section);
        }
        if until != bytes.len() {
            return Err(damaged("its sections do not fill it"));
        }
        let mut database = Database {
            path: path.to_owned(),
            file,
            sections,
            facts: Facts::default(),
            tasks: Vec::new(),
            notices: Notices::default(),
        };
        database.facts = database.section(Kind::Facts, SHARED, read_facts)?;
        database.tasks =
            database.section(Kind::Tasks, SHARED, |n, u| (0..n).map(|_| u.text()).collect::<Option<_>>())?;
        database.notices = database.section(Kind::Notices, SHARED, read_notices)?;
        Ok(database)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Contents of a section, parsed by `read`, which gets the number of items and the bytes and must consume all of
    /// them.
    fn section<T>(
        &self,
        kind: Kind,
        task: u32,
        read: impl FnOnce(usize, &mut Unpack<'_>) -> Option<T>,
    ) -> Result<T, DatabaseError> {
        let damaged = |at: usize, what| DatabaseError::Damaged { path: self.path.clone(), at: at as u64, what };
        let mut found = self.sections.iter().filter(|s| s.kind == kind as u32 && s.task == task);
        let (Some(section), None) = (found.next(), found.next()) else {
            return Err(damaged(HEADER, "a section is missing, or there twice"));
        };
        let bytes = self.file.bytes().get(section.from..section.to).unwrap_or(&[]);
        if crc32fast::hash(bytes) != section.checksum {
            return Err(damaged(section.from, "a checksum is wrong"));
        }
        let mut unpack = Unpack(bytes);
        let made = read(section.items, &mut unpack).filter(|_| unpack.0.is_empty());
        made.ok_or_else(|| damaged(section.from, "a section contradicts the others or itself"))
    }

    /// How long each execution of a task took, ascending.
    pub fn durations(&self, task: usize) -> Result<Vec<Ns>, DatabaseError> {
        let task = task as u32;
        let (origin, _, traces) = self.section(Kind::Traces, task, read_traces)?;
        let who = self.section(Kind::Who, task, |n, u| read_who(n, usize::MAX, u))?.len();
        let read = |n, u: &mut Unpack<'_>| read_executions(n, origin, who, traces.len(), u);
        let executions = self.section(Kind::Executions, task, read)?;
        let mut all: Vec<Ns> = (0..executions.len()).map(|i| executions.duration(i)).collect();
        all.sort_unstable();
        Ok(all)
    }

    /// The model of a task, by its position in [`Database::tasks`].
    pub fn model(&self, task: usize, ctx: &Ctx) -> Result<Model, DatabaseError> {
        let number = task as u32;
        let (origin, quality, traces) = self.section(Kind::Traces, number, read_traces)?;
        let mut names = self.section(Kind::Names, number, read_names)?;
        let marked = |n, u: &mut Unpack<'_>| read_marked(n, names.len(), u);
        let unproven = self.section(Kind::Unproven, number, marked)?;
        let runtime = self.section(Kind::Runtime, number, marked)?;
        unproven.into_iter().for_each(|id| names.mark_unproven(id));
        runtime.into_iter().for_each(|id| names.mark_runtime(id));
        let who = self.section(Kind::Who, number, |n, u| read_who(n, names.len(), u))?;
        let mut contexts = self.section(Kind::Contexts, number, |n, u| read_contexts(n, names.len(), u))?;
        contexts.who = self.section(Kind::Held, number, |n, u| read_held(n, contexts.len(), who.len(), u))?;
        ctx.cancel.check()?;
        let read = |n, u: &mut Unpack<'_>| read_executions(n, origin, who.len(), traces.len(), u);
        let mut executions = self.section(Kind::Executions, number, read)?;
        let most = PER_BYTE.saturating_mul(self.file.bytes().len() as u64).saturating_add(FREE);
        executions.own = self.section(Kind::Own, number, |n, u| read_own(n, &executions, &contexts, most, u))?;
        ctx.cancel.check()?;
        let notices = self.section(Kind::Notices, number, read_notices)?;
        let mut model = Model {
            choice: None,
            profile: None,
            names,
            traces,
            tasks: Arc::new(self.tasks.clone()),
            task,
            who,
            contexts,
            executions,
            timelines: BTreeMap::new(),
            quality,
            notices,
            origin,
        };
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        model.executions.columns = self.section(Kind::Columns, number, |n, u| columns::read(&model, n, most, u))?;
        Ok(model)
    }
}

impl Section {
    /// The next one: it begins where the one before ended.
    fn read(cursor: &mut Bytes<'_>, from: usize, length: usize) -> Option<Section> {
        let (kind, task, items, checksum) = (
            cursor.u32(ByteOrder::Little)?,
            cursor.u32(ByteOrder::Little)?,
            cursor.u32(ByteOrder::Little)? as usize,
            cursor.u32(ByteOrder::Little)?,
        );
        let offset = usize::try_from(cursor.u64(ByteOrder::Little)?).ok()?;
        let to = offset.checked_add(usize::try_from(cursor.u64(ByteOrder::Little)?).ok()?)?;
        (offset == from && to <= length && items <= to - from).then_some(Section {
            kind,
            task,
            items,
            checksum,
            from,
            to,
        })
    }
}

fn read_facts(traces: usize, unpack: &mut Unpack<'_>) -> Option<Facts> {
    let lost = Lost { events: unpack.number()?, packets: unpack.number()?, streams: unpack.number()? };
    let text = |u: &mut Unpack<'_>| u.text();
    let trace = |_| {
        Some(TraceFacts {
            path: text(unpack)?,
            format: text(unpack)?,
            begin: unpack.maybe(Unpack::moment).ok()?,
            end: unpack.maybe(Unpack::moment).ok()?,
            host: unpack.maybe(text).ok()?,
            clock: unpack.maybe(text).ok()?,
            streams: unpack.number()?,
            packets: unpack.number()?,
            event_types: unpack.number()?,
            recorded: unpack.maybe(read_recorded).ok()?,
        })
    };
    Some(Facts { traces: (0..traces).map(trace).collect::<Option<_>>()?, lost })
}

fn read_recorded(unpack: &mut Unpack<'_>) -> Option<Recorded> {
    let host = unpack.text()?;
    let recorder = *TraceRecorder::ALL.get(usize::try_from(unpack.number()?).ok()?)?;
    let bits = unpack.number()?;
    let stacks = (0..).zip(StackKind::ALL).filter(|(bit, _)| bits >> bit & 1 != 0).map(|(_, kind)| kind).collect();
    // No more events than bytes: `index` bounds the number.
    let events = (0..unpack.index(unpack.0.len())?).map(|_| unpack.text()).collect::<Option<_>>()?;
    Some(Recorded { host, recorder, events, stacks })
}

fn read_traces(traces: usize, unpack: &mut Unpack<'_>) -> Option<(Timestamp, Vec<HostQuality>, Vec<TraceInfo>)> {
    let origin = unpack.moment()?;
    let host = |unpack: &mut Unpack<'_>| {
        let host = unpack.text()?;
        let mut number = || unpack.number();
        let (switches, contradictions, gaps, losses) = (number()?, number()?, number()?, number()?);
        let (interrupts, clock_error) = (number()?, number()?);
        let quality = Quality { switches, contradictions, gaps, losses, interrupts, clock_error };
        Some(HostQuality { host, quality })
    };
    // No more hosts than bytes: `index` bounds the number.
    let quality = (0..unpack.index(unpack.0.len())?).map(|_| host(unpack)).collect::<Option<_>>()?;
    let trace = |_| {
        let label = unpack.text()?;
        let level = match unpack.number()? {
            0_u64 => TraceLevel::Machine,
            1 => TraceLevel::MpiRun,
            _ => return None,
        };
        let span = Span::new(unpack.moment()?, unpack.moment()?);
        Some(TraceInfo { label, level, span, recorded: unpack.maybe(read_recorded).ok()? })
    };
    Some((origin, quality, (0..traces).map(trace).collect::<Option<_>>()?))
}

fn read_names(names: usize, unpack: &mut Unpack<'_>) -> Option<Names> {
    let mut all = Names::default();
    for i in 0..names {
        let id = all.intern(&unpack.text()?);
        // A repeated name would shift the ids of all later names.
        (id.index() == i).then_some(())?;
    }
    Some(all)
}

/// See `write_marked`.
fn read_marked(count: usize, names: usize, unpack: &mut Unpack<'_>) -> Option<Vec<NameId>> {
    let mut next = 0;
    let id = |_| {
        let id = unpack.index(names.checked_sub(next)?)? + next;
        next = id + 1;
        Some(NameId::at(id))
    };
    (0..count).map(id).collect()
}

fn read_who(count: usize, names: usize, unpack: &mut Unpack<'_>) -> Option<Vec<ThreadInfo>> {
    let who = |_| {
        let mut name = || unpack.index(names).map(NameId::at);
        let (host, process, thread) = (name()?, name()?, name()?);
        let mut id = || unpack.signed().and_then(|id| i32::try_from(id).ok());
        Some(ThreadInfo { host, process, pid: id()?, tid: id()?, thread })
    };
    (0..count).map(who).collect()
}

fn read_contexts(count: usize, names: usize, unpack: &mut Unpack<'_>) -> Option<Contexts> {
    let mut contexts = Contexts::default();
    for at in 0..count {
        let back = unpack.index(at + 1)?;
        let parent = (back > 0).then(|| ContextId::at(at - back));
        let kind = frame_kind(unpack.number()?)?;
        let id = contexts.child(parent, Frame { kind, name: NameId::at(unpack.index(names)?) });
        (id.index() == at).then_some(())?;
    }
    Some(contexts)
}

/// See `frame_code`.
fn frame_kind(code: u64) -> Option<FrameKind> {
    let spent = |code: u64| WaitKind::ALL.get(usize::try_from(code).ok()?).copied();
    Some(match code {
        0 => FrameKind::Process,
        1 => FrameKind::Function,
        2 => FrameKind::Inlined,
        3 => FrameKind::File,
        4 => FrameKind::KernelFunction,
        5 => FrameKind::Call,
        6 => FrameKind::NoStack,
        16..32 => FrameKind::Wait(spent(code - 16)?),
        32..48 => FrameKind::Thread(spent(code - 32)?),
        _ => return None,
    })
}

type Held = BTreeMap<(ContextId, ThreadInfoId), u64>;

fn read_held(count: usize, contexts: usize, who: usize, unpack: &mut Unpack<'_>) -> Option<Held> {
    let (mut held, mut total) = (BTreeMap::new(), 0);
    for _ in 0..count {
        let key = (ContextId::at(unpack.index(contexts)?), ThreadInfoId::at(unpack.index(who)?));
        let ns = unpack.number()?;
        total = u64::checked_add(total, ns)?;
        held.insert(key, ns).is_none().then_some(())?;
    }
    Some(held)
}

fn read_executions(
    count: usize,
    origin: Timestamp,
    who: usize,
    traces: usize,
    unpack: &mut Unpack<'_>,
) -> Option<Executions> {
    let mut all = Executions {
        start: Vec::with_capacity(count),
        end: Vec::with_capacity(count),
        who: Vec::with_capacity(count),
        trace: Vec::with_capacity(count),
        cpu: Vec::with_capacity(count),
        unsure: Vec::with_capacity(count),
        ..Executions::default()
    };
    let mut before = origin;
    for _ in 0..count {
        let start = Timestamp::new(before.ns().wrapping_add(unpack.signed()?));
        all.start.push(start);
        // Neither the end nor the time since the begin of all may leave the line.
        all.end.push(start.checked_add(unpack.signed().filter(|d| *d >= 0)?)?);
        all.who.push(ThreadInfoId::at(unpack.index(who)?));
        let trace = unpack.number()?;
        all.trace.push(TraceId::from_raw(u32::try_from(trace >> 1).ok().filter(|t| (*t as usize) < traces)?));
        all.unsure.push(trace & 1 == 1);
        all.cpu.push(u16::try_from(unpack.number()?).ok()?.wrapping_sub(1));
        before = start;
    }
    Some(all)
}

/// Own times, which add up to the durations; contexts ascending. `most` bounds the steps from them to their roots.
fn read_own(
    count: usize,
    executions: &Executions,
    contexts: &Contexts,
    mut most: u64,
    unpack: &mut Unpack<'_>,
) -> Option<Sparse> {
    (count == executions.len()).then_some(())?;
    let mut own = Sparse::default();
    let mut row: Vec<ContextTime> = Vec::new();
    for i in 0..count {
        row.clear();
        let (mut at, mut left) = (0, executions.duration(i) as u64);
        for entry in 0..unpack.number()? {
            let step = unpack.index(contexts.len())?;
            (entry == 0 || step > 0).then_some(())?;
            at += step;
            (at < contexts.len()).then_some(())?;
            let ns = unpack.number()?;
            left = left.checked_sub(ns)?;
            let context = ContextId::at(at);
            most = most.checked_sub(u64::from(contexts.depth(context)) + 1)?;
            row.push(ContextTime { context, ns });
        }
        (left == 0).then_some(())?;
        own.push_sorted(&row);
    }
    own.shrink();
    Some(own)
}

fn read_notices(count: usize, unpack: &mut Unpack<'_>) -> Option<Notices> {
    let mut notices = Notices::default();
    for _ in 0..count {
        let name = unpack.text()?;
        let notice = Notice::ALL.iter().find(|n| n.name() == name)?;
        let (count, first) = (unpack.number()?, unpack.text()?);
        notices.add(*notice, count, || first.to_owned());
    }
    Some(notices)
}
