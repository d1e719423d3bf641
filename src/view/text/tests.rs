//! Comparisons as text, at every width.

use super::*;
use crate::base::ctx::Ctx;
use crate::compare::{ComparisonRequest, compare, scenario};
use crate::view::page::NARROWEST;

fn made() -> (Model, Comparison) {
    let model = scenario::lock_contention(5, 16.0);
    let c = compare(&model, &ComparisonRequest::default(), &Ctx::new(1)).unwrap();
    (model, c)
}

#[test]
fn explain_fits_every_width_and_begins_with_the_answer() {
    let (model, c) = made();
    for width in [1, 40, 80, 250] {
        for glyphs in [Glyphs::Unicode, Glyphs::Ascii, Glyphs::Words] {
            let (page, ascii) = (Page { width, glyphs }, glyphs != Glyphs::Unicode);
            for text in [explain(&model, &c, page), diff(&model, &c, &DiffParts::default(), page)] {
                assert!(text.starts_with("Waiting in append_entry for"), "{text}");
                for line in text.lines() {
                    assert!(line.width() <= width.max(NARROWEST), "{width}: {line}");
                    assert!(!ascii || line.is_ascii(), "{line}");
                }
            }
        }
    }
}

#[test]
fn explain_shows_figures_and_paths() {
    let (model, c) = made();
    let text = explain(&model, &c, Page { width: 120, glyphs: Glyphs::Ascii });
    for part in ["blocked.thread", "thread journal", "[futex]", "standard deviations, p < 0.0001", "Caveats"] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn bars_grow_with_their_share() {
    let page = Page { width: 80, glyphs: Glyphs::Unicode };
    assert_eq!((page.bar(1.0, 4), page.bar(0.5, 4), page.bar(0.03, 4)), ("████".into(), "██".into(), "▏".into()));
    assert_eq!(Page { glyphs: Glyphs::Ascii, ..page }.bar(f64::NAN, 4), "");
    assert_eq!(sparkline(&[0, 1, 4, 8], false), " ▁▄█");
}
