//! Profiles of the Firefox profiler, which samply and others write: JSON in the processed format.
//!
//! ```text
//! {"meta": {"interval": 1, ...}, "libs": [...], "threads": [{"name": "server", "pid": "812", "tid": 815,
//!    "samples": {"stack": [3, null, ...], "time": [0.5, ...], "weight": null, "weightType": "samples"},
//!    "stackTable": {"prefix": [null, 0, ...], "frame": [...]}, "frameTable": ..., "funcTable": ..., ...}]}
//! ```
//! Samples are taken of threads that wait, too. Where the file holds the CPU time of each thread between its samples
//! in a unit of time, that is a sample's weight (event `task-clock`) and a sample without any is left out; elsewhere
//! samples count in their own unit: `samples`, `bytes`, or nanoseconds of tracing (`tracing-ms`). A function without a
//! name keeps its file and its address there. Cost: linear; the file is held in memory while it is read, so its size is
//! bounded.

use super::about::About;
use super::error::TranslationError;
use super::event_place::{EventPlace, NamedThread};
use super::firefox_tables::{Id, Profile, ProfiledThread, SampleTable, Tables, at};
use super::frames::Frame;
use super::thread_ids::{UniqueThreadIds, id_of_name};
use super::translation::{SAMPLES, StackWords, Translation, UNKNOWN_CPU};
use super::unicode_text::UnicodeText;
use crate::input::tracepoint::RecorderClock;
use foldhash::HashMap;
use std::io::{self, BufRead};

/// The largest file.
const MOST: u64 = 1 << 30;
/// Frames of a stack.
const DEEPEST: usize = 4096;
/// Nanoseconds of a millisecond.
const MILLISECOND: f64 = 1e6;
/// Times beyond this many nanoseconds are none.
const LATEST: f64 = 9e18;

/// True for the begin of a file.
pub(super) fn is_one(begin: &[u8]) -> bool {
    let text = begin.strip_prefix(b"\xef\xbb\xbf").unwrap_or(begin).trim_ascii_start();
    let has = |what: &str| memchr::memmem::find(text, what.as_bytes()).is_some();
    let begins = text.strip_prefix(b"{").map(<[u8]>::trim_ascii_start);
    let known = ["\"meta\"", "\"libs\"", "\"shared\"", "\"threads\"", "\"pages\"", "\"counters\""];
    begins.is_some_and(|text| known.iter().any(|key| text.starts_with(key.as_bytes())))
        && (has("\"preprocessedProfileVersion\"") || has("\"stackTable\"") || has("\"debugName\""))
}

/// Read the samples of a file of `size` bytes.
pub(super) fn read(
    from: impl BufRead,
    size: u64,
    translation: &mut Translation,
) -> io::Result<Result<About, TranslationError>> {
    if size > MOST {
        return Ok(Err(TranslationError::TooLarge { mebibytes: MOST >> 20 }));
    }
    let mut profile: Profile = match serde_json::from_reader(UnicodeText::buffered(from)) {
        Ok(profile) => profile,
        Err(e) if e.is_io() => return Err(e.into()),
        Err(e) => return Ok(Err(TranslationError::Json(e.to_string()))),
    };
    let mut ids = UniqueThreadIds::default();
    for mut thread in std::mem::take(&mut profile.threads) {
        let own = thread.take_tables();
        let named = NamedProfile::of(&thread, &mut ids);
        let markers = thread.markers.name.as_ref().map_or(0, Vec::len) as u64;
        translation.unused_records(markers, || "markers of threads".to_owned());
        let is_own = own.stack_table.frame.as_ref().is_some_and(|frames| !frames.is_empty());
        let tables = if is_own { &own } else { &profile.shared };
        let (samples, frames) = (&thread.samples, HashMap::default());
        ProfileThread { profile: &profile, tables, samples, frames }.add(&named, translation);
    }
    if !translation.has_samples() {
        let remedy = "record with `samply record`, or save it in the processed format at profiler.firefox.com";
        return Ok(Err(TranslationError::NoSamples { remedy }));
    }
    let base = (profile.meta.start_time * MILLISECOND).clamp(0.0, LATEST) as i128;
    let clock = RecorderClock { name: "profiler".to_owned(), base, ..RecorderClock::default() };
    let system = profile.meta.system.iter().map(|system| ("sysname", system.clone()));
    Ok(Ok(About { environment: system.collect(), clock, spans: None }))
}

/// The ids and the name of a thread.
struct NamedProfile<'p> {
    tid: i32,
    pid: i32,
    name: &'p str,
}

