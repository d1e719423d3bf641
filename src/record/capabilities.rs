//! Detects the recorders of a machine, and the permissions to use them.
//!
//! In: a root folder (`/`, or a prepared folder in tests) and the folders of programs. Out: [`Capabilities`], which is
//! immutable. [`Capabilities::detect`] reads small files below `/proc`, `/sys`, `/etc` and `/lib/modules`, and runs
//! each recorder for its version. It writes one file, with the value that the file already has, and makes a ring buffer
//! that it removes: only this shows whether tracing may be switched on, and ring buffers made.

use super::Recorder;
use super::leftovers::GROUP;
use super::shell::ShellCommand;
use crate::model::runtimes;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Bits of `CapEff` in `/proc/self/status`: `CAP_SYS_ADMIN`, `CAP_PERFMON` (`include/uapi/linux/capability.h`).
const SYS_ADMIN: u64 = 1 << 21;
const PERFMON: u64 = 1 << 38;

/// Bytes that are read of the list of the files that a process has mapped.
const MOST_MAPS: u64 = 1 << 20;

/// Mount points of the kernel's tracing files, the newer one first.
const TRACEFS: [&str; 2] = ["sys/kernel/tracing", "sys/kernel/debug/tracing"];

/// A program that records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// The command to run.
    pub path: PathBuf,
    /// The numbers of its version: `[6, 1, 192]`; empty if it does not print them.
    pub version: Vec<u32>,
}

/// The recorders of a machine, and the permissions to use them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// The effective user is root.
    pub root: bool,
    /// The process may use performance events of all users (`CAP_PERFMON` or `CAP_SYS_ADMIN`).
    pub perfmon: bool,
    /// The user is a member of the group `tracing`, whose commands LTTng's root daemon accepts.
    pub tracing_group: bool,
    /// The kernel's release.
    pub release: String,
    /// The kernel's setting `perf_event_paranoid`; `None` if it cannot be read.
    pub paranoid: Option<i32>,
    /// The kernel's events as `system:name`; `None` if the list cannot be read.
    pub events: Option<BTreeSet<String>>,
    /// ftrace can be switched on, as trace-cmd does.
    pub ftrace: bool,
    /// The mounted tracefs, if instances of its ring buffer can be made there.
    pub tracefs: Option<PathBuf>,
    /// Addresses of kernel functions can be read.
    pub kernel_symbols: bool,
    /// Processes whose runtimes compile code and write no names of it, with the remedies.
    pub unnamed_code: Vec<String>,
    /// LTTng's kernel tracer is loaded, or `modprobe` can find it.
    pub lttng_modules: bool,
    /// Number of CPUs.
    pub cpus: u32,
    /// Bytes of memory; 0 if unknown.
    pub memory: u64,
    /// The program `lttng`, if installed.
    pub lttng: Option<Tool>,
    /// The program `perf`, if installed.
    pub perf: Option<Tool>,
    /// The program `trace-cmd`, if installed.
    pub trace_cmd: Option<Tool>,
}

impl Capabilities {
    /// The capabilities of the machine whose files are below `root`, with programs in the folders of `path` (`$PATH`).
    pub fn detect(root: &Path, path: &OsStr) -> Capabilities {
        let text = |name: &str| std::fs::read_to_string(root.join(name)).ok();
        let release = text("proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned();
        let status = text("proc/self/status").unwrap_or_default();
        let capabilities = field(&status, "CapEff:").and_then(|hex| u64::from_str_radix(hex, 16).ok()).unwrap_or(0);
        let events = TRACEFS.iter().find_map(|mount| text(&format!("{mount}/available_events")));
        let tool = |name: &str, version: &[&str]| {
            let file = std::env::split_paths(path).map(|folder| folder.join(name)).find(|file| is_program(file))?;
            Some(Tool { version: version_of(&file, version), path: PathBuf::from(name) })
        };
        Capabilities {
            root: field(&status, "Uid:").is_some_and(|effective| effective == "0"),
            tracing_group: text("etc/group").is_some_and(|groups| is_of_group(&groups, "tracing", &status)),
            perfmon: capabilities & (SYS_ADMIN | PERFMON) != 0,
            paranoid: text("proc/sys/kernel/perf_event_paranoid").and_then(|level| level.trim().parse().ok()),
            events: events.map(|all| all.lines().map(|line| line.trim().to_owned()).collect()),
            ftrace: accepts_own_value(&root.join("proc/sys/kernel/ftrace_enabled")),
            tracefs: TRACEFS.iter().map(|mount| root.join(mount)).find(|mount| can_make_instances(mount)),
            kernel_symbols: has_addresses(&root.join("proc/kallsyms")),
            unnamed_code: unnamed_code(root),
            lttng_modules: root.join("proc/lttng").exists() || has_tracer(&root.join("lib/modules").join(&release)),
            cpus: std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX)),
            memory: text("proc/meminfo").and_then(|all| field(&all, "MemTotal:")?.parse::<u64>().ok()).unwrap_or(0)
                << 10,
            lttng: tool("lttng", &["--version"]),
            perf: tool("perf", &["version"]),
            trace_cmd: tool("trace-cmd", &["--version"]),
            release,
        }
    }

    /// The program of a recorder.
    pub fn tool(&self, recorder: Recorder) -> Option<&Tool> {
        match recorder {
            Recorder::Lttng => self.lttng.as_ref(),
            Recorder::Perf => self.perf.as_ref(),
            Recorder::TraceCmd => self.trace_cmd.as_ref(),
            Recorder::Tracefs => None,
        }
    }

    /// The beginning of a recorder's command line: its program.
    pub(super) fn command(&self, recorder: Recorder) -> ShellCommand {
        let known = self.tool(recorder).map(|tool| tool.path.to_string_lossy().into_owned());
        ShellCommand::new([known.unwrap_or_else(|| recorder.name().to_owned())])
    }

    /// True if the kernel has an event, or if that is unknown.
    pub fn has(&self, event: &str) -> bool {
        self.events.as_ref().is_none_or(|events| events.contains(event))
    }
}

