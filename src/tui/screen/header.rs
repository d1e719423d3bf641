//! Drawing the header: as many of its lines as fit.

use crate::tui::canvas::Canvas;
use crate::tui::frame::HeaderLine;
use crate::tui::header::length;
use crate::tui::theme::StyleScope;

/// What is left out first where not all lines fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstCut {
    /// The groups, with their filters.
    Groups,
    /// The title: the groups share one line with it gone.
    Title,
}

/// Draw as many lines as fit. If not all fit, the verdict has priority over the groups, and the last line says
/// that there is more.
pub fn draw(canvas: &mut Canvas<'_>, all: &[HeaderLine], first: FirstCut) {
    let room = canvas.height();
    let first_sentence = all.iter().position(|l| l.is_sentence).unwrap_or(all.len());
    let mut chosen: Vec<&HeaderLine> = all.iter().collect();
    let cut = chosen.len() > room;
    if cut {
        // Leave out the groups first, then the title, then the end of the verdict; where the groups are one short
        // line, the title first.
        let spare = chosen.len() - room;
        let title_first = spare >= first_sentence && room > 0 || first == FirstCut::Title;
        let from = if title_first { 0 } else { first_sentence.saturating_sub(spare).max(1) };
        chosen.drain(from.min(first_sentence)..first_sentence.min(from + spare));
    }
    for (y, line) in chosen.iter().take(room).enumerate() {
        let (left, right) = (length(&line.left), length(&line.right));
        let columns = canvas.width();
        let fits = left + right + 2 <= columns || (y == 0 && columns >= 30);
        let end = if fits && right > 0 { columns.saturating_sub(right + 2) } else { columns };
        canvas.pieces(0, y, end, &line.left);
        if fits {
            canvas.pieces(columns.saturating_sub(right), y, columns, &line.right);
        }
    }
    if chosen.len() > room && room > 0 {
        canvas.right(canvas.width(), room - 1, " … all: w", StyleScope::Key);
    }
}
