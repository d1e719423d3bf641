//! Conditions of `--until` that end a recording: a slow call, a signal, a file that appears.

use super::leftovers::GROUP;
use crate::base::quantity::{self, QuantityError};
use std::collections::HashMap;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// A condition that ends a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndTrigger {
    /// A call of a probed function took longer than this.
    Latency(Duration),
    /// SIGUSR1 arrived.
    Signal,
    /// A file exists.
    File(PathBuf),
}

/// The reason why a text is not a trigger.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TriggerError {
    /// The limit of a latency is not a duration.
    #[error(transparent)]
    Latency(#[from] QuantityError),
    /// The text has none of the forms.
    #[error("write latency>20ms, signal, or file=PATH")]
    Unknown,
}

impl FromStr for EndTrigger {
    type Err = TriggerError;

    fn from_str(text: &str) -> Result<EndTrigger, TriggerError> {
        if let Some(limit) = text.strip_prefix("latency>") {
            return Ok(EndTrigger::Latency(quantity::duration(limit)?));
        }
        match text.split_once('=') {
            Some(("file", path)) if !path.is_empty() => Ok(EndTrigger::File(PathBuf::from(path))),
            None if text == "signal" => Ok(EndTrigger::Signal),
            _ => Err(TriggerError::Unknown),
        }
    }
}

/// A finished call of a probed function.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EndedCall {
    pub function: String,
    pub took: Duration,
}

/// Calls of probed functions that have begun and not ended, from the lines that `perf trace` prints:
/// `TIME COMM/TID GROUP:FUNCTION(...)`, with `__return` after the name where the function returns; TIME is in
/// milliseconds.
#[derive(Debug, Default)]
pub(super) struct OpenCalls {
    /// Times of begin by thread id and function, the innermost call last.
    open: HashMap<(u32, String), Vec<f64>>,
}

impl OpenCalls {
    /// The most calls that are kept: a thread that ends inside a call leaves its call open for ever.
    const LIMIT: usize = 100_000;

    /// Read one line; the call that it ends, if it ends one.
    pub fn line(&mut self, line: &str) -> Option<EndedCall> {
        let (time, rest) = line.trim_start().split_once(char::is_whitespace)?;
        let time: f64 = time.parse().ok()?;
        // A thread's name may contain blanks, slashes and brackets, so the line is read from its end: the arguments,
        // which are numbers, then the event, then the thread id.
        let (thread, event) = rest.rsplit_once(&format!(" {GROUP}"))?;
        let event = &event[..event.find('(')?];
        let tid: u32 = thread.trim_end().rsplit_once('/')?.1.parse().ok()?;
        let name = event.trim_end().split_once(':')?.1;
        let Some(function) = name.strip_suffix("__return") else {
            if self.open.len() >= Self::LIMIT {
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
        Some(EndedCall { function: key.1, took: Duration::from_secs_f64(((time - begin) / 1e3).max(0.0)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn end_trigger_parses_its_three_forms() {
        assert_eq!("latency>20ms".parse(), Ok(EndTrigger::Latency(Duration::from_millis(20))));
        assert_eq!("signal".parse(), Ok(EndTrigger::Signal));
        assert_eq!("file=/tmp/x=y".parse(), Ok(EndTrigger::File("/tmp/x=y".into())));
        for wrong in ["latency>20", "latency", "file=", "signal=1", "latency>-1ms", "latency>nans"] {
            assert!(wrong.parse::<EndTrigger>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn open_calls_measures_calls_from_lines_of_perf_trace() {
        let mut calls = OpenCalls::default();
        let lines = [
            "     0.000 t/32199 whyslow_7:handle_request(__probe_ip: 94903427563833)",
            "     1.000 a b/c/5 whyslow_7:handle_request(__probe_ip: 94903427563833)",
            "     6.278 t/32199 whyslow_7:handle_request__return(__probe_func: 94903427563833, __probe_ret_ip: 9)",
            "perf: warning",
            "     7.000 t/9 whyslow_7:handle_request__return(__probe_func: 94903427563833, __probe_ret_ip: 9)",
            "     9.500 a b/c/5 whyslow_7:handle_request__return(__probe_func: 9)",
            "    10.000 (sd-pam)/6 whyslow_7:handle_request(__probe_ip: 9)",
            "    11.500 (sd-pam)/6 whyslow_7:handle_request__return(__probe_func: 9)",
        ];
        let took: Vec<_> = lines.iter().filter_map(|line| calls.line(line)).collect();
        let handle_request = |us| EndedCall { function: "handle_request".to_owned(), took: Duration::from_micros(us) };
        assert_eq!(took, [handle_request(6278), handle_request(8500), handle_request(1500)]);
    }
}
