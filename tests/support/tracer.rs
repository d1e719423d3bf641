//! Runs the program under `ptrace(2)`: each of its system calls is judged before the kernel sees it. It may go on, fail
//! with an error number, or be the last call of the process.
//!
//! Calls of the dynamic loader and the runtime before `main` are not judged: the program's first own call, which takes
//! SIGXFSZ over, is the mark. Linux on x86-64 only, where the register of the call's number is known.
#![allow(dead_code, unsafe_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::HashMap;
use std::io::{Read, Seek};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Output};
use std::sync::mpsc;
use std::time::Duration;

/// Longer than any of these runs takes, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(120);

/// A system call that is about to be made.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// Its number, `libc::SYS_...`.
    pub number: i64,
    /// Its arguments.
    pub arguments: [u64; 6],
}

/// The decision about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Go,
    /// It is not made; the program gets this error.
    Fail(i32),
    /// The process is killed instead.
    Kill,
    /// It is made, and the process gets this signal.
    Signal(i32),
}

/// The traced process dies with the tracer; stops for calls are marked; threads are traced too.
const OPTIONS: i64 =
    libc::PTRACE_O_TRACESYSGOOD as i64 | libc::PTRACE_O_EXITKILL as i64 | libc::PTRACE_O_TRACECLONE as i64;
const CALL_STOP: i32 = libc::SIGTRAP | 0x80;

/// Run a command to its end; `judge` is asked about each system call of all its threads from `main` on.
pub fn run(command: &mut Command, judge: &mut dyn FnMut(&Call) -> Verdict) -> Output {
    let (mut out, mut said) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
    command.stdin(std::process::Stdio::null()).stdout(out.try_clone().unwrap()).stderr(said.try_clone().unwrap());
    let status = watch(command, judge);
    let text = |file: &mut std::fs::File| {
        let mut bytes = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut bytes).unwrap();
        bytes
    };
    Output { status, stdout: text(&mut out), stderr: text(&mut said) }
}

/// The same with the input and the outputs that the command has.
pub fn watch(command: &mut Command, judge: &mut dyn FnMut(&Call) -> Verdict) -> ExitStatus {
    // SAFETY: `ptrace` is a plain system call, which may be made between fork and exec.
    unsafe {
        command.pre_exec(|| match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }
    // Waited for below, by its number: `wait` would take the stops of a traced process for its end.
    #[allow(clippy::zombie_processes)]
    let child = command.spawn().unwrap_or_else(|e| panic!("{command:?} cannot be traced: {e}"));
    let pid = child.id() as i32;
    let (ended, waits) = mpsc::channel::<()>();
    let guard = std::thread::spawn(move || {
        let late = waits.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout);
        if late {
            // SAFETY: a plain system call; the child was not reaped yet, since its end was not reported yet.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        late
    });
    let status = follow(pid, judge);
    drop(ended);
    assert!(!guard.join().unwrap(), "{command:?} still runs after {PATIENCE:?}");
    status
}

fn follow(pid: i32, judge: &mut dyn FnMut(&Call) -> Verdict) -> ExitStatus {
    let mut began = false;
    let mut main = false;
    let mut failing: HashMap<i32, Failing> = HashMap::new();
    loop {
        let mut status = 0;
        // SAFETY: `status` is ours. Only children of this thread are waited for, so other tests keep theirs.
        let thread = unsafe { libc::waitpid(-1, &mut status, libc::__WALL | libc::__WNOTHREAD) };
        assert!(thread > 0, "waitpid: {}", std::io::Error::last_os_error());
        if libc::WIFEXITED(status) || libc::WIFSIGNALED(status) {
            if thread == pid {
                return ExitStatus::from_raw(status);
            }
            continue;
        }
        let mut deliver = 0;
        match libc::WSTOPSIG(status) {
            CALL_STOP => match stop(thread) {
                Some(Stop::Entry(call)) => {
                    main |= call.number == libc::SYS_rt_sigaction && call.arguments[0] == libc::SIGXFSZ as u64;
                    match if main { judge(&call) } else { Verdict::Go } {
                        Verdict::Go => {}
                        // This call has no error number: it returns the end of the heap as it was, as it does if asked
                        // for 0.
                        Verdict::Fail(_) if call.number == libc::SYS_brk => {
                            failing.insert(thread, Failing::Heap(call.arguments[0]));
                            registers(thread, |r| r.rdi = 0);
                        }
                        Verdict::Fail(error) => {
                            failing.insert(thread, Failing::With(error));
                            registers(thread, |r| r.orig_rax = u64::MAX);
                        }
                        // SAFETY: here and below, a plain system call on our own child.
                        Verdict::Signal(signal) => drop(unsafe { libc::kill(pid, signal) }),
                        Verdict::Kill => drop(unsafe { libc::kill(pid, libc::SIGKILL) }),
                    }
                }
                Some(Stop::Exit) => match failing.remove(&thread) {
                    Some(Failing::With(error)) => registers(thread, |r| r.rax = -i64::from(error) as u64),
                    Some(Failing::Heap(asked)) => registers(thread, |r| r.rdi = asked),
                    None => {}
                },
                None => {}
            },
            libc::SIGTRAP if !began => {
                began = true;
                // SAFETY: the child has stopped at its exec.
                unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, thread, 0, OPTIONS) };
            }
            // A thread was made, or stops because it was just made.
            libc::SIGTRAP | libc::SIGSTOP => {}
            signal => deliver = signal,
        }
        // SAFETY: the thread has stopped; if it was killed meanwhile the call fails.
        unsafe { libc::ptrace(libc::PTRACE_SYSCALL, thread, 0, i64::from(deliver)) };
    }
}

/// How a call that is being made fails.
enum Failing {
    /// With this error.
    With(i32),
    /// As growing the heap does: the caller's argument is to be put back.
    Heap(u64),
}

enum Stop {
    Entry(Call),
    Exit,
}

/// The place at which a thread has stopped.
fn stop(thread: i32) -> Option<Stop> {
    // SAFETY: zeros are valid for the kernel's plain record.
    let mut about: libc::ptrace_syscall_info = unsafe { std::mem::zeroed() };
    let size = size_of_val(&about);
    // SAFETY: the kernel writes at most `size` bytes into `about`.
    let got = unsafe { libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, thread, size, &mut about) };
    if got <= 0 {
        return None;
    }
    match about.op {
        libc::PTRACE_SYSCALL_INFO_ENTRY => {
            // SAFETY: this member of the union is the one that the kernel filled in.
            let entry = unsafe { about.u.entry };
            Some(Stop::Entry(Call { number: entry.nr as i64, arguments: entry.args }))
        }
        libc::PTRACE_SYSCALL_INFO_EXIT => Some(Stop::Exit),
        _ => None,
    }
}

fn registers(thread: i32, change: impl FnOnce(&mut libc::user_regs_struct)) {
    // SAFETY: zeros are valid for registers; the thread has stopped, and the kernel reads and writes exactly this
    // record.
    unsafe {
        let mut all: libc::user_regs_struct = std::mem::zeroed();
        if libc::ptrace(libc::PTRACE_GETREGS, thread, 0, &mut all) == 0 {
            change(&mut all);
            libc::ptrace(libc::PTRACE_SETREGS, thread, 0, &all);
        }
    }
}
