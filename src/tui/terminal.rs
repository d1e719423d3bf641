//! The terminal: taken over at the start, restored whatever happens.
//!
//! The ways out, and the code that restores the terminal on each:
//! - The end of the program and errors: [`Terminal`]'s `Drop`.
//! - A panic of the interface: the panic hook. The job runner reports a panic of a background thread; it must not tear
//!   the screen down.
//! - SIGTERM, SIGHUP, SIGINT, SIGQUIT: the loop, which leaves and dies by the same signal. If the loop does not do so
//!   in time, because the terminal takes no bytes, the thread that watches for signals does it.
//! - Ctrl-Z and SIGTSTP: leave, stop, take the terminal over again at `fg`.
//! - SIGCONT after a stop from outside: the shell may have changed the terminal, so everything is set and drawn again.
//!
//! A process in the background (stopped, then killed by its shell, which wakes it for that) touches nothing: the
//! terminal belongs to the shell, and setting its modes from the background would stop the process instead. Leaving is
//! idempotent and writes nothing if the terminal is not taken. It waits for no lock: the loop may hold the lock on
//! stdout, blocked in a write, while the terminal's other side does not read. So the modes come first, which no output
//! can hold up, then the sequences through an opening of the terminal of its own that does not block; bytes that the
//! terminal does not take are dropped.

use crate::base::allocator::room_for_threads;
use crate::base::file;
use crossterm::cursor::Hide;
use crossterm::event::{EnableBracketedPaste, EnableMouseCapture};
use crossterm::terminal::EnterAlternateScreen;
use crossterm::{execute, queue};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

/// True while this process has taken the terminal over. Process-wide because the terminal is.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The modes that the terminal had. A shell may change them while this process is stopped, so they are read each time.
static MODES: Mutex<Option<Termios>> = Mutex::new(None);

/// Restores scroll region, attributes, mouse, brackets around pastes, screen, cursor. Spelled out, because a process
/// that is out of memory leaves this way too.
const LEAVING: &[u8] =
    b"\x1b[r\x1b[m\x1b[?1006l\x1b[?1015l\x1b[?1003l\x1b[?1002l\x1b[?1000l\x1b[?2004l\x1b[?1049l\x1b[?25h";

/// The thread that watches for signals ends the process within this time, however busy the machine is.
const SIGNALS_FIRST: Duration = Duration::from_millis(800);
/// The time that the loop has to end by itself.
const LOOP_FIRST: Duration = Duration::from_millis(300);

/// The time that the terminal has to accept the last bytes.
const LAST_BYTES: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// At most this many columns, or lines, and cells are drawn: no window is larger.
const MOST_SIDE: u16 = 10_000;
const MOST_CELLS: u32 = 4_000_000;

/// A signal's request to the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalRequest {
    /// Leave and die by this signal.
    Die(i32),
    /// Stop until `fg`.
    Suspend,
    /// The process runs again after a stop.
    Continued,
}

/// The terminal while this process has it.
pub struct Terminal {
    mouse: bool,
}

impl Terminal {
    /// Take the terminal over.
    pub fn enter(mouse: bool) -> io::Result<Terminal> {
        restore_on_panic();
        let terminal = Terminal { mouse };
        terminal.take()?;
        Ok(terminal)
    }

    fn take(&self) -> io::Result<()> {
        wait_for_signals();
        let modes = tcgetattr(rustix::stdio::stdin())?;
        let mut raw = modes.clone();
        *MODES.lock().unwrap_or_else(PoisonError::into_inner) = Some(modes);
        TAKEN.store(true, Ordering::SeqCst);
        raw.make_raw();
        tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &raw)?;
        let mut out = io::stdout().lock();
        queue!(out, EnterAlternateScreen, EnableBracketedPaste, Hide)?;
        if self.mouse {
            queue!(out, EnableMouseCapture)?;
        }
        out.flush()
    }

    /// Write a frame.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(bytes)?;
        out.flush()
    }

    /// Columns and lines.
    pub fn size(&self) -> (u16, u16) {
        bounded(crossterm::terminal::size().unwrap_or((80, 24)))
    }

    /// Set everything again: another process had the terminal.
    pub fn retake(&mut self) -> io::Result<()> {
        wait_for_signals();
        // Raw mode is entered from the state before it, so that leaving restores that state.
        restore_modes();
        self.take()
    }

    /// Restore the terminal, stop until `fg`, take it over again.
    pub fn suspend(&mut self) -> io::Result<()> {
        leave();
        signal_hook::low_level::emulate_default_handler(SIGTSTP)?;
        self.take()
    }

    /// Send a text to the terminal's clipboard. There is no acknowledgement.
    pub fn copy(&mut self, text: &str) -> io::Result<()> {
        execute!(io::stdout(), crossterm::clipboard::CopyToClipboard::to_clipboard_from(text))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        leave();
    }
}

/// The part of a window that is drawn.
fn bounded((columns, lines): (u16, u16)) -> (u16, u16) {
    let columns = columns.min(MOST_SIDE);
    let lines = u32::from(lines.min(MOST_SIDE)).min(MOST_CELLS / u32::from(columns.max(1)));
    (columns, lines as u16)
}

/// Restore the terminal. Errors are ignored: the terminal may be gone.
pub fn leave() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    if is_background() {
        return;
    }
    restore_modes();
    write_without_blocking(LEAVING);
}

