//! Output of `record --check`: the recorders that can be used, and the questions that a recording would answer.

use super::capabilities::Capabilities;
use super::plan::obstacle;
use super::{Recorder, shell};
use crate::model::topic::TOPICS;
use std::fmt::Write;

/// Result of [`report`].
#[derive(Clone, Debug)]
pub struct CheckReport {
    /// The report, several lines.
    pub text: String,
    /// True if at least one recorder can be used.
    pub is_usable: bool,
}

/// Report which recorders of a machine can be used, and which questions the best of them answers.
pub fn report(host: &Capabilities) -> CheckReport {
    let mut text = format!("recorders on this machine (Linux {}, {} CPUs)\n", host.release, host.cpus);
    let mut chosen = None;
    for recorder in Recorder::ALL {
        let version = host.tool(recorder).map_or(String::new(), |tool| {
            let numbers: Vec<String> = tool.version.iter().map(u32::to_string).collect();
            format!(" {}", numbers.join("."))
        });
        let state = match obstacle(host, recorder) {
            Some(reason) => format!("no: {reason}"),
            None if chosen.is_none() => {
                chosen = Some(recorder);
                "yes, used by `whyslow record`".to_owned()
            }
            None => "yes".to_owned(),
        };
        let _ = writeln!(text, "  {:<17} {state}", format!("{}{version}", recorder.name()));
    }
    let Some(chosen) = chosen else {
        text.push_str("no recorder can be used; each line above says what is missing\n");
        return CheckReport { text, is_usable: false };
    };
    let _ = writeln!(text, "questions that a recording by {} will answer", chosen.name());
    let mut row = |question: &str, is_answered: bool, reason: &str| {
        let answer = if is_answered { "yes".to_owned() } else { format!("no: {reason}") };
        let _ = writeln!(text, "  {question:<28} {answer}");
    };
    for topic in &TOPICS {
        let is_answered = topic.events.iter().any(|event| host.has(event));
        row(topic.question, is_answered, &format!("this kernel has no {}; {}", topic.events[0], topic.without));
    }
    let has_user_stacks = chosen != Recorder::TraceCmd;
    row("functions of programs", has_user_stacks, "trace-cmd records no user stacks with switches; install perf");
    let has_names = host.kernel_symbols || chosen == Recorder::TraceCmd;
    let hidden = "addresses in /proc/kallsyms are hidden; run as root, or sysctl kernel.kptr_restrict=0";
    row("names of kernel functions", has_names, hidden);
    if let Some(first) = host.unnamed_code.first() {
        let more = host.unnamed_code.len() - 1;
        let more = if more > 0 { format!(" (and {more} more)") } else { String::new() };
        row("functions compiled as they run", false, &format!("{first}{more}"));
    }
    let has_user_space = chosen == Recorder::Lttng;
    let probes = format!(
        "for functions that begin and end executions use {}",
        shell::ShellCommand::new(["--uprobe", "FUNCTION"])
    );
    row("user-space tracepoints", has_user_space, &format!("only LTTng records them; {probes}"));
    CheckReport { text, is_usable: true }
}
