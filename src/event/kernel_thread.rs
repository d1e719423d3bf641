//! Threads of the kernel itself, by their names: the purpose of each, and whether its waker hands it work.
//!
//! In: a thread's name as the kernel gives it. Out: its role in words, for a sentence. Most of these threads work for
//! others: the journal writes the changes of programs, a worker does the work that others queued. All of them are
//! children of `kthreadd`; the name decides where a recording does not show the parent. Names are those of mainline
//! Linux (`kthread_create` and its callers).

/// The parent of the kernel's own threads; it has this id on every host.
pub const KTHREADD: i32 = 2;

/// A kind of kernel thread.
struct KernelThread {
    /// The beginning of the name.
    prefix: &'static str,
    /// The role in words; `{}` is the rest of the name.
    role: &'static str,
    waker: Waker,
}

/// The relation of a kernel thread to the thread that wakes it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waker {
    /// The waker hands it work.
    HandsWork,
    /// The waker asks nothing of it, as with threads of RCU and of soft interrupts.
    AsksNothing,
}

const KNOWN: [KernelThread; 19] = [
    kernel_thread("kworker/", "a kernel worker", Waker::HandsWork),
    kernel_thread("jbd2/", "the journal of {}", Waker::HandsWork),
    kernel_thread("xfsaild/", "the log of {}", Waker::HandsWork),
    kernel_thread("btrfs-transacti", "the transactions of btrfs", Waker::HandsWork),
    kernel_thread("dmcrypt_write/", "the encryption of {}", Waker::HandsWork),
    kernel_thread("flush-", "the write-back of {}", Waker::HandsWork),
    kernel_thread("kswapd", "the reclaim of memory", Waker::HandsWork),
    kernel_thread("kcompactd", "the compaction of memory", Waker::HandsWork),
    kernel_thread("khugepaged", "the kernel's huge pages", Waker::AsksNothing),
    kernel_thread("migration/", "the migration of CPU {}", Waker::HandsWork),
    kernel_thread("ksoftirqd/", "the soft interrupts of CPU {}", Waker::AsksNothing),
    kernel_thread("irq/", "the interrupt thread of {}", Waker::AsksNothing),
    kernel_thread("rcu_", "RCU", Waker::AsksNothing),
    kernel_thread("rcuc/", "RCU", Waker::AsksNothing),
    kernel_thread("rcuop/", "RCU", Waker::AsksNothing),
    kernel_thread("rcuog/", "RCU", Waker::AsksNothing),
    kernel_thread("rcuos/", "RCU", Waker::AsksNothing),
    kernel_thread("rcub/", "RCU", Waker::AsksNothing),
    kernel_thread("kthreadd", "the parent of the kernel's threads", Waker::AsksNothing),
];

const fn kernel_thread(prefix: &'static str, role: &'static str, waker: Waker) -> KernelThread {
    KernelThread { prefix, role, waker }
}

fn known(name: &str) -> Option<&'static KernelThread> {
    KNOWN.iter().find(|thread| name.starts_with(thread.prefix))
}

/// True for the name of a kernel thread that is in the table.
pub fn is_name(name: &str) -> bool {
    known(name).is_some()
}

/// True where waking a thread of this name hands it work.
pub fn is_handed_work(name: &str) -> bool {
    known(name).is_some_and(|thread| thread.waker == Waker::HandsWork)
}

/// True for the workers, which take work from one queue: one wakes another when it has to wait itself.
pub fn is_worker(name: &str) -> bool {
    name.starts_with("kworker/")
}

/// The role of a thread of this name, in words: `the journal of vda1` for `jbd2/vda1-8`, none for `journald`.
pub fn role(name: &str) -> Option<String> {
    let KernelThread { prefix, role, .. } = known(name)?;
    let rest = name.strip_prefix(prefix)?;
    let of = if name.starts_with("jbd2/") {
        rest.rsplit_once('-').map_or(rest, |(device, _inode)| device)
    } else if name.starts_with("irq/") {
        rest.split_once('-').map_or(rest, |(_line, handler)| handler)
    } else {
        rest
    };
    // After its number, a worker's name has the queue whose work it does at the moment.
    let queue = rest.split_once(['-', '+']).filter(|_| is_worker(name));
    Some(queue.map_or_else(|| role.replace("{}", of), |(_, queue)| format!("{role} ({queue})")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn role_is_known_by_name() {
        for (name, wanted) in [
            ("kworker/0:1", Some("a kernel worker")),
            ("kworker/*:*-events_unbound", Some("a kernel worker (events_unbound)")),
            ("kworker/u8:2+flush-254:0", Some("a kernel worker (flush-254:0)")),
            ("jbd2/dm-0-8", Some("the journal of dm-0")),
            ("jbd2/vda1-8", Some("the journal of vda1")),
            ("journald", None),
            ("irq/24-eth0", Some("the interrupt thread of eth0")),
            ("ksoftirqd/3", Some("the soft interrupts of CPU 3")),
            ("rcu_preempt", Some("RCU")),
            ("rcup", None),
            ("loadgen", None),
        ] {
            assert_eq!(role(name).as_deref(), wanted, "{name}");
        }
        assert!(is_handed_work("jbd2/vda-8") && !is_handed_work("rcu_sched") && !is_handed_work("bash"));
    }
}
