//! The folder of a recording: private, reached by its descriptor, whole when a disk is full, and no probes left behind.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support {
    pub mod ask;
    pub mod fake_perf;
}

use fake_perf::{RECORDS, fake_perf, machine, run};
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use support::{ask, fake_perf};
use whyslow::parts::model::environment::EnvironmentLine;
use whyslow::parts::record::RecordingRequest;
use whyslow::parts::record::capabilities::Capabilities;

#[test]
fn recording_is_private_and_stays_in_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let host = Capabilities { kernel_symbols: true, ..fake_perf(folder.path(), RECORDS) };
    let (out, moved, victim) = (folder.path().join("out"), folder.path().join("moved"), folder.path().join("victim"));
    std::fs::write(&victim, "precious").unwrap();
    // Another folder takes the name of the recording's, with links in place of its files.
    let swap =
        "mv $0/out $0/moved; mkdir $0/out; for f in kallsyms .kallsyms perf.data; do ln -s $0/victim $0/out/$f; done";
    let command = ["sh", "-c", swap].map(OsString::from).into_iter().chain([folder.path().as_os_str().to_owned()]);
    let request = RecordingRequest { command: command.collect(), ..RecordingRequest::default() };
    run(&host, &request, &out).0.unwrap();
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
    assert_eq!(std::fs::read_to_string(moved.join("perf.data")).unwrap(), "data\n");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&moved), 0o700);
    for name in ["perf.data", "record.log", "kallsyms", "environment.jsonl"] {
        assert_eq!(mode(&moved.join(name)) & 0o077, 0, "{name} is open to others");
    }
    // A folder that others may enter could have such links in it already.
    let open = folder.path().join("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, PermissionsExt::from_mode(0o755)).unwrap();
    let said = run(&host, &request, &open).0.unwrap_err();
    assert!(said.contains("open to others"), "{said}");
}

/// The lines of an environment, of which the first one is whole and each is later than the one before.
fn lines(text: &str) -> Vec<EnvironmentLine> {
    let lines: Vec<EnvironmentLine> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines[0].whole && lines[1..].iter().all(|line| !line.whole), "{text}");
    assert!(lines.windows(2).all(|pair| pair[0].clocks.monotonic_ns < pair[1].clocks.monotonic_ns), "{text}");
    lines
}

#[test]
fn recording_has_the_environment_of_its_processes() {
    let folder = tempfile::tempdir().unwrap();
    let host = fake_perf(folder.path(), RECORDS);
    let out = folder.path().join("out");
    // The second program appears in a later sample.
    let command = ["sh", "-c", "sleep 0.2; sh -c 'sleep 0.6; :'; :"].map(OsString::from).to_vec();
    let request = RecordingRequest { command, ..RecordingRequest::default() };
    let end = run(&host, &request, &out).0.unwrap();
    assert!(end.unfinished.is_empty(), "{:?}", end.unfinished);
    let lines = lines(&std::fs::read_to_string(out.join("environment.jsonl")).unwrap());
    assert!((4..=8).contains(&lines.len()), "{lines:#?}");
    assert!(lines[0].processes.len() <= 2 && !lines[0].machine.is_empty(), "{:#?}", lines[0]);
    let own = std::process::id().to_string();
    assert!(lines.iter().all(|line| !line.processes.contains_key(&own)), "this process is not recorded");
    assert!(lines[1..].iter().any(|line| !line.processes.is_empty()), "{lines:#?}");
}

#[test]
fn snapshot_writes_the_environment_until_its_time_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("environment.jsonl");
    let own = std::process::id().to_string();
    let words = ["snapshot", "--pid", &own, "--interval", "200ms", "--duration", "700ms"];
    let to_file = ask::run(ask::whyslow(words).arg("-o").arg(&file));
    assert!(to_file.status.success() && to_file.stdout.is_empty(), "{}", ask::said(&to_file));
    for text in [std::fs::read_to_string(&file).unwrap(), String::from_utf8(ask::output(&words).stdout).unwrap()] {
        let lines = lines(&text);
        assert!((3..=6).contains(&lines.len()) && lines[0].processes.contains_key(&own), "{text}");
    }
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    ask::refuses(&["snapshot", "-d", "1s", "-o", file.to_str().unwrap()], 1, &["cannot be written", "exists"]);
    ask::refuses(&["snapshot", "--interval", "1ms"], 2, &["--interval 1ms", "100ms"]);
}

