//! Count the events of each type in a trace, as `whyslow stats count` does.
//!
//!     cargo run --example count_events -- fixtures/traces/lock-contention

use whyslow::base::ctx::Ctx;
use whyslow::input::{self, Argument, Opened, count};

fn main() -> anyhow::Result<()> {
    let arguments: Vec<Argument> = std::env::args().skip(1).map(|path| Argument::parse(&path)).collect();
    let ctx = Ctx::new(0);
    let Opened::Traces(sources) = input::open(&arguments, &ctx)? else {
        anyhow::bail!("this example counts the events of traces only");
    };
    let (counts, notices) = count::count(&sources, &ctx)?;
    for (name, events) in &counts.per_name {
        println!("{events:>12} {}", whyslow::view::clean::line(name));
    }
    println!("{:>12} events in {} streams", counts.events, counts.streams);
    for sentence in notices.sentences() {
        eprintln!("{sentence}");
    }
    Ok(())
}
