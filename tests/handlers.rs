//! A wait that ends in an interrupt handler of unknown name is classified by the user's own table.

use crate::support::{ask, ctf_writer, kernel_trace};
use ctf_writer::Value as Field;
use kernel_trace::KernelTrace;
use serde_json::Value;
use std::path::Path;
use std::process::Output;

const TABLE: &str = "# Our own card.\ndisk = [\"fastcard*\"]\n";

/// Thread 5 makes calls `job`, each of which waits for the interrupt of `fastcard0`; every sixth waits long.
fn write(folder: &Path) {
    let mut trace = KernelTrace::new("alpha", 0x11);
    for i in 0..60i64 {
        let t = 1_000_000 * (i + 1);
        let back = t + if i % 6 == 5 { 600_000 } else { 50_000 };
        trace.switch(t - 10, 0, 0, 0, 5).call_entry(t, 0, 5, "job").switch(t + 10, 0, 5, 2, 0);
        let entry = vec![("irq", Field::I32(9)), ("name", Field::Text("fastcard0".into()))];
        trace.event(back, 0, 0, "irq_handler_entry", entry);
        trace.waking(back + 10, 0, 0, 5, 0);
        trace.event(back + 20, 0, 0, "irq_handler_exit", vec![("irq", Field::I32(9)), ("ret", Field::I32(1))]);
        trace.switch(back + 30, 0, 0, 0, 5).call_exit(back + 40, 0, 5, "job", 0).switch(back + 50, 0, 5, 1, 0);
    }
    trace.write(folder);
}

fn explain(trace: &Path, configuration: &Path, more: &[&str]) -> Output {
    let mut command = ask::program();
    command.env("XDG_CONFIG_HOME", configuration).args(["explain", "--json", "--task", "job"]).args(more);
    ask::run(command.arg(trace))
}

fn kind(out: &Output) -> String {
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let answer: Value = serde_json::from_slice(&out.stdout).unwrap();
    answer["causes"][0]["kind"].as_str().unwrap().to_owned()
}

#[test]
fn handlers_come_from_the_option_or_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, empty, kept) = (folder.path().join("trace"), folder.path().join("empty"), folder.path().join("kept"));
    write(&trace);
    std::fs::create_dir_all(kept.join("whyslow")).unwrap();
    std::fs::write(kept.join("whyslow/handlers.toml"), TABLE).unwrap();
    let own = folder.path().join("own.toml");
    std::fs::write(&own, "device = [\"fastcard*\"]\n").unwrap();
    assert_eq!(kind(&explain(&trace, &empty, &[])), "blocked.device");
    assert_eq!(kind(&explain(&trace, &kept, &[])), "blocked.disk");
    // The option goes before the configuration.
    assert_eq!(kind(&explain(&trace, &kept, &["--handlers", own.to_str().unwrap()])), "blocked.device");
}

#[test]
fn invalid_handlers_file_is_a_usage_error() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    write(&trace);
    let own = folder.path().join("own.toml");
    for (text, said) in [(Some("disks = []"), "unknown field"), (None, "No such file")] {
        match text {
            Some(text) => std::fs::write(&own, text).unwrap(),
            None => std::fs::remove_file(&own).unwrap(),
        }
        let out = explain(&trace, folder.path(), &["--handlers", own.to_str().unwrap()]);
        let line = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(2), "{line}");
        assert!(line.starts_with("whyslow: ") && line.contains("own.toml") && line.contains(said), "{line}");
        assert_eq!(line.trim_end().lines().count(), 1, "{line}");
    }
}
