//! The system calls that the process gives up before it reads its input, by a filter in the kernel (seccomp).
//!
//! Landlock knows the contents of files, TCP and signals. It does not know rights and owners of files, sockets of other
//! families, other processes' memory, or the kernel's own doors. whyslow uses none of these once its input begins, so a
//! list of what is refused is short, and a call that is missing in it is one that a future kernel adds. (A list of what
//! is allowed would break with each new version of the C library.) A refused call fails as for a user without rights.
//! Cost: the kernel remembers which calls pass, so that these take no longer than before.

use seccompiler::{
    BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    apply_filter,
};
use std::collections::BTreeMap;

/// Calls that are refused, whatever their arguments.
const REFUSED: &[&[libc::c_long]] = &[
    // Sockets. A pair of connected ones stays: signals wake the interface by it.
    &[libc::SYS_socket, libc::SYS_connect, libc::SYS_bind, libc::SYS_listen, libc::SYS_accept, libc::SYS_accept4],
    // Rights, owners, times and attributes of files, which Landlock does not know.
    &[libc::SYS_fchmod, libc::SYS_fchmodat, SYS_FCHMODAT2, libc::SYS_fchown, libc::SYS_fchownat, libc::SYS_utimensat],
    &[libc::SYS_setxattr, libc::SYS_lsetxattr, libc::SYS_fsetxattr, SYS_SETXATTRAT],
    &[libc::SYS_removexattr, libc::SYS_lremovexattr, libc::SYS_fremovexattr, SYS_REMOVEXATTRAT],
    &[libc::SYS_mknodat, libc::SYS_open_by_handle_at, libc::SYS_name_to_handle_at],
    // Programs, other processes, other users.
    &[libc::SYS_execve, libc::SYS_execveat, libc::SYS_ptrace, libc::SYS_process_vm_readv, libc::SYS_process_vm_writev],
    &[libc::SYS_pidfd_getfd, libc::SYS_kcmp, libc::SYS_setns, libc::SYS_unshare, libc::SYS_personality],
    &[libc::SYS_setuid, libc::SYS_setgid, libc::SYS_setreuid, libc::SYS_setregid, libc::SYS_setresuid],
    &[libc::SYS_setresgid, libc::SYS_setgroups, libc::SYS_setfsuid, libc::SYS_setfsgid, libc::SYS_capset],
    // The kernel: programs and events in it, its queues, keys and faults.
    &[libc::SYS_bpf, libc::SYS_perf_event_open, libc::SYS_userfaultfd, libc::SYS_fanotify_init],
    &[libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register],
    &[libc::SYS_keyctl, libc::SYS_add_key, libc::SYS_request_key, libc::SYS_syslog],
    &[libc::SYS_init_module, libc::SYS_finit_module, libc::SYS_delete_module, libc::SYS_kexec_load],
    // The machine: mounts, names, clocks, power.
    &[libc::SYS_mount, libc::SYS_umount2, libc::SYS_pivot_root, libc::SYS_chroot, libc::SYS_move_mount],
    &[libc::SYS_open_tree, libc::SYS_fsopen, libc::SYS_fsconfig, libc::SYS_fsmount, libc::SYS_fspick],
    &[libc::SYS_mount_setattr, libc::SYS_quotactl, libc::SYS_acct, libc::SYS_swapon, libc::SYS_swapoff],
    &[libc::SYS_reboot, libc::SYS_sethostname, libc::SYS_setdomainname, libc::SYS_vhangup],
    &[libc::SYS_settimeofday, libc::SYS_clock_settime, libc::SYS_adjtimex, libc::SYS_clock_adjtime],
    OLDER,
];

/// Calls of newer kernels than the C library's table.
const SYS_FCHMODAT2: libc::c_long = 452;
const SYS_SETXATTRAT: libc::c_long = 463;
const SYS_REMOVEXATTRAT: libc::c_long = 466;

/// Requests to a terminal that type into it. In the C libraries they have several types.
const TIOCSTI: u64 = 0x5412;
const TIOCLINUX: u64 = 0x541c;

/// Older forms of the same calls, which newer machines never had.
#[cfg(target_arch = "x86_64")]
const OLDER: &[libc::c_long] = &[
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
    libc::SYS_mknod,
    libc::SYS_fork,
    libc::SYS_vfork,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_kexec_file_load,
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER: &[libc::c_long] = &[];

/// Refuse these calls to this thread and those that it starts.
pub(super) fn refuse() -> Result<(), Error> {
    // Its arguments are in memory, where no filter sees them: threads are started by the older call then.
    apply_filter(&program(BTreeMap::from([(libc::SYS_clone3, Vec::new())]), libc::ENOSYS)?)?;
    let all = REFUSED.iter().copied().flatten().map(|call| (*call, Vec::new()));
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = all.collect();
    // A new process; a thread is one in the same process.
    let thread = libc::CLONE_THREAD as u64;
    rules.insert(libc::SYS_clone, vec![rule(0, SeccompCmpOp::MaskedEq(thread), 0)?]);
    // Text that the shell behind the terminal would read as typed.
    let types = [TIOCSTI, TIOCLINUX].map(|request| rule(1, SeccompCmpOp::Eq, request));
    rules.insert(libc::SYS_ioctl, types.into_iter().collect::<Result<_, _>>()?);
    apply_filter(&program(rules, libc::EPERM)?)
}

/// The condition on one argument of a call under which it is refused.
fn rule(argument: u8, comparison: SeccompCmpOp, value: u64) -> Result<SeccompRule, Error> {
    let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, comparison, value)?;
    Ok(SeccompRule::new(vec![condition])?)
}

/// A filter that refuses some calls with an error number.
fn program(rules: BTreeMap<i64, Vec<SeccompRule>>, error: i32) -> Result<BpfProgram, Error> {
    let refused = SeccompAction::Errno(error.unsigned_abs());
    let machine = std::env::consts::ARCH.try_into()?;
    Ok(SeccompFilter::new(rules, SeccompAction::Allow, refused, machine)?.try_into()?)
}
