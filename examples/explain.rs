//! Explain the slow executions of a recording, as `whyslow explain` does with the task and the groups that it chooses.
//!
//!     cargo run --example explain -- fixtures/traces/lock-contention fixtures/traces/lock-contention/bin
//!
//! The second argument is the folder with the traced executables; without it, functions are named from the recorded
//! paths.

use whyslow::{Argument, ComparisonRequest, Ctx, OpenOptions, Session, SymbolPaths, compare_groups};

fn main() -> anyhow::Result<()> {
    let mut paths = std::env::args().skip(1);
    let recording = Argument::parse(paths.next().unwrap_or_else(|| ".".into()));
    let symbols = SymbolPaths { folders: paths.map(Into::into).collect(), ..SymbolPaths::default() };
    let ctx = Ctx::new(0);
    let mut session = Session::open(&[recording], &OpenOptions::default(), &ctx)?;
    let model = session.model(None, &symbols, &[], &ctx)?;
    let comparison = compare_groups(&model, &ComparisonRequest::default(), &ctx)?;
    // Sentences are cleaned of control characters here, because names in them come from the recording.
    println!("{}", comparison.verdict.sentence.escape_debug());
    for cause in &comparison.causes {
        println!("{:>5.1} %  {}", 100.0 * cause.share, cause.sentence.escape_debug());
    }
    Ok(())
}
