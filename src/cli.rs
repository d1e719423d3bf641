//! The command line: a first word that names a command is the command; all other words are traces for the interface.
//!
//! In: words. Out: a [`Command`] whose fields are the options, or one line with the error and the remedy (exit
//! status 2). `--help` and `--version` are not errors.

mod examples;
mod pages;
mod sections;

use crate::base::spelling;
use crate::command::Command;
use crate::command::interface::InterfaceOptions;
use crate::options::configuration::Configuration;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use std::error::Error;
use std::ffi::OsString;

/// Why are these executions slow, when those were fast?
///
/// Opens execution traces (LTTng CTF: kernel and user space; MPI in OTF2; perf.data; trace.dat) and shows what the slow
/// executions of a task do that the fast ones don't, down to the function and the thread that held them up.
#[derive(Parser, Debug)]
#[command(name = "whyslow", version, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = EXAMPLES)]
struct CommandLine {
    #[command(subcommand)]
    command: Option<FirstWord>,
    #[command(flatten)]
    interface: InterfaceOptions,
}

/// What the first word may name: a command, or a text about the command line itself.
#[derive(Subcommand, Debug)]
enum FirstWord {
    #[command(flatten)]
    Run(Box<Command>),
    /// Print a script that completes commands, options and paths in a shell
    #[command(after_help = COMPLETION_EXAMPLES)]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page of whyslow, or of one of its commands, for `man -l -`
    Man {
        /// A command
        command: Option<String>,
    },
}

const COMPLETION_EXAMPLES: &str = "Examples:
  whyslow completions bash > ~/.local/share/bash-completion/completions/whyslow
  whyslow completions zsh > ~/.zfunc/_whyslow
  whyslow completions fish > ~/.config/fish/completions/whyslow.fish";

const EXAMPLES: &str = "Examples:
  whyslow TRACE                                      open the interface
  whyslow explain TRACE                              why the slow executions are slow, in a few lines
  whyslow explain TRACE --slow 'type=append, duration>20ms'
  whyslow explain NEW --baseline OLD --fail-if 'p95>+5%'
  whyslow --tour                                     learn the interface in nine steps
  whyslow info TRACE --full                          the contents of the recording and the facts that it lacks
  whyslow record -- ./server                         record a program, then open the recording";

/// The result of reading the command line.
#[derive(Debug)]
pub enum Parsed {
    /// Run this.
    Run(Box<Command>),
    /// Print this (help, version, completions, a manual page) and end with success.
    Print(String),
    /// One line: the error and the remedy.
    Wrong(String),
}

/// The commands, options and their help.
fn definition() -> clap::Command {
    sections::applied(examples::applied(CommandLine::command()))
}

/// Read a command line (program name first); the configuration gives the defaults.
pub fn parse(words: impl IntoIterator<Item = OsString>, configuration: &Configuration) -> Parsed {
    let words: Vec<OsString> = words.into_iter().collect();
    let mut line = configuration.applied(definition());
    if words.iter().any(|word| word == "--tour") {
        // The tour has a recording of its own.
        line = line.mut_arg("traces", |traces| traces.required(false));
    }
    let matches = line.try_get_matches_from(command_first(words));
    match matches.and_then(|matches| CommandLine::from_arg_matches(&matches)) {
        Ok(line) => {
            let command = match line.command {
                Some(FirstWord::Run(command)) => *command,
                Some(FirstWord::Completions { shell }) => {
                    return Parsed::Print(pages::completions(definition(), shell));
                }
                Some(FirstWord::Man { command }) => return manual(command.as_deref()),
                None => Command::Interface(line.interface),
            };
            match misspelt(&command).or_else(|| command.check().err().map(|e| e.to_string())) {
                Some(wrong) => Parsed::Wrong(wrong),
                None => Parsed::Run(Box::new(command)),
            }
        }
        Err(e) if !e.use_stderr() => Parsed::Print(e.render().to_string()),
        Err(e) => {
            let message = wrong_value(&e).or_else(|| wrong_word(&e)).or_else(|| missing(&e));
            Parsed::Wrong(message.unwrap_or_else(|| one_line(&e.render().to_string())))
        }
    }
}

