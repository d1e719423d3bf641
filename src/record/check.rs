//! Output of `record --check`: the recorders that can be used, and the questions that a recording would answer.

use super::capabilities::Capabilities;
use super::plan::obstacle;
use super::{Recorder, shell};
use crate::advice::topic::{TOPICS, TopicLoad};
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
    // What the answer costs, or the reason why there is none.
    let mut row = |question: &str, answer: Result<&str, &str>| {
        let answer = match answer {
            Ok("") => "yes".to_owned(),
            Ok(cost) => format!("yes (costs {cost})"),
            Err(reason) => format!("no: {reason}"),
        };
        let _ = writeln!(text, "  {question:<28} {answer}");
    };
    for topic in &TOPICS {
        let lacks = format!("this kernel has no {}; {}", topic.events[0], topic.without);
        let is_answered = topic.events.iter().any(|event| host.has(event));
        let cost = match topic.load {
            TopicLoad::Light => topic.cost.to_owned(),
            TopicLoad::Calls => format!("{}: those of --pid, --comm or COMMAND, else with --full", topic.cost),
            TopicLoad::Heavy => format!("{}: with --full", topic.cost),
        };
        row(topic.question, if is_answered { Ok(&cost) } else { Err(&lacks) });
    }
    let or = |is_answered: bool, reason| if is_answered { Ok("") } else { Err(reason) };
    let no_stacks = "trace-cmd records no user stacks with switches; install perf";
    row("functions of programs", or(chosen != Recorder::TraceCmd, no_stacks));
    let no_samples = "only LTTng and perf take samples; install perf";
    row("functions that ran", or(matches!(chosen, Recorder::Lttng | Recorder::Perf), no_samples));
    let hidden = "addresses in /proc/kallsyms are hidden; run as root, or sysctl kernel.kptr_restrict=0";
    row("names of kernel functions", or(host.kernel_symbols || chosen == Recorder::TraceCmd, hidden));
    if let Some(first) = host.unnamed_code.first() {
        let more = host.unnamed_code.len() - 1;
        let more = if more > 0 { format!(" (and {more} more)") } else { String::new() };
        row("functions compiled as they run", Err(&format!("{first}{more}")));
    }
    let probes = format!(
        "only LTTng records them; for functions that begin and end executions use {}",
        shell::ShellCommand::new(["--uprobe", "FUNCTION"])
    );
    row("user-space tracepoints", or(chosen == Recorder::Lttng, &probes));
    CheckReport { text, is_usable: true }
}