#[test]
fn full_disk_at_the_end_is_reported_and_leaves_no_half_table() {
    let folder = tempfile::tempdir().unwrap();
    fake_perf(folder.path(), RECORDS);
    let mut whyslow = machine(folder.path());
    std::fs::write(folder.path().join("proc/kallsyms"), "ffffffff81000000 T _stext\n").unwrap();
    let copies = "#!/bin/sh\nhead -c 100 \"$1\" > \"$2\"; echo \"cp: error writing '$2': No space left\" >&2; exit 1\n";
    std::fs::write(folder.path().join("cp"), copies).unwrap();
    std::fs::set_permissions(folder.path().join("cp"), PermissionsExt::from_mode(0o755)).unwrap();
    let out = folder.path().join("out");
    let ended = ask::run(whyslow.args(["--with", "perf", "-d", "50ms", "--no-open", "-o"]).arg(&out));
    let said = ask::said(&ended);
    assert!(ended.status.success() && said.contains("No space left") && said.contains("note: `cp"), "{said}");
    let mut names: Vec<_> = std::fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["environment.jsonl", "perf.data", "record.log"]);
}

#[test]
fn probes_of_killed_recordings_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    fake_perf(folder.path(), RECORDS);
    let probes = folder.path().join("sys/kernel/tracing/uprobe_events");
    let mut clean = machine(folder.path());
    std::fs::write(&probes, "p:whyslow_4000000/handle /bin/a:0x10\n").unwrap();
    let said = ask::run(clean.arg("--clean"));
    let listed = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.status.success() && listed.contains("whyslow_4000000/handle"), "{listed}");
    assert!(std::fs::read_to_string(&probes).unwrap().ends_with("-:whyslow_4000000/handle\n"));
    let out = folder.path().join("out");
    let ended = ask::run(machine(folder.path()).args(["--with", "perf", "-d", "50ms", "--no-open", "-o"]).arg(&out));
    assert!(ask::said(&ended).contains("removed the probe whyslow_4000000/handle"), "{}", ask::said(&ended));
}

/// LTTng's daemon would record on until the disk is full.
#[test]
fn sessions_of_killed_recordings_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let own = std::process::id();
    let mut clean = machine(folder.path());
    std::fs::create_dir_all(folder.path().join(format!("proc/{own}"))).unwrap();
    std::fs::write(folder.path().join(format!("proc/{own}/stat")), format!("{own} (whyslow) S 1\n")).unwrap();
    let (lttng, destroyed) = (folder.path().join("lttng"), folder.path().join("destroyed"));
    let script = format!(
        "#!/bin/sh\ncase $1 in list) echo 'Available recording sessions:'; echo '  1) whyslow_{own} [active]'\n\
         echo '  2) whyslow_4000000 [active]'; echo '  3) mine_4000000 [inactive]';;\n\
         destroy) echo $2 >> {};; *) echo 2.13.9;; esac\n",
        destroyed.display()
    );
    std::fs::write(&lttng, script).unwrap();
    std::fs::set_permissions(&lttng, PermissionsExt::from_mode(0o755)).unwrap();
    let said = ask::run(clean.arg("--clean"));
    let listed = String::from_utf8_lossy(&said.stdout).into_owned();
    assert_eq!(listed, "removed the LTTng session whyslow_4000000 of the ended process 4000000\n");
    assert_eq!(std::fs::read_to_string(&destroyed).unwrap(), "whyslow_4000000\n");
}

/// Root records, and the command is the user's own, who called sudo.
#[test]
fn command_and_recording_belong_to_the_user_who_called_sudo() {
    use std::os::unix::fs::MetadataExt;
    const DAEMON: u32 = 1;
    let folder = tempfile::tempdir().unwrap();
    if std::fs::metadata(folder.path()).unwrap().uid() != 0 {
        // Only root can be another user.
        return;
    }
    fake_perf(folder.path(), RECORDS);
    for (user, option, owner) in [("daemon", None, DAEMON), ("root", Some("--user=daemon"), DAEMON), ("root", None, 0)]
    {
        let out = folder.path().join(format!("{user}-{}", option.is_some()));
        let mut whyslow = machine(folder.path());
        whyslow.args(["--with", "perf", "--no-open"]).args(option).arg("-o").arg(&out).env("SUDO_USER", user);
        let ended = ask::run(whyslow.args(["--", "sh", "-c", "echo $(id -u) $(id -G) $HOME"]));
        assert!(ended.status.success(), "{}", ask::said(&ended));
        let said = String::from_utf8_lossy(&ended.stdout).into_owned();
        let first: Vec<&str> = said.lines().next().unwrap().split(' ').collect();
        assert_eq!(first[0], owner.to_string(), "{user}: {said}");
        assert_eq!(first.last() == Some(&"/root"), owner == 0 && std::env::var("HOME").unwrap() == "/root", "{said}");
        for path in ["", "perf.data", "record.log", "environment.jsonl"].map(|name| out.join(name)) {
            let about = std::fs::metadata(&path).unwrap();
            assert_eq!((about.uid(), about.mode() & 0o077), (owner, 0), "{}", path.display());
        }
    }
    let mut whyslow = machine(folder.path());
    let ended = ask::run(whyslow.args(["--with", "perf", "--user", "no-such-user", "-d", "1s", "--no-open"]));
    assert!(ask::said(&ended).contains("no such user"), "{}", ask::said(&ended));
}
