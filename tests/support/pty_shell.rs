//! A user at a terminal: a shell in a pty, watched through a terminal emulator. Each test uses a part of it.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use std::io::{Read, Write};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A shell in a pty, watched through a terminal emulator.
pub struct PtyShell {
    /// The terminal's other side.
    pub pty: Box<dyn MasterPty + Send>,
    keys: Box<dyn Write + Send>,
    /// The emulator's screen.
    pub screen: Arc<Mutex<vt100::Parser>>,
    /// Bytes that the program wrote.
    pub read: Arc<Mutex<usize>>,
    /// Queries for the background colour.
    pub queries: Arc<Mutex<usize>>,
    shell: Box<dyn Child + Send + Sync>,
    /// The folder in which the shell started.
    pub folder: tempfile::TempDir,
}

impl PtyShell {
    /// A shell on a screen of this size; the shell works in a new folder.
    pub fn new(columns: u16, lines: u16) -> PtyShell {
        let size = PtySize { rows: lines, cols: columns, pixel_width: 0, pixel_height: 0 };
        let pty = native_pty_system().openpty(size).unwrap();
        let folder = tempfile::tempdir().unwrap();
        // By default the shell itself puts pastes in brackets.
        std::fs::write(folder.path().join("inputrc"), "set enable-bracketed-paste off\n").unwrap();
        let mut command = CommandBuilder::new("bash");
        command.env("INPUTRC", folder.path().join("inputrc"));
        command.args(["--norc", "--noprofile", "-i"]);
        command.cwd(folder.path());
        // The interface keeps its state there, and not with the user who runs the tests.
        command.env("XDG_STATE_HOME", folder.path().join("state"));
        command.env("XDG_CONFIG_HOME", folder.path().join("config"));
        for (name, value) in
            [("PS1", "desk$ "), ("TERM", "xterm-256color"), ("COLORTERM", ""), ("NO_COLOR", ""), ("LC_ALL", "C.UTF-8")]
        {
            command.env(name, value);
        }
        let shell = pty.slave.spawn_command(command).unwrap();
        let screen = Arc::new(Mutex::new(vt100::Parser::new(lines, columns, 0)));
        let read = Arc::new(Mutex::new(0));
        let (theirs, counted) = (Arc::clone(&screen), Arc::clone(&read));
        let queries = Arc::new(Mutex::new(0));
        let seen = Arc::clone(&queries);
        let mut reader = pty.master.try_clone_reader().unwrap();
        std::thread::spawn(move || {
            let mut bytes = [0; 65536];
            while let Ok(n @ 1..) = reader.read(&mut bytes) {
                theirs.lock().unwrap().process(&bytes[..n]);
                *counted.lock().unwrap() += n;
                *seen.lock().unwrap() += bytes[..n].windows(7).filter(|w| *w == b"\x1b]11;?\x07").count();
            }
        });
        let keys = pty.master.take_writer().unwrap();
        let mut started = PtyShell { pty: pty.master, keys, screen, read, queries, shell, folder };
        started.wait("desk$");
        started
    }

    /// Press keys.
    pub fn send(&mut self, bytes: &str) {
        self.keys.write_all(bytes.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// The text on the screen.
    pub fn contents(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    /// A program has the screen for itself.
    pub fn is_alternate(&self) -> bool {
        self.screen.lock().unwrap().screen().alternate_screen()
    }

    /// Wait for something to hold.
    pub fn until(&self, what: &str, holds: impl Fn(&PtyShell) -> bool) {
        let start = Instant::now();
        while !holds(self) {
            assert!(start.elapsed() < Duration::from_secs(30), "no {what} on the screen:\n{}", self.contents());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Wait for a text on the screen.
    pub fn wait(&mut self, text: &str) {
        self.until(text, |shell| shell.contents().contains(text));
    }
}

impl Drop for PtyShell {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}
