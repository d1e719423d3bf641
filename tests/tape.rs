//! `demo.tape` obeys the rules of VHS and plays: every `Wait` of it comes true in the real program.
//!
//! The VHS program itself is not needed: its grammar (the part that a tape may reasonably use) is small and follows
//! below, as its README and parser define it. `Wait` takes a regular expression; ours are plain text, which this test
//! checks, so that finding the text is the same as matching it.

use crate::support::{ask, pty_shell};
use pty_shell::PtyShell;
use std::time::Duration;
use whyslow::parts::tui::key_bindings::TABLE;

const KEYS: &[(&str, &str)] = &[
    ("Enter", "\r"),
    ("Escape", "\x1b"),
    ("Tab", "\t"),
    ("Space", " "),
    ("Backspace", "\x7f"),
    ("Delete", "\x1b[3~"),
    ("Insert", "\x1b[2~"),
    ("Up", "\x1b[A"),
    ("Down", "\x1b[B"),
    ("Right", "\x1b[C"),
    ("Left", "\x1b[D"),
    ("PageUp", "\x1b[5~"),
    ("PageDown", "\x1b[6~"),
];
const SETTINGS: &[&str] = &[
    "Shell",
    "FontSize",
    "FontFamily",
    "Width",
    "Height",
    "LetterSpacing",
    "LineHeight",
    "TypingSpeed",
    "Theme",
    "Padding",
    "Margin",
    "MarginFill",
    "BorderRadius",
    "WindowBar",
    "WindowBarSize",
    "Framerate",
    "PlaybackSpeed",
    "LoopOffset",
    "CursorBlink",
    "WaitTimeout",
    "WaitPattern",
];

/// A command of a tape.
#[derive(Debug, PartialEq)]
enum Command {
    Output(String),
    Require(String),
    Set(String, String),
    Type(String),
    Key(&'static str, usize),
    Sleep(Duration),
    Wait(String),
}

/// `500ms`, `2s`, `2.5s`; a number alone is seconds.
fn time(text: &str) -> Option<Duration> {
    let (number, scale) = match text.strip_suffix("ms") {
        Some(number) => (number, 0.001),
        None => (text.strip_suffix('s').unwrap_or(text), 1.0),
    };
    let seconds = number.parse::<f64>().ok()? * scale;
    (seconds.is_finite() && seconds >= 0.0).then(|| Duration::from_secs_f64(seconds))
}

/// A text between quotes of one kind, and nothing behind it.
fn quoted(text: &str) -> Option<String> {
    let quote = text.chars().next().filter(|c| ['"', '\'', '`'].contains(c))?;
    let inner = text[1..].strip_suffix(quote)?;
    (!inner.contains(quote)).then(|| inner.to_owned())
}

fn command(line: &str) -> Option<Command> {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let rest = rest.trim();
    let (name, at) = word.split_once('@').map_or((word, None), |(name, at)| (name, Some(at)));
    if at.is_some_and(|at| time(at).is_none()) {
        return None;
    }
    match name {
        "Output" => [".gif", ".mp4", ".webm", ".txt", ".ascii"]
            .iter()
            .any(|ending| rest.ends_with(ending))
            .then(|| Command::Output(rest.to_owned())),
        "Require" => (!rest.is_empty() && !rest.contains(' ')).then(|| Command::Require(rest.to_owned())),
        "Set" => {
            let (name, value) = rest.split_once(' ')?;
            let value = quoted(value).unwrap_or_else(|| value.to_owned());
            SETTINGS.contains(&name).then(|| Command::Set(name.to_owned(), value))
        }
        "Type" => quoted(rest).map(Command::Type),
        "Sleep" => time(rest).map(Command::Sleep),
        "Wait" | "Wait+Screen" | "Wait+Line" => {
            let pattern = rest.strip_prefix('/')?.strip_suffix('/')?;
            let plain = pattern.chars().all(|c| c.is_alphanumeric() || " ,:_".contains(c));
            (plain && !pattern.is_empty()).then(|| Command::Wait(pattern.to_owned()))
        }
        _ => {
            let bytes = KEYS.iter().find(|(key, _)| *key == name)?.1;
            let count = if rest.is_empty() { 1 } else { rest.parse().ok()? };
            Some(Command::Key(bytes, count))
        }
    }
}

fn tape(text: &str) -> Result<Vec<Command>, String> {
    let lines = text.lines().enumerate().map(|(i, line)| (i + 1, line.trim()));
    let meant = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let parsed = meant.map(|(number, line)| command(line).ok_or_else(|| format!("line {number}: {line}")));
    let commands = parsed.collect::<Result<Vec<Command>, String>>()?;
    let acts = |c: &Command| !matches!(c, Command::Output(_) | Command::Require(_) | Command::Set(..));
    let first = commands.iter().position(acts).unwrap_or(commands.len());
    let late =
        commands[first..].iter().find(|c| !acts(c) && !matches!(c, Command::Set(name, _) if name == "TypingSpeed"));
    match late {
        Some(late) => Err(format!("{late:?} comes after the first action: VHS ignores it")),
        None => Ok(commands),
    }
}

fn demo() -> Vec<Command> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/demo.tape");
    tape(&std::fs::read_to_string(path).unwrap()).unwrap_or_else(|wrong| panic!("demo.tape: {wrong}"))
}

