//! Lines of a machine that is a folder, and of this one.

use super::*;
use crate::model::environment::{CPU_GROUP, CPUS_ALLOWED, PRIORITY, QUOTA_US, SampledValue, SampledValues};

/// A machine with a process of two threads, the second one bound to a CPU, and a kernel thread.
fn machine() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("proc/sys/kernel/hostname", "shop-1\n");
    write("proc/self/mountinfo", "21 1 0:20 / /cg rw - cgroup2 cgroup2 rw\n");
    write("cg/shop/cpu.max", "20000 100000\n");
    write("cg/shop/cpu.stat", "nr_periods 9\nnr_throttled 4\nthrottled_usec 812\n");
    let zeros = |n: usize| vec!["0"; n].join(" ");
    let stat = |flags: u64| format!("7 (a) b) S 1 7 7 0 -1 {flags} {} 5 6 0 0 20 0 1 0 9 {}\n", zeros(4), zeros(30));
    let thread = |folder: &str, cpus: &str, flags: u64| {
        write(&format!("{folder}/status"), &format!("Name:\ta\nCpus_allowed_list:\t{cpus}\n"));
        write(&format!("{folder}/stat"), &stat(flags));
        write(&format!("{folder}/cgroup"), "0::/shop\n");
    };
    thread("proc/7", "0-3", 0);
    thread("proc/7/task/7", "0-3", 0);
    thread("proc/7/task/8", "2", 0);
    write("proc/7/limits", "Limit Soft Hard Units\nMax open files            1024   4096  files\n");
    thread("proc/9", "0-3", 0x0020_0000);
    root
}

#[test]
fn lines_hold_processes_threads_and_groups_and_then_what_has_changed() {
    let root = machine();
    let mut sampler = EnvironmentSampler::new(root.path(), SampledProcesses::default());
    let first = sampler.next_line();
    let text = |text: &str| SampledValue::Text(text.to_owned());
    assert!(first.whole && first.host.as_deref() == Some("shop-1"), "{first:?}");
    assert!(first.clocks.monotonic_ns > 0 && first.clocks.boottime_ns >= first.clocks.monotonic_ns);
    assert_eq!(first.processes.keys().collect::<Vec<_>>(), ["7"], "kernel threads are none");
    let process = &first.processes["7"];
    assert_eq!((&process["comm"], &process[CPU_GROUP]), (&text("a) b"), &text("/shop")));
    assert_eq!((&process[CPUS_ALLOWED], &process[PRIORITY]), (&text("0-3"), &text("0 other")));
    assert_eq!(process["max_open_files"], SampledValue::Count(1024));
    assert_eq!(first.threads["8"], SampledValues::from([(CPUS_ALLOWED.to_owned(), text("2"))]));
    assert_eq!(first.groups["/shop"][QUOTA_US], SampledValue::Count(20_000));
    let stat = root.path().join("cg/shop/cpu.stat");
    std::fs::write(stat, "nr_periods 9\nnr_throttled 5\nthrottled_usec 900\n").unwrap();
    let second = sampler.next_line();
    assert!(!second.whole && second.processes.is_empty() && second.threads.is_empty(), "{second:?}");
    assert_eq!(second.groups["/shop"].keys().collect::<Vec<_>>(), ["nr_throttled", "throttled_us"]);
    // Its last process has ended.
    std::fs::remove_dir_all(root.path().join("proc/7")).unwrap();
    std::fs::write(root.path().join("cg/shop/cpu.stat"), "nr_throttled 6\nthrottled_usec 990\n").unwrap();
    assert_eq!(sampler.next_line().groups["/shop"]["nr_throttled"], SampledValue::Count(6));
}

#[test]
fn settings_are_read_again_now_and_then_and_a_difference_that_ends_is_said() {
    let root = machine();
    let mut sampler = EnvironmentSampler::new(root.path(), SampledProcesses::default());
    let allow = |task: &str, cpus: &str| {
        let path = root.path().join("proc/7").join(task).join("status");
        std::fs::write(path, format!("Name:\ta\nCpus_allowed_list:\t{cpus}\n")).unwrap();
    };
    let text = |text: &str| SampledValue::Text(text.to_owned());
    assert_eq!(sampler.next_line().threads["8"][CPUS_ALLOWED], text("2"));
    allow("task/8", "0-3");
    assert_eq!(sampler.next_line().threads["8"][CPUS_ALLOWED], text("0-3"), "as its process again");
    for _ in 2..SETTLING {
        assert!(sampler.next_line().threads.is_empty());
    }
    allow("", "1");
    let said: Vec<usize> =
        (0..2 * SETTINGS_EVERY as usize).filter(|_| !sampler.next_line().processes.is_empty()).collect();
    assert_eq!(said, [(SETTINGS_EVERY - SETTLING) as usize], "with the next line that reads all settings");
}

#[test]
fn this_machine_has_this_process() {
    let mut sampler = EnvironmentSampler::new(Path::new("/"), SampledProcesses { pids: vec![std::process::id()] });
    let line = sampler.next_line();
    assert!(line.processes.contains_key(&std::process::id().to_string()), "{line:?}");
}

#[test]
fn files_end_at_their_limit_and_have_more_lines_at_the_beginning() {
    let root = machine();
    let sampler = EnvironmentSampler::new(root.path(), SampledProcesses::default());
    let mut bytes = Vec::new();
    let mut file = EnvironmentFile::with(&mut bytes, sampler);
    file.sample_each_second().unwrap();
    file.sample_each_second().unwrap();
    file.sample().unwrap();
    file.written = MOST_BYTES;
    file.sample().unwrap();
    assert!(file.is_full());
    let text = String::from_utf8(bytes).unwrap();
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(text.lines().all(|line| serde_json::from_str::<EnvironmentLine>(line).is_ok()));
}