/// True for a mounted tracefs in which this user may make instances: a confined machine refuses it to root as well, so
/// one is made and removed.
fn can_make_instances(tracefs: &Path) -> bool {
    let instance = tracefs.join("instances").join(format!("{GROUP}{}_check", std::process::id()));
    let is_made = tracefs.join("events/header_page").is_file() && std::fs::create_dir(&instance).is_ok();
    is_made && std::fs::remove_dir(&instance).is_ok()
}

/// The value after a name in a file like `/proc/self/status`. `Uid:` has several values; the effective user is the
/// second.
fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    let mut words = status.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace();
    if name == "Uid:" { words.nth(1) } else { words.next() }
}

/// True if the process belongs to the group of this name.
fn is_of_group(groups: &str, name: &str, status: &str) -> bool {
    let line = groups.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let id = line.and_then(|rest| rest.split(':').nth(1));
    let memberships = status.lines().find_map(|line| line.strip_prefix("Groups:")).unwrap_or_default();
    id.is_some_and(|id| memberships.split_whitespace().any(|group| group == id))
}

fn is_program(file: &Path) -> bool {
    file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
}

/// The version that a program prints.
fn version_of(file: &Path, arguments: &[&str]) -> Vec<u32> {
    let printed = Command::new(file).args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).output();
    let printed = printed.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default();
    parse_version(&printed)
}

/// The first number with dots in a text, as its parts.
fn parse_version(printed: &str) -> Vec<u32> {
    let words = printed.split(|c: char| !c.is_ascii_digit() && c != '.');
    let dotted = words.map(|word| word.trim_matches('.')).find(|word| word.contains('.'));
    dotted.map(|word| word.split('.').map_while(|n| n.parse().ok()).collect()).unwrap_or_default()
}

/// True if `/proc/kallsyms` shows addresses: without the permission the kernel prints zeros.
fn has_addresses(file: &Path) -> bool {
    use std::io::BufRead;
    let Ok(file) = std::fs::File::open(file) else { return false };
    let mut line = String::new();
    let is_read = std::io::BufReader::new(file).read_line(&mut line).is_ok();
    is_read && line.split_whitespace().next().is_some_and(|address| address.bytes().any(|digit| digit != b'0'))
}

/// The processes of known runtimes that have written no map of their code, each with the remedy.
fn unnamed_code(root: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(root.join("proc")).into_iter().flatten().flatten();
    let mut pids: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    pids.sort_unstable();
    let unnamed = |pid: u32| {
        let process = root.join("proc").join(pid.to_string());
        let maps = std::fs::File::open(process.join("maps")).ok()?;
        let mut text = Vec::new();
        std::io::Read::read_to_end(&mut std::io::Read::take(maps, MOST_MAPS), &mut text).ok()?;
        let text = String::from_utf8_lossy(&text);
        let files = || text.lines().filter_map(|line| line.split_whitespace().nth(5));
        let (runtime, option) = runtimes::remedy(files());
        let written = ["perf-", "jit-"]
            .iter()
            .zip([".map", ".dump"])
            .any(|(before, after)| process.join(format!("root/tmp/{before}{pid}{after}")).exists());
        (!runtime.is_empty() && !written).then(|| format!("process {pid} ({runtime}) writes none: {option}"))
    };
    pids.into_iter().filter_map(unnamed).collect()
}

