//! The tables of a task: its traces, names, threads and contexts.
//!
//! In: a model. Out: their bytes; and from bytes a model without executions, whose tables agree with each other.

use crate::base::names::NameId;
use crate::base::pack::{Pack, Unpack};
use crate::base::packed::{Packed, packed, packed_variants};
use crate::model::context::{ContextId, Contexts, Frame, FrameKind};
use crate::model::execution::Executions;
use crate::model::facts::HostQuality;
use crate::model::wait_kind::WaitKind;
use crate::model::{Model, ThreadInfo, ThreadInfoId};

packed! {
    HostQuality { host, quality }
    ThreadInfo { host, process, pid, tid, thread }
    Frame { kind, name }
}

packed_variants! {
    FrameKind {
        Process,
        Function,
        Inlined,
        File,
        KernelFunction,
        Call,
        NoStack,
        Wait(kind),
        Thread(kind),
    }
}

/// The position in [`WaitKind::ALL`].
impl Packed for WaitKind {
    fn pack(&self, pack: &mut Pack) {
        pack.number(*self as u64);
    }

    fn unpack(unpack: &mut Unpack<'_>) -> Option<Self> {
        WaitKind::ALL.get(unpack.index(WaitKind::ALL.len())?).copied()
    }
}

/// Each context: how far before it its parent is (0 for a root), and its frame; then the threads of thread frames.
impl Packed for Contexts {
    fn pack(&self, pack: &mut Pack) {
        pack.number(self.len() as u64);
        for (at, (parent, frame)) in self.nodes().enumerate() {
            pack.number(parent.map_or(0, |parent| (at - parent.index()) as u64));
            frame.pack(pack);
        }
        pack.number(self.who.len() as u64);
        for ((context, who), ns) in &self.who {
            context.pack(pack);
            who.pack(pack);
            ns.pack(pack);
        }
    }

    fn unpack(unpack: &mut Unpack<'_>) -> Option<Self> {
        let mut contexts = Contexts::default();
        for at in 0..unpack.index(unpack.0.len())? {
            let back = unpack.index(at + 1)?;
            let parent = (back > 0).then(|| ContextId::at(at - back));
            (contexts.child(parent, Frame::unpack(unpack)?).index() == at).then_some(())?;
        }
        let mut total = 0_u64;
        for _ in 0..unpack.index(unpack.0.len().checked_add(1)?)? {
            let context = ContextId::at(unpack.index(contexts.len())?);
            let (who, ns) = (ThreadInfoId::unpack(unpack)?, u64::unpack(unpack)?);
            total = total.checked_add(ns)?;
            contexts.who.insert((context, who), ns).is_none().then_some(())?;
        }
        Some(contexts)
    }
}

/// Add the bytes of the tables of a model.
pub(super) fn pack(model: &Model, pack: &mut Pack) {
    let Model {
        origin,
        quality,
        traces,
        names,
        who,
        contexts,
        notices,
        tasks: _,
        task: _,
        executions: _,
        timelines: _,
        choice: _,
        profile: _,
    } = model;
    origin.pack(pack);
    quality.pack(pack);
    traces.pack(pack);
    names.pack(pack);
    who.pack(pack);
    contexts.pack(pack);
    notices.pack(pack);
}

/// A model of such tables, without tasks and executions.
pub(super) fn unpack(unpack: &mut Unpack<'_>) -> Option<Model> {
    // In the order in which they are packed.
    let model = Model {
        origin: Packed::unpack(unpack)?,
        quality: Packed::unpack(unpack)?,
        traces: Packed::unpack(unpack)?,
        names: Packed::unpack(unpack)?,
        who: Packed::unpack(unpack)?,
        contexts: Packed::unpack(unpack)?,
        notices: Packed::unpack(unpack)?,
        ..Model::default()
    };
    let Model { names, who, contexts, .. } = &model;
    let name = |id: NameId| id.index() < names.len();
    let threads =
        who.iter().all(|ThreadInfo { host, process, thread, .. }| [*host, *process, *thread].map(name) == [true; 3]);
    let frames = contexts.nodes().all(|(_, frame)| name(frame.name));
    let held = contexts.who.keys().all(|(_, id)| id.index() < who.len());
    (threads && frames && held).then_some(model)
}

/// True where executions are of known threads and traces.
pub(super) fn knows(tables: &Model, executions: &Executions) -> bool {
    let threads = executions.who.iter().all(|id| id.index() < tables.who.len());
    threads && executions.trace.iter().all(|id| id.index() < tables.traces.len())
}
