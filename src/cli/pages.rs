//! Texts made from the definition of the command line: completion scripts and manual pages.
//!
//! In: clap's definition. Out: a script for a shell, or a page in roff. Both follow the definition, so that a new
//! option appears in them by itself; only the sections on exit status, environment and files are written here.

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use std::io;

/// The script that completes the commands, options and paths of `definition` in a shell.
pub(super) fn completions(mut definition: Command, shell: Shell) -> String {
    let mut script = Vec::new();
    let name = definition.get_name().to_owned();
    clap_complete::generate(shell, &mut definition, name, &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// The manual page of the program, or of one of its commands; `None` if there is no such command.
pub(super) fn manual(mut definition: Command, command: Option<&str>) -> Option<String> {
    // Without this, the names of the program and of its global options are missing in the commands.
    definition.build();
    let page = match command {
        None => definition.clone(),
        Some(name) => definition.find_subcommand(name)?.clone(),
    };
    let mut out = Vec::new();
    // Writing to memory does not fail.
    page_of(page, &definition, command.is_none(), &mut out).ok()?;
    Some(String::from_utf8_lossy(&out).into_owned())
}

fn page_of(page: Command, program: &Command, is_program: bool, out: &mut Vec<u8>) -> io::Result<()> {
    let examples = page.get_after_help().map(ToString::to_string);
    let usage = page.clone().render_usage().to_string();
    // The page describes what the short help leaves out.
    let page = page.mut_args(|arg| arg.hide_short_help(false));
    let page =
        if is_program { page.about("find out why some executions in a trace are slow and others fast") } else { page };
    let man = Man::new(page).manual("whyslow").source(program.render_version().trim());
    man.render_title(out)?;
    man.render_name_section(out)?;
    let mut synopsis = Roff::new();
    synopsis.control("SH", ["SYNOPSIS"]).control("nf", []);
    for line in usage.trim_start_matches("Usage:").lines().map(str::trim).filter(|line| !line.is_empty()) {
        synopsis.text([roman(line)]);
    }
    synopsis.control("fi", []).to_writer(out)?;
    man.render_description_section(out)?;
    man.render_options_section(out)?;
    if is_program {
        man.render_subcommands_section(out)?;
    }
    let mut rest = Roff::new();
    if let Some(examples) = &examples {
        rest.control("SH", ["EXAMPLES"]).control("nf", []);
        for line in examples.lines().filter(|line| line.starts_with(' ')) {
            rest.text([roman(line)]);
        }
        rest.control("fi", []);
    }
    let entries = |roff: &mut Roff, title: &str, entries: &[(&str, &str)]| {
        roff.control("SH", [title]);
        for (name, text) in entries {
            roff.control("TP", []).text([bold(*name)]).text([roman(*text)]);
        }
    };
    entries(&mut rest, "EXIT STATUS", &EXIT_STATUS);
    if is_program {
        entries(&mut rest, "ENVIRONMENT", &ENVIRONMENT);
        entries(&mut rest, "FILES", &FILES);
    }
    rest.to_writer(out)
}

const EXIT_STATUS: [(&str, &str); 4] = [
    ("0", "The answer was given."),
    ("1", "The input or the analysis failed."),
    ("2", "The command line is wrong."),
    ("3", "The condition of --fail-if holds."),
];

const ENVIRONMENT: [(&str, &str); 5] = [
    ("NO_COLOR", "If it is set, no colours are used."),
    ("COLORTERM, TERM", "They decide how many colours are used; with TERM=dumb the answer is printed in lines."),
    ("LC_ALL, LC_CTYPE, LANG", "A locale that is not UTF-8 means ASCII characters only."),
    ("XDG_CONFIG_HOME", "Folder of the configuration (default: ~/.config)."),
    ("TMPDIR", "Folder of temporary files (default: /tmp)."),
];

const FILES: [(&str, &str); 2] = [
    ("~/.config/whyslow/config.toml", "Defaults of options: theme, color, ascii, mouse, symbols."),
    (
        "~/.config/whyslow/handlers.toml",
        "A table that classifies interrupt handlers by name; it takes precedence over the built-in one.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn options(command: &Command) -> impl Iterator<Item = String> + '_ {
        let visible = command.get_arguments().filter(|arg| !arg.is_hide_set());
        visible.filter_map(|arg| arg.get_long()).map(|long| format!("--{long}"))
    }

    #[test]
    fn completions_know_every_command_and_option() {
        let definition = crate::cli::definition();
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = completions(crate::cli::definition(), shell);
            for command in definition.get_subcommands() {
                assert!(script.contains(command.get_name()), "{shell}: {}", command.get_name());
                for option in options(command) {
                    // Fish writes options without their dashes.
                    let written = if shell == Shell::Fish { format!("-l {}", &option[2..]) } else { option };
                    assert!(script.contains(&written), "{shell}: {written} of {}", command.get_name());
                }
            }
        }
    }

    #[test]
    fn manual_describes_every_option_of_each_command() {
        let definition = crate::cli::definition();
        let names = definition.get_subcommands().map(|command| Some(command.get_name()));
        for name in names.chain([None]) {
            let page = manual(crate::cli::definition(), name).unwrap();
            let plain = page.replace("\\-", "-");
            let command = name.map_or(&definition, |name| definition.find_subcommand(name).unwrap());
            for option in options(command) {
                assert!(plain.contains(&option), "{option} of {name:?}");
            }
            assert!(plain.contains("SYNOPSIS\n.nf\nwhyslow"), "{plain}");
            let bare = plain
                .match_indices(".TP\n")
                .find(|(at, _)| plain[*at..].lines().nth(2).is_none_or(|line| line.starts_with('.')));
            assert_eq!(bare.map(|(at, _)| &plain[at..]), None, "an option without text");
            assert!(plain.contains("EXIT STATUS") && plain.starts_with(".ie"), "{plain}");
            let title = name.map_or("whyslow".to_owned(), |name| format!("whyslow-{name}"));
            assert!(plain.contains(&format!(".TH {title} 1")), "{plain}");
        }
        assert_eq!(manual(crate::cli::definition(), Some("explian")), None);
    }
}
