//! Folded stacks: one stack a line, outermost function first, and how often it was seen.
//!
//! ```text
//! server;main;handle;parse 120
//! server;main;read;entry_SYSCALL_64_[k];ksys_read_[k] 8          _[k] kernel, _[i] inlined, _[j] compiled by a JIT
//! ```
//! They have no times, no threads and no unit: each line becomes one sample of the event `samples` with the count as
//! its weight, and the number of the line is in place of a time, so that the order of the file is kept. The first
//! frame is the name of the thread where it looks so in every line: at most 15 bytes or an ending `-PID` or
//! `-PID/TID`, no signature of a function, none of the functions in which threads begin, and not the only frame.
//! Otherwise all stacks are of one thread without a name. A count with decimals is refused: what was rounded away
//! would not be known. Cost: linear; the text is read twice.

use super::about::About;
use super::error::TranslationError;
use super::event_place::{EventPlace, NamedThread};
use super::firefox;
use super::frames::Frame;
use super::lines::{self, TextLine, TextLines};
use super::thread_ids::id_of_name;
use super::translation::{SAMPLES, StackWords, Translation, UNKNOWN_CPU};
use crate::base::text::{copied, with_copy};
use crate::input::tracepoint::RecorderClock;
use std::io::{self, BufRead, Seek};

/// Bytes of the name of a thread, by the kernel.
const LONGEST_NAME: usize = 15;
/// The thread of stacks that name none.
const THREAD: i32 = 1;
/// Lines at the begin of a file that must all be stacks.
const FIRST_LINES: usize = 100;
/// Functions in which threads begin, and names of the root of all stacks.
const ROOTS: [&str; 22] = [
    "main",
    "_start",
    "start",
    "_dyld_start",
    "start_thread",
    "thread_start",
    "_pthread_start",
    "clone",
    "__clone",
    "clone3",
    "__clone3",
    "__libc_start_main",
    "__libc_start_call_main",
    "ret_from_fork",
    "runtime.goexit",
    "runtime.main",
    "runtime.mcall",
    "main.main",
    "all",
    "root",
    "(root)",
    "<module>",
];

/// The remedy where the counts are no whole numbers.
const WHOLE: &str = "a count with decimals; fold again with whole counts, samples or nanoseconds";

struct FoldedLine<'t> {
    stack: &'t [u8],
    count: Count,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Count {
    Whole(u64),
    Decimals,
}

impl FoldedLine<'_> {
    fn read(line: &[u8]) -> Option<FoldedLine<'_>> {
        let line = line.trim_ascii();
        let space = memchr::memrchr(b' ', line)?;
        let (stack, count) = (line.get(..space)?.trim_ascii_end(), line.get(space + 1..)?);
        let digits = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
        let count = match memchr::memchr(b'.', count) {
            None if digits(count) => Count::Whole(lines::number(count)?),
            Some(point) if digits(count.get(..point)?) && digits(count.get(point + 1..)?) => Count::Decimals,
            _ => return None,
        };
        (!stack.is_empty()).then_some(FoldedLine { stack, count })
    }

    fn first(&self) -> &[u8] {
        self.stack.split(|byte| *byte == b';').next().unwrap_or(self.stack)
    }
}

/// True for the begin of a file: all of its first lines are stacks, and one has two frames.
pub(super) fn is_one(begin: &[u8]) -> bool {
    let end = memchr::memrchr(b'\n', begin).unwrap_or(begin.len());
    let whole = begin.get(..end).unwrap_or(&[]);
    let mut lines = whole.split(|byte| *byte == b'\n').filter(|line| !is_comment(line)).take(FIRST_LINES).peekable();
    let mut is_deep = false;
    let mut is_stack = |line: &[u8]| {
        let Some(FoldedLine { stack, .. }) = FoldedLine::read(line) else { return false };
        is_deep |= memchr::memchr(b';', stack).is_some();
        !stack.contains(&0)
    };
    // A profile of Firefox is one line, which may end like a stack where its begin is cut.
    lines.peek().is_some() && lines.all(&mut is_stack) && is_deep && !firefox::is_one(begin)
}

fn is_comment(line: &[u8]) -> bool {
    line.trim_ascii().is_empty() || line.starts_with(b"#")
}

/// Read the stacks of a file.
pub(super) fn read(
    from: &mut (impl BufRead + Seek),
    translation: &mut Translation,
) -> io::Result<Result<About, TranslationError>> {
    let are_named = match first_frames_are_names(from)? {
        Ok(are_named) => are_named,
        Err(line) => return Ok(Err(TranslationError::Header { line, expected: WHOLE })),
    };
    from.rewind()?;
    let mut lines = TextLines::new(from);
    let (mut kernel, mut user) = (Vec::new(), Vec::new());
    while let Some((time, line)) = lines.next_record(translation)? {
        if is_comment(line) {
            continue;
        }
        let Some(FoldedLine { stack, count: Count::Whole(count) }) = FoldedLine::read(line) else {
            translation.unreadable_record(|| format!("line {time}"));
            continue;
        };
        translation.begin_record();
        let mut frames = stack.split(|byte| *byte == b';');
        let name = if are_named { frames.next().unwrap_or(b"") } else { b"" };
        let thread = thread_of(name);
        kernel.clear();
        user.clear();
        // The innermost is the last.
        for frame in frames.rev().take(usize::from(u16::MAX)) {
            match frame_of(frame, translation) {
                frame @ Frame::Kernel(_) => kernel.push(frame.word(kernel.len())),
                frame @ Frame::User(_) => user.push(frame.word(user.len())),
            }
        }
        let at = EventPlace { time, cpu: UNKNOWN_CPU, thread };
        translation.sample(at, SAMPLES, count, StackWords { kernel: &kernel, user: &user });
        translation.end_record();
    }
    let clock = RecorderClock { name: "none".to_owned(), ..RecorderClock::default() };
    Ok(Ok(About { environment: Vec::new(), clock, spans: None }))
}

