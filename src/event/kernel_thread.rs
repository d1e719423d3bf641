//! Threads of the kernel itself, by their names: the purpose of each, and whether its waker hands it work.
//!
//! In: a thread's name as the kernel gives it. Out: what it does in words, for a sentence. Most only serve: the journal
//! writes what others changed, a worker does what others put off. All of them are children of `kthreadd`; the name
//! decides where a recording does not show the parent. Names are those of mainline Linux (`kthread_create` and its
//! callers).

/// The parent of the kernel's own threads; it has this id on every host.
pub const KTHREADD: i32 = 2;

/// How a name begins, what such a thread is (`{}`: the rest of the name), and whether a waker hands it work. The waker
/// of a thread of RCU or of the soft interrupts asks it for nothing of its own.
const KNOWN: [(&str, &str, bool); 19] = [
    ("kworker/", "a kernel worker", true),
    ("jbd2/", "the journal of {}", true),
    ("xfsaild/", "the log of {}", true),
    ("btrfs-transacti", "the transactions of btrfs", true),
    ("dmcrypt_write/", "the encryption of {}", true),
    ("flush-", "the write-back of {}", true),
    ("kswapd", "the reclaim of memory", true),
    ("kcompactd", "the compaction of memory", true),
    ("khugepaged", "the kernel's huge pages", false),
    ("migration/", "the migration of CPU {}", true),
    ("ksoftirqd/", "the soft interrupts of CPU {}", false),
    ("irq/", "the interrupt thread of {}", false),
    ("rcu_", "RCU", false),
    ("rcuc/", "RCU", false),
    ("rcuop/", "RCU", false),
    ("rcuog/", "RCU", false),
    ("rcuos/", "RCU", false),
    ("rcub/", "RCU", false),
    ("kthreadd", "the parent of the kernel's threads", false),
];

fn known(name: &str) -> Option<(&'static str, bool, &str)> {
    KNOWN.iter().find_map(|(begin, does, handed)| Some((*does, *handed, name.strip_prefix(begin)?)))
}

/// True for the name of a kernel thread that is in the table.
pub fn is_name(name: &str) -> bool {
    known(name).is_some()
}

/// True where waking a thread of this name hands it work.
pub fn is_handed_work(name: &str) -> bool {
    known(name).is_some_and(|(_, handed, _)| handed)
}

/// True for the workers, which take work from one queue: one wakes another when it has to wait itself.
pub fn is_worker(name: &str) -> bool {
    name.starts_with("kworker/")
}

/// The role of a thread of this name, in words.
///
/// ```
/// use whyslow::event::kernel_thread::role;
/// assert_eq!(role("jbd2/vda1-8").as_deref(), Some("the journal of vda1"));
/// assert_eq!(role("journald"), None);
/// ```
pub fn role(name: &str) -> Option<String> {
    let (does, _, rest) = known(name)?;
    let of = if name.starts_with("jbd2/") {
        rest.rsplit_once('-').map_or(rest, |(device, _inode)| device)
    } else if name.starts_with("irq/") {
        rest.split_once('-').map_or(rest, |(_line, handler)| handler)
    } else {
        rest
    };
    // Behind the number of a worker is what it does at the moment.
    let queue = rest.split_once(['-', '+']).filter(|_| is_worker(name));
    Some(queue.map_or_else(|| does.replace("{}", of), |(_, queue)| format!("{does} ({queue})")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_what_threads_are_for() {
        for (name, wanted) in [
            ("kworker/0:1", Some("a kernel worker")),
            ("kworker/*:*-events_unbound", Some("a kernel worker (events_unbound)")),
            ("kworker/u8:2+flush-254:0", Some("a kernel worker (flush-254:0)")),
            ("jbd2/dm-0-8", Some("the journal of dm-0")),
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
