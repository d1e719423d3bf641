//! The table of notices: every problem that a recording can have, and counters for them. Nothing is dropped in silence.
//!
//! Every module reports into a [`Notices`]; the screen, the JSON (`warnings`) and the exit code under `--strict`
//! read it. Order and counts are the same for any number of workers because counters are only added and the first
//! place is the smallest.

use std::collections::BTreeMap;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing; nothing is missing.
    Note,
    /// Something is missing, by no fault of the file.
    Loss,
    /// The input is malformed: `--strict` turns it into exit status 1.
    Fault,
}

/// Origin of the evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The tracer recorded it.
    Recorded,
    /// whyslow found it.
    Found,
}

macro_rules! notices {
    ($($name:ident $severity:ident $origin:ident $sentence:literal;)+) => {
        /// The kinds of notices.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Notice { $(#[doc = $sentence] $name,)+ }
        impl Notice {
            /// All kinds, in table order.
            pub const ALL: &'static [Notice] = &[$(Notice::$name),+];
            /// Stable name, for JSON.
            pub fn name(self) -> &'static str { match self { $(Notice::$name => stringify!($name),)+ } }
            /// How bad it is.
            pub fn severity(self) -> Severity { match self { $(Notice::$name => Severity::$severity,)+ } }
            /// Origin of the evidence.
            pub fn origin(self) -> Origin { match self { $(Notice::$name => Origin::$origin,)+ } }
            fn template(self) -> &'static str { match self { $(Notice::$name => $sentence,)+ } }
        }
    };
}