#[test]
fn what_vhs_rejects_is_rejected() {
    for wrong in [
        "Home",
        "F1",
        "Type i",
        "Sleep soon",
        "Set Colour red",
        "Output demo.svg",
        "Enter twice",
        "Wait /a.*b/",
        "enter",
    ] {
        assert!(tape(wrong).is_err(), "{wrong}");
    }
    assert!(tape("Enter\nSet Width 10").is_err());
    let right = "Output a.gif\nSet Width 10\nType@50ms \"a 'b'\"\nDown@100ms 3\nSleep .5\nSet TypingSpeed 1s\nWait+Screen@9s /x/";
    assert_eq!(tape(right).unwrap().len(), 7);
}

#[test]
fn the_demo_keeps_the_rules() {
    let commands = demo();
    let has = |wanted: fn(&Command) -> bool| commands.iter().any(wanted);
    assert!(has(|c| matches!(c, Command::Output(_))) && has(|c| matches!(c, Command::Require(p) if p == "whyslow")));
    assert!(commands.iter().filter(|c| matches!(c, Command::Wait(_))).count() >= 5, "a demo waits for what it shows");
}

/// A key that is typed alone runs an action of the interface: none is named that the program does not have.
#[test]
fn typed_keys_are_keys_of_the_interface() {
    let keys = |commands: &[Command]| -> Vec<String> {
        let typed = commands.iter().filter_map(|c| if let Command::Type(text) = c { Some(text.clone()) } else { None });
        typed.filter(|text| text.chars().count() == 1).collect()
    };
    let typed = keys(&demo());
    for key in &typed {
        let has = |row: &whyslow::parts::tui::actions::KeyBinding| row.keys.split(' ').any(|of| of == key);
        assert!(TABLE.iter().any(has), "`{key}` is no key");
    }
    // It shows the screens that the documents describe.
    for key in ["i", "v", "a", "o", "F", "I", "r", "f", "u", "3", "w", "q"] {
        assert!(typed.iter().any(|of| of == key), "`{key}` is not shown");
    }
}

#[test]
fn the_demo_plays() {
    // The cells of a terminal of 1240 x 760 pixels with letters of 15.
    let mut shell = PtyShell::new(132, 38);
    let program = std::path::Path::new(ask::PROGRAM);
    let folder = program.parent().unwrap().display();
    shell.send(&format!("PATH={folder}:$PATH; cd {}; clear; echo rea''dy\r", env!("CARGO_MANIFEST_DIR")));
    shell.wait("ready");
    for command in demo() {
        match command {
            Command::Type(text) => shell.send(&text),
            Command::Key(bytes, count) => {
                // The pause after an escape distinguishes it from the beginning of a sequence.
                for _ in 0..count {
                    shell.send(bytes);
                    std::thread::sleep(Duration::from_millis(60));
                }
            }
            // No person watches: the waits alone keep the tape and the program in step.
            Command::Sleep(_) => std::thread::sleep(Duration::from_millis(60)),
            Command::Wait(text) => {
                // The screen breaks lines where a sentence does not end.
                shell.until(&text, |d| d.contents().replace("\n▌", "").replace('\n', " ").contains(&text));
            }
            Command::Output(_) | Command::Require(_) | Command::Set(..) => {}
        }
    }
    shell.until("shell", |d| !d.is_alternate() && d.contents().trim_end().ends_with("desk$"));
}
