//! Documents and themes have what the program's tables have: a new row that is missing there fails.

use std::path::Path;
use whyslow::parts::model::metric::Metric;
use whyslow::parts::model::wait_kind::{SegmentKind, WaitKind};

fn text(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

#[test]
fn wait_kinds_are_documented_and_have_styles() {
    let schema: serde_json::Value = serde_json::from_str(&text("docs/schemas/common.json")).unwrap();
    let names = WaitKind::ALL.map(WaitKind::name);
    assert_eq!(schema["$defs"]["wait_kind"]["enum"], serde_json::json!(names));
    let (product, theme) = (text("docs/PRODUCT.md"), text("themes/dark.toml"));
    let mut letters = WaitKind::ALL.map(|kind| kind.row().letter);
    letters.sort_unstable();
    assert!(letters.windows(2).all(|pair| pair[0] != pair[1]), "{letters:?}");
    for kind in WaitKind::ALL {
        let row = kind.row();
        assert!(product.contains(&format!("`{}`", row.name)), "{kind:?}");
        let legend =
            kind == WaitKind::Thread || product.replace('\n', " ").contains(&format!("`{}` {}", row.letter, row.state));
        assert!(legend, "{kind:?}");
        assert!(theme.contains(&format!("\"{}\" = ", row.style)), "{kind:?}");
        assert_eq!(row.alike.is_none(), row.name.ends_with("unknown"), "{kind:?}");
    }
}

#[test]
fn metrics_are_documented() {
    let product = text("docs/PRODUCT.md");
    for metric in Metric::known() {
        assert!(product.contains(&format!("`{}`", metric.name())), "{metric:?}");
        assert_eq!(Metric::named(&metric.name()), Some(metric));
    }
}

#[test]
fn segment_kinds_are_in_the_table_of_the_conformance_suite() {
    let table = text("docs/CONFORMANCE.md");
    for kind in SegmentKind::ALL {
        let word = SegmentKind::NAMES[kind as usize].replace(' ', "-");
        let row = table.lines().find(|line| line.starts_with(&format!("| `{word}` |"))).unwrap();
        assert!(row.ends_with(&format!("| `{}` |", kind.wait_kind().name())), "{row}");
    }
}
