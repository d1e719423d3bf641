//! Threads and calling contexts of a made-up model, from text. The unit tests of the comparison and the tests of the
//! interface build their models from these.
#![allow(dead_code, clippy::unwrap_used)]

use whyslow::parts::model::context::{ContextId, Frame, FrameKind};
use whyslow::parts::model::wait_kind::WaitKind;
use whyslow::parts::model::{Model, ThreadInfo, ThreadInfoId};

/// The thread with these names and numbers, added where the model does not have it yet.
pub fn thread(model: &mut Model, host: &str, (process, pid): (&str, i32), (thread, tid): (&str, i32)) -> ThreadInfoId {
    let names = &mut model.names;
    let (host, process, thread) = (names.intern(host), names.intern(process), names.intern(thread));
    let wanted = ThreadInfo { host, process, pid, tid, thread };
    let at = model.who.iter().position(|known| *known == wanted).unwrap_or_else(|| {
        model.who.push(wanted);
        model.who.len() - 1
    });
    ThreadInfoId::at(at)
}

/// The context of a path such as `ledgerd;main;[futex];thread journal@ledgerd;flush`: a process, then functions,
/// `[calls]`, `{waits}`, `?` for no stack, `thread NAME` or `thread NAME@PROCESS` for a thread waited for, `net
/// NAME@PROCESS` for one waited for over the network. `ns` are charged to the threads that name their process.
pub fn context(model: &mut Model, host: &str, path: &str, ns: u64) -> ContextId {
    let mut at: Option<ContextId> = None;
    for part in path.split(';') {
        let inner = || &part[1..part.len() - 1];
        let other = part.strip_prefix("thread ").map(|name| (name, WaitKind::Thread));
        let other = other.or_else(|| part.strip_prefix("net ").map(|name| (name, WaitKind::Network)));
        let (kind, name) = if at.is_none() {
            (FrameKind::Process, part)
        } else if part.starts_with('[') {
            (FrameKind::Call, inner())
        } else if part.starts_with('(') {
            (FrameKind::KernelFunction, inner())
        } else if part.starts_with('{') {
            (FrameKind::Wait(wait_kind(inner())), inner())
        } else if part == "?" {
            (FrameKind::NoStack, part)
        } else if let Some((name, kind)) = other {
            let above = at.map(|above| model.contexts.frame(above).kind);
            let kind = if let Some(FrameKind::Wait(wait)) = above { wait } else { kind };
            (FrameKind::Thread(kind), name.split('@').next().unwrap())
        } else {
            (FrameKind::Function, part)
        };
        let frame = Frame { kind, name: model.names.intern(name) };
        let id = model.contexts.child(at, frame);
        if let Some((name, process)) = other.and_then(|(name, _)| name.split_once('@')) {
            let tid = 300 + process.len() as i32 + name.len() as i32;
            let who = thread(model, host, (process, tid), (name, tid));
            *model.contexts.who.entry((id, who)).or_insert(0) += ns;
        }
        at = Some(id);
    }
    at.unwrap()
}

fn wait_kind(name: &str) -> WaitKind {
    match name {
        "disk" | "block device" => WaitKind::Disk,
        "timer" => WaitKind::Timer,
        "preempted" | "CPU idle" | "CPU idle, no quota" | "2 of 4 CPUs idle" | "as under a quota" | "in phase"
        | "out of turn" => WaitKind::Preempted,
        "throttled" | "quota of 100 ms" => WaitKind::Throttled,
        "stopped" | "by a signal" | "by a tracer" => WaitKind::Stopped,
        "stolen" => WaitKind::Stolen,
        "network" => WaitKind::Network,
        _ => WaitKind::UnknownWait,
    }
}
