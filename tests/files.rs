//! Pipes, devices and links in place of files: none makes the program wait, and none takes the rest with it.

use crate::support::ask;
use ask::{copy, fixture, run, said, whyslow};
use serde_json::Value;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

/// Makes something that is no regular file.
type SpecialFile = (&'static str, fn(&Path));

const SPECIAL_FILES: [SpecialFile; 4] = [
    ("a pipe", ask::pipe),
    ("a link to a pipe", |path| {
        let pipe = path.with_file_name(".pipe");
        ask::pipe(&pipe);
        symlink(pipe, path).unwrap();
    }),
    ("a link to a device without end", |path| symlink("/dev/zero", path).unwrap()),
    ("a link to itself", |path| symlink(path.file_name().unwrap(), path).unwrap()),
];

/// Put a special file in place of a file.
fn replace(path: &Path, special: &SpecialFile) {
    std::fs::remove_file(path).unwrap();
    special.1(path);
}

/// The events that are counted, and the notices, as `stats count` has them.
fn count(trace: &Path) -> (u64, String) {
    let out = run(whyslow(["stats", "count", "--json"]).arg(trace));
    assert!(out.status.success(), "{}", said(&out));
    let answer: Value = serde_json::from_slice(&out.stdout).unwrap();
    (answer["events"].as_u64().unwrap(), answer["warnings"].to_string())
}

#[test]
fn special_files_are_notices_and_do_not_block() {
    let folder = tempfile::tempdir().unwrap();
    for (i, special) in SPECIAL_FILES.iter().enumerate() {
        let trace = folder.path().join(i.to_string());
        copy(&fixture("lost-events"), &trace);
        let (all, _) = count(&trace);
        replace(&trace.join("kernel/index/k_0.idx"), special);
        let (events, notices) = count(&trace);
        assert!(events == all && notices.contains("no packet index"), "{} for an index: {notices}", special.0);
        assert!(notices.contains("k_0.idx: "), "{} for an index: no reason in {notices}", special.0);
        replace(&trace.join("kernel/k_0"), special);
        let (events, notices) = count(&trace);
        assert!(
            0 < events && events < all && notices.contains("could not be read"),
            "{} for a stream: {notices}",
            special.0
        );
        replace(&trace.join("kernel/metadata"), special);
        let (events, notices) = count(&trace);
        assert!(0 < events && notices.contains("could not be"), "{} for metadata: {notices}", special.0);
        // By itself it is an error, in one line.
        let path = folder.path().join(format!("alone-{i}"));
        (special.1)(&path);
        let out = run(whyslow(["info"]).arg(&path));
        assert_eq!((out.status.code(), said(&out).lines().count()), (Some(1), 1), "{}: {}", special.0, said(&out));
    }
}

#[test]
fn special_files_as_symbols_and_databases_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (i, special) in SPECIAL_FILES.iter().enumerate() {
        let bin = folder.path().join(format!("bin-{i}"));
        std::fs::create_dir(&bin).unwrap();
        (special.1)(&bin.join("ledgerd"));
        let out = run(whyslow(["explain", "--json", "--symbols"]).arg(&bin).arg(fixture("lock-contention")));
        assert!(out.status.success(), "{}: {}", special.0, said(&out));
        let list = folder.path().join(format!("kallsyms-{i}"));
        (special.1)(&list);
        let out = run(whyslow(["explain", "--json", "--kallsyms"]).arg(&list).arg(fixture("lock-contention")));
        assert!(out.status.code().is_some_and(|code| code <= 2), "{}: {}", special.0, said(&out));
        let database = folder.path().join(format!("{i}.whyslow"));
        (special.1)(&database);
        let out = run(whyslow(["explain"]).arg(&database));
        assert_eq!((out.status.code(), said(&out).lines().count()), (Some(1), 1), "{}: {}", special.0, said(&out));
    }
}

