//! The plan for each kind of machine and request, as a script to run by hand.

use crate::support::fake_perf::{events, server};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use whyslow::parts::record::capabilities::Capabilities;
use whyslow::parts::record::plan::{PlanUse, plan};
use whyslow::parts::record::script::ScriptMode;
use whyslow::parts::record::shell::ShellCommand;
use whyslow::parts::record::{self, CallGraph, EndTrigger, Recorder, RecordingRequest};

/// The commands to run by hand, with reasons and notes.
fn planned(host: &Capabilities, request: &RecordingRequest) -> String {
    match plan(host, request, Path::new("out"), 7, PlanUse::Print, None) {
        Ok(plan) => {
            let notes: String = plan.notes.iter().map(|note| format!("# {note}\n")).collect();
            let sleep = ScriptMode::Command(ShellCommand::new(["sleep", "10"]));
            format!("# {}, because {}\n{notes}{}", plan.recorder.name(), plan.why, plan.script(&sleep))
        }
        Err(why) => format!("{why}\n"),
    }
}

#[test]
fn plan_takes_the_best_recorder_that_a_machine_allows() {
    let all = RecordingRequest::default();
    let container = Capabilities { lttng_modules: false, ftrace: false, ..server() };
    let no_perf = Capabilities { lttng: None, perf: None, ..server() };
    let old_kernel =
        Capabilities { lttng: None, events: Some(BTreeSet::from(["sched:sched_switch".to_owned()])), ..server() };
    for (name, host) in [("lttng", server()), ("perf", container), ("trace-cmd", no_perf), ("few-events", old_kernel)] {
        insta::assert_snapshot!(format!("plan-{name}"), planned(&host, &all));
    }
}

#[test]
fn plan_without_rights_names_the_remedy() {
    let user =
        Capabilities { root: false, perfmon: false, kernel_symbols: false, events: None, ftrace: false, ..server() };
    insta::assert_snapshot!("plan-no-rights", planned(&user, &RecordingRequest::default()));
    insta::assert_snapshot!("check-no-rights", record::report(&user).text);
    insta::assert_snapshot!("check-server", record::report(&Capabilities { lttng: None, ..server() }).text);
    let allowed = Capabilities { paranoid: Some(-1), events: Some(events()), ..user };
    assert_eq!(
        plan(&allowed, &RecordingRequest::default(), Path::new("out"), 7, PlanUse::Run, None).unwrap().recorder,
        Recorder::Perf
    );
}

#[test]
fn plan_is_light_unless_it_was_asked_to_be_full() {
    let tracefs = Some("/sys/kernel/tracing".into());
    let host = Capabilities { lttng_modules: false, ftrace: false, tracefs, ..server() };
    let command = RecordingRequest { command: vec!["make".into()], ..RecordingRequest::default() };
    let full = RecordingRequest { full: true, ..RecordingRequest::default() };
    let alone = RecordingRequest { with: Some(Recorder::Tracefs), ..command.clone() };
    let without_perf = Capabilities { perf: None, ..host.clone() };
    for (name, host, request) in [
        ("light", &host, &RecordingRequest::default()),
        ("light-command", &host, &command),
        ("full", &host, &full),
        ("tracefs", &host, &alone),
        ("tracefs-chosen", &without_perf, &RecordingRequest { comms: vec!["nginx".into()], ..full.clone() }),
    ] {
        insta::assert_snapshot!(format!("plan-{name}"), planned(host, request));
    }
    let own = std::process::id();
    let chosen = RecordingRequest { pids: vec![own], ..RecordingRequest::default() };
    let light = planned(&host, &chosen);
    assert!(light.contains(&format!("--pid {own} ")), "{light}");
    let with_stacks = light.matches("sched:sched_switch/call-graph=fp/").count();
    let without = light.matches("sched:sched_switch/call-graph=no/ --filter '!(").count();
    assert_eq!((with_stacks, without), (1, 1), "the switches of others have no stacks: {light}");
    let all = planned(&host, &RecordingRequest { full: true, ..chosen });
    assert!(!all.contains("sched:sched_switch/call-graph=no/") && all.contains("-e irq:softirq_entry"), "{all}");
}

#[test]
fn options_are_obeyed_or_refused_with_a_reason() {
    let program = std::env::current_exe().unwrap();
    let probe =
        RecordingRequest { uprobes: vec![format!("{}:handle", program.display())], ..RecordingRequest::default() };
    let text = planned(&server(), &probe).replace(&program.display().to_string(), "PROGRAM");
    insta::assert_snapshot!("plan-uprobe", text);
    let of = |with| RecordingRequest { with: Some(with), ..RecordingRequest::default() };
    let filtered = RecordingRequest { comms: vec!["nginx".into(), "my app".into()], ..of(Recorder::Perf) };
    assert!(planned(&server(), &filtered).contains(r#"--filter 'comm == "nginx" || comm == "my app"'"#));
    let past = Some(Duration::from_secs(20));
    for recorder in Recorder::ALL {
        let request = RecordingRequest { overwrite: past, ..of(recorder) };
        insta::assert_snapshot!(format!("plan-overwrite-{}", recorder.name()), planned(&server(), &request));
    }
    let copies = |with| RecordingRequest { with, call_graph: CallGraph::Dwarf, ..RecordingRequest::default() };
    let copied = planned(&server(), &copies(None));
    assert_eq!(copied.matches("call-graph=dwarf/").count(), 2, "switches and samples: {copied}");
    assert!(copied.contains("# perf, because lttng cannot: lttng follows frame pointers"), "{copied}");
    for (request, part) in [
        (copies(Some(Recorder::TraceCmd)), "--with trace-cmd: trace-cmd follows frame pointers only"),
        (
            RecordingRequest { uprobes: probe.uprobes.clone(), ..of(Recorder::Lttng) },
            "--with lttng: LTTng records only the entry",
        ),
        (
            RecordingRequest { uprobes: vec!["handle".into()], ..RecordingRequest::default() },
            "--uprobe handle: the program is missing",
        ),
        (
            RecordingRequest { uprobes: vec!["/no/file:handle".into()], ..RecordingRequest::default() },
            "no such file: /no/file",
        ),
        (
            RecordingRequest {
                until: vec![EndTrigger::Latency(Duration::from_millis(20))],
                ..RecordingRequest::default()
            },
            "no function is probed",
        ),
        (
            RecordingRequest { buffer: Some(4 << 30), ..of(Recorder::Perf) },
            "--buffer: for each of 8 CPUs these are 32768",
        ),
    ] {
        let said = planned(&server(), &request);
        assert!(said.contains(part) && said.lines().count() == 1, "{said}");
    }
    let missing = Capabilities { trace_cmd: None, ..server() };
    let here =
        plan(&missing, &of(Recorder::TraceCmd), Path::new("out"), 7, PlanUse::Run, None).unwrap_err().to_string();
    assert_eq!(here, "--with trace-cmd: `trace-cmd` is not installed: install the package trace-cmd");
    assert!(
        planned(&missing, &of(Recorder::TraceCmd))
            .contains("# it cannot record on this machine: `trace-cmd` is not installed")
    );
}

#[test]
fn programs_whose_paths_perf_cannot_read_are_not_probed() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("two words");
    std::fs::write(&program, "").unwrap();
    let uprobes = vec![format!("{}:handle", program.display())];
    let said = planned(&server(), &RecordingRequest { uprobes, ..RecordingRequest::default() });
    assert!(said.contains("blanks or quotes in its path"), "{said}");
}
