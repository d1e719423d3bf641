//! The real program in a real terminal (a pty, looked at through a terminal emulator): it starts, takes keys and new
//! sizes, and gives the terminal back whatever ends or stops it.
//!
//! A shell runs in the pty as at a user's desk, so that stopping and `fg` are those of a real shell, and `stty` tells
//! whether the terminal is as it was.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/desk.rs"]
mod desk;

use desk::Desk;
use portable_pty::PtySize;
use std::time::Duration;

/// The settings of the terminal, as `stty` writes them. Each name once.
fn settings(desk: &mut Desk, name: &str) -> String {
    desk.send(&format!("stty -g > {name}; echo {name} wri''tten\r"));
    desk.wait(&format!("{name} written"));
    std::fs::read_to_string(desk.folder.path().join(name)).unwrap()
}

/// Start the program and wait for its answer.
fn start(desk: &mut Desk) {
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/traces/lock-contention");
    let program = env!("CARGO_BIN_EXE_whyslow");
    desk.send(&format!("clear; sh -c 'echo $$ > pid; exec {program} {trace} --symbols {trace}/bin'\r"));
    desk.wait("Flame tree");
    desk.wait("expensive_flush");
}

fn pid(desk: &Desk) -> String {
    std::fs::read_to_string(desk.folder.path().join("pid")).unwrap().trim().to_owned()
}

fn signal(desk: &Desk, name: &str) {
    let sent = std::process::Command::new("kill").args([name, &pid(desk)]).status().unwrap();
    assert!(sent.success());
}

/// The program has ended with this status, and the shell has its screen back.
fn has_ended(desk: &mut Desk, status: i32) {
    is_back(desk);
    desk.send("echo ended with $?.\r");
    desk.wait(&format!("ended with {status}."));
}

/// The shell has its screen back and waits for a command.
fn is_back(desk: &mut Desk) {
    desk.until("shell", |d| !d.is_alternate() && d.contents().trim_end().ends_with("desk$"));
    let screen = desk.screen.lock().unwrap();
    let screen = screen.screen();
    assert!(!screen.hide_cursor() && !screen.bracketed_paste());
    assert!(!screen.contents().contains("Flame tree"), "{}", screen.contents());
}

#[test]
fn keys_sizes_and_quit() {
    let mut desk = Desk::new(80, 24);
    let before = settings(&mut desk, "before");
    start(&mut desk);
    assert!(desk.is_alternate());
    desk.send("1");
    desk.wait("duration");
    desk.send("?");
    desk.wait("Everywhere");
    desk.send("\x1b");
    desk.until("help closed", |d| !d.contents().contains("Everywhere"));
    // A paste is text and no keys: nothing quits.
    desk.send("\x1b[200~q\x1b[201~");
    desk.send("2/");
    desk.wait("search >");
    desk.send("\x1b[200~flush\x1b[201~\r");
    desk.wait("match 1 of");
    let size = PtySize { rows: 60, cols: 200, pixel_width: 0, pixel_height: 0 };
    desk.screen.lock().unwrap().screen_mut().set_size(60, 200);
    desk.pty.resize(size).unwrap();
    desk.wait("1 Histograms ─────");
    desk.send("q");
    has_ended(&mut desk, 0);
    assert_eq!(settings(&mut desk, "after"), before);
}