notices! {
    DiscardedEvents    Loss  Recorded "the tracer discarded {n} {event|events}";
    DiscardedPackets   Loss  Recorded "the tracer lost {n} {packet|packets}";
    DamagedPacket      Fault Found
        "{n} {packet is|packets are} damaged; what follows the damage in {it|each} was not read";
    DamagedStream      Fault Found    "{n} {stream|streams} could not be read";
    TraceUnreadable    Fault Found    "{n} {trace|traces} could not be read and {was|were} left out";
    MetadataBehind     Fault Found
        "{n} metadata {file has|files have} data after the last packet, which was ignored";
    FolderUnreadable   Fault Found    "{n} {folder|folders} could not be opened; {its|their} contents were left out";
    FolderUnsearched   Fault Found
        "{n} {folder or file was|folders or files were} not searched for databases; what {it holds|they hold} is left \
         out";
    DefinitionsUnreadable Fault Found
        "the definitions of {n} {rank or thread|ranks or threads} could not be read; the clock corrections in them are \
         missing";
    ForeignStream      Note  Found
        "{n} {file is not a stream|files are not streams} of this trace and {was|were} ignored";
    ForeignUuid        Note  Found    "{n} {stream carries|streams carry} another UUID than {its|their} trace";
    IndexMissing       Note  Found    "{n} {stream has|streams have} no packet index; packets were found by scanning";
    IndexStale         Note  Found
        "{n} packet {index did not match its stream and was|indexes did not match their streams and were} rebuilt";
    ClockJumpsBack     Note  Found
        "the clock of {n} {stream jumps|streams jump} back, as a counter that wraps does: what is after it has \
         earlier times";
    TimeBackwards      Note  Found
        "{n} {event has an earlier time|events have an earlier time} than the event before {it|them} in the same \
         stream";
    Inconsistent       Note  Found    "{n} {event contradicts|events contradict} the state known before {it|them}";
    SwitchesMissing    Loss  Found
        "context switches are missing in {n} {place|places} although the tracer reported no loss; what ran in between \
         is unknown";
    ThreadsLeftOut     Loss  Found
        "{n} {time|times} a CPU switched to a thread of which nothing was recorded (only some processes were tracked); \
         what ran there next is unknown until its next event";
    CpusMissing        Loss  Found    "{n} {CPU has|CPUs have} no stream in the recording; what ran there is unknown";
    QueuedElsewhere    Note  Found
        "{n} {time|times} a woken thread ran on a CPU other than its previous one and no migration was recorded; it is \
         assumed to have queued where it ran";
    UnknownScheduler   Loss  Found
        "{n} {kind of event looks|kinds of events look} like scheduler events of an unknown tracer and {was|were} not \
         read";
    UserClockFitted    Note  Found
        "{n} {clock of a user-space trace was|clocks of user-space traces were} aligned with the kernel trace of the \
         same host, by where the events ran";
    UserClockUnbound   Loss  Found
        "{n} {clock of a user-space trace|clocks of user-space traces} could not be aligned with the kernel trace of \
         the same host; times are used as recorded";
    Copies             Note  Found
        "{n} user-space {event was|events were} recorded by two sessions at once; each is analysed once";
    UnattachedUser     Loss  Found
        "{n} user-space {event belongs|events belong} to no thread known from the kernel trace";
    Restarted          Note  Found    "{n} {execution|executions} began again before {it|they} ended";
    EndWithoutBegin    Note  Found    "{n} end {event has|events have} no begin event";
    DelimitersLost     Loss  Found
        "{n} {execution was|executions were} left out: an end event and the next begin event in {it|each} were not \
         recorded";
    Unfinished         Note  Found
        "{n} {execution was|executions were} still running when the trace or {its|their} thread ended";
    LivesInPart        Note  Found
        "{n} {life was|lives were} recorded in part: {it|they} had begun before the recording, or had not ended when \
         it ended; {its time is|their times are} the least that {it|they} took";
    Unanswered         Note  Found
        "{n} {request over a socket was|requests over sockets were} not answered before the connection or recording \
         ended and {is|are} no {execution|executions}";
    Overlapping        Note  Found
        "{n} {request|requests} over sockets came in part or wholly before another one on {its|their} connection was \
         answered (pipelined or multiplexed); which answer belongs to which is unknown, and what overlaps is one \
         execution";
    Streamed           Note  Found
        "{n} {answer was|answers were} sent in parts over most of {its|their} time (streaming); {its|their} last part \
         ends the execution";
    Uncovered          Loss  Found
        "{n} {execution was|executions were} left out: {it ran|they ran} partly or wholly outside the time recorded on \
         all CPUs";
    UnresolvedWaits    Note  Found    "{n} {wait has|waits have} no known cause";
    SymbolFileMissing  Note  Found
        "{n} {executable was|executables were} not found; {its|their} functions have no names (pass --symbols DIR)";
    StacksCutOff       Note  Found
        "{n} user-space call {stack|stacks} could not be unwound to the outermost function: the recorded {copy \
         is|copies are} too short, or unwind tables are missing (pass --symbols DIR)";
    SymbolFileMismatch Loss  Found
        "{n} {executable is not the one that was|executables are not the ones that were} traced (build ids differ, or \
         sizes where no build id was recorded)";
    SymbolFileUnproved Note  Found
        "{n} {executable was|executables were} recorded without a build id, and size and time do not prove that the \
         {file|files} found {is|are} the same; names from {it|them} are shown with a `?`";
    SymbolFileForeign  Note  Found
        "{n} {executable is|executables are} on this machine, but nothing proves that {it is the one that was|they are \
         the ones that were} recorded (no build id, and another host or boot); {its|their} functions have no names \
         (pass --symbols DIR with the files of that host)";
    KernelSymbolsMissing Loss Found
        "functions of the kernel have no names in {n} distinct call {stack|stacks}, and what threads waited for in the \
         kernel is unknown: pass --kallsyms FILE, a copy of /proc/kallsyms that root made on that machine before its \
         next boot";
    CompiledCodeUnnamed Loss Found
        "functions that {n} {process|processes} compiled while running have no names: {its runtime|their runtimes} \
         must write them while recording, to perf-PID.map or jit-PID.dump, to be put beside the recording";
    UntiledPaths       Fault Found
        "{n} critical {path does|paths do} not add up to {its execution|their executions}: this is a bug in whyslow";
    FewExecutions      Note  Found    "figures rest on only {n} {execution|executions}";
    SchemaLenient      Note  Found    "{n} {irregularity|irregularities} in the metadata {was|were} tolerated";
    HistoryDamaged     Fault Found
        "{n} {part|parts} of the history file {is|are} damaged: the states of {its|their} time are unknown";
    MappingLost        Fault Found    "{n} {file|files} shrank while being read";
    MemoryLimit        Loss  Found    "{n} {part was|parts were} left out to stay under the memory limit";
    ClockSkew          Note  Found
        "{n} {message arrives before it was|messages arrive before they were} sent, by the recorded clocks";
    ClocksFitted       Note  Found
        "the {clock|clocks} of {n} {host was|hosts were} aligned with the first host's, using the packets exchanged";
    ClampedPackets     Note  Found
        "{n} {packet still arrives before it was|packets still arrive before they were} sent after clock correction; \
         the transit time is counted as zero";
    UnmatchedMessages  Note  Found    "{n} {message has|messages have} no partner";
    NamesFolded        Note  Found    "{n} thread names that differ only in a number are shown as one";
    GuestUnaligned     Note  Found
        "{n} {recording mentions|recordings mention} virtual machines, whose own recordings are not aligned with \
         {it|them}";
    BufferClock        Loss  Found
        "{n} {buffer was|buffers were} left out because {its|their} clock is not that of the first buffer; record all \
         instances with the same clock (-C)";
    UnknownRecords     Note  Found    "{n} {record|records} of unknown type {was|were} skipped";
    RecordsUnused      Note  Found
        "{n} {record of a type that no analysis uses was|records of types that no analysis uses were} skipped";
    ClockThrottled     Loss  Recorded
        "perf stopped sampling {n} {time|times} because samples came too fast; functions that ran then are unknown";
    OwnThreadsOnly     Loss  Recorded
        "{n} {recording was|recordings were} made without -a: what other threads did, and who woke {its|their} own, is \
         not in {it|them}; record with -a";
    TracepointsSampled Loss  Recorded
        "{n} {tracepoint was|tracepoints were} sampled (-F and -c hold for tracepoints, too), so that most of \
         {its|their} events are missing and no waits follow from {it|them}; give the frequency to the sampled event \
         alone (-e cpu-clock/freq=999/ in place of -F)";
    TracerBusy         Note  Recorded
        "{n} system calls, most of those recorded, are the tracer's own; leave it out (perf: --exclude-perf after the \
         events; LTTng: --filter '$ctx.procname != \"lttng-consumerd\"')";
    PidNamespaces      Note  Recorded
        "processes of {n} pid namespaces (containers) were recorded; one id can mean different processes in them";
    LinesUnread        Fault Found
        "{n} {line or message|lines or messages} of the recording could not be read and {was|were} skipped";
    EventsUndescribed  Fault Found
        "{n} {event|events} of a kind that the recording does not describe {was|were} skipped";
    FormatsMissing     Fault Found
        "the formats of {n} {tracepoint|tracepoints} are not in the recording: what {its|their} events say is unknown";
    HeaderUnread       Fault Found
        "{n} {part|parts} of what the recording says about itself could not be read and {was|were} left out";
    RecordingUnfinished Fault Found
        "{n} {recording was|recordings were} not finished: where {its|their} events are is written at the end, which \
         is missing";
    PartsUnclaimed     Fault Found
        "{n} {part of the recording belongs|parts of the recording belong} to nothing that it describes and {was|were} \
         not read";
    EnvironmentUnread  Fault Found
        "{n} {line|lines} of the environment beside the recording could not be read and {was|were} left out";
    EnvironmentApart   Loss  Found
        "{n} {environment|environments} beside the recording {is|are} not used: another host, another time, or a \
         recorder's clock that cannot be compared with it (perf: -k mono; trace-cmd: -C mono)";
    RecordingsRepeated Note  Found
        "{n} {recording was|recordings were} named twice under one label and {is|are} counted once";
    WakersByElimination Note Found
        "{n} {wait was|waits were} ended from another CPU, whose thread was not recorded: {it is|they are} ascribed to \
         the only thread of the process that ran on another CPU meanwhile";
}

