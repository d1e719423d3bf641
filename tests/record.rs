//! `record`: the plan for each kind of machine; a recording ends whole in every case and leaves nothing behind.
//!
//! The recorders of these tests are small scripts that behave like the real ones. The ignored tests pass the same
//! options to the real recorders' parsers; they need perf, trace-cmd, LTTng and root.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support {
    pub mod ask;
    pub mod fake_perf;
}

use fake_perf::{RECORDS, fake_perf, machine, run, tool};
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::{ask, fake_perf};
use whyslow::parts::record::capabilities::Capabilities;
use whyslow::parts::record::plan::{PlanUse, plan};
use whyslow::parts::record::script::ScriptMode;
use whyslow::parts::record::{EndTrigger, Recorder, RecordingProgress, RecordingRequest};

fn endings(reported: &[RecordingProgress]) -> Vec<&str> {
    reported
        .iter()
        .filter_map(|p| if let RecordingProgress::Ending(why) = p { Some(why.as_str()) } else { None })
        .collect()
}

#[test]
fn recording_ends_with_time_command_file_or_slow_call() {
    let folder = tempfile::tempdir().unwrap();
    let host = fake_perf(folder.path(), RECORDS);
    let program = format!("{}:handle", std::env::current_exe().unwrap().display());
    let appears = folder.path().join("appears");
    let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
    let touch = format!("touch {}; sleep 60", appears.display());
    let cases = [
        (
            "time",
            RecordingRequest { duration: Some(Duration::from_millis(50)), ..RecordingRequest::default() },
            "the duration is over".to_owned(),
        ),
        (
            "command",
            RecordingRequest { command: words(&["sh", "-c", "exit 3"]), ..RecordingRequest::default() },
            "sh ended".to_owned(),
        ),
        (
            "file",
            RecordingRequest {
                command: words(&["sh", "-c", &touch]),
                until: vec![EndTrigger::File(appears.clone())],
                ..RecordingRequest::default()
            },
            format!("{} exists", appears.display()),
        ),
        (
            "call",
            RecordingRequest {
                uprobes: vec![program],
                until: vec![EndTrigger::Latency(Duration::from_millis(5))],
                ..RecordingRequest::default()
            },
            "handle took 9.00 ms".to_owned(),
        ),
    ];
    for (name, request, why) in cases {
        let out = folder.path().join(name);
        let (ended, reported) = run(&host, &request, &out);
        let ended = ended.unwrap();
        assert_eq!(endings(&reported), [why.as_str()], "{name}");
        assert_eq!(reported[0], RecordingProgress::Recording, "{name}");
        assert_eq!(std::fs::read_to_string(out.join("perf.data")).unwrap(), "data\n", "{name}: cut off");
        assert_eq!(ended.command.and_then(|status| status.code()), (name == "command").then_some(3), "{name}");
    }
    // Every probe that was placed was removed.
    let notes = std::fs::read_to_string(folder.path().join("notes")).unwrap();
    let count = |part: &str| notes.lines().filter(|line| line.starts_with("probe") && line.contains(part)).count();
    assert_eq!((count("--add"), count("--del whyslow_7:*")), (2, 1), "{notes}");
}

#[test]
fn perf_is_asked_for_what_its_buffers_hold() {
    // perf itself writes when a buffer is half full: until then its file would show no events.
    let folder = tempfile::tempdir().unwrap();
    let listens = "for word; do case $word in --control=fifo:*) pipe=${word#--control=fifo:};; esac; done\n\
                   (while read -r word; do echo \"asked $word\" >&2; done) 3<&0 < \"$pipe\" 2>> \"$pipe.asked\" &\n";
    let host = fake_perf(folder.path(), &format!("{listens}{RECORDS}; kill $! 2>/dev/null; true"));
    let request = RecordingRequest { duration: Some(Duration::from_millis(1800)), ..RecordingRequest::default() };
    let out = folder.path().join("out");
    let (ended, reported) = run(&host, &request, &out);
    ended.unwrap();
    assert!(reported.iter().any(|p| matches!(p, RecordingProgress::Grown { .. })), "{reported:?}");
    let asked = std::fs::read_to_string(out.join("control.asked")).unwrap();
    assert!(asked.lines().count() >= 2 && asked.lines().all(|line| line == "asked ping"), "{asked}");
    assert!(!out.join("control").exists(), "the pipe is left behind");
    // Not where a flight recorder writes at the end, by an old perf, or by hand.
    let lines = |host: &Capabilities, request: &RecordingRequest, purpose| {
        plan(host, request, Path::new("out"), 7, purpose, None).unwrap().script(&ScriptMode::Input)
    };
    let old = Capabilities { perf: tool("perf", &[5, 4]), ..host.clone() };
    let past = RecordingRequest { overwrite: Some(Duration::from_secs(5)), ..RecordingRequest::default() };
    assert!(lines(&host, &request, PlanUse::Run).contains("--control=fifo:control "));
    for script in
        [lines(&old, &request, PlanUse::Run), lines(&host, &past, PlanUse::Run), lines(&host, &request, PlanUse::Print)]
    {
        assert!(!script.contains("control"), "{script}");
    }
}

