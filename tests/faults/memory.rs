//! Allocations fail.

use super::*;

/// Some of the 18,000 allocations of a whole analysis, each of which is a run of its own: all of them take an hour.
#[test]
fn analysis_answers_when_an_allocation_fails() {
    Question::new(&["explain", "--json"], &fixture("snap")).survives_without_memory(60);
    Question::new(&["anomalies", "--json"], &archive()).survives_without_memory(30);
}

/// Of the 1,400 of a small command: opening, the schema or the header, decoding or unpacking, and writing.
#[test]
fn small_commands_answer_when_an_allocation_fails() {
    small_commands(200);
}

fn small_commands(most: usize) {
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/interop/barectf/trace");
    Question::new(&["dump"], &trace).survives_without_memory(most);
    Question::new(&["stats", "count", "--json"], &recorder("zstd.data")).survives_without_memory(most);
}

/// The interface is up and at work when memory runs out: the terminal is as it was, and the line is on the shell's
/// screen.
#[test]
fn interface_out_of_memory_restores_the_terminal() {
    let mut shell = PtyShell::new(100, 24);
    let settings = |shell: &mut PtyShell, name: &str| {
        shell.send(&format!("stty -g > {name}; echo {name} wri''tten\r"));
        shell.wait(&format!("{name} written"));
        std::fs::read_to_string(shell.folder.path().join(name)).unwrap()
    };
    let before = settings(&mut shell, "before");
    let (program, trace) = (ask::PROGRAM, fixture("snap"));
    shell.send(&format!(
        "clear; LD_PRELOAD={} FAIL_ALLOCATION=9000 {program} --theme dark {}; echo ended with $?.\r",
        shim().display(),
        trace.display()
    ));
    shell.wait("out of memory");
    shell.wait("ended with 1.");
    // It had taken the screen over.
    assert!(*shell.read.lock().unwrap() > 500 && !shell.is_alternate());
    assert_eq!(settings(&mut shell, "after"), before);
}

#[test]
#[ignore = "takes an hour: each allocation of a command, one after the other"]
fn analysis_answers_when_any_allocation_fails() {
    small_commands(ALL);
    Question::new(&["explain", "--json"], &fixture("snap")).survives_without_memory(ALL);
}