/// True if a file of `/proc/sys` accepts the value that it has. In a container the file seems writable to root and is
/// not, so only a write shows it.
fn accepts_own_value(file: &Path) -> bool {
    std::fs::read(file).is_ok_and(|value| {
        std::fs::OpenOptions::new()
            .write(true)
            .open(file)
            .is_ok_and(|mut open| std::io::Write::write_all(&mut open, &value).is_ok())
    })
}

/// True if the modules of a kernel release contain LTTng's kernel tracer.
fn has_tracer(modules: &Path) -> bool {
    // `modules.dep` lists every module that `modprobe` can load.
    let list = std::fs::read_to_string(modules.join("modules.dep")).unwrap_or_default();
    list.lines().filter_map(|line| line.split(':').next()).any(|module| module.contains("lttng-tracer.ko"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_version_reads_the_output_of_each_tool() {
        assert_eq!(parse_version("perf version 6.1.192\n"), [6, 1, 192]);
        assert_eq!(parse_version("perf version 4.18.0-553.el8_10.x86_64\n"), [4, 18, 0]);
        assert_eq!(parse_version("trace-cmd version 3.1.6 (not-a-git-repo)\n"), [3, 1, 6]);
        assert_eq!(parse_version("lttng (LTTng Trace Control) 2.13.9 - Nordicité\n"), [2, 13, 9]);
        assert_eq!(parse_version("unknown"), [0; 0]);
    }

    #[test]
    fn detect_reads_a_machine_from_its_files() {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let file = root.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        };
        write("proc/sys/kernel/osrelease", "6.1.0\n");
        write("proc/sys/kernel/perf_event_paranoid", "2\n");
        write("proc/self/status", "Uid:\t1000\t0\t0\t0\nGroups:\t4 119 \nCapEff:\t0000004000000000\n");
        write("etc/group", "adm:x:4:\ntracing:x:119:me\n");
        write("proc/meminfo", "MemTotal:        2048 kB\n");
        write("proc/kallsyms", "0000000000000000 T _stext\n");
        write("sys/kernel/debug/tracing/available_events", "sched:sched_switch\nblock:block_rq_issue\n");
        write("proc/7/maps", "1000-2000 r-xp 00000000 08:01 77   /usr/bin/node\n");
        write("proc/8/maps", "1000-2000 r-xp 00000000 08:01 77   /usr/bin/node\n");
        write("proc/8/root/tmp/perf-8.map", "1000 10 render\n");
        write("proc/9/maps", "1000-2000 r-xp 00000000 08:01 78   /usr/bin/sh\n");
        write("lib/modules/6.1.0/modules.dep", "updates/dkms/lttng-tracer.ko.xz: x\n");
        let host = Capabilities::detect(root.path(), OsStr::new(""));
        assert!(host.root && host.perfmon && host.lttng_modules && host.tracing_group);
        assert_eq!(host.unnamed_code, ["process 7 (Node.js) writes none: start it with --perf-basic-prof"]);
        assert!(!host.kernel_symbols && !host.ftrace);
        assert_eq!((host.release.as_str(), host.paranoid, host.memory), ("6.1.0", Some(2), 2 << 20));
        assert!(host.has("sched:sched_switch") && !host.has("irq:irq_handler_entry"));
        assert_eq!((host.lttng, host.perf, host.trace_cmd), (None, None, None));
    }

    /// trace-cmd writes this file even where only events are recorded.
    #[test]
    fn detect_finds_by_a_write_whether_tracing_can_be_switched_on() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().unwrap();
        let file = |name: &str| root.path().join(name);
        for folder in ["proc/self", "proc/sys/kernel", "sys/kernel/tracing", "bin"] {
            std::fs::create_dir_all(file(folder)).unwrap();
        }
        std::fs::write(file("proc/self/status"), "Uid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\n").unwrap();
        std::fs::write(file("sys/kernel/tracing/available_events"), "sched:sched_switch\n").unwrap();
        let tool = file("bin/trace-cmd");
        std::fs::write(&tool, "#!/bin/sh\necho 'trace-cmd version 3.1.6'\n").unwrap();
        std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
        let report = || {
            let host = Capabilities::detect(root.path(), file("bin").as_os_str());
            (host.ftrace, crate::record::report(&host).text)
        };
        // A file of proc that root may open, and that refuses each write.
        let enabled = file("proc/sys/kernel/ftrace_enabled");
        std::os::unix::fs::symlink("/proc/version", &enabled).unwrap();
        let (can, text) = report();
        assert!(!can && text.contains("no: tracing cannot be switched on"), "{text}");
        std::fs::remove_file(&enabled).unwrap();
        std::fs::write(&enabled, "1\n").unwrap();
        let (can, text) = report();
        assert!(can && text.contains("trace-cmd 3.1.6   yes"), "{text}");
        assert_eq!(std::fs::read_to_string(&enabled).unwrap(), "1\n");
    }
}
