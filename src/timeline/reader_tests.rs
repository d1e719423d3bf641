//! Cursors compared with the vectors of the rows that they go over.

use super::CpuRun;
use super::questions::Tally;
use super::reader::RowCursor;
use super::segments::ThreadId;
use super::store::builder::LineStoreBuilder;
use crate::base::statistics::Random;
use crate::base::time::{Span, Timestamp};

#[test]
fn first_after_and_begun_in_do_not_depend_on_what_was_asked_before() {
    let mut random = Random::new(7);
    let mut end = Timestamp::ZERO;
    // Rows with gaps, rows that follow each other, and some without length.
    let rows: Vec<CpuRun> = (0..5_000)
        .map(|_| {
            let start = end.saturating_add([0, 0, 3][random.below(3)]);
            end = start.saturating_add([0, 2, 9][random.below(3)]);
            CpuRun { span: Span::new(start, end), thread: ThreadId::at(random.below(9)) }
        })
        .collect();
    let mut builder = LineStoreBuilder::default();
    for some in rows.chunks(700) {
        builder.push(0, some);
        builder.seal_slab();
    }
    let store = builder.finish(1);
    let (line, tally) = (store.line(0), Tally::new());
    let mut cursor = RowCursor::new(line, &tally);
    let mut t = Timestamp::ZERO;
    for _ in 0..20_000 {
        // Mostly a little later, at times anywhere.
        let far = Timestamp::new(random.below(end.ns() as usize + 10) as i64);
        t = if random.below(20) == 0 { far } else { t.saturating_add(random.below(12) as i64 - 2) };
        match random.below(4) {
            1 => {
                // From row to row, a few or many.
                let mut number = rows.partition_point(|row| row.span.end <= t);
                assert_eq!(cursor.first_after(t), rows.get(number).copied());
                for _ in 0..random.below(40) {
                    if random.below(8) == 0 && number > 0 {
                        number -= 1;
                        assert_eq!(cursor.previous_row(), Some(rows[number]));
                    } else if number + 1 < rows.len() {
                        number += 1;
                        assert_eq!(cursor.next_row(), Some(rows[number]));
                        assert_eq!(cursor.next_start(), rows.get(number + 1).map(|row| row.span.start));
                    }
                }
                t = rows.get(number).map_or(t, |row| row.span.start);
            }
            0 => {
                let from = rows.partition_point(|row| row.span.start < t);
                let until = t.saturating_add(random.below(30) as i64);
                let expected = rows[from..].iter().copied().take_while(|row| row.span.start < until);
                assert!(cursor.begun_in(Span::new(t, until)).eq(expected), "{t:?}");
            }
            _ => {
                let expected = rows.get(rows.partition_point(|row| row.span.end <= t)).copied();
                assert_eq!(cursor.first_after(t), expected, "{t:?}");
            }
        }
    }
}