impl<'p> NamedProfile<'p> {
    fn of(thread: &'p ProfiledThread, ids: &mut UniqueThreadIds) -> NamedProfile<'p> {
        let pid = thread.pid.as_ref().and_then(Id::number).unwrap_or(-1);
        let process = thread.process_name.as_deref().filter(|name| !name.is_empty());
        let name = if thread.is_main_thread { process.unwrap_or(&thread.name) } else { &thread.name };
        let tid = thread.tid.as_ref().and_then(Id::number).unwrap_or_else(|| id_of_name(name.as_bytes()));
        NamedProfile { tid: ids.id(pid, tid), pid, name }
    }
}

/// What the weights of samples are.
enum WeightUnit {
    /// CPU time, with the nanoseconds of one.
    CpuTime(f64),
    /// Of the event with this name, with the units of one.
    Event(&'static str, f64),
}

impl WeightUnit {
    fn of(profile: &Profile, samples: &SampleTable) -> WeightUnit {
        let unit = profile.meta.sample_units.as_ref().and_then(|units| units.cpu_delta.as_deref());
        let has_deltas =
            || samples.cpu_delta.as_ref().is_some_and(|all| all.iter().flatten().any(|delta| *delta > 0.0));
        match (unit, samples.weight_type.as_deref()) {
            (Some("ns"), _) if has_deltas() => WeightUnit::CpuTime(1.0),
            (Some("µs" | "us"), _) if has_deltas() => WeightUnit::CpuTime(1e3),
            (_, Some("bytes")) => WeightUnit::Event("bytes", 1.0),
            (_, Some("tracing-ms")) => WeightUnit::Event("tracing-ns", MILLISECOND),
            _ => WeightUnit::Event(SAMPLES, 1.0),
        }
    }
}

/// A thread with the tables of its stacks.
struct ProfileThread<'p> {
    profile: &'p Profile,
    tables: &'p Tables,
    samples: &'p SampleTable,
    /// Frames that are known, by row.
    frames: HashMap<usize, Frame>,
}

impl ProfileThread<'_> {
    /// Add the samples.
    fn add(mut self, named: &NamedProfile<'_>, translation: &mut Translation) {
        let unit = WeightUnit::of(self.profile, self.samples);
        let (mut kernel, mut user, mut sum) = (Vec::new(), Vec::new(), 0.0);
        for row in 0..self.samples.rows() {
            translation.begin_record();
            sum += at(&self.samples.time_deltas, row).unwrap_or(0.0);
            let time = at(&self.samples.time, row).unwrap_or(sum) * MILLISECOND;
            let weight = at(&self.samples.weight, row).unwrap_or(1.0);
            let (event, weight) = match unit {
                WeightUnit::CpuTime(ns) => ("task-clock", at(&self.samples.cpu_delta, row).unwrap_or(0.0) * ns),
                WeightUnit::Event(event, unit) => (event, weight * unit),
            };
            let stack = self.samples.stack.as_ref().and_then(|stacks| stacks.get(row));
            match stack {
                Some(stack) if (0.0..LATEST).contains(&time) && (0.5..LATEST).contains(&weight) => {
                    kernel.clear();
                    user.clear();
                    self.stack(*stack, &mut kernel, &mut user, translation);
                    let thread = NamedThread { tid: named.tid, pid: named.pid, name: named.name.as_bytes() };
                    let place = EventPlace { time: time.round() as u64, cpu: UNKNOWN_CPU, thread };
                    let stacks = StackWords { kernel: &kernel, user: &user };
                    translation.sample(place, event, weight.round() as u64, stacks);
                }
                Some(_) if (0.0..LATEST).contains(&time) && (0.0..0.5).contains(&weight) => {
                    translation.unused(|| "samples of threads that did not run".to_owned());
                }
                _ => translation.unreadable(|| format!("sample {row} of {}", named.name)),
            }
            translation.end_record();
        }
    }

    /// The words of a stack, innermost first. A table may lead in a circle.
    fn stack(
        &mut self,
        mut stack: Option<usize>,
        kernel: &mut Vec<u64>,
        user: &mut Vec<u64>,
        translation: &mut Translation,
    ) {
        for _ in 0..DEEPEST {
            let Some(row) = stack else { return };
            if let Some(frame) = at(&self.tables.stack_table.frame, row) {
                match self.frame(frame, translation) {
                    frame @ Frame::Kernel(_) => kernel.push(frame.word(kernel.len())),
                    frame @ Frame::User(_) => user.push(frame.word(user.len())),
                }
            }
            stack = at(&self.tables.stack_table.prefix, row);
        }
    }

