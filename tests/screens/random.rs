//! Any keys on any size: no panic, nothing outside of the screen or overlapping, and a terminal that was sent only the
//! differences shows what a fresh drawing shows.

use super::SCREENS;
use super::interface::Session;
use crate::support::random::Random;
use ratatui::layout::Rect;
use whyslow::parts::tui::key::KeyPress;
use whyslow::parts::tui::key_bindings::TABLE;
use whyslow::parts::tui::message::UiMessage;
use whyslow::parts::tui::paint::Painter;
use whyslow::parts::tui::theme::ColourDepth;

/// Keys that type, edit and leave.
const TYPED: &str = "Esc Esc Enter Tab Up Down Backspace Ctrl-u d u r a t i o n > = 5 m s Space , é";

/// A terminal that is sent the painter's bytes.
struct Watched {
    session: Session,
    painter: Painter,
    terminal: vt100::Parser,
}

impl Watched {
    fn new(session: Session) -> Watched {
        let (columns, lines) = session.app.size;
        Watched { session, painter: Painter::default(), terminal: vt100::Parser::new(lines, columns, 0) }
    }

    fn resize(&mut self, columns: u16, lines: u16) {
        self.session.send(UiMessage::Resize(columns, lines));
        self.terminal.screen_mut().set_size(lines, columns);
    }

    /// Draw, and compare the terminal with the drawing.
    fn check(&mut self, place: &dyn Fn() -> String) {
        let drawn = self.session.draw();
        let mut bytes = Vec::new();
        self.painter.paint(&drawn, &mut bytes);
        self.terminal.process(&bytes);
        let screen = self.terminal.screen();
        for y in 0..drawn.area.height {
            for x in 0..drawn.area.width {
                let wanted = drawn[(x, y)].symbol();
                let shown = screen.cell(y, x).map_or("", |cell| cell.contents());
                let same = shown == wanted || (shown.is_empty() && wanted == " ");
                assert!(same, "column {x}, line {y}: {shown:?} for {wanted:?} after {}", place());
            }
        }
    }
}

fn play(seed: u64, count: usize) {
    let mut random = Random::new(seed);
    let bound: Vec<KeyPress> =
        TABLE.iter().flat_map(|row| row.keys.split(' ').filter_map(KeyPress::parse).collect::<Vec<_>>()).collect();
    let typed: Vec<KeyPress> = TYPED.split(' ').filter_map(KeyPress::parse).collect();
    let mut first = Session::new(80, 24, ColourDepth::True).again();
    first.ready();
    let mut watched = Watched::new(first.again());
    let mut pressed: Vec<String> = Vec::new();
    for at in 0..count {
        if random.once_in(150) {
            let (columns, lines) = (1 + random.below(160) as u16, 1 + random.below(60) as u16);
            watched.resize(columns, lines);
            pressed.push(format!("{columns}x{lines}"));
        }
        let keys = if random.once_in(3) { &typed } else { &bound };
        let key = keys[random.below(keys.len())];
        pressed.push(key.to_string());
        watched.session.send(UiMessage::Key(key));
        let recent = &pressed[pressed.len().saturating_sub(40)..];
        watched.check(&|| format!("key {at} of seed {seed}: {}", recent.join(" ")));
        if watched.session.ended || random.once_in(2000) {
            watched = Watched::new(first.again());
            pressed.clear();
        }
    }
}

#[test]
fn random_keys_show_what_a_fresh_drawing_shows() {
    play(1, 2_500);
}

#[test]
#[ignore = "200,000 keys take minutes"]
fn many_random_keys_show_what_a_fresh_drawing_shows() {
    let seeds: Vec<u64> = (100..120).collect();
    std::thread::scope(|scope| {
        for half in seeds.chunks(10) {
            scope.spawn(move || half.iter().for_each(|seed| play(*seed, 10_000)));
        }
    });
}

/// Within the screen, and none over another.
fn check_frame(session: &Session, place: &str) {
    let (columns, lines) = session.app.size;
    let screen = Rect::new(0, 0, columns, lines);
    let frame = &session.app.frame;
    let mut parts: Vec<Rect> = vec![frame.header, frame.footer];
    parts.extend(frame.panes.iter().map(|pane| pane.area));
    parts.retain(|part| part.area() > 0);
    for (at, part) in parts.iter().enumerate() {
        assert_eq!(part.intersection(screen), *part, "outside: {place}");
        assert!(parts[..at].iter().all(|other| part.intersection(*other).area() == 0), "overlapping: {place}");
    }
    for dialog in [frame.overlay, frame.full] {
        assert!(dialog.area() == 0 || dialog.intersection(screen) == dialog, "outside: {place}");
    }
}

fn check_sizes(seed: u64, count: usize) {
    let mut random = Random::new(seed);
    let mut first = Session::new(80, 24, ColourDepth::True).again();
    first.ready();
    for at in 0..count {
        let screen = &SCREENS[random.below(SCREENS.len())];
        let (columns, lines) = match at {
            0 => (1, 1),
            1 => (500, 200),
            _ => (1 + random.below(500) as u16, 1 + random.below(200) as u16),
        };
        let mut session = first.again();
        session.send(UiMessage::Resize(columns, lines));
        session.keys(screen.keys);
        let place = format!("{} at {columns}x{lines}", screen.name);
        check_frame(&session, &place);
        // Drawing outside of the screen panics.
        assert_eq!(session.draw().area.as_size(), (columns, lines).into(), "{place}");
    }
}

#[test]
fn screens_fit_random_sizes() {
    check_sizes(1, 60);
}

#[test]
#[ignore = "takes minutes"]
fn screens_fit_many_random_sizes() {
    check_sizes(2, 3000);
}
