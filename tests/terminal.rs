//! The real program in a real terminal (a pty, looked at through a terminal emulator): it starts, takes keys and new
//! sizes, and restores the terminal whatever ends or stops it.
//!
//! A shell runs in the pty as on a user's machine, so that stopping and `fg` are those of a real shell, and `stty`
//! shows whether the terminal is as it was.

use crate::support::{ask, pty_shell};
use portable_pty::PtySize;
use pty_shell::PtyShell;
use std::time::Duration;

/// The settings of the terminal, as `stty` writes them. Each name once.
fn settings(shell: &mut PtyShell, name: &str) -> String {
    shell.send(&format!("stty -g > {name}; echo {name} wri''tten\r"));
    shell.wait(&format!("{name} written"));
    std::fs::read_to_string(shell.folder.path().join(name)).unwrap()
}

/// Start the program and wait for its answer.
fn start(shell: &mut PtyShell) {
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/traces/lock-contention");
    let program = ask::PROGRAM;
    shell.send(&format!("clear; sh -c 'echo $$ > pid; exec {program} {trace} --symbols {trace}/bin'\r"));
    shell.wait("Flame tree");
    shell.wait("expensive_flush");
}

fn pid(shell: &PtyShell) -> String {
    std::fs::read_to_string(shell.folder.path().join("pid")).unwrap().trim().to_owned()
}

fn signal(shell: &PtyShell, name: &str) {
    let sent = std::process::Command::new("kill").args([name, &pid(shell)]).status().unwrap();
    assert!(sent.success());
}

/// The program has ended with this status, and the shell has its screen back.
fn has_ended(shell: &mut PtyShell, status: i32) {
    is_back(shell);
    shell.send("echo ended with $?.\r");
    shell.wait(&format!("ended with {status}."));
}

/// The shell has its screen back and waits for a command.
fn is_back(shell: &mut PtyShell) {
    shell.until("shell", |d| !d.is_alternate() && d.contents().trim_end().ends_with("desk$"));
    let screen = shell.screen.lock().unwrap();
    let screen = screen.screen();
    assert!(!screen.hide_cursor() && !screen.bracketed_paste());
    assert!(!screen.contents().contains("Flame tree"), "{}", screen.contents());
}

#[test]
fn keys_sizes_and_quit() {
    let mut shell = PtyShell::new(80, 24);
    let before = settings(&mut shell, "before");
    start(&mut shell);
    assert!(shell.is_alternate());
    shell.send("1");
    shell.wait("duration");
    shell.send("?");
    shell.wait("── Help");
    shell.send("\x1b");
    shell.until("help closed", |d| !d.contents().contains("── Help"));
    // A paste is text and no keys: nothing quits.
    shell.send("\x1b[200~q\x1b[201~");
    shell.send("2/");
    shell.wait("search >");
    shell.send("\x1b[200~flush\x1b[201~\r");
    shell.wait("match 1 of");
    let size = PtySize { rows: 60, cols: 200, pixel_width: 0, pixel_height: 0 };
    shell.screen.lock().unwrap().screen_mut().set_size(60, 200);
    shell.pty.resize(size).unwrap();
    shell.wait("1 Histograms ─────");
    shell.send("q");
    has_ended(&mut shell, 0);
    assert_eq!(settings(&mut shell, "after"), before);
}

/// The colour of a text on the screen.
fn colour(shell: &PtyShell, text: &str) -> vt100::Color {
    let screen = shell.screen.lock().unwrap();
    let screen = screen.screen();
    let (columns, lines) = (screen.size().1, screen.size().0);
    for line in 0..lines {
        let row: String = (0..columns).map(|c| screen.cell(line, c).map_or("", |cell| cell.contents())).collect();
        if let Some(at) = row.find(text) {
            let column = row[..at].chars().count() as u16;
            return screen.cell(line, column).unwrap().fgcolor();
        }
    }
    panic!("no {text}")
}

/// Two terminals, one light and one dark, answer the query for their background while the user types; a third never
/// does.
#[test]
fn background_query_chooses_the_theme_and_loses_no_key() {
    let mut colours = Vec::new();
    for answer in ["\x1b]11;rgb:ffff/ffff/ffff\x07", "\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\", ""] {
        let mut shell = PtyShell::new(80, 24);
        let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/traces/lock-contention");
        shell.send(&format!("clear; {} {trace} --symbols {trace}/bin\r", ask::PROGRAM));
        shell.until("query", |d| *d.queries.lock().unwrap() == 1);
        // The first key changes nothing, the second opens the help: it is taken although the answer precedes it.
        shell.send(&format!("2{answer}?"));
        shell.wait("── Help");
        shell.send("\x1b");
        shell.until("help closed", |d| !d.contents().contains("── Help"));
        shell.wait("expensive_flush");
        // A screen is written colour by colour.
        shell.wait("┄");
        assert!(!shell.contents().contains("rgb:"), "{}", shell.contents());
        colours.push(colour(&shell, "┄"));
        shell.send("q");
        is_back(&mut shell);
        assert!(!shell.contents().contains("rgb"), "{}", shell.contents());
    }
    assert!(colours[0] != colours[1] && colours[1] == colours[2], "{colours:?}");
}

