//! A `perf` for tests of `record`, a small script that behaves like the real one, and a machine that allows it.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::ask;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use whyslow::parts::record::capabilities::{Capabilities, Tool};
use whyslow::parts::record::plan::{PlanUse, plan};
use whyslow::parts::record::{self, RecordingProgress, RecordingRequest};

/// Events of a usual kernel.
pub fn events() -> BTreeSet<String> {
    let names = "sched:sched_switch sched:sched_waking sched:sched_wakeup_new sched:sched_migrate_task \
                 sched:sched_process_fork sched:sched_process_exec sched:sched_process_exit task:task_newtask \
                 task:task_rename raw_syscalls:sys_enter raw_syscalls:sys_exit irq:irq_handler_entry \
                 irq:irq_handler_exit irq:softirq_raise irq:softirq_entry irq:softirq_exit timer:hrtimer_expire_entry \
                 timer:hrtimer_expire_exit block:block_rq_insert block:block_rq_issue block:block_rq_complete \
                 net:net_dev_queue net:netif_receive_skb";
    names.split_whitespace().map(str::to_owned).collect()
}

pub fn tool(name: &str, version: &[u32]) -> Option<Tool> {
    Some(Tool { path: PathBuf::from(name), version: version.to_vec() })
}

/// A server with all recorders, and root.
pub fn server() -> Capabilities {
    Capabilities {
        root: true,
        perfmon: true,
        tracing_group: false,
        release: "6.1.0".to_owned(),
        paranoid: Some(2),
        events: Some(events()),
        ftrace: true,
        tracefs: None,
        kernel_symbols: true,
        unnamed_code: Vec::new(),
        lttng_modules: true,
        cpus: 8,
        memory: 32 << 30,
        lttng: tool("lttng", &[2, 13, 9]),
        perf: tool("perf", &[6, 1, 192]),
        trace_cmd: tool("trace-cmd", &[3, 1, 6]),
    }
}

/// A folder with a `perf` that notes its options, records "data" while its command runs, and needs a moment to end.
pub fn fake_perf(folder: &Path, records: &str) -> Capabilities {
    let file = folder.join("perf");
    let notes = folder.join("notes");
    let script = format!(
        "#!/bin/sh\necho \"$@\" >> {notes}\ncase $1 in record) ;; trace) while [ \"$1\" != -- ]; do shift; done; shift\n\
         printf '0.000 a/5 whyslow_7:handle(x: 1)\\n9.000 a/5 whyslow_7:handle__return(x: 1)\\n' >&2; exec \"$@\";;\n\
         *) exit 0;; esac\n{records}\n",
        notes = notes.display()
    );
    std::fs::write(&file, script).unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
    Capabilities { lttng: None, kernel_symbols: false, perf: tool(file.to_str().unwrap(), &[6, 1]), ..server() }
}

/// Runs its command, then writes the file behind `-o`.
pub const RECORDS: &str = "while [ \"$1\" != -- ]; do [ \"$1\" = -o ] && out=$2; shift; done; shift\n\
                       \"$@\"; sleep 0.2; echo data > \"$out\"";

pub fn run(
    host: &Capabilities,
    request: &RecordingRequest,
    folder: &Path,
) -> (Result<record::RecordingEnd, String>, Vec<RecordingProgress>) {
    let mut reported = Vec::new();
    let plan = plan(host, request, folder, 7, PlanUse::Run, None).unwrap();
    let ended = record::run(&plan, request, &mut |progress| reported.push(progress));
    (ended.map_err(|e| e.to_string()), reported)
}

/// A program's folder is first in the `PATH` of `record` on a machine that allows perf.
pub fn machine(folder: &Path) -> Command {
    let proc = folder.join("proc/sys/kernel");
    std::fs::create_dir_all(&proc).unwrap();
    std::fs::write(proc.join("perf_event_paranoid"), "-1").unwrap();
    let tracefs = folder.join("sys/kernel/tracing");
    std::fs::create_dir_all(&tracefs).unwrap();
    std::fs::write(tracefs.join("available_events"), "sched:sched_switch\n").unwrap();
    let usual = std::env::var_os("PATH").unwrap();
    let path = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&usual));
    let mut whyslow = ask::program();
    whyslow.args(["record", "--root"]).arg(folder).env("PATH", std::env::join_paths(path).unwrap());
    whyslow
}
