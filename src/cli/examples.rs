//! Examples below the help of each command, and the options that a command has no use for, which its help leaves out.
//!
//! Every command takes the options about input, so that they may stand anywhere; where one changes nothing, the help,
//! the completions and the manual pages don't show it.

use clap::{Arg, Command};

/// A command and its examples.
struct Examples {
    command: &'static str,
    text: &'static str,
}

const EXAMPLES: [Examples; 17] = [
    Examples {
        command: "explain",
        text: "Examples:
  whyslow explain TRACE --symbols ./bin                     names of functions from the files in ./bin
  whyslow explain TRACE --task syscall:fsync                the slow calls of fsync
  whyslow explain TRACE --slow 'duration>20ms, type=append'
  whyslow explain NEW --baseline OLD --fail-if 'p95>+5%'    exit status 3 where NEW is slower",
    },
    Examples {
        command: "diff",
        text: "Examples:
  whyslow diff TRACE --json                 all figures of the interface
  whyslow diff TRACE --executions 598,17    two executions as timelines, moment by moment
  whyslow diff TRACE --function '[futex]'   what one function or call costs, its callers and callees
  whyslow diff TRACE --focus '[futex]'      trees of this function or call alone, with what it calls
  whyslow diff TRACE --callees-first        the tree inverted: where the time was spent
  whyslow diff TRACE --heat-map start       when executions of each duration began, in both groups",
    },
    Examples {
        command: "trend",
        text: "Examples:
  whyslow trend nightly/*.why                           one point for each recording: when did p95 move?
  whyslow trend fleet --by day --figure p99 --json      a folder of databases, one point for each day
  whyslow trend nightly --fail-if 'p95>+5%'             exit status 3 where the last change is to more
  whyslow trend all.why --task checkout --by host       hosts side by side",
    },
    Examples {
        command: "executions",
        text: "Examples:
  whyslow executions TRACE --slowest 10              the ten slowest, with the time of day
  whyslow executions TRACE --at 6.5s                 those that ran at a moment; also 09:45:56
  whyslow executions TRACE --filter 'type=append, duration>20ms' --json",
    },
    Examples {
        command: "anomalies",
        text: "Examples:
  whyslow anomalies TRACE                   which thread or rank delayed what, how often
  whyslow anomalies run/traces.otf2 --all   all root causes of an MPI run
  whyslow anomalies TRACE -q 0.9 -s 1.5     a larger reference set, a lower threshold",
    },
    Examples {
        command: "query",
        text: "Examples:
  whyslow query TRACE --overview                                      the recording at a glance
  whyslow query TRACE --attribute 'threads/*/state' --at 12.5s        all threads at one time
  whyslow query TRACE --attribute 'threads/*/syscall' --longest 10    the slowest system calls
  whyslow query TRACE --attribute 'threads/*/syscall' --value fsync --longest 10",
    },
    Examples {
        command: "timeline",
        text: "Examples:
  whyslow timeline TRACE                                the busiest threads over the whole recording
  whyslow timeline TRACE --from 1.2s --to 1.3s --cpus
  whyslow timeline TRACE --only ledgerd -o lanes.svg    a picture of the threads of a program",
    },
    Examples {
        command: "stats",
        text: "Examples:
  whyslow stats count TRACE    events per type
  whyslow stats cpu TRACE      CPU time per CPU and thread
  whyslow stats io TRACE       bytes read and written per process",
    },
    Examples {
        command: "info",
        text: "Examples:
  whyslow info TRACE           from metadata and index alone, immediately
  whyslow info TRACE --full    also what the recording can answer, and how to record the rest",
    },
    Examples {
        command: "build",
        text: "Examples:
  whyslow build TRACE --symbols ./bin -o slow.whyslow    a small file for a colleague
  whyslow slow.whyslow                                   opened in place of the trace",
    },
    Examples {
        command: "merge",
        text: "Examples:
  whyslow merge old=monday/*.why new=tuesday -o both.why    files of a pattern and of a folder, under labels
  whyslow merge all.why host7.why -o all.why                one more: what is there already counts once",
    },
    Examples {
        command: "export",
        text: "Examples:
  whyslow export all.why -o tables    Parquet files; docs/fleet/SCHEMA.md describes the columns",
    },
    Examples {
        command: "import",
        text: "Examples:
  whyslow import tables -o all.why    the database of which the tables were exported",
    },
    Examples {
        command: "sql",
        text: "Examples:
  whyslow sql --engine duckdb --tables tables all.why    statements that give the figures of diff",
    },
    Examples {
        command: "dump",
        text: "Examples:
  whyslow dump TRACE | grep sched_switch
  whyslow dump TRACE --canonical           the format in which CTF readers are compared",
    },
    Examples {
        command: "record",
        text: "Examples:
  whyslow record --check        what this machine can record, and what is missing
  whyslow record -- ./server    record a program, then open the recording",
    },
    Examples {
        command: "snapshot",
        text: "Examples:
  whyslow snapshot -o environment.jsonl --duration 10s    beside a recording that is made meanwhile
  whyslow snapshot --duration 1s                          what control groups and /proc count now",
    },
];

/// Options without an effect, by command.
const WITHOUT_EFFECT: [(&str, &[&str]); 5] = [
    ("trend", &["tasks", "handlers", "check"]),
    ("dump", &["tasks", "handlers", "check"]),
    ("stats", &["tasks"]),
    ("query", &["tasks"]),
    ("timeline", &["tasks"]),
];

/// Options for rare needs, which the short help (`-h`) leaves to the long one.
const RARE: [&str; 6] = ["strict", "timings", "check", "memory", "handlers", "no-sandbox"];

/// The definition with examples, and without the options that change nothing.
pub(super) fn applied(mut definition: Command) -> Command {
    for Examples { command, text } in &EXAMPLES {
        definition = definition.mut_subcommand(command, |command| command.after_help(*text));
    }
    for (command, options) in WITHOUT_EFFECT {
        for option in options {
            definition =
                definition.mut_subcommand(command, |command| command.mut_arg(option, |option| option.hide(true)));
        }
    }
    let is_rare = |arg: &Arg| arg.get_long().is_some_and(|long| RARE.contains(&long));
    let shortened = |arg: Arg| if is_rare(&arg) { arg.hide_short_help(true) } else { arg };
    definition.mut_args(shortened).mut_subcommands(|command| command.mut_args(shortened))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Parsed, definition, parse};
    use crate::options::configuration::Configuration;

    #[test]
    fn short_help_is_shorter_and_both_have_examples() {
        for command in ["", "explain", "diff", "anomalies", "query", "report"] {
            let help = |option: &str| {
                let words = ["whyslow", command, option].into_iter().filter(|word| !word.is_empty());
                match parse(words.map(Into::into), &Configuration::default()) {
                    Parsed::Print(text) => text,
                    other => panic!("{other:?}"),
                }
            };
            let (short, long) = (help("-h"), help("--help"));
            assert!(short.lines().count() < long.lines().count(), "{command}");
            assert!(!short.contains("--no-sandbox") && long.contains("--no-sandbox"), "{command}");
            assert!(short.contains("xamples:") && long.contains("xamples:"), "{command}: {short}");
        }
    }

    #[test]
    fn each_command_has_examples_that_parse() {
        let shown = |command: &&Command| !command.is_hide_set() && !["help", "man"].contains(&command.get_name());
        for command in definition().get_subcommands().filter(shown) {
            let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(text.contains("Example"), "{}", command.get_name());
        }
        for Examples { command, text } in &EXAMPLES {
            for line in text.lines().filter(|line| line.starts_with("  ")) {
                let words = line.trim().split("   ").next().unwrap().split(" |").next().unwrap();
                // As a shell divides it.
                let mut parts = words.split('\'');
                let mut all: Vec<String> = Vec::new();
                while let Some(plain) = parts.next() {
                    all.extend(plain.split_whitespace().map(str::to_owned));
                    all.extend(parts.next().map(str::to_owned));
                }
                let parsed = parse(all.into_iter().map(Into::into), &Configuration::default());
                assert!(matches!(parsed, Parsed::Run(_)), "{command}: {line}: {parsed:?}");
            }
        }
    }
}
