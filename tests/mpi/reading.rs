//! The contents of an archive: records, messages, clocks, iterations, `info`, `stats` and `dump`.

use super::otf2::encoding::ByteOrder::{Big, Little};
use super::raw::{PLAIN, RingArchive, Style};
use super::{pairs, read};
use std::collections::BTreeSet;
use whyslow::parts::analysis::patterns::PatternAnalysis;
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::base::notice::Notice;
use whyslow::parts::delays::anomalies;
use whyslow::parts::dump::archive;
use whyslow::parts::event::mpi;
use whyslow::parts::event::operation::OperationPlace;
use whyslow::parts::explain;
use whyslow::parts::explain::facts::{archive_facts, iteration_durations};
use whyslow::parts::explain::iterations;
use whyslow::parts::input::otf2::Archive;
use whyslow::parts::model::context::FrameKind;
use whyslow::parts::model::metric::Metric;
use whyslow::parts::model::settings::Settings;
use whyslow::parts::session::MpiRuns;
use whyslow::parts::view::archive::ArchiveDocument;
use whyslow::parts::view::stats::StatsTable;

#[test]
fn archive_is_read_in_both_byte_orders_and_any_chunks() {
    let mut seen = Vec::new();
    for (order, chunk) in [(Little, 400), (Big, 400), (Little, 4096), (Big, 1 << 24)] {
        let ring = RingArchive::new(Style { order, chunk, ..PLAIN });
        let (archive, run) = read(ring.path());
        assert_eq!(archive.anchor.properties, [("KEY".to_owned(), "value".to_owned())]);
        assert_eq!(archive.anchor.creator, "a test");
        let ranks: Vec<_> = archive.definitions.locations.iter().map(|l| (l.name.as_str(), l.rank)).collect();
        assert_eq!(ranks, [("P#0T#0", Some(0)), ("P#1T#0", Some(1)), ("P#2T#0", Some(2))]);
        let counts = run.counts();
        assert_eq!((counts.sends, counts.receives, counts.matched), (240, 243, 240), "three receives have no sender");
        assert_eq!(counts.per_name["MpiIsend"], 240);
        assert_eq!(counts.per_name["type 250"], 120);
        assert_eq!(counts.streams, 3);
        assert_eq!(run.notices.count(Notice::UnknownRecords), 120);
        assert_eq!(run.notices.count(Notice::DamagedPacket), 0);
        assert_eq!(run.notices.count(Notice::UnmatchedMessages), 0);
        assert_eq!(run.notices.count(Notice::EndWithoutBegin), 0);
        assert_eq!(run.notices.count(Notice::TimeBackwards), 0);
        seen.push((counts, pairs(&run)));
    }
    assert!(seen.windows(2).all(|w| w[0] == w[1]));
}

#[test]
fn messages_match_in_posting_order() {
    let ring = RingArchive::new(PLAIN);
    let (_, run) = read(ring.path());
    for (sender, sent, receiver, received) in pairs(&run) {
        assert_eq!(receiver, (sender + 1) % 3);
        let send = run.locations[sender as usize].sends.iter().position(|s| s.record == sent).unwrap();
        let receives = &run.locations[receiver as usize].receives;
        // The first send belongs to the receive posted first, which completes second.
        let mut turn: Vec<_> = receives.iter().filter(|r| r.peer().is_some()).map(|r| r.record).collect();
        turn.sort_unstable();
        let order = turn.iter().position(|r| *r == received).unwrap();
        assert_eq!((order / 2, order % 2), (send / 2, 1 - send % 2));
    }
}

