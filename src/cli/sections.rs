//! The sections of the help: what a user asks for first, what only developers need last.
//!
//! Options without a section are those of the command itself, which come first. The sections follow each other as
//! their first options do in the definition.

use clap::{Arg, Command};

/// Sections with their options.
const SECTIONS: [(&str, &[&str]); 5] = [
    (
        "What is compared",
        &[
            "task",
            "process",
            "slow",
            "fast",
            "type",
            "baseline",
            "functions",
            "event",
            "per",
            "filter",
            "at",
            "slowest",
        ],
    ),
    ("Input", &["symbols", "symbols-only", "kallsyms", "tasks", "handlers", "strict"]),
    ("Appearance", &["color", "theme", "ascii", "mouse", "key"]),
    ("Resources", &["memory", "threads", "no-sandbox"]),
    ("For developers", &["timings", "check"]),
];

/// The definition with its options in sections.
pub(super) fn applied(definition: Command) -> Command {
    let section = |arg: Arg| {
        let has = |(_, options): &&(&str, &[&str])| arg.get_long().is_some_and(|long| options.contains(&long));
        match SECTIONS.iter().find(has) {
            Some((heading, _)) => arg.help_heading(*heading),
            None => arg,
        }
    };
    // `record --check` and `query --at` are what these commands are about.
    let has_sections = |name: &str| !["record", "query"].contains(&name);
    definition
        .mut_args(section)
        .mut_subcommands(|command| if has_sections(command.get_name()) { command.mut_args(section) } else { command })
}

#[cfg(test)]
mod tests {
    use crate::cli::definition;

    #[test]
    fn help_has_what_is_compared_before_what_developers_need() {
        for command in ["explain", "diff", "report", "executions"] {
            let mut definition = definition();
            let help = definition.find_subcommand_mut(command).unwrap().render_long_help().to_string();
            let at = |text: &str| help.find(text).unwrap_or_else(|| panic!("{command}: no {text}\n{help}"));
            let places = ["What is compared:", "Input:", "Resources:", "For developers:"].map(at);
            assert!(places.is_sorted(), "{command}: {help}");
            assert!(at("--task <TASK>") > places[0] && at("--check") > places[3], "{command}: {help}");
        }
    }
}
