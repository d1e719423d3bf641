//! Writing a database: each model is packed when it is given and can be dropped then; the file appears whole or not at
//! all.

use super::{DatabaseError, ENTRY, HEADER, Kind, MAGIC, SHARED, VERSION, columns};
use crate::base::file::{Existing, Output};
use crate::base::names::{NameId, Names};
use crate::base::notice::Notices;
use crate::base::pack::Pack;
use crate::base::time::Timestamp;
use crate::model::context::{Contexts, FrameKind};
use crate::model::execution::{ContextTime, Executions, Sparse};
use crate::model::facts::{Facts, HostQuality, Lost, Quality, TraceFacts};
use crate::model::recorded::{Recorded, StackKind};
use crate::model::{Model, ThreadInfo, TraceInfo, TraceLevel};
use std::io::Write;

struct Section {
    kind: Kind,
    task: u32,
    items: usize,
    bytes: Vec<u8>,
}

/// A database in the making.
pub struct Writer {
    facts: Facts,
    notices: Notices,
    tasks: Vec<String>,
    sections: Vec<Section>,
}

impl Writer {
    /// An empty database about a recording; `notices` are those of the pass over it.
    pub fn new(facts: Facts, notices: Notices) -> Writer {
        Writer { facts, notices, tasks: Vec::new(), sections: Vec::new() }
    }

    /// Add the model of a task.
    pub fn add(&mut self, model: &Model) {
        let Model {
            names,
            traces,
            tasks,
            task,
            who,
            contexts,
            executions,
            timelines: _,
            quality,
            notices,
            origin,
            choice: _,
            profile: _,
        } = model;
        let number = self.tasks.len() as u32;
        self.tasks.push(tasks.get(*task).cloned().unwrap_or_default());
        for kind in Kind::OF_TASK {
            let mut pack = Pack::default();
            let items = match kind {
                Kind::Names => write_names(names, &mut pack),
                Kind::Unproven => write_marked(names.unproven(), &mut pack),
                Kind::Runtime => write_marked(names.runtime(), &mut pack),
                Kind::Who => write_who(who, &mut pack),
                Kind::Contexts => write_contexts(contexts, &mut pack),
                Kind::Held => write_held(contexts, &mut pack),
                Kind::Executions => write_executions(executions, *origin, &mut pack),
                Kind::Columns => columns::write(model, &mut pack),
                Kind::Own => write_own(executions.len(), &executions.own, &mut pack),
                Kind::Notices => write_notices(notices, &mut pack),
                Kind::Traces => {
                    pack.moment(*origin);
                    write_quality(quality, &mut pack);
                    write_traces(traces, &mut pack)
                }
                Kind::Facts | Kind::Tasks => 0,
            };
            self.sections.push(Section { kind, task: number, items, bytes: pack.0 });
        }
    }

    /// Notices about the recording.
    pub fn notices(&self) -> &Notices {
        &self.notices
    }

    /// The file's bytes.
    pub fn bytes(&self) -> Vec<u8> {
        let mut facts = Pack::default();
        write_facts(&self.facts, &mut facts);
        let mut tasks = Pack::default();
        self.tasks.iter().for_each(|t| tasks.text(t));
        let mut notices = Pack::default();
        let written = write_notices(&self.notices, &mut notices);
        let shared = [
            Section { kind: Kind::Facts, task: SHARED, items: self.facts.traces.len(), bytes: facts.0 },
            Section { kind: Kind::Tasks, task: SHARED, items: self.tasks.len(), bytes: tasks.0 },
            Section { kind: Kind::Notices, task: SHARED, items: written, bytes: notices.0 },
        ];
        let sections: Vec<&Section> = shared.iter().chain(&self.sections).collect();
        let begin = HEADER + sections.len() * ENTRY;
        let length = begin + sections.iter().map(|s| s.bytes.len()).sum::<usize>();
        let mut file = Vec::with_capacity(length);
        file.extend(MAGIC);
        file.extend(VERSION.to_le_bytes());
        file.extend((sections.len() as u32).to_le_bytes());
        file.extend((length as u64).to_le_bytes());
        file.extend([0; 8]);
        let mut offset = begin as u64;
        for section in &sections {
            file.extend((section.kind as u32).to_le_bytes());
            file.extend(section.task.to_le_bytes());
            file.extend((section.items as u32).to_le_bytes());
            file.extend(crc32fast::hash(&section.bytes).to_le_bytes());
            file.extend(offset.to_le_bytes());
            file.extend((section.bytes.len() as u64).to_le_bytes());
            offset += section.bytes.len() as u64;
        }
        let checksum = crc32fast::hash(&file).to_le_bytes();
        file[HEADER - checksum.len()..HEADER].copy_from_slice(&checksum);
        sections.iter().for_each(|s| file.extend(&s.bytes));
        file
    }

    /// Write it to an output, where only a database may be replaced. Returns its length.
    pub fn save(&self, output: Output) -> Result<u64, DatabaseError> {
        let path = output.path().to_owned();
        let io = |error| DatabaseError::Io { path: path.clone(), error };
        if let Some(before) = output.replaced()
            && !super::begins_as_database(before).map_err(io)?
        {
            return Err(DatabaseError::Foreign { path });
        }
        let bytes = self.bytes();
        output.write(Existing::Replace, |file| file.write_all(&bytes)).map_err(io)?;
        Ok(bytes.len() as u64)
    }
}