#[test]
fn failed_recorder_is_reported_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let host = fake_perf(folder.path(), "echo 'event syntax error: no such thing' >&2; exit 129");
    let request = RecordingRequest { duration: Some(Duration::from_secs(60)), ..RecordingRequest::default() };
    let out = folder.path().join("out");
    let said = run(&host, &request, &out).0.unwrap_err();
    assert!(said.contains("perf: event syntax error: no such thing (all of its output is in"), "{said}");
    let said = run(&host, &request, &out).0.unwrap_err();
    assert!(said.contains("the folder is not empty"), "{said}");
    // It dies while it records.
    let host = fake_perf(folder.path(), "echo ready; sleep 0.3; echo 'out of space' >&2; exit 1");
    let said = run(&host, &request, &folder.path().join("dies")).0.unwrap_err();
    assert!(said.contains("out of space"), "{said}");
}

/// Runs the program itself there, with the fake perf, until it records.
fn whyslow(folder: &Path, out: &Path, words: &[&str]) -> std::process::Child {
    let mut whyslow = machine(folder);
    whyslow.args(["--with", "perf", "-o"]).arg(out).args(words);
    let child = whyslow.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let began = Instant::now();
    while !std::fs::read_to_string(out.join("record.log")).is_ok_and(|text| text.contains("begun")) {
        assert!(began.elapsed() < Duration::from_secs(60), "it does not begin");
        std::thread::sleep(Duration::from_millis(20));
    }
    child
}

/// Send a signal.
fn send(signal: &str, child: &std::process::Child) {
    let sent = Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status().unwrap();
    assert!(sent.success(), "{signal}");
}

/// The recording, once the recorder has written it.
fn data(out: &Path) -> String {
    let began = Instant::now();
    let data = || std::fs::read_to_string(out.join("perf.data")).unwrap_or_default();
    while data().is_empty() && began.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    data()
}

/// A fake perf that says when it records.
const SAYS_BEGUN: &str = "echo begun >&2; ";

#[test]
fn recording_ended_by_a_signal_or_a_kill_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    fake_perf(folder.path(), &RECORDS.replace("\"$@\"; sleep", &format!("{SAYS_BEGUN}\"$@\"; sleep")));
    for signal in ["INT", "TERM", "HUP", "KILL"] {
        let out = folder.path().join(signal);
        let mut child = whyslow(folder.path(), &out, &[]);
        send(signal, &child);
        let status = child.wait().unwrap();
        assert_eq!(status.success(), signal != "KILL", "{signal}: {status}");
        // A killed program no longer waits for the recorder, which ends all the same.
        assert_eq!(data(&out), "data\n", "{signal}");
    }
}

#[test]
fn recording_of_a_stopped_program_ends_with_its_time() {
    let folder = tempfile::tempdir().unwrap();
    fake_perf(folder.path(), &RECORDS.replace("\"$@\"; sleep", &format!("{SAYS_BEGUN}\"$@\"; sleep")));
    let out = folder.path().join("out");
    let mut child = whyslow(folder.path(), &out, &["-d", "900ms", "--no-open"]);
    send("STOP", &child);
    assert_eq!(data(&out), "data\n");
    send("CONT", &child);
    assert!(child.wait().unwrap().success());
}

/// Commas separate what perf's options name, a dash begins an option, a shell separates words at blanks.
#[test]
fn folder_of_a_recording_may_have_any_name() {
    let folder = tempfile::tempdir().unwrap();
    fake_perf(folder.path(), RECORDS);
    for name in ["a,b", "-dash", "two words", "it's $(no) `command`", "a\nb"] {
        let mut whyslow = machine(folder.path());
        whyslow.args(["--with", "perf", "-d", "50ms", "--no-open"]).arg(format!("-o={name}"));
        let ended = ask::run(whyslow.current_dir(folder.path()));
        assert!(ended.status.success(), "{name}: {}", ask::said(&ended));
        assert_eq!(std::fs::read_to_string(folder.path().join(name).join("perf.data")).unwrap(), "data\n", "{name}");
    }
}

