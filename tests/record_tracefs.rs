//! `record-tracefs`, the recorder by tracefs: a trace.dat of all that the kernel's ring buffers held, and no instance
//! left behind. The kernel of these tests is a thread that fills each new instance with the files of tracefs; the
//! ignored tests ask the real one.

use crate::support::ask;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// An event of two threads, and its description.
const FORMAT: &str = "name: sched_waking\nID: 300\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
    \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
    \tfield:int pid;\toffset:8;\tsize:4;\tsigned:1;\n\n\
    print fmt: \"%d\", REC->pid\n";

/// A page of a ring buffer with events that are 1 us apart: the time, the bytes behind the head, the events.
fn page(begin: u64, events: u32) -> Vec<u8> {
    let mut data = Vec::new();
    for event in 0..events {
        // Three words of data, and the nanoseconds since the last event.
        let delta: u32 = if event == 0 { 0 } else { 1000 };
        data.extend((3 | delta << 5).to_ne_bytes());
        data.extend(300_u16.to_ne_bytes());
        data.extend([0, 0]);
        data.extend(4_194_305_u32.to_ne_bytes());
        data.extend((1000 + event).to_ne_bytes());
    }
    let mut page = begin.to_ne_bytes().to_vec();
    page.extend((data.len() as u64).to_ne_bytes());
    page.extend(data);
    page.resize(4096, 0);
    page
}

/// A folder that looks like tracefs.
fn tracefs(folder: &Path) -> PathBuf {
    let root = folder.join("tracefs");
    let write = |name: &str, text: &str| {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let header = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
                  \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
                  \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
                  \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
    write("events/header_page", header);
    write("events/header_event", "# compressed entry header\n");
    for (name, id) in [("kernel_stack", 4), ("user_stack", 12)] {
        let text = FORMAT.replace("sched_waking", name).replace("ID: 300", &format!("ID: {id}"));
        write(&format!("events/ftrace/{name}/format"), &text);
    }
    write("saved_cmdlines", "4194305 server\n");
    fs::create_dir_all(root.join("instances")).unwrap();
    root
}

/// Fill an instance as the kernel does: a CPU with pages, and one without.
fn fill(instance: &Path) {
    for cpu in [0_u64, 1] {
        let folder = instance.join(format!("per_cpu/cpu{cpu}"));
        fs::create_dir_all(&folder).unwrap();
        let pages = if cpu == 0 { [page(5_000, 100), page(900_000, 7)].concat() } else { Vec::new() };
        fs::write(folder.join("trace_pipe_raw"), pages).unwrap();
        let lost = 3 * (1 - cpu);
        fs::write(folder.join("stats"), format!("entries: 107\noverrun: {lost}\ncommit overrun: 0\n")).unwrap();
    }
    let event = instance.join("events/sched/sched_waking");
    for folder in [&event, &instance.join("options")] {
        fs::create_dir_all(folder).unwrap();
    }
    for name in ["trace_clock", "buffer_size_kb", "set_event_pid", "options/event-fork", "options/userstacktrace"] {
        fs::write(instance.join(name), "").unwrap();
    }
    for (name, text) in [("enable", ""), ("filter", ""), ("trigger", ""), ("format", FORMAT)] {
        fs::write(event.join(name), text).unwrap();
    }
    // The recorder waits for this one.
    fs::write(instance.join("tracing_on"), "1").unwrap();
}

/// Record while a kernel of this test fills the instances that the recorder makes.
fn record(root: &Path, words: &[&str]) -> Output {
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Acquire) {
                for instance in fs::read_dir(root.join("instances")).unwrap().flatten() {
                    if fs::read_dir(instance.path()).is_ok_and(|mut files| files.next().is_none()) {
                        fill(&instance.path());
                    }
                }
                thread::sleep(Duration::from_millis(1));
            }
        });
        let out = ask::run(ask::program().arg("record-tracefs").arg("--tracefs").arg(root).args(words));
        ended.store(true, Ordering::Release);
        out
    })
}

/// What a command prints about a trace.
fn printed(words: &[&str], trace: &Path) -> String {
    String::from_utf8(ask::output(&[words, &[trace.to_str().unwrap()]].concat()).stdout).unwrap()
}

/// The value of a setting.
fn setting(root: &Path, name: &str) -> String {
    fs::read_to_string(root.join("instances").join(name)).unwrap()
}

#[test]
fn instances_are_set_up_and_their_pages_are_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let root = tracefs(folder.path());
    let trace = folder.path().join("trace.dat");
    let event = "sched:sched_waking";
    let words = ["--name", "whyslow_1", "-b", "512", "-o", trace.to_str().unwrap(), "-e", event, "--stacks", event];
    let chosen = ["--chosen", event, "--pid", "12", "--pid", "13", "--", "true"];
    let out = record(&root, &[&words[..], &chosen].concat());
    assert!(out.status.success(), "{}", ask::said(&out));
    for (name, value) in [
        ("whyslow_1/trace_clock", "mono"),
        ("whyslow_1/buffer_size_kb", "512"),
        ("whyslow_1/tracing_on", "0"),
        ("whyslow_1/events/sched/sched_waking/enable", "1"),
        ("whyslow_1/events/sched/sched_waking/trigger", ""),
        ("whyslow_1/set_event_pid", ""),
        ("whyslow_1_stacks/options/userstacktrace", "1"),
        ("whyslow_1_stacks/events/sched/sched_waking/trigger", "stacktrace"),
        ("whyslow_1_chosen/set_event_pid", "12 13"),
        ("whyslow_1_chosen/options/event-fork", "1"),
    ] {
        assert_eq!(setting(&root, name), value, "{name}");
    }
    let counted = printed(&["stats", "count"], &trace);
    // Three instances with 107 events each.
    assert!(counted.contains("321  sched_waking"), "{counted}");
    let dumped = printed(&["dump"], &trace);
    assert!(dumped.contains("cpu 0 sched_waking {tid=4194305") && dumped.contains("procname=\"server\""), "{dumped}");
    let info = printed(&["info"], &trace);
    assert!(info.contains("mono") && info.contains("lost: 9 events"), "{info}");
}

