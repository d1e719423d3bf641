//! The program: parse the command line, run, map the result to an exit code.
//!
//! 0: done. 1: the input or the analysis failed. 2: the command line is wrong. 3: `--fail-if` held. A broken pipe is
//! success: the reader has closed the pipe.

use crate::base::{allocator, clean, file};
use crate::cli::{self, Parsed};
use crate::options::configuration::Configuration;
use crate::view::stderr::say;
use crate::{command, session};
use anyhow::Context;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

/// Run the program with the words of its command line.
pub fn main() -> ExitCode {
    allocator::on_exhaustion(|| {
        crate::tui::give_back();
        file::remove_unfinished();
    });
    // The standard library allocates its record of a thread outside of our allocator, and aborts if there is no memory
    // for it. This call creates the record of the main thread now, and not at its first use.
    let _ = std::thread::current();
    // With the signal handled, a limit on the size of files is an error of the write, which is reported in one line.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
    let mut words: Vec<_> = std::env::args_os().collect();
    if words.len() == 1 {
        words.extend(command::recent::choose().into_iter().flatten());
    }
    let parsed = match Configuration::load() {
        Ok(configuration) => cli::parse(words, &configuration),
        Err(wrong) => match cli::parse(words, &Configuration::default()) {
            help @ Parsed::Print(_) => help,
            _ => return exit_code(Err(wrong)),
        },
    };
    let command = match parsed {
        Parsed::Run(command) => command,
        Parsed::Print(text) => {
            let mut out = std::io::stdout().lock();
            let printed = out.write_all(text.as_bytes()).and_then(|()| out.flush()).context(command::STDOUT);
            return exit_code(printed.map(|()| 0));
        }
        Parsed::Wrong(message) => {
            say(&format!("whyslow: {}", clean::line(&message)));
            return ExitCode::from(2);
        }
    };
    exit_code(command::run(&command))
}

/// Report an error and map the result to an exit code.
fn exit_code(result: anyhow::Result<u8>) -> ExitCode {
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            if let Some(session::UnreadDatabases(all)) = error.downcast_ref() {
                all.iter().for_each(|why| say(&format!("whyslow: {}", clean::line(&why.to_string()))));
            }
            say(&format!("whyslow: {}", clean::line(&format!("{error:#}"))));
            ExitCode::from(if error.is::<session::UsageError>() { 2 } else { 1 })
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let broken = |e: &std::io::Error| e.kind() == std::io::ErrorKind::BrokenPipe;
    let json = |e: &serde_json::Error| e.io_error_kind() == Some(std::io::ErrorKind::BrokenPipe);
    error.chain().any(|e| e.downcast_ref().is_some_and(broken) || e.downcast_ref().is_some_and(json))
}
