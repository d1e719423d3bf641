//! The pictures of the README and of PRODUCT.md are what the program draws today, over recordings in this repository.
//!
//! The real binary runs in a terminal emulator, whose cells become a picture as "save screen" draws it.
//! `WHYSLOW_WRITE_PICTURES=1 cargo test --test all pictures::` writes the pictures anew.

use crate::support::{ask, pty_shell};
use pty_shell::PtyShell;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use std::path::Path;
use std::time::Duration;
use whyslow::parts::tui::svg::{Ground, picture};

/// A picture, and the way to its screen.
struct Picture {
    file: &'static str,
    /// Columns and lines of the terminal.
    size: (u16, u16),
    /// The words after `whyslow`.
    words: &'static str,
    /// Keys, each with a text that is on the screen after it.
    keys: &'static [(&'static str, &'static str)],
}

const PICTURES: [Picture; 4] = [
    Picture {
        file: "docs/interface.svg",
        size: (120, 36),
        words: "fixtures/traces/lock-contention --symbols fixtures/traces/lock-contention/bin",
        keys: &[("", "CPU use (r)"), ("\r", "▌"), ("l", "serialize_entries")],
    },
    Picture {
        file: "docs/timeline.svg",
        size: (120, 30),
        words: "fixtures/traces/lock-contention --symbols fixtures/traces/lock-contention/bin",
        keys: &[("v", "of typical length"), ("o", "meanwhile")],
    },
    Picture {
        file: "docs/callees-first.svg",
        size: (120, 30),
        words: "fixtures/traces/cpu-contention --symbols fixtures/traces/cpu-contention/bin",
        keys: &[("I", "callees first, by"), ("l", "▾"), ("", "CPU use (r)")],
    },
    Picture {
        file: "docs/anomalies.svg",
        size: (150, 26),
        words: "fixtures/archives/late_sender/trace",
        keys: &[("3", "path 1 of")],
    },
];

fn color(color: vt100::Color) -> Color {
    match color {
        vt100::Color::Default => Color::Reset,
        vt100::Color::Idx(index) => Color::Indexed(index),
        vt100::Color::Rgb(r, g, b) => Color::Rgb(r, g, b),
    }
}

/// The cells of a terminal.
fn buffer(screen: &vt100::Screen) -> Buffer {
    let (lines, columns) = screen.size();
    let mut buffer = Buffer::empty(Rect::new(0, 0, columns, lines));
    for y in 0..lines {
        for x in 0..columns {
            let Some(cell) = screen.cell(y, x).filter(|cell| cell.has_contents()) else { continue };
            let modifiers = [
                (cell.bold(), Modifier::BOLD),
                (cell.dim(), Modifier::DIM),
                (cell.italic(), Modifier::ITALIC),
                (cell.underline(), Modifier::UNDERLINED),
                (cell.inverse(), Modifier::REVERSED),
            ];
            let modifier = modifiers.iter().filter(|(set, _)| *set).map(|(_, modifier)| *modifier).collect();
            let style = Style::new().fg(color(cell.fgcolor())).bg(color(cell.bgcolor())).add_modifier(modifier);
            buffer[(x, y)].set_symbol(cell.contents()).set_style(style);
        }
    }
    buffer
}

fn drawn(wanted: &Picture) -> String {
    let mut shell = PtyShell::new(wanted.size.0, wanted.size.1);
    let program = Path::new(ask::PROGRAM);
    let folder = program.parent().unwrap().display();
    shell.send(&format!("PATH={folder}:$PATH; cd {}; clear; echo rea''dy\r", env!("CARGO_MANIFEST_DIR")));
    shell.wait("ready");
    shell.send(&format!("COLORTERM=truecolor whyslow --fresh --theme dark {}\r", wanted.words));
    shell.until("an answer", |shell| shell.is_alternate() && shell.contents().contains("\n▌ "));
    for (keys, shown) in wanted.keys {
        shell.send(keys);
        shell.wait(shown);
        // The next key is about the screen that the user sees.
        std::thread::sleep(Duration::from_millis(300));
    }
    // Nothing more is written.
    let written = |shell: &PtyShell| *shell.read.lock().unwrap();
    shell.until("a still screen", |shell| {
        let before = written(shell);
        std::thread::sleep(Duration::from_millis(600));
        written(shell) == before
    });
    let screen = shell.screen.lock().unwrap().screen().clone();
    shell.send("\x1b");
    std::thread::sleep(Duration::from_millis(300));
    shell.send("q");
    shell.until("shell", |shell| !shell.is_alternate());
    picture(&buffer(&screen), Ground::DARK)
}

#[test]
fn pictures_show_what_the_program_draws() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    let documents =
        ["README.md", "docs/PRODUCT.md"].map(|name| std::fs::read_to_string(repository.join(name)).unwrap());
    for wanted in &PICTURES {
        let path = repository.join(wanted.file);
        let drawn = drawn(wanted);
        if std::env::var_os("WHYSLOW_WRITE_PICTURES").is_some() {
            std::fs::write(&path, &drawn).unwrap();
        }
        let same = std::fs::read_to_string(&path).unwrap_or_default() == drawn;
        assert!(same, "{}: WHYSLOW_WRITE_PICTURES=1 cargo test --test all pictures::", wanted.file);
        let name = wanted.file.trim_start_matches("docs/");
        assert!(documents.iter().any(|text| text.contains(name)), "no document shows {name}");
    }
}
