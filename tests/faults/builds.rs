//! Builds of a database are killed, ended by signals, or their calls fail.

use super::*;

/// A folder in which databases are built, one of another recording perhaps being there already.
struct Shelf {
    folder: tempfile::TempDir,
    old: Vec<u8>,
    new: Vec<u8>,
    /// The folder's file system has no files without names.
    plain_names: bool,
}

impl Shelf {
    fn new(plain_names: bool) -> Shelf {
        let folder = tempfile::tempdir().unwrap();
        let built = |trace: &str| {
            let path = folder.path().join("built");
            let out = ask::run(whyslow(["build", "-o"]).arg(&path).arg(fixture(trace)));
            assert!(out.status.success(), "{}", said(&out));
            let bytes = std::fs::read(&path).unwrap();
            std::fs::remove_file(path).unwrap();
            bytes
        };
        let (old, new) = (built("split-files"), built("snap"));
        assert_ne!(old, new);
        Shelf { folder, old, new, plain_names }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("a.whyslow")
    }

    fn build(&self, replaces: bool, mut judge: impl FnMut(&Call) -> Verdict) -> Output {
        std::fs::remove_file(self.path()).ok();
        if replaces {
            std::fs::write(self.path(), &self.old).unwrap();
        }
        let question = Question::new(&["build", "-o", self.path().to_str().unwrap()], &fixture("snap"));
        tracer::run(&mut question.command(), &mut |call| {
            let nameless =
                call.number == libc::SYS_openat && call.arguments[2] as i32 & libc::O_TMPFILE == libc::O_TMPFILE;
            if self.plain_names && nameless { Verdict::Fail(libc::EOPNOTSUPP) } else { judge(call) }
        })
    }

    /// The file there is whole; true where it is the new one.
    fn is_whole(&self, replaced: bool, when: &str) -> bool {
        match std::fs::read(self.path()) {
            Ok(bytes) if bytes == self.new => true,
            Ok(bytes) => {
                assert!(replaced && bytes == self.old, "{when}: half a database, {} bytes", bytes.len());
                false
            }
            Err(_) => {
                assert!(!replaced, "{when}: the old database is gone");
                false
            }
        }
    }

    fn names(&self) -> Vec<OsString> {
        let mut names: Vec<_> =
            std::fs::read_dir(self.folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        names
    }
}

/// Both ways of writing, to a new name and in another's place.
const WAYS: [(bool, bool); 4] = [(false, false), (false, true), (true, false), (true, true)];

#[test]
fn build_killed_at_any_call_leaves_a_whole_database() {
    for (plain_names, replaces) in WAYS {
        let shelf = Shelf::new(plain_names);
        let (mut calls, mut new) = (0, 0);
        for n in 1.. {
            let mut seen = 0;
            let out = shelf.build(replaces, |_| {
                seen += 1;
                if seen == n { Verdict::Kill } else { Verdict::Go }
            });
            new += usize::from(shelf.is_whole(replaces, &format!("killed at call {n}")));
            assert!(shelf.names().len() <= 2, "call {n}: {:?}", shelf.names());
            if seen < n {
                assert!(out.status.success(), "{}", said(&out));
                break;
            }
            calls = n;
        }
        println!(
            "names {plain_names}, replaces {replaces}: killed at {calls} calls, {new} times the new one was there"
        );
        assert!(calls > 50 && (1..calls / 2).contains(&new), "{calls} calls, {new} new");
        // The last build, which went through, removed what the ones before it left.
        assert_eq!(shelf.names(), ["a.whyslow"]);
    }
}

/// Signals that can be caught leave nothing at all, also where files have names from the start.
#[test]
fn build_ended_by_a_signal_leaves_no_other_file() {
    for (signal, (plain_names, replaces)) in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP].into_iter().cycle().zip(WAYS) {
        let shelf = Shelf::new(plain_names);
        // Counted from the first call of those that write the file: the signal's own pair of sockets is made before.
        for n in 1.. {
            let (mut writes, mut seen) = (false, 0);
            let out = shelf.build(replaces, |call| {
                writes |= call.number == libc::SYS_socketpair;
                seen += usize::from(writes);
                if writes && seen == n { Verdict::Signal(signal) } else { Verdict::Go }
            });
            let when = format!("signal {signal} at call {n}");
            shelf.is_whole(replaces, &when);
            let beside: Vec<_> = shelf.names().into_iter().filter(|n| *n != "a.whyslow").collect();
            assert!(beside.is_empty(), "{when}: {beside:?} is left, {:?}", out.status);
            if seen < n {
                assert!(n > 10, "{n} calls");
                break;
            }
        }
    }
}

#[test]
fn build_whose_calls_fail_leaves_a_whole_database() {
    for (plain_names, replaces) in WAYS {
        let shelf = Shelf::new(plain_names);
        for kind in &KINDS {
            for n in 1.. {
                let mut seen = 0;
                let out = shelf.build(replaces, |call| {
                    seen += usize::from(kind.calls.contains(&call.number));
                    if seen == n && kind.calls.contains(&call.number) {
                        Verdict::Fail(kind.errors[n % kind.errors.len()])
                    } else {
                        Verdict::Go
                    }
                });
                if seen < n {
                    break;
                }
                let when = format!("{} {n}", kind.name);
                // A build that could not read all says so, and the database does as well.
                let new = said(&out).contains("note: ") || shelf.is_whole(replaces, &when);
                match out.status.code() {
                    // A build that says nothing has written all, or has recorded in the database what is missing.
                    Some(0) => {
                        assert!(new || said(&out).contains("note: "), "{when}: another database, and not a word")
                    }
                    Some(1) => assert_eq!(said(&out).lines().count(), 1, "{when}: {}", said(&out)),
                    _ => panic!("{when}: {:?}: {}", out.status, said(&out)),
                }
                let beside: Vec<_> = shelf.names().into_iter().filter(|n| *n != "a.whyslow").collect();
                // Only who cannot remove it leaves it.
                assert!(beside.is_empty() || kind.name == "rename", "{when}: {beside:?} is left");
            }
        }
    }
}
