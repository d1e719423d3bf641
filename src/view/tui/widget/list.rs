//! A list to choose from, narrowed by typing.

use crate::view::tui::canvas::{Canvas, width};
use crate::view::tui::menu::{Menu, MenuCommand, MenuItem};
use crate::view::tui::pages::details::MARK;
use crate::view::tui::theme::StyleScope;

/// The list: the typed text above it, the entries that fit below; the cursor is on one, others may be marked.
pub fn draw(canvas: &mut Canvas<'_>, menu: &Menu) {
    canvas.clear();
    canvas.fill(0, 0, canvas.width(), '─', StyleScope::Rule);
    let order = if menu.is_of_executions() { format!(", {}", menu.order.words()) } else { String::new() };
    canvas.text(2, 0, &format!(" {}{order} ", menu.title), StyleScope::Title);
    menu.input.draw(canvas, 1, "");
    let shown = canvas.height().saturating_sub(2);
    let found: Vec<&MenuItem> = menu.fitting().collect();
    if found.is_empty() {
        canvas.text(2, 2, "no match", StyleScope::Dim);
    }
    let offset = (menu.at + 1).saturating_sub(shown);
    let widest = name_columns(&menu.items, canvas.width());
    for (y, choice) in found.iter().skip(offset).take(shown).enumerate() {
        let here = offset + y == menu.at;
        let end =
            canvas.text_in(2, y + 2, widest, &choice.name, if here { StyleScope::Strong } else { StyleScope::Text });
        canvas.text(end.max(widest + 2) + 2, y + 2, &choice.help, StyleScope::Dim);
        if matches!(choice.command, MenuCommand::Execution(number) if menu.marked.contains(&number)) {
            canvas.text(0, y + 2, MARK, StyleScope::Selection);
        }
        if here {
            canvas.mark_line(y + 2);
        }
    }
}

/// Columns of the names: what the figures beside them leave, or half where sentences stand there.
fn name_columns(choices: &[MenuItem], columns: usize) -> usize {
    const LEAST: usize = 12;
    let widest = choices.iter().map(|c| width(&c.name)).max().unwrap_or(0);
    let figures = choices.iter().map(|c| width(&c.help)).min().unwrap_or(0);
    let left = columns.saturating_sub(figures + 4);
    widest.min(if left >= LEAST && figures > 0 { left } else { columns / 2 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::tui::theme::{ColourDepth, Theme, built_in};
    use ratatui::buffer::Buffer;
    use ratatui::layout::Rect;

    #[test]
    fn figures_stay_whole_beside_long_names() {
        let item = |name: &str, help: &str| MenuItem {
            name: name.into(),
            help: help.into(),
            command: MenuCommand::Task(name.into()),
        };
        let figures = "     700 executions  p50  4.59 ms  p99  60.6 ms";
        let choices = [item(&"wait=epoll_pwait2,thread=".repeat(3), figures), item("short", figures)];
        let theme = Theme::compile(&built_in()[0], ColourDepth::True).unwrap();
        for columns in [64_u16, 80, 200] {
            let mut buffer = Buffer::empty(Rect::new(0, 0, columns, 6));
            draw(&mut Canvas::new(&mut buffer, &theme), &Menu::new("Task", choices.to_vec()));
            let text: String = buffer.content.iter().map(|cell| cell.symbol()).collect();
            assert_eq!(text.matches("p99  60.6 ms").count(), 2, "{columns}: {text}");
        }
    }
}