#[test]
fn what_is_no_tracefs_is_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.dat");
    let words = ["--name", "whyslow_1", "-b", "64", "-o", trace.to_str().unwrap(), "-e", "sched:sched_waking"];
    fs::create_dir(folder.path().join("instances")).unwrap();
    let none = ask::run(ask::program().arg("record-tracefs").arg("--tracefs").arg(folder.path()).args(words));
    let said = ask::said(&none);
    assert!(!none.status.success() && said.contains("this is no tracefs") && said.lines().count() == 1, "{said}");
    assert_eq!(fs::read_dir(folder.path().join("instances")).unwrap().count(), 0);
    let root = tracefs(folder.path());
    let unknown = record(&root, &[&words[..7], &["sched:no_such_event", "--", "true"]].concat());
    let said = ask::said(&unknown);
    assert!(!unknown.status.success() && said.contains("no_such_event"), "{said}");
    assert!(!trace.exists());
}

/// `record` writes two files beside perf: switches and stacks are in one, system calls in the other.
#[test]
fn a_folder_with_a_recording_in_two_files_is_one_recording() {
    let pair = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/recorders/pair");
    // The program that was recorded is beside the recordings of its other problems.
    let symbols = ["--symbols", concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/recorders/planted")];
    let explain = [&["explain"], &symbols[..]].concat();
    let whole = printed(&explain, &pair);
    assert!(whole.contains("Waiting in take_lock for indexer"), "{whole}");
    assert!(whole.contains("[futex]"), "{whole}");
    let by_perf = printed(&explain, &pair.join("perf.data"));
    assert!(!by_perf.contains("[futex]"), "perf alone has recorded no system call: {by_perf}");
    let words = [pair.join("perf.data"), pair.join("trace.dat")].map(|path| path.to_str().unwrap().to_owned());
    let named = ask::output(&[&explain[..], &[&words[0], &words[1]]].concat());
    assert_eq!(String::from_utf8(named.stdout).unwrap(), whole, "both files by name are the folder");
    let info = printed(&["info"], &pair);
    assert_eq!(info.matches("its recording cost 6738 events").count(), 1, "{info}");
}

/// The instances of recordings on this machine.
fn instances() -> Vec<String> {
    let entries = fs::read_dir("/sys/kernel/tracing/instances").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).filter(|name| name.contains("whyslow_")).collect()
}

#[test]
#[ignore = "needs root and a mounted tracefs"]
fn real_kernel_records_the_system_calls_of_a_command() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.dat");
    let command = ["sh", "-c", "for i in 1 2 3 4 5; do cat /proc/self/stat > /dev/null; done"];
    let calls = ["--chosen", "raw_syscalls:sys_enter", "--chosen", "raw_syscalls:sys_exit", "--choose-command", "--"];
    let words = ["--tracefs", "/sys/kernel/tracing", "--name", "whyslow_0", "-b", "1024", "-o"];
    let mut recorder = ask::program();
    recorder.arg("record-tracefs").args(words).arg(&trace).args(calls).args(command);
    let out = ask::run(&mut recorder);
    assert!(out.status.success(), "{}", ask::said(&out));
    let dumped = printed(&["dump"], &trace);
    // Those of a thread that a chosen one has begun are recorded, too.
    let of_cat = dumped.lines().filter(|line| line.contains("sys_exit") && line.contains("procname=\"cat\"")).count();
    assert!(of_cat > 50, "{of_cat} system calls");
    assert!(instances().is_empty(), "{:?}", instances());
}

#[test]
#[ignore = "needs root and a mounted tracefs"]
fn real_kernel_keeps_no_instance_of_a_killed_recording() {
    let folder = tempfile::tempdir().unwrap();
    let mut record = ask::program();
    record.args(["record", "--with", "tracefs", "--full", "--no-open", "-o"]).arg(folder.path().join("r"));
    let mut running = record.stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    while instances().is_empty() {
        thread::sleep(Duration::from_millis(20));
    }
    thread::sleep(Duration::from_millis(300));
    running.kill().unwrap();
    running.wait().unwrap();
    let mut tries = 0;
    while !instances().is_empty() && tries < 200 {
        thread::sleep(Duration::from_millis(50));
        tries += 1;
    }
    assert!(instances().is_empty(), "{:?}", instances());
    // The recorder that was killed itself is cleaned up after by the script.
    let mut record = ask::program();
    record.args(["record", "--with", "tracefs", "--no-open", "-d", "20s", "-o"]).arg(folder.path().join("s"));
    let mut running = record.stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    while instances().is_empty() {
        thread::sleep(Duration::from_millis(20));
    }
    thread::sleep(Duration::from_millis(300));
    Command::new("pkill").args(["-9", "-f", "^[^ ]*whyslow record-tracefs"]).status().unwrap();
    running.wait().unwrap();
    assert!(instances().is_empty(), "{:?}", instances());
}
