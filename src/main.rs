//! The program: parse the command line, run, map the result to an exit code.
//!
//! 0: done. 1: the input or the analysis failed. 2: the command line is wrong. 3: `--fail-if` held. A broken pipe is
//! success: whoever reads has read enough.

use std::io::Write;
use std::process::ExitCode;
use whyslow::cli::{self, Parsed};
use whyslow::{command, session};

fn main() -> ExitCode {
    let (common, request) = match cli::parse(std::env::args_os()) {
        Parsed::Run(common, request) => (common, request),
        Parsed::Print(text) => {
            // Nobody can be told that printing failed.
            let _ = std::io::stdout().write_all(text.as_bytes());
            return ExitCode::SUCCESS;
        }
        Parsed::Wrong(said) => {
            eprintln!("whyslow: {said}");
            return ExitCode::from(2);
        }
    };
    match command::run(&common, request) {
        Ok(code) => ExitCode::from(code),
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("whyslow: {}", one_line(&error));
            ExitCode::from(if error.is::<session::Wrong>() { 2 } else { 1 })
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let broken = |e: &std::io::Error| e.kind() == std::io::ErrorKind::BrokenPipe;
    let json = |e: &serde_json::Error| e.io_error_kind() == Some(std::io::ErrorKind::BrokenPipe);
    error.chain().any(|e| e.downcast_ref().is_some_and(broken) || e.downcast_ref().is_some_and(json))
}

/// The chain of contexts in one line; file names and trace texts in it may hold anything.
fn one_line(error: &anyhow::Error) -> String {
    whyslow::view::clean::line(&format!("{error:#}"))
}