/// With a chosen theme the background does not matter.
#[test]
fn chosen_theme_sends_no_background_query() {
    let mut shell = PtyShell::new(80, 24);
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/traces/lock-contention");
    shell.send(&format!("clear; {} --theme light {trace} --symbols {trace}/bin\r", ask::PROGRAM));
    shell.wait("expensive_flush");
    shell.send("q");
    is_back(&mut shell);
    assert_eq!(*shell.queries.lock().unwrap(), 0);
}

/// A terminal without a cursor gets the answer in lines; a locale without UTF-8 gets ASCII.
#[test]
fn dumb_terminals_get_lines_and_others_ascii() {
    let mut shell = PtyShell::new(80, 24);
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/traces/lock-contention");
    let program = ask::PROGRAM;
    shell.send(&format!("clear; TERM=dumb {program} {trace}\r"));
    shell.wait("Caveats");
    assert!(!shell.is_alternate());
    for setting in ["LC_ALL=C", "TERM=linux"] {
        shell.send(&format!("clear; {setting} {program} {trace} --symbols {trace}/bin\r"));
        shell.wait("expensive_flush");
        shell.until("frame", |shell| shell.is_alternate());
        assert!(shell.contents().is_ascii(), "{setting}: {}", shell.contents());
        shell.send("q");
        is_back(&mut shell);
    }
}

#[test]
fn deadly_signals_restore_the_terminal() {
    for (name, status) in [("-TERM", 143), ("-HUP", 129), ("-INT", 130)] {
        let mut shell = PtyShell::new(80, 24);
        let before = settings(&mut shell, "before");
        start(&mut shell);
        signal(&shell, name);
        has_ended(&mut shell, status);
        assert_eq!(settings(&mut shell, "after"), before, "{name}");
    }
}

#[test]
fn stop_and_fg_restore_and_retake_the_terminal() {
    let mut shell = PtyShell::new(80, 24);
    let before = settings(&mut shell, "before");
    start(&mut shell);
    for (i, stop) in ["\x1a", "signal"].into_iter().enumerate() {
        match stop {
            "signal" => signal(&shell, "-TSTP"),
            keys => shell.send(keys),
        }
        is_back(&mut shell);
        shell.wait("Stopped");
        assert_eq!(settings(&mut shell, &format!("stopped{i}")), before);
        shell.send("fg\r");
        shell.until("the interface", |d| d.is_alternate() && d.contents().contains("expensive_flush"));
        shell.send("?");
        shell.wait("── Help");
        shell.send("?");
        shell.until("help closed", |d| !d.contents().contains("── Help"));
    }
    shell.send("q");
    is_back(&mut shell);
    assert_eq!(settings(&mut shell, "after"), before);
}

#[test]
fn a_key_costs_few_bytes() {
    for (columns, lines, limit) in [(80, 24, 1024), (200, 60, 4096)] {
        let mut shell = PtyShell::new(columns, lines);
        start(&mut shell);
        if columns == 200 {
            // The histograms and the strips come last; a machine with other work may pause before them.
            shell.wait("· neither");
            shell.wait("CPU use (r)");
        }
        // All results of the analysis are on the screen once the program writes nothing more.
        let settled = |shell: &PtyShell| loop {
            let before = *shell.read.lock().unwrap();
            std::thread::sleep(Duration::from_millis(150));
            if *shell.read.lock().unwrap() == before {
                return before;
            }
        };
        let mut last = settled(&shell);
        for key in ["j", "j", "j", "j", "j", "j", "j", "k", "l", "j", "j", "j", "h", "\x1b[6~", "\x1b[5~"] {
            shell.send(key);
            let now = settled(&shell);
            assert!(now - last <= limit, "{columns}x{lines}: {key:?} costs {} bytes", now - last);
            last = now;
        }
        shell.send("q");
        has_ended(&mut shell, 0);
    }
}

/// After each of these a reader that waits for one particular byte takes no key, neither Ctrl-C nor `q`:
/// crossterm 0.29 does so. They come from terminals that answer late, from pastes that are cut off, and from Esc and
/// another key that a slow line sends together.
#[test]
fn no_sequence_swallows_the_keys_after_it() {
    let mut shell = PtyShell::new(80, 24);
    start(&mut shell);
    for sent in ["\x1b[?", "\x1b[<", "\x1b[M", "\x1b[200~cut off", "\x1b[?62;1", "\x1b]10;rgb:", "\x1bP", "\x1b[<0;1"] {
        shell.send(sent);
        // Longer than the program waits for the rest of any sequence.
        std::thread::sleep(Duration::from_millis(2000));
        shell.send("?");
        shell.wait("── Help");
        shell.send("\x1b");
        shell.until("help closed", |d| !d.contents().contains("── Help"));
    }
    shell.send("\x1b[?");
    shell.send("\x03");
    is_back(&mut shell);
}

