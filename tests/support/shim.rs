//! Replaces libc's allocator (`LD_PRELOAD`): the call that `FAIL_ALLOCATION` numbers, counted from 1, finds no memory.
//! Allocations of the loader, libc and the runtime before `main` are not counted (glibc 2.36 crashes in
//! `pthread_getattr_np` there): counting begins with the first call of the program's own, which takes SIGXFSZ over.
//! When the process exits it writes the number of calls into the file that `COUNT_ALLOCATIONS` names.
//!
//! Built by the test with `rustc --crate-type cdylib`; without the standard library, whose own start would be counted.
//! Memory comes from glibc, so that its `free` takes it back.
#![no_std]
#![allow(unsafe_code)]

use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};

unsafe extern "C" {
    fn __libc_malloc(size: usize) -> *mut c_void;
    fn __libc_calloc(n: usize, size: usize) -> *mut c_void;
    fn __libc_realloc(block: *mut c_void, size: usize) -> *mut c_void;
    fn __libc_memalign(alignment: usize, size: usize) -> *mut c_void;
    fn __sigaction(signal: c_int, new: *const c_void, old: *mut c_void) -> c_int;
    fn getenv(name: *const c_char) -> *const c_char;
    fn creat(path: *const c_char, mode: u32) -> c_int;
    fn write(fd: c_int, bytes: *const c_void, n: usize) -> isize;
}

/// The call that fails; none before the process has begun.
static FAILING: AtomicU64 = AtomicU64::new(0);
static CALLS: AtomicU64 = AtomicU64::new(0);
static BEGUN: AtomicBool = AtomicBool::new(false);
const SIGXFSZ: c_int = 25;
/// Opened at the start: later the sandbox forbids writing there.
static COUNT: AtomicI32 = AtomicI32::new(-1);

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;
#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;

extern "C" fn begin() {
    let mut number = 0;
    // SAFETY: the name ends with a zero, and so does the result of `getenv`.
    unsafe {
        let mut digit = getenv(c"FAIL_ALLOCATION".as_ptr());
        while !digit.is_null() && *digit != 0 {
            number = number * 10 + (*digit as u64 - u64::from(b'0'));
            digit = digit.add(1);
        }
        let path = getenv(c"COUNT_ALLOCATIONS".as_ptr());
        if !path.is_null() {
            COUNT.store(creat(path, 0o600), Ordering::SeqCst);
        }
    }
    CALLS.store(0, Ordering::SeqCst);
    FAILING.store(number, Ordering::SeqCst);
}

extern "C" fn end() {
    let mut digits = [b'0'; 20];
    let mut number = CALLS.load(Ordering::SeqCst);
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
    // SAFETY: `digits` lives; without a file the call fails.
    unsafe { write(COUNT.load(Ordering::SeqCst), digits.as_ptr().cast(), digits.len()) };
}

/// Which the program calls, too.
#[unsafe(no_mangle)]
unsafe extern "C" fn sigaction(signal: c_int, new: *const c_void, old: *mut c_void) -> c_int {
    if signal == SIGXFSZ {
        BEGUN.store(true, Ordering::SeqCst);
    }
    // SAFETY: what the caller says of its arguments holds for glibc's function.
    unsafe { __sigaction(signal, new, old) }
}

fn fails() -> bool {
    if !BEGUN.load(Ordering::SeqCst) {
        return false;
    }
    CALLS.fetch_add(1, Ordering::SeqCst) + 1 == FAILING.load(Ordering::SeqCst)
}

#[unsafe(no_mangle)]
extern "C" fn malloc(size: usize) -> *mut c_void {
    // SAFETY: what the caller says of its arguments holds for glibc's function, here and below.
    if fails() { core::ptr::null_mut() } else { unsafe { __libc_malloc(size) } }
}

#[unsafe(no_mangle)]
extern "C" fn calloc(n: usize, size: usize) -> *mut c_void {
    if fails() { core::ptr::null_mut() } else { unsafe { __libc_calloc(n, size) } }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    if fails() { core::ptr::null_mut() } else { unsafe { __libc_realloc(block, size) } }
}

#[unsafe(no_mangle)]
extern "C" fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void {
    if fails() { core::ptr::null_mut() } else { unsafe { __libc_memalign(alignment, size) } }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn posix_memalign(to: *mut *mut c_void, alignment: usize, size: usize) -> c_int {
    let block = aligned_alloc(alignment, size);
    if block.is_null() {
        // ENOMEM
        return 12;
    }
    // SAFETY: the caller hands over a place for a pointer.
    unsafe { *to = block };
    0
}

/// Asked for by `core`, which was built to unwind; nothing here does.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
