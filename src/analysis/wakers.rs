//! The causes of wake-ups, by the functions that the waking CPU was in.
//!
//! In: a timeline whose wake-ups were recorded with kernel call chains (perf, or ftrace with stacks), and the kernel's
//! symbols. Out: the kinds of waits that no event of an interrupt explained. `sched_wakeup` is recorded on the CPU
//! where the woken thread will run, often in an interrupt that another CPU sent: then the interrupted thread is not the
//! waker, and the chain contains `sched_ttwu_pending`. Otherwise the chain names the timer, the disk or the network; in
//! a chain without an interrupt the running thread is the waker, and the kind stays. A wait that began in `io_schedule`
//! is a wait for a disk by the kernel's own accounting, whichever thread ended it. Cost: a search for each wake-up with
//! a chain; each distinct chain is resolved once. The waker on another CPU may follow by elimination
//! (`remote_wakers`). ALGORITHMS.md section 4.4.

use super::remote_wakers::{FutexWait, RemoteWakers};
use crate::base::notice::{Notice, Notices};
use crate::base::time::Timestamp;
use crate::event::stack::{RawStackId, StackOrigin};
use crate::symbols::kernel::{KernelSymbols, is_interrupt_entry};
use crate::timeline::questions::Asker;
use crate::timeline::{RecordedTimeline, SegmentEnd, SegmentKind, ThreadId, Timeline, WakeStack, Waker};
use foldhash::HashMap;

/// The waker according to a call chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Evidence {
    /// Another CPU; the thread there is unknown.
    Remote,
    /// A timer, a disk or the network.
    Kind(SegmentKind),
    /// The running thread.
    Own,
    /// An interrupt of unknown kind.
    Interrupt,
}

/// Prefixes of the names of functions that wake for a timer, a disk or the network.
const CAUSES: [(&str, SegmentKind); 13] = [
    ("hrtimer_wakeup", SegmentKind::Timer),
    ("process_timeout", SegmentKind::Timer),
    ("it_real_fn", SegmentKind::Timer),
    ("posix_timer_fn", SegmentKind::Timer),
    ("timerfd_tmrproc", SegmentKind::Timer),
    ("blk_mq_end_request", SegmentKind::Disk),
    ("blk_mq_complete_request", SegmentKind::Disk),
    ("blk_update_request", SegmentKind::Disk),
    ("bio_endio", SegmentKind::Disk),
    ("scsi_end_request", SegmentKind::Disk),
    ("sock_def_readable", SegmentKind::Network),
    ("sock_def_write_space", SegmentKind::Network),
    ("__netif_receive_skb", SegmentKind::Network),
];

/// The evidence of a chain, its functions given innermost first.
fn evidence<'s>(functions: impl Iterator<Item = &'s str>) -> Evidence {
    let mut cause = None;
    for name in functions {
        if name == "sched_ttwu_pending" {
            return Evidence::Remote;
        }
        cause = cause.or_else(|| CAUSES.iter().find(|(begin, _)| name.starts_with(begin)).map(|(_, kind)| *kind));
        if is_interrupt_entry(name) {
            return cause.map_or(Evidence::Interrupt, Evidence::Kind);
        }
    }
    match cause {
        // A thread never is a timer or a disk; it can deliver a packet itself, without an interrupt.
        Some(kind @ (SegmentKind::Timer | SegmentKind::Disk)) => Evidence::Kind(kind),
        _ => Evidence::Own,
    }
}

/// Correct the kinds of a timeline's waits where the call chains of their wake-ups show more.
pub fn relabel(timeline: &mut RecordedTimeline, symbols: &KernelSymbols, notices: &mut Notices) {
    let remote = timeline.intern("woken by another CPU; the thread there was not recorded");
    let travels = timeline.intern("the wake-up came from another CPU");
    let mut known: HashMap<RawStackId, Evidence> = HashMap::default();
    let mut ends = Vec::with_capacity(timeline.wake_stacks().len());
    let mut causes = Vec::with_capacity(ends.capacity());
    for WakeStack { woken, time: t, stack } in timeline.wake_stacks().iter().copied() {
        let found =
            *known.entry(stack).or_insert_with(|| evidence(symbols.all_functions(timeline.stacks().get(stack))));
        let for_disk = found != Evidence::Own && waits_for_disk(timeline, symbols, woken, t);
        causes.push(if for_disk { Evidence::Kind(SegmentKind::Disk) } else { found });
        ends.push(SegmentEnd { thread: woken, at: t });
    }
    let eliminated = eliminated(timeline, symbols, &causes);
    let n = eliminated.iter().flatten().count() as u64;
    if n > 0 {
        notices.add(Notice::WakersByElimination, n, String::new);
    }
    timeline.relabel(&ends, |number, segment| {
        let is_known_from_events =
            !matches!(segment.kind, SegmentKind::Blocked | SegmentKind::Device | SegmentKind::Network);
        if is_known_from_events || segment.kind == SegmentKind::Network && segment.waker.is_some() {
            return;
        }
        let waker = eliminated.get(number).copied().flatten();
        let (kind, qualifier) = match causes.get(number) {
            Some(Evidence::Kind(kind)) => (*kind, None),
            Some(Evidence::Remote) if waker.is_some() => (SegmentKind::Blocked, Some(travels)),
            Some(Evidence::Remote) => (SegmentKind::Blocked, Some(remote)),
            Some(Evidence::Own | Evidence::Interrupt) | None => return,
        };
        (segment.kind, segment.waker, segment.qualifier) = (kind, waker, qualifier);
    });
}

