//! Explain the slow executions of a trace's first task, as `whyslow explain` does with its proposed groups.
//!
//!     cargo run --example explain -- fixtures/traces/lock-contention fixtures/traces/lock-contention/bin
//!
//! The second argument is the folder with the traced executables; without it, functions are named from the recorded
//! paths.

use whyslow::analysis::symbols::files::Places;
use whyslow::base::ctx::Ctx;
use whyslow::compare::ComparisonRequest;
use whyslow::input::Argument;
use whyslow::session::{self, OpenOptions, Session};

fn main() -> anyhow::Result<()> {
    let mut paths = std::env::args().skip(1);
    let trace = paths.next().unwrap_or_else(|| ".".into());
    let ctx = Ctx::new(0);
    let mut session = Session::open(&[Argument::parse(trace)], &OpenOptions::default(), &ctx)?;
    let places = Places { folders: paths.map(Into::into).collect(), ..Places::default() };
    let model = session.model(None, &places, &[], &ctx)?;
    let comparison = session::compare(&model, &ComparisonRequest::default(), &ctx)?;

    println!("{}", comparison.verdict.sentence);
    for cause in &comparison.causes {
        println!("{:>8.1} %  {}", 100.0 * cause.share, cause.sentence);
    }
    Ok(())
}
