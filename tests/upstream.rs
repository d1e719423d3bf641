//! Defects of libraries that whyslow works around, small enough to be reported. A test here fails once the library has
//! mended it: then the way around can go.
use crossterm::event::{Event, read};
use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use std::io::{Read, Write};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Set where this program runs in the terminal that the test below made.
const INSIDE: &str = "WHYSLOW_PRINT_KEYS";

/// The program of the reproduction: it prints each key that it is given. By itself it is no test.
#[test]
fn print_keys() {
    if std::env::var_os(INSIDE).is_none() {
        return;
    }
    crossterm::terminal::enable_raw_mode().unwrap();
    print!("begun\r\n");
    loop {
        if let Event::Key(key) = read().unwrap() {
            print!("key {}\r\n", key.code);
        }
    }
}

/// A terminal in which [`print_keys`] runs.
struct Terminal {
    child: Box<dyn portable_pty::Child + Send + Sync>,
    keys: Box<dyn Write + Send>,
    said: Arc<Mutex<String>>,
    _master: Box<dyn portable_pty::MasterPty + Send>,
}

impl Terminal {
    fn new() -> Terminal {
        let pty = native_pty_system().openpty(PtySize { rows: 24, cols: 80, pixel_width: 0, pixel_height: 0 }).unwrap();
        let mut command = CommandBuilder::new(std::env::current_exe().unwrap());
        command.args(["upstream::print_keys", "--exact", "--nocapture"]);
        command.env("TERM", "xterm-256color");
        command.env(INSIDE, "1");
        let child = pty.slave.spawn_command(command).unwrap();
        let (keys, mut reader) = (pty.master.take_writer().unwrap(), pty.master.try_clone_reader().unwrap());
        let said = Arc::new(Mutex::new(String::new()));
        let heard = Arc::clone(&said);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(n) = reader.read(&mut bytes)
                && n > 0
            {
                heard.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..n]));
            }
        });
        let terminal = Terminal { child, keys, said, _master: pty.master };
        assert!(terminal.says("begun", Duration::from_secs(60)), "it does not begin");
        terminal
    }

    fn send(&mut self, bytes: &str) {
        self.keys.write_all(bytes.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    fn says(&self, what: &str, within: Duration) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < within {
            if self.said.lock().unwrap().contains(what) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        false
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// crossterm's parser waits for the byte with which it expects a sequence to end, and for no other, without limit: keys
/// after a cut-off or unknown sequence are taken for its rest, Ctrl-C included. ECMA-48 ends a control sequence at
/// any byte from 0x40 to 0x7e, so `q` would end the first two; a paste would need a limit of time. `tui/keyboard/`
/// has both.
#[test]
fn crossterm_takes_no_key_after_a_sequence_that_is_cut_off() {
    let (soon, long) = (Duration::from_secs(60), Duration::from_millis(1500));
    for sequence in ["\x1b[?", "\x1b[<", "\x1b[200~cut off"] {
        let mut terminal = Terminal::new();
        terminal.send("a");
        assert!(terminal.says("key a", soon), "{sequence:?}: no key at all");
        terminal.send(sequence);
        for key in ["q", "x", "\x03", "q"] {
            std::thread::sleep(Duration::from_millis(100));
            terminal.send(key);
        }
        assert!(!terminal.says("key q", long), "crossterm has mended {sequence:?}: see tui/keyboard/");
    }
    // The same keys without it.
    let mut terminal = Terminal::new();
    terminal.send("q");
    assert!(terminal.says("key q", soon));
}