/// Let a pending signal act before the terminal is set: a process that its shell woke to kill it dies here. One that
/// was sent to the background (`bg`) goes on to set the terminal, and is stopped again by that.
fn wait_for_signals() {
    if is_background() {
        std::thread::sleep(SIGNALS_FIRST);
    }
}

/// True if another process group has the terminal: reading from it or setting its modes would stop this process.
pub fn is_background() -> bool {
    let group = rustix::termios::tcgetpgrp(rustix::stdio::stdin());
    group.is_ok_and(|group| group != rustix::process::getpgrp())
}

/// Set the modes that the terminal had.
fn restore_modes() {
    // The lock is held only while the modes are set or read, which does not block.
    if let Some(modes) = MODES.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
        let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, modes);
    }
}

/// Write to the terminal the bytes that it takes at once, or soon.
fn write_without_blocking(mut bytes: &[u8]) {
    // Flags belong to an opening: setting them on stdout would set them for the shell too.
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let open = |path: &str| rustix::fs::open(path, flags, Mode::empty()).ok();
    let Some(terminal) = open("/proc/self/fd/1").or_else(|| open("/dev/tty")) else { return };
    while !bytes.is_empty() {
        match rustix::io::write(&terminal, bytes) {
            Ok(n) if n > 0 => bytes = bytes.get(n..).unwrap_or(&[]),
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::AGAIN) => {
                let mut ready = [PollFd::new(&terminal, PollFlags::OUT)];
                if !matches!(poll(&mut ready, Some(&LAST_BYTES)), Ok(1..)) {
                    return;
                }
            }
            _ => return,
        }
    }
}

/// Restore the terminal and die by the signal, so that the parent process sees the cause.
pub fn die_by(signal: i32) -> ! {
    leave();
    file::remove_unfinished();
    let _ = signal_hook::low_level::emulate_default_handler(signal);
    std::process::exit(128 + signal)
}

fn restore_on_panic() {
    static ONCE: Once = Once::new();
    let interface = std::thread::current().id();
    ONCE.call_once(move || {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !TAKEN.load(Ordering::SeqCst) {
                usual(info);
            } else if std::thread::current().id() == interface {
                leave();
                usual(info);
            }
            // Else a job panicked under the running interface: its result on the screen reports the panic.
        }));
    });
}

/// Watch for signals on a thread of its own; `send` gets each request.
pub fn watch_signals(send: impl Fn(SignalRequest) + Send + 'static) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGTSTP, SIGCONT])?;
    room_for_threads(1)?;
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        for signal in signals.forever() {
            match signal {
                SIGTSTP => send(SignalRequest::Suspend),
                SIGCONT => send(SignalRequest::Continued),
                deadly => {
                    send(SignalRequest::Die(deadly));
                    // The loop may hang in a write to a terminal that takes no bytes.
                    std::thread::sleep(LOOP_FIRST);
                    die_by(deadly);
                }
            }
        }
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use portable_pty::{CommandBuilder, PtySize, native_pty_system};
    use std::io::Read;

    #[test]
    fn bounded_limits_a_window_to_ten_thousand_cells_a_side() {
        assert_eq!(bounded((80, 24)), (80, 24));
        assert_eq!(bounded((10_001, 24)), (10_000, 24));
        assert_eq!(bounded((u16::MAX, u16::MAX)), (10_000, 400));
        assert_eq!(bounded((80, u16::MAX)), (80, 10_000));
        assert_eq!(bounded((0, 0)), (0, 0));
    }

    /// The other half of the test below: takes the terminal over and panics.
    #[test]
    #[ignore = "run by the test below in a terminal of its own"]
    fn takes_the_terminal_and_panics() {
        let mut terminal = Terminal::enter(true).unwrap();
        terminal.write(b"\x1b[3;5rin the alternate screen").unwrap();
        // A job's panic is no reason to leave.
        let job = std::thread::spawn(|| panic!("of a job")).join();
        assert!(job.is_err() && TAKEN.load(Ordering::SeqCst));
        panic!("of the interface");
    }

    #[test]
    fn a_panic_restores_the_terminal() {
        let pty = native_pty_system().openpty(PtySize { rows: 24, cols: 80, pixel_width: 0, pixel_height: 0 }).unwrap();
        let mut command = CommandBuilder::new(std::env::current_exe().unwrap());
        command.args(["--ignored", "--nocapture", "--test-threads=1", "takes_the_terminal_and_panics"]);
        command.env("TERM", "xterm-256color");
        command.env("RUST_BACKTRACE", "0");
        let mut child = pty.slave.spawn_command(command).unwrap();
        drop(pty.slave);
        let mut bytes = Vec::new();
        // The end of a pty is an error on Linux: what was read before it counts.
        let _ = pty.master.try_clone_reader().unwrap().read_to_end(&mut bytes);
        child.wait().unwrap();
        let mut screen = vt100::Parser::new(24, 80, 0);
        screen.process(&bytes);
        let screen = screen.screen();
        let text = screen.contents();
        assert!(!screen.alternate_screen() && !screen.hide_cursor() && !screen.bracketed_paste(), "{text}");
        assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::None);
        assert!(text.contains("of the interface") && !text.contains("of a job"), "{text}");
        assert!(!text.contains("in the alternate screen"), "{text}");
    }
}