    fn frame(&mut self, row: usize, translation: &mut Translation) -> Frame {
        if let Some(known) = self.frames.get(&row) {
            return *known;
        }
        let tables = self.tables;
        let function = at(&tables.frame_table.func, row);
        let text = |id: Option<usize>| id.and_then(|id| tables.string_array.get(id)).map_or("", String::as_str);
        let name = text(function.and_then(|function| at(&tables.func_table.name, function)));
        let resource = function.and_then(|function| at(&tables.func_table.resource, function));
        let resource = resource.and_then(|resource| usize::try_from(resource).ok());
        let library = resource.and_then(|resource| usize::try_from(at(&tables.resource_table.lib, resource)?).ok());
        let file = match library.and_then(|library| self.profile.libs.get(library)) {
            Some(library) if library.path.is_empty() => &library.name,
            Some(library) => &library.path,
            None => text(resource.and_then(|resource| at(&tables.resource_table.name, resource))),
        };
        let is_address = name.strip_prefix("0x").is_some_and(|hex| u64::from_str_radix(hex, 16).is_ok());
        let short = file.rsplit('/').next().unwrap_or(file);
        let frames = &mut translation.frames;
        let frame = match name {
            _ if file.starts_with("[kernel") || short.starts_with("vmlinux") => match is_address {
                true => Frame::Kernel(u64::from_str_radix(&name[2..], 16).unwrap_or(0)),
                false => frames.kernel(name, ""),
            },
            "" => frames.user("[unknown]", ""),
            _ if is_address && (short.contains(".so") || short.ends_with(".dylib")) => {
                frames.user(&format!("[{short}]"), file)
            }
            _ if is_address && !short.is_empty() => frames.user(&format!("{short}+{name}"), file),
            _ => frames.user(name, file),
        };
        self.frames.insert(row, frame);
        frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::notice::Notice;

    const TABLES: &str = r#""stackTable":{"prefix":[null,0,1],"frame":[0,1,2]},
        "frameTable":{"func":[0,1,2],"address":[1,2,3]},
        "funcTable":{"name":[0,1,2],"resource":[0,0,-1]},"resourceTable":{"lib":[0],"name":[0]},"#;
    const SAMPLES_OF: &str = r#""samples":{"stack":[2,null,0],"time":[1,2.5,3],"weight":[2,1,1],"weightType":"samples",
        "threadCPUDelta":[1500,0,200]}"#;

    fn thread(tables: &str, strings: &str) -> String {
        format!(r#""threads":[{{"name":"w","pid":"12","tid":13,{tables}{SAMPLES_OF}{strings}}}]"#)
    }

    /// The names of functions, and the samples that were left out and could not be read.
    fn read_text(text: &str) -> Result<(Vec<String>, u64, u64), TranslationError> {
        let mut translation = Translation::new(String::new());
        read(text.as_bytes(), text.len() as u64, &mut translation).unwrap()?;
        let count = |notice| translation.notices.count(notice);
        let names = translation.frames.names().map(String::from).collect();
        Ok((names, count(Notice::RecordsUnused), count(Notice::LinesUnread)))
    }

    #[test]
    fn tables_may_be_of_a_thread_or_of_all() {
        let (meta, libs) = (r#""meta":{"startTime":1000}"#, r#""libs":[{"name":"app","path":"/bin/app"}]"#);
        let strings = r#","stringArray":["main","0x12","js"]"#;
        let own = format!("{{{meta},{libs},{}}}", thread(TABLES, strings));
        let expected = (vec!["js".to_owned(), "app+0x12\t/bin/app".to_owned(), "main\t/bin/app".to_owned()], 0, 0);
        assert_eq!(read_text(&own).unwrap(), expected);
        let tables = format!("{TABLES}{}", strings.trim_start_matches(','));
        let shared = format!("{{{meta},{libs},\"shared\":{{{tables}}},{}}}", thread("", ""));
        assert_eq!(read_text(&shared).unwrap(), expected);
        assert!(is_one(own.as_bytes()) && is_one(shared.as_bytes()));
    }

    #[test]
    fn samples_without_cpu_time_are_left_out_where_it_is_known() {
        let meta = r#""meta":{"sampleUnits":{"threadCPUDelta":"ns"}}"#;
        let text = format!("{{{meta},{}}}", thread(TABLES, r#","stringTable":["main","f","[x]"]"#));
        assert_eq!(read_text(&text).unwrap().1, 1);
    }

    #[test]
    fn damaged_profiles_are_refused_or_counted() {
        assert!(matches!(read_text("{\"threads\":[{\"samples\":{\"stack\":[1"), Err(TranslationError::Json(_))));
        assert!(matches!(read_text("{\"threads\":[]}"), Err(TranslationError::NoSamples { .. })));
        let circle =
            r#"{"threads":[{"stackTable":{"prefix":[0],"frame":[7]},"samples":{"stack":[0,9],"time":[1,-2]}}]}"#;
        assert_eq!(read_text(circle).unwrap().2, 1);
    }
}