#[test]
fn special_files_in_an_archive_are_notices() {
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/archives/late_sender/trace");
    let folder = tempfile::tempdir().unwrap();
    for (i, special) in SPECIAL_FILES.iter().enumerate() {
        for name in ["0.evt", "0.def", "traces.def", "traces.otf2"] {
            let archive = folder.path().join(format!("{i}-{name}"));
            copy(&recorded, &archive);
            let files = ask::files(&archive);
            let file = files.iter().find(|f| f.ends_with(name));
            replace(file.unwrap_or_else(|| panic!("no {name} in {files:?}")), special);
            let out = run(whyslow(["anomalies", "--json"]).arg(&archive));
            // A special file for one rank leaves the others, with a warning; without definitions nothing is left.
            let whole = String::from_utf8_lossy(&out.stdout).contains("\"warnings\": []");
            match (name, out.status.code()) {
                ("0.evt" | "0.def", Some(0)) => assert!(!whole, "{} for {name}: no warning", special.0),
                (_, Some(1)) => assert_eq!(said(&out).lines().count(), 1, "{} for {name}: {}", special.0, said(&out)),
                _ => panic!("{} for {name}: {:?}: {}", special.0, out.status, said(&out)),
            }
        }
    }
}

/// As a user with restricted permissions: root reads everything.
fn as_nobody(command: &mut Command, mine: &Path) -> Output {
    const OVERFLOW_UID: u32 = 65534;
    if std::fs::metadata(mine).unwrap().uid() == 0 {
        let home = mine.parent().unwrap();
        assert!(Command::new("chmod").args(["a+rx"]).arg(home).arg(mine).status().unwrap().success());
        // The program may be in a folder that only root can read.
        let program = mine.join(".program");
        if !program.exists() {
            // While this process writes a file, a child that another test starts has it open too, and meanwhile the
            // kernel refuses to run the file.
            assert!(Command::new("cp").args([Path::new(ask::PROGRAM), &program]).status().unwrap().success());
        }
        let words: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
        return run(Command::new(program)
            .args(words)
            .stdin(std::process::Stdio::null())
            .uid(OVERFLOW_UID)
            .gid(OVERFLOW_UID));
    }
    run(command)
}

fn permit(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// A folder that cannot be opened, beside the only recording of the folder that was named.
#[test]
fn unreadable_folders_beside_a_recording_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let session = folder.path().join("session");
    let secret = session.join("secret");
    std::fs::create_dir_all(&secret).unwrap();
    std::fs::copy(fixture("../recorders/file.data"), session.join("perf.data")).unwrap();
    permit(&session, 0o755);
    permit(&session.join("perf.data"), 0o644);
    permit(&secret, 0);
    for (words, status) in [(&["info"][..], 0), (&["stats", "count"], 0), (&["stats", "count", "--strict"], 1)] {
        let out = as_nobody(whyslow(words).arg(&session), folder.path());
        let all = said(&out) + &String::from_utf8_lossy(&out.stdout);
        assert_eq!(out.status.code(), Some(status), "{words:?}: {all}");
        assert!(all.contains("1 folder could not be opened") && all.contains("secret"), "{words:?}: {all}");
    }
    permit(&secret, 0o755);
}

#[test]
fn what_was_not_searched_for_databases_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (fleet, database) = (folder.path().join("fleet"), folder.path().join("fleet/a.why"));
    let (secret, closed) = (fleet.join("secret"), fleet.join("closed.why"));
    std::fs::create_dir_all(&secret).unwrap();
    run(whyslow(["build", "-o"]).args([&database, &fixture("lock-contention")]));
    std::fs::copy(&database, &closed).unwrap();
    permit(&fleet, 0o755);
    permit(&database, 0o644);
    for path in [&secret, &closed] {
        permit(path, 0);
    }
    for words in [&["info"][..], &["explain"], &["explain", "--json"]] {
        let out = as_nobody(whyslow(words).arg(&fleet), folder.path());
        let all = said(&out) + &String::from_utf8_lossy(&out.stdout);
        assert!(out.status.success(), "{words:?}: {all}");
        assert!(all.contains("2 folders or files were not searched for databases"), "{words:?}: {all}");
    }
    permit(&secret, 0o755);
}

