//! The tour: its recording is what `build` writes today, and its steps lead from the first to the last.

use crate::support::{ask, pty_shell};
use ask::{PROGRAM, run, whyslow};
use pty_shell::PtyShell;
use std::path::Path;

#[test]
fn recording_is_the_database_that_build_writes() {
    let folder = tempfile::tempdir().unwrap();
    let built = folder.path().join("new.whyslow");
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = "fixtures/traces/lock-contention";
    let mut command = whyslow(["build", &format!("{source}/kernel"), &format!("{source}/ust")]);
    command.current_dir(repository).args(["--symbols", &format!("{source}/bin"), "-o"]).arg(&built);
    let out = run(&mut command);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let shipped = repository.join("fixtures/tour/lock-contention.whyslow");
    if std::env::var_os("WHYSLOW_WRITE_TOUR").is_some() {
        std::fs::copy(&built, &shipped).unwrap();
    }
    let same = std::fs::read(&built).unwrap() == std::fs::read(&shipped).unwrap();
    assert!(same, "the format or the analysis changed: WHYSLOW_WRITE_TOUR=1 cargo test --test all tour::");
}

#[test]
fn each_step_leads_to_the_next_one() {
    let mut shell = PtyShell::new(80, 24);
    shell.send(&format!("{PROGRAM} --tour --theme dark\n"));
    // A part of each step's text, and the keys that it asks for.
    for (step, keys) in [
        ("Tour 1 of 9", "\r"),
        ("Tour 2 of 9", "i"),
        ("Tour 3 of 9", "\x1b"),
        ("Tour 4 of 9", "1"),
        ("Tour 5 of 9", "s\x15duration>20ms\r"),
        ("Tour 6 of 9", "u"),
        ("Tour 7 of 9", "F"),
        ("Tour 8 of 9", "\x1b"),
        ("Tour 8 of 9", "w"),
        ("Tour 9 of 9", "\x1b"),
        ("Tour 9 of 9", "?"),
    ] {
        shell.wait(step);
        shell.send(keys);
        // A pause after Escape distinguishes it from the begin of a sequence.
        std::thread::sleep(std::time::Duration::from_millis(300));
    }
    shell.wait("end of the tour");
    shell.send("\x1b");
    std::thread::sleep(std::time::Duration::from_millis(300));
    shell.send("q");
    shell.wait("desk$");
}

#[test]
fn steps_can_be_skipped() {
    let mut shell = PtyShell::new(80, 24);
    shell.send(&format!("{PROGRAM} --tour --theme dark\n"));
    // A step that only undoes what a skipped one does is done at once.
    for step in [1, 2, 4, 5, 7, 8, 9] {
        shell.wait(&format!("Tour {step} of 9"));
        shell.send(".");
    }
    shell.wait("end of the tour");
    shell.send("q");
    shell.wait("desk$");
}