fn write_facts(Facts { traces, lost: Lost { events, packets, streams } }: &Facts, pack: &mut Pack) {
    [*events, *packets, *streams].into_iter().for_each(|n| pack.number(n));
    for TraceFacts { path, format, begin, end, streams, packets, host, clock, event_types, recorded } in traces {
        pack.text(path);
        pack.text(format);
        pack.maybe(*begin, Pack::moment);
        pack.maybe(*end, Pack::moment);
        pack.maybe(host.as_deref(), Pack::text);
        pack.maybe(clock.as_deref(), Pack::text);
        [*streams, *packets, *event_types].into_iter().for_each(|n| pack.number(n));
        pack.maybe(recorded.as_ref(), write_recorded);
    }
}

fn write_recorded(pack: &mut Pack, recorded: &Recorded) {
    pack.text(&recorded.host);
    pack.number(recorded.recorder as u64);
    let stacks = (0..).zip(StackKind::ALL).filter(|(_, kind)| recorded.stacks.contains(kind));
    pack.number(stacks.map(|(bit, _)| 1 << bit).sum());
    pack.number(recorded.events.len() as u64);
    recorded.events.iter().for_each(|event| pack.text(event));
}

fn write_quality(hosts: &[HostQuality], pack: &mut Pack) {
    pack.number(hosts.len() as u64);
    for HostQuality { host, quality } in hosts {
        let Quality { switches, contradictions, gaps, losses, interrupts, clock_error } = *quality;
        pack.text(host);
        [switches, contradictions, gaps, losses, interrupts, clock_error].into_iter().for_each(|n| pack.number(n));
    }
}

fn write_traces(traces: &[TraceInfo], pack: &mut Pack) -> usize {
    for TraceInfo { label, level, span, recorded } in traces {
        pack.text(label);
        pack.number(match level {
            TraceLevel::Machine => 0,
            TraceLevel::MpiRun => 1,
        });
        pack.moment(span.start);
        pack.moment(span.end);
        pack.maybe(recorded.as_ref(), write_recorded);
    }
    traces.len()
}

fn write_names(names: &Names, pack: &mut Pack) -> usize {
    (0..names.len()).for_each(|i| pack.text(names.get(NameId::at(i))));
    names.len()
}

/// Each as its distance from the one before, the first from the beginning.
fn write_marked(marked: impl ExactSizeIterator<Item = NameId>, pack: &mut Pack) -> usize {
    let count = marked.len();
    let mut next = 0;
    for id in marked.map(NameId::raw) {
        pack.number((id - next).into());
        next = id + 1;
    }
    count
}

fn write_who(all: &[ThreadInfo], pack: &mut Pack) -> usize {
    for ThreadInfo { host, process, pid, tid, thread } in all {
        [host, process, thread].into_iter().for_each(|id| pack.number(id.raw().into()));
        pack.signed((*pid).into());
        pack.signed((*tid).into());
    }
    all.len()
}

fn write_contexts(contexts: &Contexts, pack: &mut Pack) -> usize {
    for (at, (parent, frame)) in contexts.nodes().enumerate() {
        // Most are near their parents; roots have none.
        pack.number(parent.map_or(0, |p| (at - p.index()) as u64));
        pack.number(frame_code(frame.kind));
        pack.number(frame.name.raw().into());
    }
    contexts.len()
}

/// A frame kind as a number; kinds of time as in `WaitKind::ALL`.
fn frame_code(kind: FrameKind) -> u64 {
    match kind {
        FrameKind::Process => 0,
        FrameKind::Function => 1,
        FrameKind::Inlined => 2,
        FrameKind::File => 3,
        FrameKind::KernelFunction => 4,
        FrameKind::Call => 5,
        FrameKind::NoStack => 6,
        FrameKind::Wait(spent) => 16 + spent as u64,
        FrameKind::Thread(spent) => 32 + spent as u64,
    }
}

fn write_held(contexts: &Contexts, pack: &mut Pack) -> usize {
    for ((context, who), ns) in &contexts.who {
        pack.number(context.raw().into());
        pack.number(who.raw().into());
        pack.number(*ns);
    }
    contexts.who.len()
}

fn write_executions(executions: &Executions, origin: Timestamp, pack: &mut Pack) -> usize {
    let Executions { start, end, who, trace, cpu, unsure, columns: _, own: _, segments: _ } = executions;
    let mut before = origin;
    for i in 0..start.len() {
        pack.signed(start[i].ns().wrapping_sub(before.ns()));
        pack.signed(end[i].ns().wrapping_sub(start[i].ns()));
        pack.number(who[i].raw().into());
        pack.number(u64::from(trace[i].raw()) << 1 | u64::from(unsure[i]));
        // Unknown, the largest, becomes the smallest.
        pack.number(cpu.get(i).map_or(0, |cpu| cpu.wrapping_add(1)).into());
        before = start[i];
    }
    start.len()
}

fn write_own(executions: usize, own: &Sparse, pack: &mut Pack) -> usize {
    for i in 0..executions {
        let row = own.row(i);
        pack.number(row.len() as u64);
        let mut before = 0;
        for ContextTime { context, ns } in row {
            pack.number((context.raw() - before).into());
            pack.number(ns);
            before = context.raw();
        }
    }
    executions
}

fn write_notices(notices: &Notices, pack: &mut Pack) -> usize {
    for (notice, entry) in notices.iter() {
        pack.text(notice.name());
        pack.number(entry.count);
        pack.text(&entry.first);
    }
    notices.iter().count()
}
