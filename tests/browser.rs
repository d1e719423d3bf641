//! The page of a report in a real browser: its layout at three widths, light and dark, and that it loads nothing.
//!
//! In: reports of fixtures, with a script at the end that measures the page. Out: measures, and a screenshot. The
//! variable `WHYSLOW_BROWSER` names the browser; without it Chromium is looked for by its usual names.

use crate::support::ask::{run, whyslow};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

/// Narrow as a phone, as a window beside another, as a whole screen.
const WIDTHS: [u64; 3] = [500, 1240, 1900];

/// Puts what it measures into the page's title.
const MEASURE: &str = r"<script>
addEventListener('load', () => {
  const place = e => { const r = e.getBoundingClientRect(); return [Math.round(r.left), Math.round(r.right)] };
  const style = getComputedStyle(document.body);
  const loaded = performance.getEntriesByType('resource').map(entry => entry.name);
  document.title = 'measured ' + JSON.stringify({
    window: innerWidth, page: document.documentElement.scrollWidth,
    flames: [...document.querySelectorAll('svg.flame')].map(place),
    heat: [...document.querySelectorAll('svg.heat')].map(place),
    ground: style.backgroundColor, ink: style.color, loaded,
  });
});
</script>";

fn browser(words: &[&str]) -> Vec<u8> {
    let named = std::env::var("WHYSLOW_BROWSER").ok();
    let known = ["chromium", "chromium-browser", "google-chrome"].map(str::to_owned);
    let quiet = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=2000"];
    for program in named.into_iter().chain(known) {
        match Command::new(program).args(quiet).args(words).stderr(Stdio::null()).output() {
            Ok(out) => return out.stdout,
            Err(e) => assert_eq!(e.kind(), std::io::ErrorKind::NotFound, "{e}"),
        }
    }
    panic!("no Chromium on the path, and none named by WHYSLOW_BROWSER");
}

fn report(trace: &str, folder: &Path) -> String {
    let page = folder.join("page.html");
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(trace);
    run(whyslow(["report", "-o"]).args([&page, &trace]));
    let html = std::fs::read_to_string(&page).unwrap();
    std::fs::write(&page, html + MEASURE).unwrap();
    format!("file://{}", page.display())
}

fn measured(page: &str, width: u64, scheme: u8) -> Value {
    let size = format!("--window-size={width},900");
    let scheme = format!("--blink-settings=preferredColorScheme={scheme}");
    let dom = String::from_utf8(browser(&[&size, &scheme, "--dump-dom", page])).unwrap();
    let (_, title) = dom.split_once("<title>measured ").expect("the page ran no script");
    let (title, _) = title.split_once("</title>").unwrap();
    serde_json::from_str(&title.replace("&amp;", "&")).unwrap()
}

/// The sum of the three channels of `rgb(22, 24, 29)`.
fn brightness(colour: &Value) -> u32 {
    let channels = colour.as_str().unwrap().trim_start_matches("rgb(").trim_end_matches(')').split(", ");
    channels.map(|channel| channel.parse::<u32>().unwrap()).sum()
}

#[test]
#[ignore = "needs Chromium"]
fn reports_fit_the_window_of_a_browser() {
    let folder = tempfile::tempdir().unwrap();
    for trace in ["traces/lock-contention", "recorders/switch.data", "archives/late_sender/trace"] {
        let page = report(trace, folder.path());
        for (width, (scheme, is_dark)) in WIDTHS.into_iter().flat_map(|w| [(0, true), (1, false)].map(|s| (w, s))) {
            let of = measured(&page, width, scheme);
            let place = format!("{trace} at {width}: {of}");
            assert_eq!(of["window"], width, "{place}");
            assert!(of["page"].as_u64().unwrap() <= width, "wider than the window: {place}");
            assert_eq!(of["loaded"], serde_json::json!([]), "{place}");
            let wide = of["flames"].as_array().unwrap().iter().chain(of["heat"].as_array().unwrap());
            let mut drawn = 0;
            for picture in wide {
                let [left, right] = [&picture[0], &picture[1]].map(|x| x.as_u64().unwrap());
                assert!(left < 80 && right <= width && right + 80 > width, "not as wide as the window: {place}");
                drawn += 1;
            }
            assert!(drawn > 0, "no pictures: {place}");
            let [ground, ink] = [&of["ground"], &of["ink"]].map(brightness);
            assert!(if is_dark { ground + 400 < ink } else { ink + 400 < ground }, "{place}");
        }
        let picture = folder.path().join("page.png");
        for width in WIDTHS {
            let to = format!("--screenshot={}", picture.display());
            browser(&[&to, &format!("--window-size={width},900"), &page]);
            let png = std::fs::read(&picture).unwrap();
            // The width is the first number of a PNG's header; an empty page packs to a few kilobytes.
            assert_eq!(png.get(16..20), Some(&(width as u32).to_be_bytes()[..]), "{trace}");
            assert!(png.len() > 20_000, "{trace} at {width}: {} bytes", png.len());
        }
    }
}