fn manual(command: Option<&str>) -> Parsed {
    match pages::manual(definition(), command) {
        Some(page) => Parsed::Print(page),
        None => Parsed::Wrong(no_command(command.unwrap_or(""))),
    }
}

/// Move the command in front of options that precede it.
fn command_first(mut words: Vec<OsString>) -> Vec<OsString> {
    if words.get(1).is_none_or(|word| !word.as_encoded_bytes().starts_with(b"-")) {
        return words;
    }
    let definition = definition();
    let takes_value = |word: &str| {
        let all = definition.get_subcommands().chain([&definition]).flat_map(clap::Command::get_arguments);
        let mut same = all.filter(|arg| match word.strip_prefix("--") {
            Some(long) => arg.get_long() == Some(long),
            None => arg.get_short().is_some_and(|short| word == format!("-{short}")),
        });
        same.any(|arg| arg.get_action().takes_values())
    };
    let mut at = 1;
    while let Some(word) = words.get(at).and_then(|word| word.to_str()) {
        if word == "--" || !word.starts_with('-') {
            break;
        }
        at += if takes_value(word) { 2 } else { 1 };
    }
    let is_command = |word: &OsString| {
        word.to_str().is_some_and(|word| word == "help" || definition.find_subcommand(word).is_some())
    };
    if at > 1 && words.get(at).is_some_and(is_command) {
        let command = words.remove(at);
        if command == "help" {
            // `help` takes no other options.
            words.drain(1..at);
        }
        words.insert(1, command);
    }
    words
}

/// There is no such command: the nearest one, or the list of them.
fn no_command(word: &str) -> String {
    let definition = definition();
    let near = spelling::did_you_mean(word, definition.get_subcommands().map(clap::Command::get_name));
    let help = near.unwrap_or_else(|| "`whyslow --help` lists them".to_owned());
    format!("{}: no such command; {help}", shortened(word))
}

/// The suggestion for a first word that is neither a file nor a command.
fn misspelt(command: &Command) -> Option<String> {
    let Command::Interface(InterfaceOptions { input, .. }) = command else { return None };
    let word = input.traces.first().filter(|first| first.label.is_none())?.path.to_str()?;
    if word.contains('/') || std::fs::symlink_metadata(word).is_ok() {
        return None;
    }
    let definition = definition();
    let names = definition.get_subcommands().map(clap::Command::get_name);
    let (distance, name) = names.map(|name| (strsim::osa_distance(word, name), name)).min()?;
    let is_near = distance <= 2 && distance < name.len() / 2;
    is_near.then(|| format!("{}: no such command and no such file; did you mean `{name}`?", shortened(word)))
}

/// The most characters of a word that a message repeats.
const LONGEST_QUOTED: usize = 200;

/// The start of a text that is too long to repeat.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST_QUOTED) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// `--slow: filter ...: remedy` for an option whose value was refused.
fn wrong_value(error: &clap::Error) -> Option<String> {
    let text = |kind| context(error, kind);
    if error.kind() != ErrorKind::ValueValidation {
        return None;
    }
    let (option, value) = (text(ContextKind::InvalidArg)?, text(ContextKind::InvalidValue)?);
    let option = option.split_whitespace().next()?;
    let reason = error.source()?.to_string();
    // The message of a filter contains the filter.
    if reason.contains(value) {
        return Some(format!("{option}: {}", reason.replace(value, &shortened(value))));
    }
    Some(format!("{option} {}: {reason}", shortened(value)))
}

/// A text that clap gives with an error.
fn context(error: &clap::Error, kind: ContextKind) -> Option<&str> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text),
        ContextValue::Strings(texts) => texts.first().map(String::as_str),
        _ => None,
    }
}

