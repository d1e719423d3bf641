//! A plan as one script for a POSIX shell: to be printed and run by hand, or run by `watch.rs` in the folder.
//!
//! The script that is run says each command (`+ `) and each that fails while it finishes (`! `) in the log. It leaves
//! the folder to its caller, who reaches it by a descriptor; all its paths are relative to that folder.

use super::plan::{KERNEL_SYMBOLS, RecordingPlan};
use super::recorder_commands::path_text;
use super::shell::{ShellCommand, quoted};
use std::fmt::Write;

/// The kernel's table of its functions.
const SYMBOL_TABLE: &str = "/proc/kallsyms";

/// Seconds after the time of a recording at which it ends by itself: a whyslow that is not stopped ends it earlier.
const LATE: u64 = 3;

/// The part of a script that runs during the recording.
pub enum ScriptMode {
    /// A command; the recording ends with it.
    Command(ShellCommand),
    /// `ready` is printed, then the script waits until its standard input ends.
    Input,
    /// The recording ends with Ctrl-C, or with Enter where the recorder runs in the background.
    ByHand,
}

impl RecordingPlan {
    /// The whole plan as a script for a POSIX shell.
    pub fn script(&self, during: &ScriptMode) -> String {
        match during {
            ScriptMode::Input => self.script_to_run(),
            ScriptMode::Command(line) => self.script_by_hand(Some(line)),
            ScriptMode::ByHand => self.script_by_hand(None),
        }
    }

    /// The lines of the log after which a command finishes the recording.
    pub(super) fn finishing(&self) -> Vec<String> {
        let symbols = self.kernel_symbols.as_ref().map(|_| copy(KERNEL_SYMBOLS.to_owned()));
        self.finish.iter().chain(symbols.as_ref()).map(|line| format!("+ {line}")).collect()
    }

    fn script_by_hand(&self, command: Option<&ShellCommand>) -> String {
        let mut script = String::new();
        let _ = writeln!(script, "mkdir -m 700 {}", quoted(&path_text(&self.folder)));
        for line in &self.prepare {
            let _ = writeln!(script, "{line:#}");
        }
        let [begin, end] = self.switching();
        let _ = match (command, &self.record) {
            (command, Some(record)) if !self.ring_buffers.switches.is_empty() => {
                // Ctrl-C ends `sleep`, and the shell goes on.
                let line = command.map_or_else(|| "trap : INT; sleep infinity".to_owned(), ToString::to_string);
                let until = if command.is_some() { "" } else { "   # until Ctrl-C" };
                writeln!(script, "{record:#} -- sh -c {}{until}", quoted(&format!("{begin}; {line}{end}")))
            }
            (Some(line), Some(record)) => writeln!(script, "{record:#} -- {line}"),
            (Some(line), None) => writeln!(script, "{line}"),
            (None, Some(record)) => writeln!(script, "{record:#}   # until Ctrl-C"),
            (None, None) => writeln!(script, "read -r enter   # until Enter"),
        };
        let symbols = self.kernel_symbols.as_ref().map(|file| copy(path_text(file)));
        for line in self.finish.iter().chain(symbols.as_ref()) {
            let _ = writeln!(script, "{line}");
        }
        script
    }

    /// The commands that begin and end recording by the instances of tracefs: the recorder around which they are needs
    /// a while before it records, and to write when it has ended.
    fn switching(&self) -> [String; 2] {
        let all = |value: &str| -> String {
            self.ring_buffers
                .switches
                .iter()
                .map(|file| format!("; echo {value} > {}", quoted(&path_text(file))))
                .collect()
        };
        [all("1").trim_start_matches("; ").to_owned(), all("0")]
    }

    fn script_to_run(&self) -> String {
        let says = |mark: &str, line: &dyn std::fmt::Display| quoted(&format!("{mark} {line}")).into_owned();
        let mut script = "umask 077\nfinish() {\n".to_owned();
        for line in &self.finish {
            let _ = writeln!(script, "  echo {} >&2; {line} || echo {} >&2", says("+", line), says("!", line));
        }
        if self.kernel_symbols.is_some() {
            // Half a table would give wrong names: it has its name when it is whole.
            let (line, part) = (copy(KERNEL_SYMBOLS.to_owned()), format!(".{KERNEL_SYMBOLS}"));
            let whole = format!("{} && mv {part} {KERNEL_SYMBOLS}", copy(part.clone()));
            let failed = format!("{{ rm -f {part}; echo {} >&2; }}", says("!", &line));
            let _ = writeln!(script, "  echo {} >&2; {whole} || {failed}", says("+", &line));
        }
        let _ = writeln!(script, "  :\n}}");
        for line in &self.prepare {
            let _ = writeln!(script, "echo {} >&2; {line} || {{ finish; exit 1; }}", says("+", line));
        }
        let wait = match self.duration {
            // A stopped whyslow does not end its input.
            Some(time) => format!("timeout {} cat >/dev/null; :", time.as_secs().saturating_add(LATE)),
            None if self.ring_buffers.switches.is_empty() => "exec cat >/dev/null".to_owned(),
            None => "cat >/dev/null".to_owned(),
        };
        let [begin, end] = self.switching();
        let begin = if begin.is_empty() { begin } else { format!("{begin}; ") };
        let wait = format!("{wait}{end}");
        let printer = self.printer.as_ref().map(|line| format!("exec {line} -- sh -c {} 2>&1", quoted(&wait)));
        let waiting = format!("{begin}echo ready; {}", printer.unwrap_or(wait));
        let _ = match &self.record {
            Some(record) => {
                writeln!(script, "echo {} >&2; {record} -- sh -c {}; status=$?", says("+", record), quoted(&waiting))
            }
            None => writeln!(script, "sh -c {}; status=$?", quoted(&waiting)),
        };
        let _ = writeln!(script, "finish\nexit $status");
        script
    }
}

/// The command that saves the addresses of kernel functions.
fn copy(file: String) -> ShellCommand {
    ShellCommand::new(["cp", SYMBOL_TABLE]).with([file])
}
