//! Files of other tools that whyslow does not read, by their contents, each with the way to an answer.
//!
//! In: the begin of a file. Out: its format, with an article, and the command that gives a recording which whyslow
//! reads, or what else to do. A sentence here says of a file only what every file of its format has.

/// A format of other tools.
pub(super) struct ForeignFormat {
    content: Content,
    /// Its name, with an article.
    pub name: &'static str,
    /// The way to an answer from here.
    pub remedy: &'static str,
}

/// How the files of a format are known.
enum Content {
    /// By their first bytes.
    Begin(&'static [u8]),
    /// By a part of a text, among its first lines.
    Part(&'static [u8]),
    /// By their first lines that are no comment, empty or incomplete.
    Line(fn(&[u8]) -> bool),
    /// By anything else.
    Bytes(fn(&[u8]) -> bool),
}

/// The remedy where a tool does not record what threads wait for.
const RECORD_AGAIN: &str = "it does not say what threads waited for; record the run again with `whyslow record`";
const TRACE_CMD: &str = "record it with `trace-cmd record`, and name its trace.dat";
const TRACY: &str = "whyslow does not read it; record the run with `whyslow record -- PROGRAM`";
const SCHED: &str = "name the recording that it was made of, or its text by `perf script`";

const fn begin(bytes: &'static [u8], name: &'static str, remedy: &'static str) -> ForeignFormat {
    ForeignFormat { content: Content::Begin(bytes), name, remedy }
}

const fn part(text: &'static [u8], name: &'static str, remedy: &'static str) -> ForeignFormat {
    ForeignFormat { content: Content::Part(text), name, remedy }
}

const fn line(is_one: fn(&[u8]) -> bool, name: &'static str, remedy: &'static str) -> ForeignFormat {
    ForeignFormat { content: Content::Line(is_one), name, remedy }
}

const FOREIGN: [ForeignFormat; 36] = [
    begin(b"\x7fELF", "a program or a core dump", "record a run of a program with `whyslow record -- PROGRAM`"),
    begin(b"# tracer: ", "the kernel's trace as text", TRACE_CMD),
    begin(b"#Paraver ", "a Paraver trace", "record the run with Score-P or EZTrace, and name its traces.otf2"),
    begin(
        b"FLR\0",
        "a recording of Java Flight Recorder, which says what threads waited for",
        "whyslow does not read it yet; record the run with `whyslow record -- java ...`",
    ),
    begin(
        b"go 1.",
        "an execution trace of Go, which says what goroutines waited for",
        "whyslow does not read it yet; record the run with `whyslow record -- PROGRAM`",
    ),
    begin(b"SQLite format 3\0", "an SQLite database", "name the recording that it was made of"),
    begin(b"\xd4\xc3\xb2\xa1", "a packet capture", RECORD_AGAIN),
    begin(b"\xa1\xb2\xc3\xd4", "a packet capture", RECORD_AGAIN),
    begin(b"\x4d\x3c\xb2\xa1", "a packet capture", RECORD_AGAIN),
    begin(b"\x0a\x0d\x0d\x0a", "a capture of packets or of sysdig", "record the run with `whyslow record`"),
    begin(b"gmon", "a profile of gprof", RECORD_AGAIN),
    begin(b"# callgrind format", "a profile of callgrind", RECORD_AGAIN),
    begin(b"events: ", "a profile of callgrind", RECORD_AGAIN),
    begin(b"tlZ\x04", "a trace of Tracy", TRACY),
    begin(b"tZst", "a trace of Tracy", TRACY),
    begin(b"tr\xfdP", "a trace of Tracy", TRACY),
    begin(b"Ftrace!\0", "a part of a recording of uftrace", UFTRACE),
    begin(b"Attaching ", "the output of bpftrace", BPFTRACE),
    begin(b"Attached ", "the output of bpftrace", BPFTRACE),
    part(
        b"www.speedscope.app/file-format-schema",
        "a profile of speedscope",
        "name the profile that it was made of: text of `perf script`, folded stacks or a Firefox profile",
    ),
    part(
        b"\"callFrame\"",
        "a CPU profile of V8",
        "run `perf record -g -k mono node --perf-basic-prof PROGRAM`, and name its perf.data",
    ),
    part(b"# To display the perf.data header info", "the output of `perf report`", SCHED),
    part(b"# Samples: ", "the output of `perf report`", SCHED),
    part(b"  Task                  |   Runtime ms  |", "the output of `perf sched latency`", SCHED),
    part(b"wait time  sch delay", "the output of `perf sched timehist`", SCHED),
    part(b"  *A0  ", "the output of `perf sched map`", SCHED),
    part(b"Performance counter stats for", "the output of `perf stat`", "record the run with `perf record -g`"),
    line(
        is_perf_trace,
        "the output of `perf trace`, which says how long each system call took",
        "record what they waited for with `whyslow record`",
    ),
    line(is_ftrace, "the kernel's trace as text (`trace_pipe` or `trace-cmd report`)", TRACE_CMD),
    part(b"\ncpus=", "the output of `trace-cmd report`", TRACE_CMD),
    begin(b"cpus=", "the output of `trace-cmd report`", TRACE_CMD),
    part(
        b"# DURATION    ",
        "the output of uftrace, or of the function graph tracer",
        "name a trace.dat by `trace-cmd record`, or the JSON by `uftrace dump --chrome`",
    ),
    line(
        is_strace,
        "the output of strace, which says how long each system call took, where -T was given",
        "record what they waited for with `whyslow record -- PROGRAM`",
    ),
    line(is_bpftrace, "the output of bpftrace", BPFTRACE),
    line(
        is_chain,
        "the text of `perf script` without times",
        "print it with `perf script -F comm,pid,tid,cpu,time,period,event,ip,sym,dso,trace`",
    ),
    ForeignFormat {
        content: Content::Bytes(is_pprof),
        name: "a profile of pprof",
        remedy: "whyslow does not read it; record the run with `whyslow record -- PROGRAM`",
    },
];

const BPFTRACE: &str =
    "write its stacks as folded ones (`FUNCTION;FUNCTION COUNT`), or record the run with `whyslow record`";
/// The remedy for a recording of uftrace.
pub(super) const UFTRACE: &str = "name the file that `uftrace dump --chrome -d FOLDER > spans.json` writes";

/// Lines that decide.
const LINES: usize = 5;

/// The format of a file that begins so.
pub(super) fn format(begin: &[u8]) -> Option<&'static ForeignFormat> {
    FOREIGN.iter().find(|format| match format.content {
        Content::Begin(bytes) => begin.starts_with(bytes),
        Content::Part(text) => memchr::memmem::find(begin, text).is_some(),
        Content::Bytes(is_one) => is_one(begin),
        Content::Line(is_one) => {
            let end = memchr::memrchr(b'\n', begin).unwrap_or(begin.len());
            let lines = begin.get(..end).unwrap_or(&[]).split(|byte| *byte == b'\n');
            let is_plain = |line: &&[u8]| !line.trim_ascii().is_empty() && !line.starts_with(b"#");
            lines.filter(is_plain).take(LINES).any(is_one)
        }
    })
}

fn is_digits(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_digit)
}

