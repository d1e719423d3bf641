//! What else could be asked about, where the task was guessed: a line for each program.
//!
//! In: the choice of a task. Out: its table, as wide as the page allows: the bar goes first, then the time at which the
//! slowest began. PRODUCT.md, "The task that is chosen where none is named".

use super::page::{Glyphs, Page, cut, sparkline};
use crate::base::{clean, figure};
use crate::model::choice::{CELLS, ProgramTask, TaskChoice};
use unicode_width::UnicodeWidthStr;

/// Columns of a full bar.
const BAR: usize = 7;
/// The longest name of a program.
const NAME: usize = 20;

/// The table, below a question.
pub(super) fn table(choice: &TaskChoice, page: Page, out: &mut String) {
    out.push('\n');
    page.wrap(
        out,
        0,
        "This is a guess among several: the recording does not say which program was meant. --process PROGRAM asks \
         about another.",
    );
    let most = choice.programs.iter().map(|one| one.tail_ns).max().unwrap_or(0);
    if page.glyphs == Glyphs::Words {
        for one in &choice.programs {
            page.wrap(out, 2, &words(one));
        }
        return;
    }
    let names = choice.programs.iter().map(|one| name(one).width());
    let columns = names.max().unwrap_or(0).max("program".len());
    let wanted = 2 + columns + 2 + 15 + 7 + 10 + 10 + 10 + 1;
    let has_bar = page.width() > wanted + 14 + BAR;
    let has_time = page.width() >= wanted + 14;
    let shown = |has_room: bool, text: &str| if has_room { text.to_owned() } else { String::new() };
    let line = format!(
        "  {:columns$}  {:15}{:>7}{:>10}{:>10}{:>10} {}{}",
        "program",
        "executions",
        "n",
        "p50",
        "p99",
        "extra*",
        shown(has_bar, "       "),
        shown(has_time, "  over time   "),
    );
    out.push_str(cut(&line, page.width()).trim_end());
    out.push('\n');
    for one in &choice.programs {
        let time = |ns: i64| figure::time(ns as f64);
        let over_time = levels(one);
        let share = one.tail_ns as f64 / most.max(1) as f64;
        let bar = shown(has_bar, &format!("{:BAR$}", page.bar(share, BAR)));
        let over_time = shown(has_time, &format!("  {}", sparkline(&over_time, page.is_ascii())));
        let line = format!(
            "  {:columns$}  {:15}{:>7}{:>10}{:>10}{:>10} {bar}{over_time}",
            name(one),
            one.kind.words(),
            figure::count(one.executions as u64),
            time(one.p50_ns),
            time(one.p99_ns),
            time(one.tail_ns),
        );
        out.push_str(cut(&line, page.width()).trim_end());
        out.push('\n');
    }
    page.wrap(out, 2, "* what the slowest twentieth takes beyond the median");
}

fn name(one: &ProgramTask) -> String {
    cut(&clean::line(&one.program), NAME)
}

/// A program in a sentence.
fn words(one: &ProgramTask) -> String {
    format!(
        "{}: {} {}, half of them within {}, 99 of a hundred within {}, {} beyond the median in the slowest twentieth",
        one.program,
        figure::count(one.executions as u64),
        one.kind.words(),
        figure::time(one.p50_ns as f64),
        figure::time(one.p99_ns as f64),
        figure::time(one.tail_ns as f64)
    )
}

/// The extra time of each part of the recording, of 100 for the greatest.
fn levels(one: &ProgramTask) -> [u32; CELLS] {
    let most = one.over_time.iter().copied().max().unwrap_or(0).max(1);
    one.over_time.map(|ns| u32::try_from(i128::from(ns.max(0)) * 100 / i128::from(most)).unwrap_or(0))
}