/// True where the first frame of every line looks like the name of a thread. The number of a line whose count has
/// decimals is an error.
fn first_frames_are_names(from: &mut impl BufRead) -> io::Result<Result<bool, u64>> {
    let mut lines = TextLines::new(from);
    let mut are_names = true;
    loop {
        let number = lines.number + 1;
        let line = match lines.read_next()? {
            None => return Ok(Ok(are_names)),
            Some(TextLine::TooLong) => continue,
            Some(TextLine::Whole(line)) => line,
        };
        let Some(folded) = FoldedLine::read(line).filter(|_| !is_comment(line)) else { continue };
        if folded.count == Count::Decimals {
            return Ok(Err(number));
        }
        let first = folded.first();
        are_names = are_names && looks_like_a_name(first) && folded.stack.len() > first.len();
    }
}

/// True for a first frame that may be the name of a thread.
fn looks_like_a_name(frame: &[u8]) -> bool {
    let is_short = frame.len() <= LONGEST_NAME || ids_of(frame).is_some();
    let is_function = frame.contains(&b'(') || memchr::memmem::find(frame, b"::").is_some() || frame.ends_with(b"]");
    is_short && !frame.is_empty() && !is_function && !ROOTS.iter().any(|root| root.as_bytes() == frame)
}

/// The name, process and thread of `NAME-PID` and `NAME-PID/TID`.
fn ids_of(name: &[u8]) -> Option<(&[u8], i32, i32)> {
    let dash = memchr::memrchr(b'-', name)?;
    let ids = name.get(dash + 1..)?;
    let digits = |text: &[u8]| if text.iter().all(u8::is_ascii_digit) { lines::id(text) } else { None };
    let (pid, tid) = match memchr::memchr(b'/', ids) {
        Some(slash) => (digits(ids.get(..slash)?)?, digits(ids.get(slash + 1..)?)?),
        None => (digits(ids)?, digits(ids)?),
    };
    Some((name.get(..dash)?, pid, tid))
}

fn thread_of(name: &[u8]) -> NamedThread<'_> {
    match ids_of(name) {
        _ if name.is_empty() => NamedThread { tid: THREAD, pid: -1, name },
        Some((name, pid, tid)) => NamedThread { tid, pid, name },
        None => NamedThread { tid: id_of_name(name), pid: -1, name },
    }
}

/// The frame of a function with the suffix that `stackcollapse-perf.pl --all` adds.
fn frame_of(frame: &[u8], translation: &mut Translation) -> Frame {
    if let Some(name) = frame.strip_suffix(b"_[k]") {
        return translation.frames.kernel(&copied(name), "");
    }
    let name = [&b"_[i]"[..], b"_[j]"].iter().find_map(|end| frame.strip_suffix(*end)).unwrap_or(frame);
    with_copy(name, |name| translation.frames.user(if name.is_empty() { "[unknown]" } else { name }, ""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::notice::Notice;

    /// The names of functions, and of threads with their ids, and the lines that could not be read.
    fn read_text(text: &str) -> Result<(Vec<String>, u64), TranslationError> {
        let mut translation = Translation::new(String::new());
        read(&mut io::Cursor::new(text.as_bytes()), &mut translation).unwrap()?;
        let names = translation.frames.names().map(String::from).collect();
        Ok((names, translation.notices.count(Notice::LinesUnread)))
    }

    #[test]
    fn first_frames_are_names_of_threads_where_all_look_so() {
        let names = |text: &str| read_text(text).unwrap().0;
        assert_eq!(
            names("server;main;parse 3\nworker 1;start_thread;run 4\n"),
            ["parse", "main", "run", "start_thread"]
        );
        assert_eq!(names("server-12/13;main 3\n"), ["main"]);
        // A function in which threads begin, a signature, a name that is too long.
        assert_eq!(names("main;parse 3\n"), ["parse", "main"]);
        assert_eq!(names("a::b;parse 3\n"), ["parse", "a::b"]);
        assert_eq!(names("sixteen_letters_;parse 3\n"), ["parse", "sixteen_letters_"]);
        assert_eq!(names("journal;start_thread;journal 3\n"), ["journal", "start_thread"]);
        // The only frame of a line is a function.
        assert_eq!(names("server;main 3\nidle 4\n"), ["main", "server", "idle"]);
    }

    #[test]
    fn suffixes_of_frames_are_no_part_of_their_names() {
        assert_eq!(
            read_text("app;main;inner_[i];jitted_[j];sys_[k] 3\n").unwrap(),
            (vec!["jitted".into(), "inner".into(), "main".into()], 0)
        );
    }

    #[test]
    fn counts_are_whole_numbers() {
        let error = read_text("app;main 3\napp;main;f 1.5\n").unwrap_err();
        assert_eq!(error, TranslationError::Header { line: 2, expected: WHOLE });
        assert_eq!(read_text("app;main 3\napp;main\n\n# note\n").unwrap().1, 1);
    }

    #[test]
    fn is_one_knows_the_begin_of_a_file() {
        assert!(is_one(b"app;main 3\napp;main;f 4\napp;mai") && is_one(b"# by perf\na;b c 12\n") && is_one(b"a;b 1"));
        for other in ["", "app 3\n", "app;main\n", "a;b;c 3\nhello\n", "a;b,c 3x\n", "the quick; brown 7 fox\n"] {
            assert!(!is_one(other.as_bytes()), "{other:?}");
        }
    }
}
