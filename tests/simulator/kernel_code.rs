//! The functions of the kernel: where they are, and the kernel's part of the call stack of the running thread.
//!
//! Names and their order are those that Linux 6.x on x86-64 has in call stacks at these tracepoints.

use super::Machine;
use super::ctf_writer::Value;
use std::fmt::Write as _;

/// The field of an event that holds the kernel's call stack, which a channel records as a context.
pub const KERNEL_STACK: &str = "callstack_kernel";

const START: u64 = 0xffff_ffff_8200_0000;
const STEP: u64 = 256;

/// All of them; the last one ends the others.
const FUNCTIONS: [&str; 30] = [
    "__schedule",
    "schedule",
    "throttle_cfs_rq_work",
    "task_work_run",
    "exit_to_user_mode_loop",
    "asm_sysvec_apic_timer_interrupt",
    "sysvec_apic_timer_interrupt",
    "__sysvec_apic_timer_interrupt",
    "hrtimer_interrupt",
    "__hrtimer_run_queues",
    "do_syscall_64",
    "entry_SYSCALL_64_after_hwframe",
    "asm_exc_page_fault",
    "exc_page_fault",
    "do_user_addr_fault",
    "handle_mm_fault",
    "__handle_mm_fault",
    "do_anonymous_page",
    "vma_alloc_folio_noprof",
    "__alloc_pages_noprof",
    "__alloc_pages_slowpath",
    "try_to_free_pages",
    "do_try_to_free_pages",
    "shrink_node",
    "shrink_lruvec",
    "clear_page_erms",
    "do_nanosleep",
    "futex_wait",
    "secondary_startup_64",
    "_etext",
];

/// What the kernel does for a thread in a page fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It looks for memory that can be freed.
    Reclaim,
    /// It clears a page.
    Clear,
}

const FAULT: [&str; 6] = [
    "do_anonymous_page",
    "__handle_mm_fault",
    "handle_mm_fault",
    "do_user_addr_fault",
    "exc_page_fault",
    "asm_exc_page_fault",
];
const RECLAIM: [&str; 7] = [
    "shrink_lruvec",
    "shrink_node",
    "do_try_to_free_pages",
    "try_to_free_pages",
    "__alloc_pages_slowpath",
    "__alloc_pages_noprof",
    "vma_alloc_folio_noprof",
];
const CLOCK: [&str; 5] = [
    "__hrtimer_run_queues",
    "hrtimer_interrupt",
    "__sysvec_apic_timer_interrupt",
    "sysvec_apic_timer_interrupt",
    "asm_sysvec_apic_timer_interrupt",
];

fn address(function: &str) -> u64 {
    let at = FUNCTIONS.iter().position(|f| *f == function).unwrap();
    START + at as u64 * STEP
}

/// As `/proc/kallsyms` lists them.
pub fn kallsyms() -> String {
    FUNCTIONS.iter().fold(String::new(), |mut text, function| {
        writeln!(text, "{:016x} T {function}", address(function)).unwrap();
        text
    })
}

impl Machine {
    /// The kernel's call stack at an event of the thread that runs on a CPU, innermost function first.
    pub(super) fn kernel_stack(&self, cpu: usize, event: &str) -> Value {
        let mut functions: Vec<&str> = Vec::new();
        if let Some(current) = self.cpus[cpu].current {
            let thread = &self.threads[current];
            let is_switch = event == "sched_switch";
            match event {
                "sched_switch" => functions.extend(["__schedule", "schedule"]),
                "timer_hrtimer_expire_entry" => functions.extend(CLOCK),
                _ => {}
            }
            if is_switch && self.leaves_throttled(current, cpu) {
                functions.extend(["throttle_cfs_rq_work", "task_work_run"]);
            }
            match thread.fault {
                Some(Fault::Reclaim) => functions.extend(RECLAIM.iter().chain(&FAULT)),
                Some(Fault::Clear) => functions.extend(["clear_page_erms"].iter().chain(&FAULT)),
                None if thread.in_call => functions.extend(["do_syscall_64", "entry_SYSCALL_64_after_hwframe"]),
                None if is_switch => functions.extend(["exit_to_user_mode_loop", "asm_sysvec_apic_timer_interrupt"]),
                None => {}
            }
        }
        Value::Words(functions.into_iter().map(|f| address(f) + 16).collect())
    }
}