#[test]
fn unreadable_files_leave_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t");
    copy(&fixture("lost-events"), &trace);
    let count = || {
        let out = as_nobody(whyslow(["stats", "count", "--json"]).arg(&trace), folder.path());
        let answer: Value = serde_json::from_slice(&out.stdout).unwrap_or_default();
        (out.status.code(), answer["events"].as_u64().unwrap_or(0), answer["warnings"].to_string() + &said(&out))
    };
    let (_, all, _) = count();
    for (path, mode, notice) in [
        ("kernel/index", 0, "no packet index"),
        ("kernel/k_0", 0, "could not be read"),
        ("kernel/metadata", 0, "could not be read"),
        ("kernel", 0, "could not be opened"),
        ("kernel", 0o444, "could not be opened"),
        ("kernel", 0o111, "could not be opened"),
    ] {
        permit(&trace.join(path), mode);
        let (status, events, notices) = count();
        assert_eq!(status, Some(0), "{path} {mode:o}: {notices}");
        assert!(events > 0 && notices.contains(notice), "{path} {mode:o}: {events} of {all}: {notices}");
        assert!(notices.to_lowercase().contains("permission denied"), "{path} {mode:o}: no reason in {notices}");
        permit(&trace.join(path), 0o755);
    }
    // Two that are named, one of which may be opened.
    let other = folder.path().join("other");
    copy(&fixture("lost-events"), &other);
    permit(&other, 0);
    let out = as_nobody(whyslow(["stats", "count", "--json"]).args([&other, &trace]), folder.path());
    assert!(
        out.status.success() && String::from_utf8_lossy(&out.stdout).contains("could not be opened"),
        "{}",
        said(&out)
    );
    // Nothing is left.
    for path in [trace.join("kernel"), trace.join("ust")] {
        permit(&path, 0);
    }
    let (status, events, notices) = count();
    assert!(status == Some(1) && events == 0 && notices.contains("ermission denied"), "{notices}");
    assert_eq!(notices.trim().lines().count(), 1, "{notices}");
    for path in [other, trace.join("kernel"), trace.join("ust")] {
        permit(&path, 0o755);
    }
}

#[test]
fn killed_build_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, database) = (fixture("lock-contention"), folder.path().join("a.whyslow"));
    let build = || {
        let mut command = whyslow(["build", "-o"]);
        command.arg(&database).arg(&trace).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        command
    };
    let out = run(&mut build());
    assert!(out.status.success(), "{}", said(&out));
    let whole = std::fs::read(&database).unwrap();
    let listed = |folder: &Path| {
        let mut names: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let began = std::time::Instant::now();
    run(&mut build());
    let takes = began.elapsed();
    for step in 0..40 {
        let mut child = build().spawn().unwrap();
        std::thread::sleep(takes * step / 36);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(std::fs::read(&database).unwrap(), whole, "half a database after step {step}");
    }
    // The next build removes the file that was left between two names.
    std::fs::write(folder.path().join(".whyslow-1-0"), "left by another").unwrap();
    assert!(run(&mut build()).status.success());
    assert_eq!(listed(folder.path()), ["a.whyslow"]);
}

#[test]
fn dangling_link_is_not_written_through() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("link.whyslow");
    symlink("nowhere", &link).unwrap();
    let out = run(whyslow(["build", "-o"]).arg(&link).arg(fixture("lock-contention")));
    assert_eq!((out.status.code(), said(&out).lines().count()), (Some(1), 1), "{}", said(&out));
    assert!(said(&out).contains("link") && !folder.path().join("nowhere").exists(), "{}", said(&out));
}

