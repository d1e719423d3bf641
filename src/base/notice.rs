//! Nothing dropped in silence: the one table of what can be wrong with a recording, and counters for it.
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

/// Who saw it.
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
            /// Who saw it.
            pub fn origin(self) -> Origin { match self { $(Notice::$name => Origin::$origin,)+ } }
            /// The sentence; `{n}` stands for the count.
            pub fn sentence(self) -> &'static str { match self { $(Notice::$name => $sentence,)+ } }
        }
    };
}

notices! {
    DiscardedEvents    Loss  Recorded "the tracer discarded {n} events";
    DiscardedPackets   Loss  Recorded "the tracer lost {n} packets";
    DamagedPacket      Fault Found    "{n} packets are damaged: what follows the damage in each is not read";
    DamagedStream      Fault Found    "{n} streams could not be read";
    TraceUnreadable    Fault Found    "{n} traces cannot be read and were left out";
    MetadataBehind     Fault Found    "{n} metadata files go on behind their last packet: what stands there was left";
    FolderUnreadable   Fault Found    "{n} folders cannot be opened: what lies in them was left out";
    DefinitionsUnreadable Fault Found "the definitions of {n} ranks or threads cannot be read: their clocks are not corrected by them";
    ForeignStream      Note  Found    "{n} files are not streams of this trace and were left";
    ForeignUuid        Note  Found    "{n} streams carry another uuid than their trace";
    IndexMissing       Note  Found    "{n} streams have no packet index: packets were found by scanning";
    IndexStale         Note  Found    "{n} packet indexes disagree with their streams and were rebuilt";
    TimeBackwards      Note  Found    "{n} events lie before their predecessor in the same stream";
    Inconsistent       Note  Found    "{n} events contradict the state known before them";
    SwitchesMissing    Loss  Found    "{n} times events show that switches are missing which the tracer does not tell to be lost: what ran meanwhile is unknown";
    ThreadsLeftOut     Loss  Found    "{n} times a CPU went to a thread of which nothing was recorded (only some processes were tracked): who ran there next is unknown until it shows";
    CpusMissing        Loss  Found    "{n} CPUs have no stream in the recording: what ran there is unknown";
    QueuedElsewhere    Note  Found    "{n} woken threads ran on another CPU than the one they ran on last, and no migration was recorded: they are taken to have queued where they ran";
    UnknownScheduler   Loss  Found    "{n} kinds of events look like scheduler events of a tracer that is not known, and are not read";
    UserClockFitted    Note  Found    "{n} clocks of user-space traces were laid on their host's by where their events ran";
    UserClockUnbound   Loss  Found    "{n} clocks of user-space traces could not be laid on their host's: their events are taken as recorded";
    Copies             Note  Found    "{n} user-space events were recorded by two sessions at once: each is followed once";
    UnattachedUser     Loss  Found    "{n} user-space events belong to no thread known from the kernel";
    Restarted          Note  Found    "{n} executions began again before they ended";
    EndWithoutBegin    Note  Found    "{n} ends have no begin";
    DelimitersLost     Loss  Found    "{n} executions were left out: inside them an end and the next begin were not recorded";
    Unfinished         Note  Found    "{n} executions had not ended when the trace or their thread did";
    Uncovered          Loss  Found    "{n} executions were left out: they lie (partly) outside what was recorded of all CPUs";
    UnresolvedWaits    Note  Found    "{n} waits have no known cause";
    SymbolFileMissing  Note  Found    "{n} executables were not found: their functions have no names (see --symbols)";
    StacksCutOff       Note  Found    "{n} call stacks in user space could not be unwound to their outermost function: their copies are too short, or unwind tables are missing (see --symbols)";
    SymbolFileMismatch Loss  Found    "{n} executables are not those that were traced (build ids differ, or sizes where none were recorded)";
    SymbolFileUnproved Note  Found    "{n} executables were recorded without a build id, and their size and time do not show that they are those that were traced: names from them have a `?` behind them";
    UntiledPaths       Fault Found    "{n} critical paths do not tile their executions: this is an error of whyslow";
    FewExecutions      Note  Found    "figures rest on {n} executions only";
    SchemaLenient      Note  Found    "{n} oddities in the metadata were tolerated";
    MappingLost        Fault Found    "{n} files shrank while they were read";
    MemoryLimit        Loss  Found    "{n} parts were left out to stay under the memory limit";
    ClockSkew          Note  Found    "{n} messages arrive before they were sent, by the clocks recorded";
    ClocksFitted       Note  Found    "the clocks of {n} hosts were laid on the first one's by the packets between them";
    ClampedPackets     Note  Found    "{n} packets arrive before they were sent by the fitted clocks as well: no time is taken for their way";
    UnmatchedMessages  Note  Found    "{n} messages have no partner";
    NamesFolded        Note  Found    "{n} thread names that differ in a number only are shown as one";
    GuestUnaligned     Note  Found    "{n} recordings know of virtual machines, whose own recordings are not laid on their time line";
    UnknownRecords     Note  Found    "{n} records of unknown types were stepped over";
}

/// Count and first place of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// How many.
    pub count: u64,
    /// Where the first one was, in words (file, packet, offset); may be empty.
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

    /// Those of what whyslow could not read or had to leave out; what the tracer lost is in the recording itself.
    pub fn missing(&self) -> Notices {
        let is_missing = |k: &Notice| k.severity() > Severity::Note && k.origin() == Origin::Found;
        let entries = self.entries.iter().filter(|(k, _)| is_missing(k)).map(|(k, e)| (*k, e.clone()));
        Notices { entries: entries.collect() }
    }

    /// One sentence per kind, worst first, for `warnings` and for people.
    pub fn sentences(&self) -> Vec<String> {
        let mut kinds: Vec<_> = self.entries.iter().collect();
        kinds.sort_by_key(|(k, _)| (std::cmp::Reverse(k.severity()), **k));
        let text = |(kind, e): (&Notice, &Entry)| {
            let said = kind.sentence().replace("{n}", &e.count.to_string());
            if e.first.is_empty() { said } else { format!("{said} (first: {})", e.first) }
        };
        kinds.into_iter().map(text).collect()
    }
}
