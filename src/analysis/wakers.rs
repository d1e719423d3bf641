//! What ended a wait, by what the waking CPU was doing.
//!
//! In: a recording whose wake-ups came with kernel call chains (perf, or ftrace with stacks), and the kernel's symbols.
//! Out: the labels of waits that no event of an interrupt explained. `sched_wakeup` is written where the woken will
//! run, often in an interrupt by which another CPU asked for it: then the running thread has no part in it, and the
//! chain says so (`sched_ttwu_pending`). Else the chain names the timer, the disk or the network; a chain without any
//! interrupt is the thread's own doing and leaves its label. A wait in `io_schedule` is one for a disk by the kernel's
//! own word, whoever ended it. Cost: a search for each wake-up with a chain; each distinct chain is named once.
//! ALGORITHMS.md section 4.4.

use super::symbols::kernel::{KernelSymbols, is_interrupt_entry};
use crate::base::time::Ns;
use crate::event::stack::StackOrigin;
use crate::state::timeline::{RawStackId, SegmentKind, ThreadId, Timeline};
use foldhash::HashMap;

/// What a chain says of who or what woke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Evidence {
    /// Another CPU, on whose behalf nobody knows.
    Remote,
    /// Something that is no thread.
    Kind(SegmentKind),
    /// The running thread.
    Own,
    /// An interrupt of unknown kind.
    Interrupt,
}

/// Functions that wake on behalf of something, by how their names begin.
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

/// What a chain says, its functions given innermost first.
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
        // A timer or a disk never is a thread's own doing; a packet is, where no interrupt brought it.
        Some(kind @ (SegmentKind::Timer | SegmentKind::Disk)) => Evidence::Kind(kind),
        _ => Evidence::Own,
    }
}

/// Label the waits of a recording anew where their wake-ups' chains tell more.
pub fn relabel(timeline: &mut Timeline, symbols: &KernelSymbols) {
    let wakes = std::mem::take(&mut timeline.wake_stacks);
    let remote = timeline.names.intern("woken by another CPU, for whom was not recorded");
    let mut known: HashMap<RawStackId, Evidence> = HashMap::default();
    for (woken, t, stack) in &wakes {
        let found =
            *known.entry(*stack).or_insert_with(|| evidence(symbols.all_functions(timeline.stacks.get(*stack))));
        let for_disk = found != Evidence::Own && waits_for_disk(timeline, symbols, *woken, *t);
        let Some(thread) = timeline.threads.get_mut(woken.index()) else { continue };
        let at = thread.segments.partition_point(|segment| segment.span.end < *t);
        let Some(segment) = thread.segments.get_mut(at).filter(|segment| segment.span.end == *t) else { continue };
        let told_by_events = !matches!(segment.kind, SegmentKind::Blocked | SegmentKind::Device | SegmentKind::Network);
        if told_by_events || segment.kind == SegmentKind::Network && segment.waker.is_some() {
            continue;
        }
        match found {
            _ if for_disk => (segment.kind, segment.waker, segment.qualifier) = (SegmentKind::Disk, None, None),
            Evidence::Kind(kind) => (segment.kind, segment.waker, segment.qualifier) = (kind, None, None),
            Evidence::Remote => {
                (segment.kind, segment.waker, segment.qualifier) = (SegmentKind::Blocked, None, Some(remote))
            }
            Evidence::Own | Evidence::Interrupt => {}
        }
    }
    timeline.wake_stacks = wakes;
}

/// True where the wait that ended at `t` began in `io_schedule` or one of its kin.
fn waits_for_disk(timeline: &Timeline, symbols: &KernelSymbols, thread: ThreadId, t: Ns) -> bool {
    let Some(thread) = timeline.threads.get(thread.index()) else { return false };
    let before = thread.samples.partition_point(|sample| sample.time < t);
    let out = thread.samples.get(..before).and_then(|all| all.last());
    let kernel = out.filter(|sample| sample.origin == StackOrigin::SwitchOut).and_then(|sample| sample.kernel);
    kernel.is_some_and(|stack| {
        symbols.all_functions(timeline.stacks.get(stack)).any(|name| name.starts_with("io_schedule"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_says_who_or_what_woke() {
        let said = |functions: &[&str]| evidence(functions.iter().copied());
        let remote = ["ttwu_do_activate", "sched_ttwu_pending", "__sysvec_call_function_single", "asm_sysvec_x"];
        assert_eq!(said(&remote), Evidence::Remote);
        let timer = ["try_to_wake_up", "hrtimer_wakeup", "hrtimer_interrupt", "asm_sysvec_apic_timer_interrupt"];
        assert_eq!(said(&timer), Evidence::Kind(SegmentKind::Timer));
        let disk =
            ["autoremove_wake_function", "bio_endio", "blk_mq_end_request", "asm_common_interrupt", "futex_wait"];
        assert_eq!(said(&disk), Evidence::Kind(SegmentKind::Disk));
        // A packet over the loopback device, inside the sender's own call.
        let own =
            ["sock_def_readable", "tcp_v4_rcv", "__netif_receive_skb", "net_rx_action", "tcp_sendmsg", "do_syscall_64"];
        assert_eq!(said(&own), Evidence::Own);
        let packet = ["sock_def_readable", "tcp_v4_rcv", "net_rx_action", "asm_common_interrupt"];
        assert_eq!(said(&packet), Evidence::Kind(SegmentKind::Network));
        assert_eq!(said(&["wake_up_q", "futex_wake", "do_syscall_64"]), Evidence::Own);
        assert_eq!(said(&["x", "asm_sysvec_call_function"]), Evidence::Interrupt);
        assert_eq!(said(&[]), Evidence::Own);
    }
}