/// The colour of a text on the screen.
fn colour(desk: &Desk, text: &str) -> vt100::Color {
    let screen = desk.screen.lock().unwrap();
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

/// Two terminals, one light and one dark, answer when they are asked, while somebody types; a third never does.
#[test]
fn a_light_ground_is_asked_for_and_no_key_is_lost() {
    let mut colours = Vec::new();
    for answer in ["\x1b]11;rgb:ffff/ffff/ffff\x07", "\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\", ""] {
        let mut desk = Desk::new(80, 24);
        let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/traces/lock-contention");
        desk.send(&format!("clear; {} {trace} --symbols {trace}/bin\r", env!("CARGO_BIN_EXE_whyslow")));
        desk.until("question", |d| *d.asked.lock().unwrap() == 1);
        // The first key closes nothing, the second asks for help: it comes although the answer stands between.
        desk.send(&format!("2{answer}?"));
        desk.wait("Everywhere");
        desk.send("\x1b");
        desk.until("help closed", |d| !d.contents().contains("Everywhere"));
        desk.wait("expensive_flush");
        assert!(!desk.contents().contains("rgb:"), "{}", desk.contents());
        colours.push(colour(&desk, "┄"));
        desk.send("q");
        is_back(&mut desk);
        assert!(!desk.contents().contains("rgb"), "{}", desk.contents());
    }
    assert!(colours[0] != colours[1] && colours[1] == colours[2], "{colours:?}");
}

/// Whoever chooses a theme is not asked for.
#[test]
fn a_chosen_theme_asks_for_nothing() {
    let mut desk = Desk::new(80, 24);
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/traces/lock-contention");
    desk.send(&format!("clear; {} --theme light {trace} --symbols {trace}/bin\r", env!("CARGO_BIN_EXE_whyslow")));
    desk.wait("expensive_flush");
    desk.send("q");
    is_back(&mut desk);
    assert_eq!(*desk.asked.lock().unwrap(), 0);
}

/// A terminal without a cursor gets the answer in lines; a locale without UTF-8 gets ASCII.
#[test]
fn a_terminal_gets_what_it_can_show() {
    let mut desk = Desk::new(80, 24);
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/traces/lock-contention");
    let program = env!("CARGO_BIN_EXE_whyslow");
    desk.send(&format!("clear; TERM=dumb {program} {trace}\r"));
    desk.wait("Kinds of slow executions");
    assert!(!desk.is_alternate());
    for setting in ["LC_ALL=C", "TERM=linux"] {
        desk.send(&format!("clear; {setting} {program} {trace} --symbols {trace}/bin\r"));
        desk.wait("expensive_flush");
        desk.until("frame", |desk| desk.is_alternate());
        assert!(desk.contents().is_ascii(), "{setting}: {}", desk.contents());
        desk.send("q");
        is_back(&mut desk);
    }
}

#[test]
fn deadly_signals_give_the_terminal_back() {
    for (name, status) in [("-TERM", 143), ("-HUP", 129), ("-INT", 130)] {
        let mut desk = Desk::new(80, 24);
        let before = settings(&mut desk, "before");
        start(&mut desk);
        signal(&desk, name);
        has_ended(&mut desk, status);
        assert_eq!(settings(&mut desk, "after"), before, "{name}");
    }
}

#[test]
fn stopping_and_coming_back() {
    let mut desk = Desk::new(80, 24);
    let before = settings(&mut desk, "before");
    start(&mut desk);
    for (i, stop) in ["\x1a", "signal"].into_iter().enumerate() {
        match stop {
            "signal" => signal(&desk, "-TSTP"),
            keys => desk.send(keys),
        }
        is_back(&mut desk);
        desk.wait("Stopped");
        assert_eq!(settings(&mut desk, &format!("stopped{i}")), before);
        desk.send("fg\r");
        desk.until("the interface", |d| d.is_alternate() && d.contents().contains("expensive_flush"));
        desk.send("?");
        desk.wait("Everywhere");
        desk.send("?");
        desk.until("help closed", |d| !d.contents().contains("Everywhere"));
    }
    desk.send("q");
    is_back(&mut desk);
    assert_eq!(settings(&mut desk, "after"), before);
}

#[test]
fn a_key_costs_few_bytes() {
    for (columns, lines, limit) in [(80, 24, 1024), (200, 60, 4096)] {
        let mut desk = Desk::new(columns, lines);
        start(&mut desk);
        // What the analysis still had to tell has been drawn when nothing comes any more.
        let settled = |desk: &Desk| loop {
            let before = *desk.read.lock().unwrap();
            std::thread::sleep(Duration::from_millis(150));
            if *desk.read.lock().unwrap() == before {
                return before;
            }
        };
        let mut last = settled(&desk);
        for key in ["j", "j", "j", "j", "j", "j", "k", "l", "j", "j", "j", "h", "\x1b[6~", "\x1b[5~"] {
            desk.send(key);
            let now = settled(&desk);
            assert!(now - last <= limit, "{columns}x{lines}: {key:?} costs {} bytes", now - last);
            last = now;
        }
        desk.send("q");
        has_ended(&mut desk, 0);
    }
}

/// After each of these a reader that waits for one particular byte takes no key any more, Ctrl-C and `q` included:
/// crossterm 0.29 does so. They come from terminals that answer late, from pastes that are cut off, and from Esc and another
/// key that a slow line sends together.
#[test]
fn nothing_that_is_sent_makes_the_keyboard_deaf() {
    let mut desk = Desk::new(80, 24);
    start(&mut desk);
    for sent in ["\x1b[?", "\x1b[<", "\x1b[M", "\x1b[200~cut off", "\x1b[?62;1", "\x1b]10;rgb:", "\x1bP", "\x1b[<0;1"] {
        desk.send(sent);
        // Longer than the longest of its patience.
        std::thread::sleep(Duration::from_millis(2000));
        desk.send("?");
        desk.wait("Everywhere");
        desk.send("\x1b");
        desk.until("help closed", |d| !d.contents().contains("Everywhere"));
    }
    desk.send("\x1b[?");
    desk.send("\x03");
    is_back(&mut desk);
}

/// How a terminal takes nothing: nobody reads its other side any more, or its output was stopped as by Ctrl-S.
#[derive(Clone, Copy, Debug)]
enum Stalled {
    Unread,
    Stopped,
}

/// The program in a terminal that takes nothing any more; with what keeps that terminal open.
fn stalled(how: Stalled) -> (Box<dyn portable_pty::Child + Send + Sync>, Box<dyn portable_pty::MasterPty + Send>) {
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/traces/lock-contention");
    let size = PtySize { rows: 200, cols: 500, pixel_width: 0, pixel_height: 0 };
    let pty = portable_pty::native_pty_system().openpty(size).unwrap();
    let mut command = portable_pty::CommandBuilder::new(env!("CARGO_BIN_EXE_whyslow"));
    command.args([trace, "--theme", "dark"]);
    command.env("TERM", "xterm-256color");
    let mut child = pty.slave.spawn_command(command).unwrap();
    let mut keys = pty.master.take_writer().unwrap();
    let mut reader = pty.master.try_clone_reader().unwrap();
    if matches!(how, Stalled::Stopped) {
        // It is up and has drawn something.
        std::io::Read::read_exact(&mut reader, &mut [0; 2000]).unwrap();
        let tty = std::fs::File::options().read(true).write(true).open(pty.master.tty_name().unwrap()).unwrap();
        rustix::termios::tcflow(tty, rustix::termios::Action::OOff).unwrap();
    }
    // Nobody reads: redrawing fills what the kernel keeps for the reader.
    for _ in 0..60 {
        std::thread::sleep(Duration::from_millis(30));
        std::io::Write::write_all(&mut keys, b"\x0c").unwrap();
    }
    assert!(child.try_wait().unwrap().is_none(), "it should still run");
    (child, pty.master)
}

/// How long something takes to end; it does within ten seconds.
fn ends(what: &str, mut has_ended: impl FnMut() -> bool) -> Duration {
    let sent = std::time::Instant::now();
    while !has_ended() {
        assert!(sent.elapsed() < Duration::from_secs(10), "{what}: still there");
        std::thread::sleep(Duration::from_millis(2));
    }
    sent.elapsed()
}

/// Tests run on busy machines as well, where nobody is there to see the end when it comes: one of these tries has to be soon.
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
fn signals_end_it_while_the_terminal_takes_nothing() {
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

/// The terminal is the shell's while the program is stopped: woken to be killed, it dies and leaves the terminal alone.
#[test]
fn signals_end_it_while_it_is_stopped() {
    for stop in ["-TSTP", "-STOP"] {
        // INT alone wakes nobody, and no shell does it for INT.
        for name in ["TERM", "HUP"] {
            soon(&format!("{name} after {stop}"), || {
                let mut desk = Desk::new(80, 24);
                let before = settings(&mut desk, "before");
                start(&mut desk);
                let pid = pid(&desk);
                signal(&desk, stop);
                desk.wait("Stopped");
                // The shell takes the screen back by itself only where the program did not.
                desk.send("stty sane; clear\r");
                let sane = settings(&mut desk, "stopped");
                // bash wakes the job that it kills.
                desk.send(&format!("kill -{name} %1\r"));
                let gone = || !std::path::Path::new("/proc").join(&pid).exists();
                let took = ends(name, || {
                    // Whoever sits there types on.
                    desk.send("\r");
                    std::thread::sleep(Duration::from_millis(20));
                    gone()
                });
                assert_eq!(settings(&mut desk, "after"), sane, "{before}");
                took
            });
        }
    }
}