#[test]
fn operations_have_standard_names_and_do_not_nest() {
    let ring = RingArchive::new(PLAIN);
    let (archive, run) = read(ring.path());
    let operations = run.into_operations(&archive);
    for sequence in &operations.sequences {
        let name = |i: usize| operations.names.get(sequence.operations[i].symbol);
        let turn: Vec<_> = (0..6).map(name).collect();
        assert_eq!(turn, ["MPI_Irecv", "MPI_Irecv", "MPI_Isend", "MPI_Isend", "MPI_Waitall", "MPI_Irecv"]);
        assert_eq!(name(sequence.operations.len() - 1), "EZTrace finalize");
        assert!(sequence.operations.windows(2).all(|w| w[0].end <= w[1].start));
        // 500 MHz: a call of 10 ticks takes 20 ns.
        assert_eq!(sequence.operations[0].span().len(), 20);
    }
    assert_eq!(operations.messages.len(), 240);
    // The first send of each turn completes in the wait of its turn; the completion of the second is not recorded.
    assert_eq!(operations.send_completions.len(), 120);
    let call = |place| operations.names.get(operations.get(place).unwrap().symbol);
    for h in &operations.send_completions {
        assert_eq!([call(h.from), call(h.left()), call(h.posted)], ["MPI_Isend", "MPI_Waitall", "MPI_Irecv"]);
        assert_eq!((h.bytes, h.left().operation - h.from.operation), (8, 2));
        let turn = |place: OperationPlace| operations.get(place).unwrap().start.ns() / 20_000;
        assert_eq!(turn(h.from), turn(h.posted), "{h:?}");
    }
    assert_eq!(operations.collectives.len(), 4);
    assert!(operations.collectives.iter().all(|m| m.members.len() == 3 && m.exchange.all_wait()));
}

#[test]
fn clocks_come_from_the_archive_or_from_messages() {
    let at_common = |style: Style| {
        let ring = RingArchive::new(style);
        let (archive, run) = read(ring.path());
        let mined = PatternAnalysis::new(run.into_operations(&archive), &Ctx::new(1)).unwrap();
        let offsets: Vec<i64> = mined.clocks.iter().map(|c| c.offset).collect();
        (offsets, mined.clocks.iter().map(|c| c.error.unwrap()).collect::<Vec<_>>())
    };
    // Rank r is r * 1000 ticks, 2 us each, behind.
    let (offsets, errors) = at_common(Style { skew: 1_000, ..PLAIN });
    for (rank, offset) in (0..).zip(&offsets) {
        assert!(
            (offset - 2_000 * rank).abs() <= errors[rank as usize] && errors[rank as usize] < 200,
            "{offsets:?} {errors:?}"
        );
    }
    let (offsets, _) = at_common(Style { skew: 1_000, corrected: true, ..PLAIN });
    assert!(offsets.iter().all(|o| o.abs() < 200), "the archive's own offsets are applied: {offsets:?}");
}

#[test]
fn archive_is_read_the_same_on_any_number_of_workers() {
    let ring = RingArchive::new(PLAIN);
    let archive = Archive::open(ring.path()).unwrap();
    let answer = |threads| {
        let work = Ctx::new(threads);
        let run = mpi::read(&archive, &work).unwrap();
        let notices = run.notices.clone();
        let mined = PatternAnalysis::new(run.into_operations(&archive), &work).unwrap();
        let found = anomalies::of_patterns(&mined, &Settings::default(), &work).unwrap();
        serde_json::to_string(&whyslow::parts::view::anomalies::json(&found, &notices, None)).unwrap()
    };
    let one = answer(1);
    assert!([2, 3, 7].into_iter().all(|threads| answer(threads) == one));
}

#[test]
fn iterations_are_passes_of_the_outermost_loop() {
    let ring = RingArchive::new(PLAIN);
    let (archive, run) = read(ring.path());
    let mined = PatternAnalysis::new(run.into_operations(&archive), &Ctx::new(1)).unwrap();
    let iterations = mined.iterations();
    assert_eq!(iterations.len(), 3);
    for one in iterations {
        // Ten turns and a barrier, four times; a turn starts every 10 000 ticks.
        assert_eq!(one.spans.len(), 4);
        assert!(one.spans.iter().take(3).all(|s| s.len() == 200_000), "{:?}", one.spans);
    }
}

