//! Each rule of CTF 1.8 and CTF 2 on a trace of a few bytes: `fixtures/ctf/*.case` hold metadata, stream bytes in
//! hexadecimal, and the canonical listing expected. The name says the verdict: `pass-...` or `fail-...`.
//!
//! In a failing case the listing holds what can be read before the damage, and a last line `error: ...` with a part of
//! the message.

use std::fs;
use std::path::Path;
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::dump;
use whyslow::parts::dump::{Form, Sizes};
use whyslow::parts::input::{self, Argument, Opened, Source, checked_account, count};

/// The parts of a case, by their headings (`--- metadata`, `--- stream NAME`, `--- expect`).
fn parts(text: &str) -> Vec<(String, String)> {
    let mut parts: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        match (line.strip_prefix("--- "), parts.last_mut()) {
            (Some(heading), _) => parts.push((heading.to_owned(), String::new())),
            (None, Some((_, body))) => {
                body.push_str(line);
                body.push('\n');
            }
            (None, None) => assert!(line.is_empty() || line.starts_with('#'), "text before the first part: {line}"),
        }
    }
    parts
}

/// Bytes written in hexadecimal; spaces are free, `#` begins a comment.
fn bytes(text: &str) -> Vec<u8> {
    let digits: String = text.lines().map(|l| l.split('#').next().unwrap_or("")).collect();
    let digits: Vec<char> = digits.chars().filter(|c| !c.is_whitespace()).collect();
    assert_eq!(digits.len() % 2, 0, "half a byte");
    digits.chunks(2).map(|pair| u8::from_str_radix(&String::from_iter(pair), 16).unwrap()).collect()
}

/// The output about a case: its listing, and `error: ...` where something is wrong.
fn listing(folder: &Path) -> String {
    let argument = Argument::new(folder.to_owned());
    let sources = match input::open(&[argument], &Ctx::new(2)) {
        Ok(Opened::Traces(sources)) => sources,
        Ok(Opened::Otf2(_)) => panic!("{} is an archive", folder.display()),
        Err(e) => return format!("error: {e}\n"),
    };
    let mut text = Vec::new();
    let mut notices = dump::canonical(&sources, &Ctx::new(1), &mut text).unwrap();
    dumps_alike(&sources);
    for source in &sources {
        assert_eq!(checked_account::of_source(source, &Ctx::new(2)).unwrap().broken, None, "{}", folder.display());
    }
    sources.iter().for_each(|s| notices.merge(&s.trace.notices()));
    let mut text = String::from_utf8(text).unwrap();
    if notices.has_fault() {
        text.push_str(&format!("error: {}\n", notices.sentences()[0]));
    } else {
        // Counting steps over values, so only whole traces must have equal numbers.
        let (counts, _) = count::count(&sources, &Ctx::new(1)).unwrap();
        assert_eq!(counts.events, text.lines().count() as u64, "stats count and dump disagree");
    }
    text
}

/// Any chunks on any number of workers: the same bytes, the same notices.
fn dumps_alike(sources: &[Source]) {
    let dump = |form, sizes: &Sizes, workers| {
        let mut text = Vec::new();
        let notices = dump::write(sources, form, sizes, &Ctx::new(workers), &mut text).unwrap();
        (String::from_utf8(text).unwrap(), notices.sentences())
    };
    for form in [Form::Canonical, Form::Readable] {
        let serial = dump(form, &Sizes::default(), 1);
        for (workers, sample, chunk) in [(2, 1, 1), (3, 1, 5), (7, 9, 20), (2, 16 << 10, 1 << 20)] {
            let found = dump(form, &Sizes { sample, chunk, window: 8 }, workers);
            assert_eq!(found, serial, "{workers} workers, samples of {sample}, chunks of {chunk}");
        }
    }
}

fn run(path: &Path) -> Result<(), String> {
    let text = fs::read_to_string(path).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut expected = None;
    for (heading, body) in parts(&text) {
        match heading.split_once(' ') {
            None if heading == "metadata" => {
                fs::write(folder.path().join("metadata"), body.replace("%\n", "\x1e\n")).unwrap();
            }
            None if heading == "expect" => expected = Some(body),
            Some(("metadata", "hex")) => fs::write(folder.path().join("metadata"), bytes(&body)).unwrap(),
            Some(("stream", name)) => fs::write(folder.path().join(name), bytes(&body)).unwrap(),
            _ => return Err(format!("no part is called {heading}")),
        }
    }
    let expected = expected.ok_or("nothing is expected")?;
    let found = listing(folder.path());
    let (mut expected, mut found) = (expected.lines(), found.lines());
    loop {
        match (expected.next(), found.next()) {
            (None, None) => return Ok(()),
            (Some(e), Some(f)) if e == f => {}
            (Some(e), Some(f))
                if e.strip_prefix("error: ").is_some_and(|e| f.starts_with("error: ") && f.contains(e)) => {}
            (e, f) => return Err(format!("expected {e:?}\n   found {f:?}")),
        }
    }
}

#[test]
fn cases_are_read_as_their_listings_say() {
    let mut failures = String::new();
    let mut cases: Vec<_> = fs::read_dir("fixtures/ctf").unwrap().map(|e| e.unwrap().path()).collect();
    cases.retain(|path| path.extension().is_some_and(|e| e == "case"));
    cases.sort();
    assert!(cases.len() > 50, "only {} cases", cases.len());
    for case in cases {
        let name = case.file_stem().unwrap().to_string_lossy().into_owned();
        let fails = fs::read_to_string(&case).unwrap().contains("\nerror: ");
        let verdict = name.split('-').next();
        assert_eq!(verdict, Some(if fails { "fail" } else { "pass" }), "{name}: the name and the listing disagree");
        if let Err(why) = run(&case) {
            failures += &format!("{name}: {why}\n");
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}