/// A command line that another machine would obey ends with 1, one that none would obey with 2.
#[test]
fn machine_without_a_recorder_is_no_wrong_command_line() {
    let folder = tempfile::tempdir().unwrap();
    for (words, status, part) in [
        (["-d", "1s", "--no-open"], 1, "no recorder can be used"),
        (["-d", "1s", "--until=latency>1s"], 1, "no recorder can be used"),
        (["-d", "soon", "--no-open"], 2, "soon"),
    ] {
        let ended = ask::run(machine(folder.path()).args(words).env("PATH", folder.path()));
        let said = ask::said(&ended);
        assert!(ended.status.code() == Some(status) && said.contains(part), "{words:?}: {said}");
    }
}

#[test]
#[ignore = "needs perf, trace-cmd and lttng"]
fn real_recorders_accept_the_plans() {
    let folder = tempfile::tempdir().unwrap();
    let here = Capabilities::detect(Path::new("/"), &std::env::var_os("PATH").unwrap());
    // A parser's words for an option or event that it does not know.
    let unknown = [
        "event syntax error",
        "unknown option",
        "invalid option",
        "Usage:",
        "usage:",
        "Unrecognized",
        "not recognized",
    ];
    for recorder in Recorder::ALL {
        let host = Capabilities { lttng_modules: true, ftrace: true, root: true, ..here.clone() };
        for overwrite in [None, Some(Duration::from_secs(5))] {
            let request = RecordingRequest {
                with: Some(recorder),
                overwrite,
                comms: vec!["my app".into()],
                duration: Some(Duration::from_millis(300)),
                ..RecordingRequest::default()
            };
            let out = folder.path().join(format!("{}-{}", recorder.name(), overwrite.is_some()));
            let (ended, _) = run(&host, &request, &out);
            let log = std::fs::read_to_string(out.join("record.log")).unwrap();
            assert!(unknown.iter().all(|said| !log.contains(said)), "{log}");
            match recorder {
                Recorder::Perf => assert!(ended.is_ok(), "{ended:?}\n{log}"),
                // A machine that refuses does so after parsing.
                _ => eprintln!("{}: {:?}", recorder.name(), ended.err()),
            }
            // After a line that is refused the others are not tried: each by itself.
            let plan = plan(&host, &request, &out, 8, PlanUse::Run, None).unwrap();
            for line in plan.prepare.iter().chain(&plan.finish) {
                let ran = Command::new("sh").arg("-c").arg(line.to_string()).output().unwrap();
                let said = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
                assert!(unknown.iter().all(|part| !said.contains(part)), "{line}: {said}");
            }
        }
    }
}

/// A program with a known problem: every tenth request takes the lock that another thread holds while it computes.
const PLANTED: &str = r#"
use std::sync::{Arc, Mutex};
use std::time::Duration;
#[inline(never)]
fn rebuild_index(n: u64) -> u64 {
    (0..20_000_000).fold(n, |x, i| std::hint::black_box(x.wrapping_mul(31).wrapping_add(i)))
}
#[no_mangle]
#[inline(never)]
pub extern "C" fn handle_request(lock: &Mutex<u64>, n: u64) -> u64 {
    let mut held = lock.lock().unwrap();
    *held += n;
    *held
}
fn main() {
    let lock = Arc::new(Mutex::new(0));
    let other = lock.clone();
    std::thread::Builder::new().name("indexer".into()).spawn(move || loop {
        { let mut held = other.lock().unwrap(); *held = rebuild_index(*held); }
        std::thread::sleep(Duration::from_millis(60));
    }).unwrap();
    for n in 0..1500 {
        handle_request(&lock, n);
        std::thread::sleep(Duration::from_millis(2));
    }
}
"#;

#[test]
#[ignore = "needs perf and root"]
fn planted_function_is_recorded_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("planted.rs"), folder.path().join("planted"));
    std::fs::write(&source, PLANTED).unwrap();
    let flags = ["-O", "-Cforce-frame-pointers=yes", "-Cdebuginfo=1", "-Cstrip=none"];
    let built = Command::new("rustc").args(flags).arg(&source).arg("-o").arg(&program).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let out = folder.path().join("out");
    let recorded = ask::program()
        .args(["record", "--with", "perf", "--uprobe", "handle_request", "-o"])
        .arg(&out)
        .arg("--")
        .arg(&program)
        .output()
        .unwrap();
    assert!(recorded.status.success(), "{}", String::from_utf8_lossy(&recorded.stderr));
    let explained = ask::program()
        .args(["explain", "--json"])
        .arg(out.join("perf.data"))
        .arg("--kallsyms")
        .arg(out.join("kallsyms"))
        .output()
        .unwrap();
    let json: serde_json::Value = serde_json::from_slice(&explained.stdout).unwrap();
    assert_eq!(json["task"], "handle_request");
    let cause = &json["causes"][0];
    assert_eq!(cause["by"]["thread"], "indexer", "{cause:#}");
    let named = cause["by"]["function"].as_str().unwrap_or_default().to_owned();
    assert!(named.contains("rebuild_index"), "{cause:#}");
}
