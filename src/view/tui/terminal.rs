//! The terminal: taken over at the start, given back whatever happens.
//!
//! Ways out, and who gives the terminal back: the end of the program and errors ([`Terminal`]'s `Drop`); a panic of
//! the interface (the hook; a panic of a background thread is reported by its job instead, and must not tear the
//! screen down); SIGTERM, SIGHUP, SIGINT, SIGQUIT (told to the loop, which leaves and dies by the same signal; if the
//! loop does not answer in time the watching thread does it); Ctrl-Z and SIGTSTP (leave, stop, come back at `fg`);
//! SIGCONT after a stop from outside (the shell may have changed the terminal: everything is set and drawn again).
//! Leaving is idempotent and writes nothing when there is nothing to give back.

use crossterm::cursor::{Hide, Show};
use crossterm::event::{DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture};
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen};
use crossterm::{execute, queue};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals;
use std::io::{self, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// True while the terminal is ours. Process-wide because the terminal is.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// What a signal asks of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// Leave and die by this signal.
    Die(i32),
    /// Stop until `fg`.
    Suspend,
    /// The process runs again after a stop.
    Continued,
}

/// The terminal while it is ours.
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
        crossterm::terminal::enable_raw_mode()?;
        TAKEN.store(true, Ordering::SeqCst);
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
        crossterm::terminal::size().unwrap_or((80, 24))
    }

    /// Set everything again: somebody else had the terminal.
    pub fn retake(&mut self) -> io::Result<()> {
        // Raw mode is only entered from the state before it, so that leaving restores that state.
        crossterm::terminal::disable_raw_mode()?;
        self.take()
    }

    /// Give the terminal back, stop until `fg`, take it over again.
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

/// Give the terminal back. Errors are of no use here: the terminal may be gone.
fn leave() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut out = io::stdout();
    // The scroll region and the attributes are ours too.
    let _ = out.write_all(b"\x1b[r\x1b[m");
    let _ = execute!(out, DisableMouseCapture, DisableBracketedPaste, LeaveAlternateScreen, Show);
    let _ = crossterm::terminal::disable_raw_mode();
}

/// Give the terminal back and die by the signal, so that the parent sees what happened.
pub fn die_by(signal: i32) -> ! {
    leave();
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
            // Else a job panicked under the running interface: its result says so on the screen.
        }));
    });
}

/// Watch for signals on a thread of its own and tell the loop.
pub fn watch_signals(tell: impl Fn(Told) + Send + 'static) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGTSTP, SIGCONT])?;
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        for signal in signals.forever() {
            match signal {
                SIGTSTP => tell(Told::Suspend),
                SIGCONT => tell(Told::Continued),
                deadly => {
                    tell(Told::Die(deadly));
                    // The loop may hang in a write to a terminal that takes nothing.
                    std::thread::sleep(Duration::from_millis(500));
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
    fn a_panic_gives_the_terminal_back() {
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