/// By wake-up: the thread on another CPU that must have caused it.
fn eliminated(timeline: &Timeline, symbols: &KernelSymbols, causes: &[Evidence]) -> Vec<Option<Waker>> {
    if !causes.contains(&Evidence::Remote) {
        return Vec::new();
    }
    let mut futex: HashMap<RawStackId, bool> = HashMap::default();
    let mut is_futex = |stack: RawStackId| {
        let names = || symbols.all_functions(timeline.stacks().get(stack));
        *futex.entry(stack).or_insert_with(|| names().any(|name| name.contains("futex_wait")))
    };
    let mut wakers = RemoteWakers::new(timeline);
    let mut remote: Vec<Option<FutexWait>> = Vec::with_capacity(causes.len());
    for (WakeStack { woken, time, .. }, cause) in timeline.wake_stacks().iter().zip(causes) {
        let wait = match cause {
            Evidence::Own | Evidence::Remote => wakers.wait(*woken, *time, &mut is_futex),
            Evidence::Kind(_) | Evidence::Interrupt => None,
        };
        if let (Evidence::Own, Some(wait)) = (cause, wait) {
            wakers.see(wait);
        }
        remote.push(wait.filter(|_| *cause == Evidence::Remote));
    }
    remote.into_iter().map(|wait| wakers.waker(wait?)).collect()
}

/// True where the wait that ended at `t` began in `io_schedule` or one of its variants.
fn waits_for_disk(timeline: &Timeline, symbols: &KernelSymbols, thread: ThreadId, t: Timestamp) -> bool {
    let out = timeline.reader(Asker::Wakers).samples(thread).last_begun(t.saturating_sub(1));
    let kernel = out.filter(|sample| sample.origin == StackOrigin::SwitchOut).and_then(|sample| sample.kernel);
    kernel.is_some_and(|stack| {
        symbols.all_functions(timeline.stacks().get(stack)).any(|name| name.starts_with("io_schedule"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_names_the_waker_by_the_functions_of_a_chain() {
        let waker = |functions: &[&str]| evidence(functions.iter().copied());
        let remote = ["ttwu_do_activate", "sched_ttwu_pending", "__sysvec_call_function_single", "asm_sysvec_x"];
        assert_eq!(waker(&remote), Evidence::Remote);
        let timer = ["try_to_wake_up", "hrtimer_wakeup", "hrtimer_interrupt", "asm_sysvec_apic_timer_interrupt"];
        assert_eq!(waker(&timer), Evidence::Kind(SegmentKind::Timer));
        let disk =
            ["autoremove_wake_function", "bio_endio", "blk_mq_end_request", "asm_common_interrupt", "futex_wait"];
        assert_eq!(waker(&disk), Evidence::Kind(SegmentKind::Disk));
        // A packet over the loopback device, inside the sender's own call.
        let own =
            ["sock_def_readable", "tcp_v4_rcv", "__netif_receive_skb", "net_rx_action", "tcp_sendmsg", "do_syscall_64"];
        assert_eq!(waker(&own), Evidence::Own);
        let packet = ["sock_def_readable", "tcp_v4_rcv", "net_rx_action", "asm_common_interrupt"];
        assert_eq!(waker(&packet), Evidence::Kind(SegmentKind::Network));
        assert_eq!(waker(&["wake_up_q", "futex_wake", "do_syscall_64"]), Evidence::Own);
        assert_eq!(waker(&["x", "asm_sysvec_call_function"]), Evidence::Interrupt);
        assert_eq!(waker(&[]), Evidence::Own);
    }
}