#[test]
fn iterations_are_executions_with_all_time_attributed() {
    let ring = RingArchive::new(PLAIN);
    let (archive, run) = read(ring.path());
    let notices = run.notices.clone();
    let mined = PatternAnalysis::new(run.into_operations(&archive), &Ctx::new(1)).unwrap();
    let tasks = iterations::tasks(&mined);
    assert_eq!(tasks[0], "iteration");
    let model = iterations::iterations(&mined, 0, "run", "node", &notices, &Ctx::new(1)).unwrap();
    assert_eq!(explain::check(&model, 10), Vec::<String>::new(), "all time is in some context");
    assert_eq!(model.executions.len(), 12, "four turns of three ranks");
    let starts = &model.executions.start;
    assert!(starts.iter().is_sorted() && starts.at(0) >= model.origin);
    let ranks = &model.executions.column(&Metric::Rank).unwrap().values;
    let of = |rank: &str| ranks.iter().filter(|value| model.name_of(*value) == rank).count();
    assert_eq!(["0", "1", "2"].map(of), [4; 3], "{ranks:?}");
    let frames = |kind: fn(&FrameKind) -> bool| -> BTreeSet<&str> {
        let all = model.contexts.nodes().map(|(_, frame)| frame).filter(|f| kind(&f.kind));
        all.map(|f| model.names.get(f.name)).collect()
    };
    assert!(frames(|k| *k == FrameKind::Function).contains("MPI_Waitall"));
    assert!(frames(|k| *k == FrameKind::Function).iter().any(|f| f.starts_with("computation after MPI_")));
    // A rank's own time does not come back to it over other ranks without a wait in between.
    for (parent, frame) in model.contexts.nodes() {
        if matches!(frame.kind, FrameKind::Thread(_)) {
            assert_eq!(model.contexts.frame(parent.unwrap()).kind, FrameKind::Function);
        }
    }
    // Each pattern alone makes the same executions.
    let one = |task| iterations::iterations(&mined, task, "run", "node", &notices, &Ctx::new(1)).unwrap();
    assert_eq!((1..tasks.len()).map(|task| one(task).executions.len()).sum::<usize>(), 12);
}

#[test]
fn mine_serves_patterns_and_iterations() {
    let ring = RingArchive::new(PLAIN);
    let (run, work) = (MpiRuns::new(Box::new(Archive::open(ring.path()).unwrap())), Ctx::new(2));
    work.cancel.cancel();
    assert!(run.mine(&work).is_err(), "what was cancelled is not kept");
    let work = Ctx::new(2);
    let first = run.mine(&work).unwrap();
    drop(ring);
    let model = run.model(None, &work).expect("the archive is not read again");
    assert!(!model.executions.is_empty() && std::sync::Arc::ptr_eq(&first, &run.mine(&work).unwrap()));
}

#[test]
fn stats_info_and_dump_list_the_records() {
    let ring = RingArchive::new(PLAIN);
    let (archive, run) = read(ring.path());
    let count = serde_json::to_value(StatsTable::messages(&run.counts(), &run.notices)).unwrap();
    assert_eq!(count["messages"], serde_json::json!({"sends": 240, "receives": 243, "matched": 240}));
    assert!(count.get("packets").is_none(), "an archive has none");
    let events = run.counts().events;
    let mined = PatternAnalysis::new(run.into_operations(&archive), &Ctx::new(1)).unwrap();
    let found = anomalies::of_patterns(&mined, &Settings::default(), &Ctx::new(1)).unwrap();
    let info = serde_json::to_value(ArchiveDocument::new(
        &archive_facts(&archive),
        Some((&iteration_durations(&mined), &found)),
        &archive.notices,
    ))
    .unwrap();
    assert_eq!(info["traces"][0]["format"], "OTF2 3.0.2");
    assert_eq!((&info["tasks"][0]["executions"], &info["tasks"][0]["p50_ns"]), (&12.into(), &200_000.into()));
    assert_eq!(info["clocks"][2]["stream"], "P#2T#0");
    let mut lines = Vec::new();
    archive::dump(&archive, &Default::default(), &mut lines).unwrap();
    let lines = String::from_utf8(lines).unwrap();
    assert_eq!(lines.lines().count() as u64, events);
    let times: Vec<i64> = lines.lines().map(|l| l.split('\t').next().unwrap().parse().unwrap()).collect();
    assert!(times.is_sorted());
    let send = "rank 0\tMpiIsend\tto rank 1, MPI_COMM_WORLD, tag 1, 8 bytes, request 0x2";
    assert!(lines.contains(send), "{}", &lines[..2000]);
    assert!(lines.contains("rank 0\tMpiRecv\tfrom an unknown rank"));
}