/// `   0.000 ( 0.005 ms): server/815 read(fd: 3, ...`
fn is_perf_trace(line: &[u8]) -> bool {
    let after = memchr::memmem::find(line, b" ms): ").and_then(|at| line.get(at..));
    after.is_some_and(|call| call.contains(&b'(')) && line.trim_ascii_start().first().is_some_and(u8::is_ascii_digit)
}

/// `   server-815   [003] d..2.  2058.407332: sched_switch: ...`
fn is_ftrace(line: &[u8]) -> bool {
    let Some(open) = memchr::memmem::find(line, b" [") else { return false };
    let (thread, after) = (line.get(..open).unwrap_or(&[]).trim_ascii(), line.get(open + 2..).unwrap_or(&[]));
    let tid = thread.rsplit(|byte| *byte == b'-').next().unwrap_or(&[]);
    // The process may follow: `server-815   (    812) [003]`.
    let tid = tid.split(|byte| *byte == b' ').next().unwrap_or(&[]);
    let cpu = after.split(|byte| *byte == b']').next().unwrap_or(&[]);
    let has_time = memchr::memmem::find(after, b": ").is_some_and(|colon| {
        let before = after.get(..colon).unwrap_or(&[]);
        let time = before.rsplit(|byte| *byte == b' ').next().unwrap_or(&[]);
        time.contains(&b'.') && time.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.')
    });
    thread.contains(&b'-') && is_digits(tid) && is_digits(cpu) && has_time
}