/// Each kind of output, by the words that ask for it and the name of its file.
const OUTPUTS: [(&[&str], &str); 8] = [
    (&["report"], "a.html"),
    (&["report"], "a.md"),
    (&["report"], "a.svg"),
    (&["report"], "a.folded"),
    (&["report"], "a.speedscope.json"),
    (&["report"], "a.pb.gz"),
    (&["build"], "a.why"),
    (&["build", "--history"], "a.history"),
];

/// Another user's link in a folder that everybody may write to, which leads to a file of this user.
#[test]
fn outputs_are_not_written_through_links_of_others() {
    let folder = tempfile::tempdir().unwrap();
    for (words, name) in OUTPUTS {
        let (link, victim) = (folder.path().join(name), folder.path().join("victim"));
        std::fs::write(&victim, "precious").unwrap();
        symlink(&victim, &link).unwrap();
        if std::os::unix::fs::lchown(&link, Some(65534), None).is_err() {
            // Only root can give a link away.
            return;
        }
        let out = run(whyslow(words).arg("-o").arg(&link).arg(fixture("lock-contention")));
        assert_eq!((out.status.code(), said(&out).lines().count()), (Some(1), 1), "{}", said(&out));
        assert!(said(&out).contains("belongs to another user"), "{name}: {}", said(&out));
        assert_eq!(std::fs::read(&victim).unwrap(), b"precious", "{name}");
        assert!(link.is_symlink());
    }
}

#[test]
fn outputs_keep_the_rights_of_the_file_that_they_replace() {
    let folder = tempfile::tempdir().unwrap();
    for (words, name) in OUTPUTS {
        let path = folder.path().join(name);
        let write = || {
            let out = run(whyslow(words).arg("-o").arg(&path).arg(fixture("lock-contention")));
            assert!(out.status.success(), "{name}: {}", said(&out));
            std::fs::metadata(&path).unwrap()
        };
        let first = write();
        permit(&path, 0o600);
        let second = write();
        assert_eq!((second.mode() & 0o777, second.nlink()), (0o600, 1), "{name}");
        assert!(second.ino() != first.ino() && second.uid() == first.uid(), "{name}");
        // A second name would keep the old report.
        std::fs::hard_link(&path, folder.path().join("other")).unwrap();
        let out = run(whyslow(words).arg("-o").arg(&path).arg(fixture("lock-contention")));
        assert!(out.status.code() == Some(1) && said(&out).contains("hard links"), "{name}: {}", said(&out));
        std::fs::remove_file(folder.path().join("other")).unwrap();
    }
}

#[test]
fn file_size_limit_is_an_error_line() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -f 1; exec \"$@\"", "sh", ask::PROGRAM, "build", "-o"]);
    let out = run(command.arg(folder.path().join("a.whyslow")).arg(fixture("cpu-contention")));
    assert_eq!((out.status.code(), said(&out).lines().count()), (Some(1), 1), "{:?}: {}", out.status, said(&out));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// A file whose writes fail for want of room.
fn full() -> std::fs::File {
    std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap()
}

#[test]
fn full_stdout_is_named_and_full_stderr_changes_nothing() {
    for words in [&["stats", "count"][..], &["stats", "count", "--json"], &["dump"], &["explain"], &["--help"]] {
        let mut command = whyslow(words);
        if words != ["--help"] {
            command.arg(fixture("lock-contention"));
        }
        let child = command.stdout(full()).stderr(std::process::Stdio::piped()).spawn().unwrap();
        let out = ask::finish(child, &format!("{words:?}"));
        assert_eq!((out.status.code(), said(&out).lines().count()), (Some(1), 1), "{words:?}: {}", said(&out));
        assert!(said(&out).contains("stdout") && said(&out).contains("room"), "{words:?}: {}", said(&out));
        assert_eq!(said(&out).matches("No space left").count(), 1, "{words:?}: {}", said(&out));
    }
    for (words, status) in [(&["explain", "no/such/trace"][..], 1), (&["explain", "--sloow"], 2), (&["stats"], 2)] {
        let child = whyslow(words).stdout(std::process::Stdio::piped()).stderr(full()).spawn().unwrap();
        assert_eq!(ask::finish(child, "full stderr").status.code(), Some(status), "{words:?}");
        let mut child =
            whyslow(words).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
        drop(child.stderr.take());
        assert_eq!(child.wait().unwrap().code(), Some(status), "{words:?} with a closed stderr");
        let mut closed = Command::new("sh");
        closed.args(["-c", "exec \"$@\" 2>&-", "sh", ask::PROGRAM]).args(words);
        assert_eq!(run(&mut closed).status.code(), Some(status), "{words:?} with stderr closed");
    }
    let timed = whyslow(["stats", "count", "--timings"])
        .arg(fixture("snap"))
        .stdout(std::process::Stdio::piped())
        .stderr(full())
        .spawn();
    assert_eq!(ask::finish(timed.unwrap(), "timings").status.code(), Some(0));
}