impl Notice {
    /// True for what the user can add to the recording to get a better answer: it is said before the answer.
    pub fn asks_for_a_file(self) -> bool {
        matches!(self, Notice::KernelSymbolsMissing | Notice::CompiledCodeUnnamed)
    }

    /// The sentence for a count: in the table `{n}` is the count, `{one|many}` the words for one and for more.
    pub fn sentence(self, count: u64) -> String {
        let mut text = String::new();
        let mut rest = self.template();
        while let Some((before, (inside, after))) =
            rest.split_once('{').and_then(|(b, r)| Some((b, r.split_once('}')?)))
        {
            text.push_str(before);
            match inside.split_once('|') {
                Some((one, many)) => text.push_str(if count == 1 { one } else { many }),
                None => text.push_str(&count.to_string()),
            }
            rest = after;
        }
        text + rest
    }
}

/// Count and first place of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// How many.
    pub count: u64,
    /// The place of the first one, in words (file, packet, offset); may be empty.
    pub first: String,
}

/// Counters of notices. Merging is commutative: counts add, the smallest place wins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notices {
    entries: BTreeMap<Notice, Entry>,
}

impl Notices {
    /// Count `n` more of `kind`; `place` is only asked for the first.
    pub fn add(&mut self, kind: Notice, n: u64, place: impl FnOnce() -> String) {
        if n == 0 {
            return;
        }
        match self.entries.get_mut(&kind) {
            Some(e) => e.count = e.count.saturating_add(n),
            None => {
                self.entries.insert(kind, Entry { count: n, first: place() });
            }
        }
    }