/// `12345 12:00:01.123456 read(3, "", 4) = 0 <0.000012>`, with or without what is before the call and after the value.
fn is_strace(line: &[u8]) -> bool {
    let line = line.strip_prefix(b"[pid ").unwrap_or(line);
    let is_before = |byte: &u8| byte.is_ascii_digit() || b" .:]+".contains(byte);
    let call = line.iter().position(|byte| !is_before(byte)).and_then(|at| line.get(at..)).unwrap_or(&[]);
    let name =
        call.iter().take_while(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || **byte == b'_').count();
    let ends = [&b") = "[..], b"<unfinished ...>", b" resumed>"];
    let is_call = call.get(name) == Some(&b'(') || call.starts_with(b"<... ");
    is_call && ends.iter().any(|end| memchr::memmem::find(call, end).is_some())
}

/// `@[...]: 12` and `@stacks[`
fn is_bpftrace(line: &[u8]) -> bool {
    let name = line.strip_prefix(b"@").unwrap_or(&[]);
    let end = name.iter().position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_').unwrap_or(name.len());
    line.starts_with(b"@") && name.get(end..).is_some_and(|rest| rest.starts_with(b"[") || rest.starts_with(b": "))
}

/// A frame of a call chain.
fn is_chain(line: &[u8]) -> bool {
    let Some(frame) = line.strip_prefix(b"\t") else { return false };
    let mut words = frame.trim_ascii().splitn(2, |byte| *byte == b' ');
    let is_address = words.next().is_some_and(|word| word.len() > 2 && word.iter().all(u8::is_ascii_hexdigit));
    is_address && words.next().is_some_and(|symbol| symbol.ends_with(b")"))
}

/// The first two fields of `perftools.profiles.Profile`: types of values, each with a type and a unit.
fn is_pprof(begin: &[u8]) -> bool {
    matches!(begin, [0x0a, length @ 4..=8, 8, _, rest @ ..]
        if rest.get(usize::from(*length) - 2).is_some_and(|next| matches!(next, 0x0a | 0x12))
            && rest.contains(&0x10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_known_by_their_contents() {
        for (begin, name) in [
            (&b"     0.000 ( 0.005 ms): server/815 read(fd: 3, count: 4) = 0\n"[..], "`perf trace`"),
            (b"          server-815     [003] d..2.  2058.407332: sched_switch: prev_comm=a\n", "trace_pipe"),
            (b"cpus=2\n          server-815   [003]  2058.407332: sched_switch: a\n", "trace_pipe"),
            (b"execve(\"/bin/ls\", [\"ls\"], 0x7f /* 3 vars */) = 0\n", "strace"),
            (b"12345 12:00:01.123456 read(3, \"\", 4) = 0 <0.000012>\n", "strace"),
            (b"[pid   123] futex(0x7f, FUTEX_WAIT <unfinished ...>\n", "strace"),
            (b"@[\n    main+4\n]: 12\n", "bpftrace"),
            (b"Attaching 2 probes...\n", "bpftrace"),
            (b"\x0a\x04\x08\x01\x10\x02\x0a\x04\x08\x03\x10\x04\x12", "pprof"),
            (b"go 1.22 trace\0\0\0", "Go, which says what goroutines waited for"),
            (b"FLR\0\0\x02", "Flight Recorder, which says what threads waited for"),
            (b"{\"exporter\":\"x\",\"$schema\":\"https://www.speedscope.app/file-format-schema.json\"", "speedscope"),
            (b"tr\xfdP\x01", "Tracy"),
            (b"work 15281 cpu-clock:\n\t        1153 parse+0x1a (/tmp/work)\n", "without times"),
            (b"# To display the perf.data header info, please use\n", "perf report"),
        ] {
            let format = format(begin);
            assert!(format.is_some_and(|format| format.name.contains(name)), "{}", String::from_utf8_lossy(begin));
        }
        for other in [&b"hello\n"[..], b"", b"a [1] 2: 3\n", b"@here\n", b"\x0a\x02zz"] {
            assert!(format(other).is_none(), "{}", String::from_utf8_lossy(other));
        }
    }
}
