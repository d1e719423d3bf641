//! Code as a hostile file might bring it in (`LD_PRELOAD`): when the program opens the file that `PROBE_AT` names, and
//! has given up its rights, it tries what it should not be able to do, prints one line for each try, and ends.
//!
//! Built by the test with `rustc --crate-type cdylib`; Linux on x86-64 only. Numbers of calls are those of the kernel,
//! since a library might refuse what the kernel would do.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_long, c_void};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn syscall(number: c_long, ...) -> c_long;
    fn _exit(status: c_int) -> !;
}

static DONE: AtomicBool = AtomicBool::new(false);

type Open = unsafe extern "C" fn(*const c_char, c_int, u32) -> c_int;

/// # Safety
/// Called by the program as the C library's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: u32) -> c_int {
    let next = std::ptr::without_provenance_mut::<c_void>(usize::MAX);
    // SAFETY: RTLD_NEXT finds the function that this one hides, which has the same type.
    let real: Open = unsafe { std::mem::transmute(dlsym(next, c"open64".as_ptr())) };
    // SAFETY: the program hands a path over.
    let name = unsafe { CStr::from_ptr(path) }.to_string_lossy();
    let is_it = std::env::var("PROBE_AT").is_ok_and(|at| name.ends_with(&at));
    if is_it && is_confined() && !DONE.swap(true, Ordering::SeqCst) {
        attack();
        // SAFETY: the end of the process.
        unsafe { _exit(7) };
    }
    // SAFETY: as the program called it.
    unsafe { real(path, flags, mode) }
}

fn is_confined() -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| status.contains("NoNewPrivs:\t1"))
}

fn said(what: &str, result: Result<(), std::io::Error>) {
    eprintln!("{what}: {}", result.map_or_else(|e| e.to_string(), |()| "ALLOWED".to_owned()));
}

/// Tries one system call.
fn call(what: &str, number: c_long, arguments: [usize; 6]) {
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: a refused call has no effect; if one is allowed the test fails.
    let result = unsafe { syscall(number, a, b, c, d, e, f) };
    // The child of a fork that was allowed.
    if result == 0 && what.starts_with("make a process") {
        unsafe { _exit(0) };
    }
    said(what, if result < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) });
}

fn attack() {
    let victim = std::env::var("PROBE_VICTIM").unwrap_or_default();
    let name = CString::new(victim.clone()).unwrap_or_default();
    let path = name.as_ptr() as usize;
    let here = -100_isize as usize;
    let program = c"/bin/true".as_ptr() as usize;
    let text = c"user.x".as_ptr() as usize;
    call("change rights", 90, [path, 0o666, 0, 0, 0, 0]);
    call("change rights by folder", 268, [here, path, 0o666, 0, 0, 0]);
    call("change rights, newest call", 452, [here, path, 0o666, 0, 0, 0]);
    call("change the owner", 92, [path, 65534, 65534, 0, 0, 0]);
    call("change the owner by folder", 260, [here, path, 65534, 65534, 0, 0]);
    call("set an attribute", 188, [path, text, text, 1, 0, 0]);
    call("change times", 280, [here, path, 0, 0, 0, 0]);
    call("truncate", 76, [path, 0, 0, 0, 0, 0]);
    call("open by handle", 304, [here, path, 0, 0, 0, 0]);
    for (family, kind, name) in [(1, 1, "Unix"), (2, 1, "TCP"), (2, 2, "UDP"), (2, 3, "raw"), (16, 3, "netlink")] {
        call(&format!("open a {name} socket"), 41, [family, kind, 0, 0, 0, 0]);
    }
    call("open a packet socket", 41, [17, 3, 0, 0, 0, 0]);
    call("open a vsock socket", 41, [40, 1, 0, 0, 0, 0]);
    call("make a process by fork", 57, [0; 6]);
    call("make a process by vfork", 58, [0; 6]);
    call("make a process by clone", 56, [17, 0, 0, 0, 0, 0]);
    call("make a process by clone3", 435, [0; 6]);
    call("run a program", 59, [program, 0, 0, 0, 0, 0]);
    call("run a program by folder", 322, [here, program, 0, 0, 0, 0]);
    // SAFETY: the process of the test, which has this one as its child.
    let parent = unsafe { syscall(110) } as usize;
    call("signal the parent", 62, [parent, 0, 0, 0, 0, 0]);
    call("trace the parent", 101, [16, parent, 0, 0, 0, 0]);
    call("read another's memory", 310, [parent, 0, 0, 0, 0, 0]);
    call("load a BPF program", 321, [0; 6]);
    call("open a performance event", 298, [0; 6]);
    call("set up io_uring", 425, [8, 0, 0, 0, 0, 0]);
    call("ask for a key ring", 250, [0, -3_isize as usize, 0, 0, 0, 0]);
    call("mount", 165, [0; 6]);
    call("reboot", 169, [0; 6]);
    call("set the host's name", 170, [text, 1, 0, 0, 0, 0]);
    call("set the clock", 227, [0, 0, 0, 0, 0, 0]);
    call("enter a namespace", 308, [0, 0, 0, 0, 0, 0]);
    call("make a namespace", 272, [0x1000_0000, 0, 0, 0, 0, 0]);
    call("become another user", 117, [65534, 65534, 65534, 0, 0, 0]);
    call("type into the terminal", 16, [0, 0x5412, text, 0, 0, 0]);
    said("read the file", std::fs::File::open(&victim).map(drop));
    said("write the file", std::fs::File::options().append(true).open(&victim).map(drop));
    call("unlink", 87, [path, 0, 0, 0, 0, 0]);
    said("read the passwords", std::fs::File::open("/etc/shadow").map(drop));
    let beside = Path::new(&victim).with_file_name("made");
    said("make a file beside it", std::fs::write(beside, "x"));
    said("make a temporary file", std::fs::write(std::env::temp_dir().join("whyslow-probe"), "x"));
    said("write its own memory", std::fs::File::options().write(true).open("/proc/self/mem").map(drop));
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    for line in status.lines().filter(|line| line.starts_with("Cap")) {
        eprintln!("{line}");
    }
}
