//! Triggers that end a recording besides time, a command and Ctrl-C: a call that takes too long, a signal, a file that appears.

use crate::base::quantity;
use std::collections::HashMap;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// A condition that ends a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndTrigger {
    /// A call of a probed function took longer.
    Latency(Duration),
    /// SIGUSR1 came.
    Signal,
    /// A file is there.
    File(PathBuf),
}

impl FromStr for EndTrigger {
    type Err = String;

    fn from_str(typed: &str) -> Result<EndTrigger, String> {
        if let Some(limit) = typed.strip_prefix("latency>") {
            return Ok(EndTrigger::Latency(quantity::duration(limit).map_err(|e| e.to_string())?));
        }
        match typed.split_once('=') {
            Some(("file", path)) if !path.is_empty() => Ok(EndTrigger::File(PathBuf::from(path))),
            None if typed == "signal" => Ok(EndTrigger::Signal),
            _ => Err("write latency>20ms, signal, or file=PATH".to_owned()),
        }
    }
}

/// Calls of probed functions that have begun, from the lines that `perf trace` prints:
/// `TIME COMM/TID GROUP:FUNCTION(...)`, with `__return` behind the name where it returns; the time is in milliseconds.
#[derive(Debug, Default)]
pub(super) struct OpenCalls {
    /// Begins by thread and function, innermost last.
    open: HashMap<(u32, String), Vec<f64>>,
}

impl OpenCalls {
    /// The most calls that may be open at once: threads that end inside of a call leave one behind.
    const MOST: usize = 100_000;

    /// Take one line; how long the call took that it ends.
    pub fn line(&mut self, line: &str) -> Option<(String, Duration)> {
        let (time, rest) = line.trim_start().split_once(char::is_whitespace)?;
        let time: f64 = time.parse().ok()?;
        let call = &rest[..rest.find('(')?];
        // The name of a thread may hold anything: the event is the last word, the thread's id precedes it.
        let (thread, event) = call.trim_end().rsplit_once(char::is_whitespace)?;
        let tid: u32 = thread.trim_end().rsplit_once('/')?.1.parse().ok()?;
        let name = event.split_once(':')?.1;
        let Some(function) = name.strip_suffix("__return") else {
            if self.open.len() >= Self::MOST {
                self.open.clear();
            }
            self.open.entry((tid, name.to_owned())).or_default().push(time);
            return None;
        };
        let key = (tid, function.to_owned());
        let begins = self.open.get_mut(&key)?;
        let begin = begins.pop()?;
        if begins.is_empty() {
            self.open.remove(&key);
        }
        Some((key.1, Duration::from_secs_f64(((time - begin) / 1e3).max(0.0))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triggers_are_read() {
        assert_eq!("latency>20ms".parse(), Ok(EndTrigger::Latency(Duration::from_millis(20))));
        assert_eq!("signal".parse(), Ok(EndTrigger::Signal));
        assert_eq!("file=/tmp/x=y".parse(), Ok(EndTrigger::File("/tmp/x=y".into())));
        for wrong in ["latency>20", "latency", "file=", "signal=1", "latency>-1ms", "latency>nans"] {
            assert!(wrong.parse::<EndTrigger>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn calls_are_timed_from_what_perf_trace_prints() {
        let mut calls = OpenCalls::default();
        let lines = [
            "     0.000 t/32199 whyslow_7:handle_request(__probe_ip: 94903427563833)",
            "     1.000 a b/c/5 whyslow_7:handle_request(__probe_ip: 94903427563833)",
            "     6.278 t/32199 whyslow_7:handle_request__return(__probe_func: 94903427563833, __probe_ret_ip: 9)",
            "perf: warning",
            "     7.000 t/9 whyslow_7:handle_request__return(__probe_func: 94903427563833, __probe_ret_ip: 9)",
            "     9.500 a b/c/5 whyslow_7:handle_request__return(__probe_func: 9)",
        ];
        let took: Vec<_> = lines.iter().filter_map(|line| calls.line(line)).collect();
        let handled = |us| ("handle_request".to_owned(), Duration::from_micros(us));
        assert_eq!(took, [handled(6278), handled(8500)]);
    }
}
