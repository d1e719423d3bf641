//! Case files of the conformance suite: events on one or two hosts, and the critical paths that follow.
//!
//! In: the text of a case (docs/CONFORMANCE.md describes the format). Out: a [`Case`], which [`Case::write`] makes a
//! CTF trace, one directory for each host, as LTTng would have recorded it. Nothing here knows how a path is computed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, dead_code)]

mod events;

use super::ctf_writer;
use ctf_writer::{Channel, Context, TraceWriter};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use whyslow::parts::base::time::Ns;

/// The time 0 of every case, on the clock of its traces: a second.
pub const START: Ns = 1_000_000_000;

/// A line of a case: time in the case's unit, CPU, and the words of the event.
#[derive(Debug)]
pub struct Line {
    pub time: Ns,
    pub cpu: u32,
    pub words: Vec<String>,
}

/// A segment of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// `running`, `preempted`, `blocked` ...
    pub kind: String,
    /// The host's name.
    pub host: String,
    pub tid: i32,
    /// In the case's unit, since its beginning.
    pub from: Ns,
    pub to: Ns,
    /// The device, or why a wait is not resolved, where the case asks for it.
    pub qualifier: Option<String>,
}

impl std::fmt::Display for Segment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let host = if self.host == FIRST_HOST { String::new() } else { format!("{}/", self.host) };
        write!(f, "{} {host}{} {}..{}", self.kind, self.tid, self.from, self.to)?;
        self.qualifier.as_ref().map_or(Ok(()), |q| write!(f, " \"{q}\""))
    }
}

/// A path that a case expects.
#[derive(Debug)]
pub struct Expected {
    pub host: String,
    pub tid: i32,
    pub from: Ns,
    pub to: Ns,
    pub segments: Vec<Segment>,
}

/// The name of the host whose section is just `[events]`.
pub const FIRST_HOST: &str = "host0";

/// A case.
#[derive(Debug)]
pub struct Case {
    /// Its file below the folder of cases, without the ending: `locks/hand-over`.
    pub name: String,
    /// The subject of the case, in a few words.
    pub title: String,
    /// Why the path is this one.
    pub why: String,
    /// The source of the expected path.
    pub source: String,
    /// Release of the kernel that recorded.
    pub kernel: String,
    /// Nanoseconds in a unit of time.
    pub unit: Ns,
    /// Events have the context of the thread that runs.
    pub contexts: bool,
    /// Names of threads, where they matter.
    pub names: BTreeMap<i32, String>,
    /// Events by host.
    pub hosts: BTreeMap<String, Vec<Line>>,
    pub paths: Vec<Expected>,
}

/// The folder of the cases.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/cases")
}

/// All cases, by name.
pub fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    for group in entries(&folder()) {
        for file in entries(&group) {
            let stem = |p: &Path| p.file_stem().unwrap().to_str().unwrap().to_owned();
            let name = format!("{}/{}", stem(&group), stem(&file));
            let text = std::fs::read_to_string(&file).unwrap();
            cases.push(Case::parse(&name, &text).unwrap_or_else(|wrong| panic!("{}: {wrong}", file.display())));
        }
    }
    cases
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    entries
}

fn span(text: &str) -> Option<(Ns, Ns)> {
    let (from, to) = text.split_once("..")?;
    Some((from.parse().ok()?, to.parse().ok()?))
}

/// `TID` or `HOST/TID`.
fn thread(text: &str) -> Option<(String, i32)> {
    let (host, tid) = text.split_once('/').unwrap_or((FIRST_HOST, text));
    Some((host.to_owned(), tid.parse().ok()?))
}

fn segment(line: &str) -> Option<Segment> {
    let (line, qualifier) = match line.split_once('"') {
        Some((line, qualifier)) => (line, Some(qualifier.strip_suffix('"')?.to_owned())),
        None => (line, None),
    };
    let [kind, who, when] = line.split_whitespace().collect::<Vec<_>>()[..] else { return None };
    let ((host, tid), (from, to)) = (thread(who)?, span(when)?);
    Some(Segment { kind: kind.to_owned(), host, tid, from, to, qualifier })
}

