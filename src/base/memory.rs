//! Obeying a memory limit: work that would need more is ended, with one line, before the system ends it with none.
//!
//! A watcher looks at what the process holds every few milliseconds (the pages of its own; mapped files are the system's,
//! which takes them back when it needs to) and cancels the work once that is more than the limit. So the limit may be
//! passed by what is allocated between two looks and until the work sees its cancel flag.

use super::work::Cancel;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(5);

/// The limit did not suffice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// More was needed.
    #[error("--memory {}: more is needed; raise the limit, use fewer --threads, or ask of a shorter trace", words(*.0))]
    Exceeded(u64),
    /// Nobody says how much is held.
    #[error("--memory: this system does not tell how much memory a process holds; leave the option out")]
    Unknown,
}

/// Run `job`, which looks at `cancel`, within `limit` bytes.
pub fn within<T>(limit: Option<u64>, cancel: &Cancel, job: impl FnOnce() -> T) -> Result<T, MemoryError> {
    let Some(limit) = limit else { return Ok(job()) };
    let exceeded = AtomicBool::new(held().ok_or(MemoryError::Unknown)? > limit);
    if exceeded.load(Ordering::Relaxed) {
        return Err(MemoryError::Exceeded(limit));
    }
    std::thread::scope(|scope| {
        let (done, ended) = mpsc::channel::<()>();
        let exceeded = &exceeded;
        scope.spawn(move || {
            while ended.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                if held().is_some_and(|bytes| bytes > limit) {
                    exceeded.store(true, Ordering::Relaxed);
                    cancel.cancel();
                    return;
                }
            }
        });
        let result = job();
        drop(done);
        if exceeded.load(Ordering::Relaxed) { Err(MemoryError::Exceeded(limit)) } else { Ok(result) }
    })
}

/// Bytes of memory of its own that this process holds.
fn held() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kib = status.lines().find_map(|l| l.strip_prefix("RssAnon:"))?.trim().strip_suffix("kB")?;
    kib.trim().parse::<u64>().ok()?.checked_mul(1024)
}

fn words(bytes: u64) -> String {
    match bytes {
        b if b >= 1 << 30 && b % (1 << 30) == 0 => format!("{}GiB", b >> 30),
        b if b >= 1 << 20 && b % (1 << 20) == 0 => format!("{}MiB", b >> 20),
        b => format!("{b}B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;

    #[test]
    fn what_takes_too_much_is_cancelled() {
        let cancel = Cancel::default();
        let limit = held().unwrap() + (256 << 20);
        let started = std::time::Instant::now();
        let result = within(Some(limit), &cancel, || {
            let mut kept: Vec<Vec<u8>> = Vec::new();
            while !cancel.is_cancelled() && started.elapsed().as_secs() < 60 {
                kept.push(black_box(vec![1; 1 << 20]));
                std::thread::sleep(Duration::from_micros(200));
            }
            kept.len()
        });
        assert_eq!(result, Err(MemoryError::Exceeded(limit)));
        assert_eq!(within(Some(u64::MAX), &Cancel::default(), || 7), Ok(7));
        assert_eq!(within(Some(1), &Cancel::default(), || 7), Err(MemoryError::Exceeded(1)));
        assert!(MemoryError::Exceeded(512 << 20).to_string().contains("512MiB"));
    }
}