    /// Add another worker's counters.
    pub fn merge(&mut self, other: &Notices) {
        for (kind, theirs) in &other.entries {
            match self.entries.get_mut(kind) {
                Some(mine) => {
                    mine.count = mine.count.saturating_add(theirs.count);
                    if !theirs.first.is_empty() && (mine.first.is_empty() || theirs.first < mine.first) {
                        mine.first.clone_from(&theirs.first);
                    }
                }
                None => {
                    self.entries.insert(*kind, theirs.clone());
                }
            }
        }
    }

    /// The count of one kind.
    pub fn count(&self, kind: Notice) -> u64 {
        self.entries.get(&kind).map_or(0, |e| e.count)
    }

    /// All that occurred, in table order.
    pub fn iter(&self) -> impl Iterator<Item = (Notice, &Entry)> {
        self.entries.iter().map(|(k, e)| (*k, e))
    }

    /// True when nothing occurred.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// True when the input is malformed (`--strict`).
    pub fn has_fault(&self) -> bool {
        self.entries.keys().any(|k| k.severity() == Severity::Fault)
    }

    /// The notices about data that whyslow could not read or left out, without those about what the tracer lost.
    pub fn missing(&self) -> Notices {
        let is_missing = |k: &Notice| k.severity() > Severity::Note && k.origin() == Origin::Found;
        let entries = self.entries.iter().filter(|(k, _)| is_missing(k)).map(|(k, e)| (*k, e.clone()));
        Notices { entries: entries.collect() }
    }

    /// Those that ask the user for a file.
    pub fn asking(&self) -> Notices {
        let entries = self.entries.iter().filter(|(kind, _)| kind.asks_for_a_file());
        Notices { entries: entries.map(|(kind, entry)| (*kind, entry.clone())).collect() }
    }

    /// One sentence per kind, worst first, for `warnings` and the screens.
    pub fn sentences(&self) -> Vec<String> {
        let mut kinds: Vec<_> = self.entries.iter().collect();
        kinds.sort_by_key(|(k, _)| (std::cmp::Reverse(k.severity()), **k));
        let text = |(kind, e): (&Notice, &Entry)| {
            let sentence = kind.sentence(e.count);
            if e.first.is_empty() { sentence } else { format!("{sentence} (first: {})", e.first) }
        };
        kinds.into_iter().map(text).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_agree_with_their_count() {
        assert_eq!(Notice::Unfinished.sentence(1), "1 execution was still running when the trace or its thread ended");
        assert_eq!(
            Notice::Unfinished.sentence(12),
            "12 executions were still running when the trace or their thread ended"
        );
        for notice in Notice::ALL {
            for count in [1, 2] {
                let sentence = notice.sentence(count);
                assert!(sentence.contains(&count.to_string()), "{sentence}");
                assert!(!sentence.contains(['{', '|', '}']), "{sentence}");
            }
        }
    }
}