/// A terminal that takes no bytes: no process reads its other side, or its output was stopped as by Ctrl-S.
#[derive(Clone, Copy, Debug)]
enum Stalled {
    Unread,
    Stopped,
}

/// The program in a terminal that takes no bytes, and the handle that keeps the terminal open.
fn stalled(how: Stalled) -> (Box<dyn portable_pty::Child + Send + Sync>, Box<dyn portable_pty::MasterPty + Send>) {
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/traces/lock-contention");
    let size = PtySize { rows: 200, cols: 500, pixel_width: 0, pixel_height: 0 };
    let pty = portable_pty::native_pty_system().openpty(size).unwrap();
    let mut command = portable_pty::CommandBuilder::new(ask::PROGRAM);
    command.args([trace, "--theme", "dark"]);
    command.env("TERM", "xterm-256color");
    // Without a folder for its state it keeps nothing.
    command.env("XDG_STATE_HOME", "/dev/null/none");
    let mut child = pty.slave.spawn_command(command).unwrap();
    let mut keys = pty.master.take_writer().unwrap();
    let mut reader = pty.master.try_clone_reader().unwrap();
    if matches!(how, Stalled::Stopped) {
        // It is up and has drawn something.
        std::io::Read::read_exact(&mut reader, &mut [0; 2000]).unwrap();
        let tty = std::fs::File::options().read(true).write(true).open(pty.master.tty_name().unwrap()).unwrap();
        rustix::termios::tcflow(tty, rustix::termios::Action::OOff).unwrap();
    }
    // No process reads: redrawing fills the kernel's buffer for the reader.
    for _ in 0..60 {
        std::thread::sleep(Duration::from_millis(30));
        std::io::Write::write_all(&mut keys, b"\x0c").unwrap();
    }
    assert!(child.try_wait().unwrap().is_none(), "it should still run");
    (child, pty.master)
}

/// The time until it has ended, at most ten seconds.
fn ends(what: &str, mut has_ended: impl FnMut() -> bool) -> Duration {
    let sent = std::time::Instant::now();
    while !has_ended() {
        assert!(sent.elapsed() < Duration::from_secs(10), "{what}: still there");
        std::thread::sleep(Duration::from_millis(2));
    }
    sent.elapsed()
}

/// Tests also run on busy machines, where this process may notice the end late: one of these tries must be soon.
const TRIES: usize = 4;

fn soon(what: &str, mut once: impl FnMut() -> Duration) {
    let took: Vec<Duration> = (0..TRIES)
        .map_while({
            let mut done = false;
            move |_| {
                let took = (!done).then(&mut once)?;
                done = took < Duration::from_secs(1);
                Some(took)
            }
        })
        .collect();
    assert!(took.last().is_some_and(|t| *t < Duration::from_secs(1)), "{what}: {took:?}");
}

/// A signal ends the program within a second, whatever the terminal does.
#[test]
fn signals_end_it_while_the_terminal_takes_no_bytes() {
    for how in [Stalled::Unread, Stalled::Stopped] {
        for signal in ["TERM", "HUP", "INT"] {
            soon(&format!("{signal}, {how:?}"), || {
                let (mut child, _terminal) = stalled(how);
                let pid = child.process_id().unwrap().to_string();
                assert!(
                    std::process::Command::new("kill").args([&format!("-{signal}"), &pid]).status().unwrap().success()
                );
                ends(signal, || child.try_wait().unwrap().is_some())
            });
        }
    }
}

/// The terminal belongs to the shell while the program is stopped. Woken to be killed, it dies and leaves the terminal
/// alone.
#[test]
fn signals_end_it_while_it_is_stopped() {
    for stop in ["-TSTP", "-STOP"] {
        // INT alone does not continue a stopped process, and no shell does so for INT.
        for name in ["TERM", "HUP"] {
            soon(&format!("{name} after {stop}"), || {
                let mut shell = PtyShell::new(80, 24);
                let before = settings(&mut shell, "before");
                start(&mut shell);
                let pid = pid(&shell);
                signal(&shell, stop);
                shell.wait("Stopped");
                // The shell restores the screen only where the program did not.
                shell.send("stty sane; clear\r");
                let sane = settings(&mut shell, "stopped");
                // bash wakes the job that it kills.
                shell.send(&format!("kill -{name} %1\r"));
                let gone = || !std::path::Path::new("/proc").join(&pid).exists();
                let took = ends(name, || {
                    // The user goes on typing.
                    shell.send("\r");
                    std::thread::sleep(Duration::from_millis(20));
                    gone()
                });
                assert_eq!(settings(&mut shell, "after"), sane, "{before}");
                took
            });
        }
    }
}