impl Case {
    /// Read a case; the error names the line.
    pub fn parse(name: &str, text: &str) -> Result<Case, String> {
        let mut case = Case {
            name: name.to_owned(),
            title: String::new(),
            why: String::new(),
            source: String::new(),
            kernel: "6.1.0".to_owned(),
            unit: 1_000,
            contexts: false,
            names: BTreeMap::new(),
            hosts: BTreeMap::new(),
            paths: Vec::new(),
        };
        let mut section = String::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.split(" #").next().unwrap_or("").trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = |what: &str| format!("line {}: {what}: {line}", number + 1);
            if let Some(head) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
                section = head.to_owned();
                case.begin(head).ok_or_else(|| wrong("no such section"))?;
                continue;
            }
            match section.split_whitespace().next() {
                None => case.header(line).ok_or_else(|| wrong("no such header"))?,
                Some("names") => {
                    let (tid, name) = line.split_once(' ').ok_or_else(|| wrong("write TID NAME"))?;
                    case.names.insert(tid.parse().map_err(|_| wrong("no thread id"))?, name.trim().to_owned());
                }
                Some("events") => {
                    let host = section.split_whitespace().nth(1).unwrap_or(FIRST_HOST);
                    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
                    let number = |at: usize| words.get(at).and_then(|w| w.parse::<Ns>().ok());
                    let (Some(time), Some(cpu)) = (number(0), number(1)) else {
                        return Err(wrong("write TIME CPU EVENT"));
                    };
                    let line = Line { time, cpu: cpu as u32, words: words[2..].to_vec() };
                    case.hosts.entry(host.to_owned()).or_default().push(line);
                }
                _ => {
                    let segment = segment(line).ok_or_else(|| wrong("write KIND THREAD FROM..TO"))?;
                    case.paths.last_mut().unwrap().segments.push(segment);
                }
            }
        }
        case.check()?;
        Ok(case)
    }

    fn header(&mut self, line: &str) -> Option<()> {
        let (key, value) = line.split_once(':')?;
        let value = value.trim();
        match key {
            "title" => value.clone_into(&mut self.title),
            "why" => value.clone_into(&mut self.why),
            "source" => value.clone_into(&mut self.source),
            "kernel" => value.clone_into(&mut self.kernel),
            "contexts" if value == "tid" => self.contexts = true,
            "unit" => self.unit = [("ns", 1), ("us", 1_000), ("ms", 1_000_000)].iter().find(|u| u.0 == value)?.1,
            _ => return None,
        }
        Some(())
    }

    fn begin(&mut self, head: &str) -> Option<()> {
        match head.split_whitespace().collect::<Vec<_>>()[..] {
            ["names"] => {}
            ["events"] => drop(self.hosts.entry(FIRST_HOST.to_owned()).or_default()),
            ["events", host] => drop(self.hosts.entry(host.to_owned()).or_default()),
            ["path", who, when] => {
                let ((host, tid), (from, to)) = (thread(who)?, span(when)?);
                self.paths.push(Expected { host, tid, from, to, segments: Vec::new() });
            }
            _ => return None,
        }
        Some(())
    }

    /// Checks that no section is missing, and that the expected paths tile their spans.
    fn check(&self) -> Result<(), String> {
        if self.title.is_empty() || self.why.is_empty() || self.source.is_empty() {
            return Err("title, why and source belong to every case".into());
        }
        if self.hosts.is_empty() || self.paths.is_empty() {
            return Err("a case has events and a path".into());
        }
        for path in &self.paths {
            let mut at = path.from;
            for segment in &path.segments {
                if segment.from != at || segment.to <= at {
                    return Err(format!("the path does not go on at {at}: {segment}"));
                }
                at = segment.to;
            }
            if at != path.to {
                return Err(format!("the path of {} ends at {at}, not at {}", path.tid, path.to));
            }
        }
        Ok(())
    }

    /// Write the traces, one directory for each host, and give their paths.
    pub fn write(&self, folder: &Path) -> Vec<PathBuf> {
        let written = self.hosts.iter().enumerate().map(|(number, (host, lines))| {
            let mut trace = TraceWriter::new(host, "kernel", 0xc0f0_0000 + number as u128, 0xc10c_0000);
            trace.environment.iter_mut().filter(|e| e.0 == "kernel_release").for_each(|e| e.1.clone_from(&self.kernel));
            let all: Vec<Ns> = self.hosts.values().flatten().map(|l| l.time).collect();
            let ends = (all.iter().min().unwrap(), all.iter().max().unwrap());
            trace.span = (START + ends.0 * self.unit, START + ends.1 * self.unit);
            let contexts = if self.contexts { vec![Context::Tid] } else { Vec::new() };
            let (events, discarded) = events::events(self, lines);
            trace.channels.push(Channel { name: "channel0".into(), contexts, events, discarded });
            trace.write(&folder.join(host));
            folder.join(host)
        });
        written.collect()
    }
}
