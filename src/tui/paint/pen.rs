//! The attributes in which the terminal writes, and the bytes that change them: only what differs is named.

use ratatui::buffer::Cell;
use ratatui::style::{Color, Modifier};
use std::io::Write;

/// The attributes that are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pen {
    fg: Color,
    bg: Color,
    modifier: Modifier,
}

/// A terminal's own attributes.
pub const PLAIN: Pen = Pen { fg: Color::Reset, bg: Color::Reset, modifier: Modifier::empty() };

/// Modifiers that show on a blank cell.
pub const ON_BLANK: Modifier = Modifier::REVERSED.union(Modifier::UNDERLINED);

/// Modifiers, each with the code that begins it.
const BEGIN: [(Modifier, &str); 5] = [
    (Modifier::BOLD, "1"),
    (Modifier::DIM, "2"),
    (Modifier::ITALIC, "3"),
    (Modifier::UNDERLINED, "4"),
    (Modifier::REVERSED, "7"),
];

/// Modifiers with a code of their own that ends them.
const END: [(Modifier, &str); 3] = [(Modifier::ITALIC, "23"), (Modifier::UNDERLINED, "24"), (Modifier::REVERSED, "27")];

/// What cells need of the pen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    Full(Pen),
    /// Blank cells: this background, and no modifier that shows on them.
    Blank(Color),
}

impl Ink {
    /// Of a cell.
    pub fn of(cell: &Cell) -> Ink {
        match cell.symbol() == " " && !cell.modifier.intersects(ON_BLANK) {
            true => Ink::Blank(cell.bg),
            false => Ink::Full(Pen { fg: cell.fg, bg: cell.bg, modifier: cell.modifier }),
        }
    }

    /// The ink that suits both, if there is one.
    pub fn with(self, other: Ink) -> Option<Ink> {
        match (self, other) {
            (a, b) if a == b => Some(a),
            (Ink::Full(pen), Ink::Blank(bg)) | (Ink::Blank(bg), Ink::Full(pen)) => {
                (pen.bg == bg && !pen.modifier.intersects(ON_BLANK)).then_some(Ink::Full(pen))
            }
            _ => None,
        }
    }
}

impl Pen {
    /// The pen for this ink, and the bytes that make it of this one.
    pub fn change(self, ink: Ink, out: &mut Vec<u8>) -> Pen {
        let wanted = match ink {
            Ink::Full(pen) => pen,
            Ink::Blank(bg) => Pen { bg, modifier: self.modifier - ON_BLANK, ..self },
        };
        if wanted == self {
            return wanted;
        }
        if wanted == PLAIN {
            out.extend_from_slice(b"\x1b[m");
            return wanted;
        }
        let mut codes: Vec<String> = Vec::new();
        let gone = self.modifier - wanted.modifier;
        let mut kept = self.modifier & wanted.modifier;
        let weight = Modifier::BOLD | Modifier::DIM;
        if gone.intersects(weight) {
            // One code ends both.
            codes.push("22".into());
            kept -= weight;
        }
        let ended = END.iter().filter(|(modifier, _)| gone.contains(*modifier));
        let begun = BEGIN.iter().filter(|(modifier, _)| (wanted.modifier - kept).contains(*modifier));
        codes.extend(ended.chain(begun).map(|(_, code)| (*code).to_owned()));
        if wanted.fg != self.fg {
            codes.push(colour(wanted.fg, 30));
        }
        if wanted.bg != self.bg {
            codes.push(colour(wanted.bg, 40));
        }
        push(out, format_args!("\x1b[{}m", codes.join(";")));
        wanted
    }
}

fn colour(color: Color, base: u8) -> String {
    let named = |n: u8| (base + n).to_string();
    let bright = |n: u8| (base + 60 + n).to_string();
    match color {
        Color::Reset => named(9),
        Color::Black => named(0),
        Color::Red => named(1),
        Color::Green => named(2),
        Color::Yellow => named(3),
        Color::Blue => named(4),
        Color::Magenta => named(5),
        Color::Cyan => named(6),
        Color::Gray => named(7),
        Color::DarkGray => bright(0),
        Color::LightRed => bright(1),
        Color::LightGreen => bright(2),
        Color::LightYellow => bright(3),
        Color::LightBlue => bright(4),
        Color::LightMagenta => bright(5),
        Color::LightCyan => bright(6),
        Color::White => bright(7),
        Color::Indexed(i) => format!("{};5;{i}", base + 8),
        Color::Rgb(r, g, b) => format!("{};2;{r};{g};{b}", base + 8),
    }
}

/// True if nothing of the cell shows.
pub fn is_blank(cell: &Cell) -> bool {
    cell.symbol() == " " && cell.bg == Color::Reset && !cell.modifier.intersects(ON_BLANK)
}

/// Write to memory.
pub fn push(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to memory does not fail.
    let _ = out.write_fmt(text);
}
