//! Contexts of a CPU: which nest, which end without an exit, which are the thread's own work.

use super::*;
use crate::event::kind::Vector;

fn at(ns: i64) -> Timestamp {
    Timestamp::new(ns)
}

fn cpu() -> Cpu {
    Cpu::new(HostId::at(0), 0, Timestamp::ZERO)
}

/// True where an interruption begins.
fn enter(cpu: &mut Cpu, context: Context) -> bool {
    let entry = cpu.enter(at(1), context, None);
    assert_eq!(entry.ended, None);
    entry.interrupts
}

fn leave(cpu: &mut Cpu, context: Context) -> bool {
    cpu.leave(at(1), context)
}

#[test]
fn raised_soft_interrupt_does_not_interrupt_its_own_thread() {
    let mut cpu = cpu();
    cpu.raise(SoftIrq::NetRx);
    assert!(!enter(&mut cpu, Context::SoftIrq(SoftIrq::NetRx)));
    assert_eq!((cpu.context(), cpu.is_own()), (Some((Context::SoftIrq(SoftIrq::NetRx), None)), true));
    // A hard interrupt inside it does, and the soft interrupts that this one raises are not the thread's own.
    assert!(enter(&mut cpu, Context::Irq(5)));
    assert!(!cpu.is_own());
    cpu.raise(SoftIrq::Timer);
    assert!(leave(&mut cpu, Context::Irq(5)));
    assert!(!leave(&mut cpu, Context::SoftIrq(SoftIrq::NetRx)));
    assert!(enter(&mut cpu, Context::SoftIrq(SoftIrq::Timer)));
    assert!(leave(&mut cpu, Context::SoftIrq(SoftIrq::Timer)));
    // One raise, one run.
    assert!(enter(&mut cpu, Context::SoftIrq(SoftIrq::NetRx)));
}

#[test]
fn leave_pops_contexts_without_exit_and_ignores_exits_without_entry() {
    let mut cpu = cpu();
    assert!(enter(&mut cpu, Context::Irq(5)));
    assert!(!enter(&mut cpu, Context::Irq(6)));
    assert!(!enter(&mut cpu, Context::Timer));
    assert!(!leave(&mut cpu, Context::SoftIrq(SoftIrq::Timer)));
    assert!(!leave(&mut cpu, Context::Irq(6)));
    assert_eq!(cpu.context(), Some((Context::Irq(5), None)));
    assert!(leave(&mut cpu, Context::Irq(5)));
    assert!(!leave(&mut cpu, Context::Irq(5)));
}

#[test]
fn context_without_exit_ends_with_the_last_event_in_it() {
    let timer = Context::Vector(Vector::LocalTimer);
    let entry = |ended, interrupts| ContextEntry { ended, interrupts };
    let mut cpu = cpu();
    assert_eq!(cpu.enter(at(10), timer, None), entry(None, true));
    cpu.enter(at(11), Context::Timer, None);
    cpu.leave(at(14), Context::Timer);
    // The next tick cannot begin inside the one before.
    assert_eq!(cpu.enter(at(4_000), timer, None), entry(Some(at(14)), true));
    // A soft interrupt cannot begin inside a hard one.
    assert_eq!(cpu.enter(at(4_005), Context::SoftIrq(SoftIrq::Timer), None), entry(Some(at(4_000)), true));
    cpu.see(at(4_008));
    assert_eq!(cpu.resume_thread(), Some(at(4_008)));
    assert_eq!((cpu.resume_thread(), cpu.context()), (None, None));
    // A soft interrupt stays open when a hard one inside it ends.
    cpu.enter(at(5_000), Context::SoftIrq(SoftIrq::NetRx), None);
    cpu.enter(at(5_001), timer, None);
    assert_eq!(cpu.enter(at(5_002), timer, None), entry(None, false));
    assert!(!cpu.leave(at(5_003), timer) && cpu.leave(at(5_004), Context::SoftIrq(SoftIrq::NetRx)));
    // Hard interrupts do not show whether the soft interrupt before them still lasts.
    cpu.enter(at(6_000), Context::SoftIrq(SoftIrq::NetRx), None);
    cpu.enter(at(9_000), timer, None);
    cpu.leave(at(9_002), timer);
    assert_eq!(cpu.resume_thread(), Some(at(6_000)));
}

#[test]
fn delivery_ends_with_its_own_context() {
    let mut cpu = cpu();
    enter(&mut cpu, Context::SoftIrq(SoftIrq::NetRx));
    cpu.deliver(NetworkPacket::default(), Some(Waker { thread: ThreadId::at(1), at: at(7) }));
    enter(&mut cpu, Context::Timer);
    leave(&mut cpu, Context::Timer);
    assert!(cpu.delivery().is_some());
    leave(&mut cpu, Context::SoftIrq(SoftIrq::NetRx));
    assert!(cpu.delivery().is_none());
}

#[test]
fn enter_bounds_the_depth() {
    let mut cpu = cpu();
    for line in 0..1000 {
        enter(&mut cpu, Context::Irq(line));
    }
    assert_eq!(cpu.contexts.len(), MOST_NESTED);
}
