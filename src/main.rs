//! The program: parse the command line, run, map the result to an exit code.

fn main() {}
