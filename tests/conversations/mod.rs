//! Requests over sockets: on generated servers and clients of many kinds the executions of `serve:` and `call:` are the
//! requests that were made, to the nanosecond; where they overlap a notice says so.
//!
//! The schedules are made first, with the moments at which requests arrive and replies are sent; system calls, switches
//! and wake-ups follow from them ([`host`]). The truth knows nothing of descriptors.

mod host;
mod servers;

use host::{Exchange, Host, Recorder};
use servers::Kind;
use std::path::{Path, PathBuf};
use whyslow::parts::model::metric::Metric;
use whyslow::{Argument, Ctx, Model, OpenOptions, Session, SymbolPaths};

fn model(folder: &Path, task: &str, workers: usize, chunk: Option<u64>) -> anyhow::Result<Model> {
    asked(folder, Some(task), workers, chunk)
}

fn asked(folder: &Path, task: Option<&str>, workers: usize, chunk: Option<u64>) -> anyhow::Result<Model> {
    let ctx = Ctx::new(workers);
    let options = OpenOptions { chunk, ..OpenOptions::default() };
    let mut session = Session::open(&[Argument::parse(folder.to_str().unwrap())], &options, &ctx)?;
    session.model(task, &SymbolPaths::default(), &[], &ctx)
}

/// An execution.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Found {
    begin: i64,
    end: i64,
    descriptor: i64,
    bytes: [i64; 2],
}

/// What was made, as executions that begin so.
fn expected(made: &[Exchange], begin: impl Fn(&Exchange) -> i64) -> Vec<Found> {
    let one = |of: &Exchange| Found { begin: begin(of), end: of.end, descriptor: of.descriptor, bytes: of.bytes };
    let mut all: Vec<Found> = made.iter().map(one).collect();
    all.sort();
    all
}

/// The executions of a task.
fn found(model: &Model) -> Vec<Found> {
    let executions = &model.executions;
    let field = |name: &str, at: usize| {
        let metric = Metric::Field(name.to_owned());
        executions.column(&metric).and_then(|column| column.values.get(at)).unwrap()
    };
    let one = |at: usize| Found {
        begin: executions.start.at(at).ns(),
        end: executions.end(at).ns(),
        descriptor: field("fd", at),
        bytes: [field("bytes_in", at), field("bytes_out", at)],
    };
    let mut all: Vec<Found> = (0..executions.len()).map(one).collect();
    all.sort();
    all
}

fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("conversations").join(name);
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

/// Six recordings of each kind, half of which have numbered calls: 462 conversations.
#[test]
fn generated_requests_are_found_as_they_were_made() {
    for kind in Kind::ALL {
        for seed in 0..6 {
            let recorder = if seed % 2 == 0 { Recorder::Named } else { Recorder::Numbered };
            let mut host = Host::new(seed + 100 * kind as u64, recorder);
            let wanted = kind.generate(&mut host);
            let folder = folder(&format!("{kind:?}-{seed}"));
            host.write(&folder);
            assert!(wanted.len() > 20, "{kind:?} {seed}");
            let of_task = model(&folder, kind.task(), 2, None).unwrap();
            assert_eq!(found(&of_task), expected(&wanted, |of| of.begin), "{kind:?} {seed}");
            if kind != Kind::Client {
                let arrived = model(&folder, &format!("{},from=arrival", kind.task()), 2, None).unwrap();
                assert_eq!(found(&arrived), expected(&wanted, |of| of.arrival), "{kind:?} {seed}");
            }
            let overlap = of_task.notices.iter().any(|(notice, _)| notice.name() == "Overlapping");
            assert_eq!(overlap, kind.overlaps(), "{kind:?} {seed}");
        }
    }
}

/// A connection goes from the listening thread, which accepts it, to a worker, which closes it.
#[test]
fn connections_are_the_same_where_calls_have_numbers() {
    let connections = |recorder: Recorder| {
        let mut host = Host::new(5, recorder);
        Kind::Blocking.generate(&mut host);
        let folder = folder(&format!("connections-{recorder:?}"));
        host.write(&folder);
        let model = model(&folder, "connection", 2, None).unwrap();
        (0..model.executions.len()).map(|at| model.executions.span(at)).collect::<Vec<_>>()
    };
    let named = connections(Recorder::Named);
    assert!(named.len() > 3, "{named:?}");
    assert_eq!(connections(Recorder::Numbered), named);
}

#[test]
fn generated_requests_do_not_depend_on_workers_and_chunks() {
    for kind in [Kind::Pool, Kind::Forked, Kind::EventLoop] {
        let mut host = Host::new(7, Recorder::Numbered);
        kind.generate(&mut host);
        let folder = folder(&format!("workers-{kind:?}"));
        host.write(&folder);
        let one = found(&model(&folder, kind.task(), 1, None).unwrap());
        for (workers, chunk) in [(2, Some(0)), (3, Some(300)), (7, Some(2_000))] {
            assert_eq!(found(&model(&folder, kind.task(), workers, chunk).unwrap()), one, "{kind:?} {workers}");
        }
    }
}

#[test]
fn requests_are_asked_about_where_no_task_is_named() {
    for kind in [Kind::EventLoop, Kind::Pool] {
        let mut host = Host::new(3, Recorder::Named);
        let wanted = kind.generate(&mut host).len();
        let folder = folder(&format!("unnamed-{kind:?}"));
        host.write(&folder);
        let model = asked(&folder, None, 2, None).unwrap();
        let chosen = (model.tasks[model.task].as_str(), model.executions.len());
        assert_eq!(chosen, ("serve:server,from=arrival", wanted), "{kind:?}");
        assert!(model.choice.is_some_and(|choice| choice.why.contains("over sockets")), "{kind:?}");
    }
}

#[test]
fn task_without_requests_says_why() {
    let mut host = Host::new(3, Recorder::Named);
    Kind::Client.generate(&mut host);
    let folder = folder("nothing");
    host.write(&folder);
    for (task, part) in [
        ("serve:other", "no process has this name or pid"),
        ("serve:client", "no request over a socket that this process received was answered"),
        ("call:peer", "no system call of this process was recorded with the descriptor"),
        ("serve:", "write serve:PROCESS"),
    ] {
        let said = model(&folder, task, 1, None).unwrap_err().to_string();
        assert!(said.contains(part) && said.starts_with("--task ") && said.lines().count() == 1, "{said}");
    }
}