#[test]
fn paths_that_are_not_text_are_read() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join(std::ffi::OsStr::from_bytes(b"tr\xffce"));
    copy(&fixture("snap"), &trace);
    let mut labelled = std::ffi::OsString::from("old=");
    labelled.push(&trace);
    for argument in [trace.clone().into_os_string(), labelled] {
        let out = run(whyslow(["stats", "count", "--json"]).arg(&argument));
        assert!(out.status.success(), "{argument:?}: {}", said(&out));
        let events = |out: &Output| serde_json::from_slice::<Value>(&out.stdout).unwrap()["events"].clone();
        assert_eq!(events(&out), events(&run(whyslow(["stats", "count", "--json"]).arg(fixture("snap")))));
    }
    // A stream of such a name, with its index.
    let trace = folder.path().join("t");
    copy(&fixture("lost-events"), &trace);
    let kernel = ask::files(&trace).into_iter().find(|f| f.extension().is_some_and(|e| e == "idx")).unwrap();
    let stream = kernel.parent().unwrap().parent().unwrap().join(kernel.file_stem().unwrap());
    let name = std::ffi::OsStr::from_bytes(b"str\xffam");
    std::fs::rename(&stream, stream.with_file_name(name)).unwrap();
    std::fs::rename(&kernel, kernel.with_file_name(std::ffi::OsStr::from_bytes(b"str\xffam.idx"))).unwrap();
    let (events, notices) = count(&trace);
    assert!(events > 0 && !notices.contains("no packet index"), "{notices}");
}

#[test]
fn workers_are_limited_and_long_words_are_cut() {
    let out = run(whyslow(["stats", "count", "--threads", "1000000"]).arg(fixture("snap")));
    assert!(
        out.status.success() && said(&out).lines().count() == 1 && said(&out).contains("--threads"),
        "{}",
        said(&out)
    );
    let plain = run(whyslow(["stats", "count"]).arg(fixture("snap")));
    assert_eq!(out.stdout, plain.stdout);
    let long = "x".repeat(100_000);
    for words in [&["explain", "--task", &long][..], &["explain", "--slow", &long], &["explain", &format!("--{long}")]]
    {
        let out = run(whyslow(words).arg(fixture("lock-contention")));
        assert!(out.status.code() == Some(2) && out.stderr.len() < 2000, "{} bytes", out.stderr.len());
        let quoted = said(&out).split(|c| c != 'x').map(str::len).max();
        assert!(quoted.is_some_and(|n| (20..=200).contains(&n)), "{quoted:?} characters are quoted: {}", said(&out));
    }
    // A database that may not be read says so.
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("a.whyslow");
    assert!(run(whyslow(["build", "-o"]).arg(&database).arg(fixture("lock-contention"))).status.success());
    permit(&database, 0);
    let out = as_nobody(whyslow(["explain"]).arg(&database), folder.path());
    assert!(out.status.code() == Some(1) && said(&out).contains("ermission denied"), "{}", said(&out));
}
