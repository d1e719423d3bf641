//! Count the events of each type in a recording, as `whyslow stats count` does.
//!
//!     cargo run --example count_events -- fixtures/traces/lock-contention

use whyslow::{Argument, Ctx, OpenOptions, Session};

fn main() -> anyhow::Result<()> {
    let recordings: Vec<Argument> = std::env::args().skip(1).map(Argument::parse).collect();
    let ctx = Ctx::new(0);
    let Session::Traces(traces) = Session::open(&recordings, &OpenOptions::default(), &ctx)? else {
        anyhow::bail!("this example counts the events of traces only, not of MPI runs or databases");
    };
    let (counts, notices) = traces.count(&ctx)?;
    for (name, events) in &counts.per_name {
        println!("{events:>12} {}", name.escape_debug());
    }
    println!("{:>12} events in {} streams", counts.events, counts.streams);
    for sentence in notices.sentences() {
        eprintln!("{sentence}");
    }
    Ok(())
}
