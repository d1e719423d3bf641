//! Chunks of two events: nearly everything that an event needs is in an earlier chunk.

use super::*;
use whyslow::parts::base::time::Timestamp;
use whyslow::parts::dump;

/// Cutting costs a chunk for two events, and each chunk reads its packets from their beginning.
const MOST_EVENTS: usize = 3200;

/// The time of every second event.
fn moments(sources: &[Source]) -> Vec<Timestamp> {
    let mut dumped = Vec::new();
    dump::canonical(sources, &Ctx::new(2), &mut dumped).unwrap();
    let time = |line: &str| line.split('\t').next().and_then(|time| time.parse().ok()).map(Timestamp::new);
    let mut times: Vec<Timestamp> = String::from_utf8(dumped).unwrap().lines().filter_map(time).collect();
    times.sort_unstable();
    times.into_iter().step_by(2).collect()
}

/// True if the recording is small enough.
fn check_chunks_of_two(name: &str, sources: &[Source]) -> bool {
    let moments = moments(sources);
    if moments.len() > MOST_EVENTS / 2 {
        return false;
    }
    let way = |chunks| EngineOptions { chunks, start: ChunkStart::Unknown, ..EngineOptions::default() };
    let want = results(sources, way(ChunkTarget::Whole), usize::MAX, RowsBy::Machine, &Ctx::new(1));
    let twos = ChunkTarget::Moments(moments.leak());
    for (workers, rows_by, seal_every) in
        [(1, RowsBy::Machine, 1), (2, RowsBy::Workers, 300), (7, RowsBy::Workers, 1), (7, RowsBy::WhoIsFree, 1 << 14)]
    {
        let found = results(sources, way(twos), seal_every, rows_by, &Ctx::new(workers));
        found.assert_equal(&want, &format!("{name}, {workers} workers, rows by {rows_by:?}, sealed {seal_every}"));
    }
    true
}

#[test]
fn results_do_not_depend_on_chunks_of_two_events() {
    let generated =
        |seed: u64| schedule::ctf::write(&place(&format!("twos-{seed}")), seed * 57 + 2, 600, seed % 2 == 1);
    let mut cut = 0;
    for path in fixtures().into_iter().chain((0..4).map(generated)) {
        let sources = load(&path);
        // Recordings whose packets name no times are not cut.
        let traces: Vec<_> = sources.iter().map(|s| &s.trace).collect();
        let chunks = whyslow::parts::reading::chunks::cut(&traces, ChunkTarget::Packet, 1).len();
        cut += usize::from(check_chunks_of_two(&path.display().to_string(), &sources) && chunks > 1);
    }
    assert!(cut >= 6, "{cut}");
}