/// An option or a command that does not exist, with the nearest one.
fn wrong_word(error: &clap::Error) -> Option<String> {
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let word = context(error, ContextKind::InvalidArg).filter(|word| word.starts_with('-'))?;
            let near = context(error, ContextKind::SuggestedArg);
            let near = near.map_or_else(String::new, |near| format!(" did you mean `{near}`?"));
            Some(format!("{}: no such option here;{near} see `whyslow --help`", shortened(word)))
        }
        ErrorKind::InvalidSubcommand => context(error, ContextKind::InvalidSubcommand).map(no_command),
        _ => None,
    }
}

/// What to name, where nothing is named.
fn missing(error: &clap::Error) -> Option<String> {
    let is_trace = context(error, ContextKind::InvalidArg).is_some_and(|word| word.starts_with("<TRACE>"));
    (error.kind() == ErrorKind::MissingRequiredArgument && is_trace).then(|| {
        "name a recording (a trace directory, an OTF2 archive, perf.data, trace.dat); `whyslow --tour` shows one that \
         is built in, `whyslow record -- PROGRAM` makes one; see `whyslow --help`"
            .to_owned()
    })
}

/// clap's message in one line: the error, its suggestion, a pointer to the help.
fn one_line(message: &str) -> String {
    let lines = message.lines().map(str::trim).filter(|l| !l.is_empty());
    let lines = lines.filter(|l| !l.starts_with("Usage:") && !l.starts_with("For more information"));
    let text: Vec<&str> = lines.map(|l| l.trim_start_matches("error: ")).collect();
    let text = text.join(" ");
    // clap puts the typed words between single quotes.
    let pieces = text.split('\'').enumerate();
    let pieces: Vec<_> = pieces.map(|(i, p)| if i % 2 == 1 { shortened(p) } else { p.to_owned() }).collect();
    format!("{}; see `whyslow --help`", pieces.join("'"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn parse_words(line: &str) -> Parsed {
        parse(line.split_whitespace().map(Into::into), &Configuration::default())
    }

    #[test]
    fn command_line_definition_is_consistent() {
        definition().debug_assert();
    }

    /// Lines of shell code in the documents that begin with the program's name.
    fn documented() -> Vec<String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let documents = ["README.md", "docs/FIVE-MINUTES.md", "docs/PRODUCT.md"];
        let text: String = documents.map(|path| std::fs::read_to_string(root.join(path)).unwrap()).concat();
        let code = text.split("\n```").filter_map(|block| block.strip_prefix("sh\n"));
        let lines = code.flat_map(str::lines).map(|line| line.split(" #").next().unwrap_or(line).trim());
        let whole = lines.map(|line| line.strip_prefix("sudo ").unwrap_or(line).replace("TRACE...", "TRACE"));
        whole.filter(|line| line.starts_with("whyslow ")).collect()
    }

    #[test]
    fn parse_accepts_the_documented_command_lines() {
        let lines = documented();
        assert!(lines.len() > 15, "{lines:#?}");
        for line in lines {
            let parsed = parse_words(&line.replace('\'', ""));
            assert!(matches!(parsed, Parsed::Run(_)), "{line}: {parsed:?}");
        }
    }

    #[test]
    fn parse_takes_a_first_word_that_is_a_command_for_the_command() {
        let Parsed::Run(command) = parse_words("whyslow explain t") else { panic!() };
        assert!(matches!(*command, Command::Explain(_)));
        let Parsed::Run(command) = parse_words("whyslow ./explain old=t2") else { panic!() };
        let Command::Interface(InterfaceOptions { input, .. }) = *command else { panic!() };
        assert_eq!(input.traces[0].path, Path::new("./explain"));
        assert_eq!((input.traces[1].label.as_deref(), &*input.traces[1].path), (Some("old"), Path::new("t2")));
    }

    #[test]
    fn parse_takes_options_before_the_command() {
        for line in [
            "whyslow --threads 2 explain t",
            "whyslow --json --threads=2 explain t",
            "whyslow --strict --symbols d explain t",
            "whyslow -q 0.5 anomalies t",
        ] {
            let Parsed::Run(command) = parse_words(line) else { panic!("{line}") };
            assert!(matches!(*command, Command::Explain(_) | Command::Anomalies(_)), "{line}");
        }
        let Parsed::Run(command) = parse_words("whyslow --symbols explain t") else { panic!() };
        assert!(matches!(*command, Command::Interface(_)), "the value of an option is no command");
        for line in ["whyslow --tour", "whyslow --tour --mouse"] {
            let Parsed::Run(command) = parse_words(line) else { panic!("{line}") };
            assert!(matches!(*command, Command::Interface(_)), "{line}");
        }
        assert!(matches!(parse_words("whyslow --tour t"), Parsed::Wrong(_)));
        for line in ["whyslow help", "whyslow help explain", "whyslow --threads 2 help query"] {
            assert!(matches!(parse_words(line), Parsed::Print(_)), "{line}");
        }
    }

    #[test]
    fn parse_suggests_a_command() {
        let Parsed::Wrong(message) = parse_words("whyslow explian t") else { panic!() };
        assert_eq!(message, "explian: no such command and no such file; did you mean `explain`?");
        assert!(matches!(parse_words("whyslow some-trace"), Parsed::Run(_)));
    }

    #[test]
    fn parse_suggests_options_commands_and_where_to_begin() {
        for (line, message) in [
            (
                "whyslow explain --symbls d t",
                "--symbls: no such option here; did you mean `--symbols`? see `whyslow --help`",
            ),
            ("whyslow stats count --event x t", "--event: no such option here; see `whyslow --help`"),
            ("whyslow help explian", "explian: no such command; did you mean `explain`?"),
            ("whyslow man explian", "explian: no such command; did you mean `explain`?"),
            ("whyslow help xyzzy", "xyzzy: no such command; `whyslow --help` lists them"),
        ] {
            let Parsed::Wrong(wrong) = parse_words(line) else { panic!("{line}") };
            assert_eq!(wrong, message, "{line}");
        }
        for line in ["whyslow", "whyslow explain"] {
            let Parsed::Wrong(wrong) = parse_words(line) else { panic!("{line}") };
            assert!(wrong.starts_with("name a recording (") && wrong.contains("--tour"), "{wrong}");
        }
    }

    #[test]
    fn parse_requires_groups_for_a_condition() {
        let Parsed::Wrong(message) = parse_words("whyslow explain --fail-if p95>+5% t") else { panic!() };
        assert!(message.starts_with("--fail-if needs groups") && message.contains("--baseline OLD"), "{message}");
        for line in ["t --baseline u", "t --slow duration>1ms", "a=t b=u"] {
            let line = format!("whyslow explain --fail-if p95>+5% {line}");
            assert!(matches!(parse_words(&line), Parsed::Run(_)), "{line}");
        }
    }

    #[test]
    fn parse_reports_an_error_in_one_line() {
        for line in ["whyslow", "whyslow explain", "whyslow explain --sloow x t", "whyslow stats size t"] {
            let Parsed::Wrong(message) = parse_words(line) else { panic!("{line}") };
            assert!(!message.contains('\n') && message.ends_with("--help`"), "{message}");
        }
        assert!(matches!(parse_words("whyslow --help"), Parsed::Print(_)));
    }

    #[test]
    fn parse_names_option_value_and_remedy_of_a_wrong_value() {
        let long = "x".repeat(1000);
        for (line, message) in [
            ("whyslow --memory 3x t".to_owned(), "--memory 3x: write a whole number of bytes, or K, M, G: 512M, 4GiB"),
            ("whyslow --slow durtaion>=4ms t".to_owned(), "--slow: filter `durtaion>=4ms`: there is no metric"),
            ("whyslow diff --executions x t".to_owned(), "--executions: write one or two execution numbers"),
            ("whyslow query --attribute a --at 1x t".to_owned(), "--at 1x: write nanoseconds"),
            ("whyslow anomalies -q 2 t".to_owned(), "-q 2: write a fraction"),
            (format!("whyslow --slow {long} t"), "--slow: filter `xxx"),
        ] {
            let Parsed::Wrong(wrong) = parse_words(&line) else { panic!("{line}") };
            assert!(wrong.starts_with(message) && !wrong.contains('\n') && wrong.len() < 500, "{wrong}");
        }
    }
}
