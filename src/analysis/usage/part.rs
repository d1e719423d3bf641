//! The machine of `stats cpu` and `stats io`: who runs on each CPU, which thread an id means, what its calls moved.
//!
//! In: the typed events of a chunk (switches, forks, system calls ...). Out: a [`Part`], made in one of two ways by the
//! same steps: from the true left state (the whole, or a chunk that is run again), or in the dark. In the dark each thread
//! met by its id may be one of the left (a *head*), its slot is a prefix (`state/slot.rs`), and what happens to
//! "whoever runs on the CPU" before anybody is known to is kept in [`Cpu::head`]. [`Part::append`] joins the next
//! part: heads are found by id, prefixes are played on the slots, kept steps go to who ran. Cost of joining:
//! the threads and CPUs that the right part met. ALGORITHMS.md 10.3 and 10.4.
//!
//! Contradictions (a switch whose `prev` is not who ran) are believed and counted, as by the kernel machine. Where one
//! lies at a cut so that its order among other changes is lost, [`Part::fits`] says so, and the chunk is run again.

use super::calls::{Calls, Step};
use crate::base::names::{NameId, Names};
use crate::base::time::{Ns, Span};
use crate::event::kind::{Event, Kind, TextId};
use crate::event::prev_state::{Generation, Leaves};
use crate::event::transfer::{Transfer, transfer};
use crate::reading::batch::{Batch, ThreadContext};
use crate::state::slot::{Change, Slot};
use crate::state::timeline::HostId;
use foldhash::{HashMap, HashSet};

/// A CPU of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place {
    pub host: HostId,
    pub cpu: u16,
}

/// How events name a thread: idle tasks, all of id 0, by their CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct MarkKey {
    pub host: HostId,
    pub tid: i32,
    idle: Option<u16>,
}

/// One incarnation of a thread.
#[derive(Clone, Debug)]
pub(super) struct Thread {
    key: MarkKey,
    /// Its id now: a thread that runs another program takes over the first one's.
    pub tid: i32,
    /// Perhaps one of the left.
    head: bool,
    /// Its last switch was seen: whoever has its id next is another.
    ended: bool,
    /// Where it runs.
    slot: Slot<Option<Place>>,
    /// How long it ran where.
    pub on: HashMap<Place, Ns>,
    pub calls: Calls,
    /// As its own events say; as the tracer's enumeration does.
    pid: (Option<i32>, Option<i32>),
    name: (Option<NameId>, Option<NameId>),
}

impl Thread {
    /// An idle task.
    pub fn is_idle(&self) -> bool {
        self.key.idle.is_some()
    }

    pub fn host(&self) -> HostId {
        self.key.host
    }

    /// Its process.
    pub fn pid(&self) -> i32 {
        self.pid.0.or(self.pid.1).unwrap_or(self.tid)
    }

    /// Its last name.
    pub fn name(&self) -> Option<NameId> {
        self.name.0.or(self.name.1)
    }

    fn change(&mut self, t: Ns, change: Change<Option<Place>>) {
        let on = &mut self.on;
        self.slot.change(t, change, &mut |place, span| spend(on, place, span));
    }
}

/// A thread ran somewhere.
fn spend(on: &mut HashMap<Place, Ns>, place: Option<Place>, span: Span) {
    if let Some(place) = place {
        let time = on.entry(place).or_default();
        *time = time.saturating_add(span.len());
    }
}

/// Who runs on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Runs {
    /// Whoever ran at the end of the left.
    Left,
    /// Nobody knows; it is the same thread since that time, or since the first event.
    Unknown(Ns),
    /// This one.
    Thread(u32),
}

/// What happened to whoever ran, while that was not known.
#[derive(Clone, Copy, Debug)]
enum Early {
    Call(Step),
    Lost,
}

/// A CPU.
#[derive(Clone, Debug)]
struct Cpu {
    runs: Runs,
    /// In the dark: steps of whoever ran on the left.
    head: Vec<(Ns, Early)>,
    /// In the dark: when and who was first seen to run.
    seen: Option<(Ns, u32)>,
    /// In the dark: who ran at the begin, by what lies before it.
    seed: Option<u32>,
    /// The first event of any kind.
    first: Ns,
}

/// What a trace is, as far as it matters here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    pub host: HostId,
    pub generation: Generation,
    /// Its switches are followed.
    pub switches: bool,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Part {
    /// It began at the true beginning.
    known: bool,
    pub threads: Vec<Thread>,
    /// Who answers to an id now; `None`: nobody any more.
    by_key: HashMap<MarkKey, Option<u32>>,
    cpus: HashMap<Place, Cpu>,
    pub names: Names,
    /// Time of the last event of any kind.
    pub end: Option<Ns>,
    /// Events that contradict what was known; time of the first.
    pub odd: (u64, Option<Ns>),
}

/// A batch while its events are stepped through.
struct Reading<'b> {
    batch: &'b Batch,
    names: Vec<Option<NameId>>,
    /// By text, for calls: what they move.
    moves: Vec<Option<Option<Transfer>>>,
}

impl Reading<'_> {
    fn name(&mut self, names: &mut Names, id: TextId) -> Option<NameId> {
        let slot = self.names.get_mut(id.index())?;
        if slot.is_none() {
            *slot = self.batch.text_of(id).map(|text| names.intern(text));
        }
        *slot
    }

    /// What a call moves; `None` where it has no name.
    fn moves(&mut self, id: TextId) -> Option<Option<Transfer>> {
        let slot = self.moves.get_mut(id.index())?;
        if slot.is_none() {
            *slot = self.batch.text_of(id).filter(|name| !name.is_empty()).map(transfer);
        }
        *slot
    }
}

impl Part {
    /// From the true beginning, or from anywhere.
    pub fn new(known: bool) -> Part {
        Part { known, ..Part::default() }
    }

    /// Something happened on a CPU.
    pub fn see(&mut self, place: Place, t: Ns) {
        let cpu = self.cpu(place, t);
        cpu.first = cpu.first.min(t);
        self.end = self.end.max(Some(t));
    }

    /// Something happened elsewhere.
    pub fn see_nowhere(&mut self, t: Ns) {
        self.end = self.end.max(Some(t));
    }

    /// A thread ran on a CPU just before the first event.
    pub fn seed(&mut self, place: Place, tid: i32, t: Ns) {
        let key = MarkKey { host: place.host, tid, idle: (tid == 0).then_some(place.cpu) };
        let thread = self.thread(key);
        let cpu = self.cpu(place, t);
        (cpu.runs, cpu.seed) = (Runs::Thread(thread), Some(thread));
    }

    fn cpu(&mut self, place: Place, t: Ns) -> &mut Cpu {
        let runs = if self.known { Runs::Unknown(Ns::MIN) } else { Runs::Left };
        self.cpus.entry(place).or_insert_with(|| Cpu { runs, head: Vec::new(), seen: None, seed: None, first: t })
    }

    fn open(&mut self, key: MarkKey, head: bool) -> u32 {
        let known = !head;
        self.threads.push(Thread {
            key,
            tid: key.tid,
            head,
            ended: false,
            slot: if known { Slot::known(None, Ns::MIN) } else { Slot::default() },
            on: HashMap::default(),
            calls: Calls::new(known),
            pid: (None, None),
            name: (None, None),
        });
        let at = (self.threads.len() - 1) as u32;
        self.by_key.insert(key, Some(at));
        at
    }

    /// Who answers to an id now, if anybody living does.
    fn find(&self, key: MarkKey) -> Option<u32> {
        let at = self.by_key.get(&key).copied().flatten()?;
        self.threads.get(at as usize).is_some_and(|thread| !thread.ended).then_some(at)
    }

    fn thread(&mut self, key: MarkKey) -> u32 {
        let unheard = !self.known && !self.by_key.contains_key(&key);
        self.find(key).unwrap_or_else(|| self.open(key, unheard))
    }

    /// Who an event of a CPU means.
    fn thread_on(&mut self, place: Place, tid: i32) -> u32 {
        let key = MarkKey { host: place.host, tid, idle: (tid == 0).then_some(place.cpu) };
        match self.cpus.get(&place).map(|cpu| cpu.runs) {
            Some(Runs::Thread(at)) if tid != 0 && self.threads.get(at as usize).is_some_and(|t| t.tid == tid) => at,
            _ => self.thread(key),
        }
    }

    fn contradict(&mut self, t: Ns) {
        self.odd = (self.odd.0 + 1, Some(self.odd.1.map_or(t, |first| first.min(t))));
    }

    /// Step through the events of a batch. `lost_until` tells to when a loss lasts.
    pub fn absorb(&mut self, batch: &Batch, origins: &[Option<Origin>], lost_until: impl Fn(&Event) -> Ns) {
        let mut reading = Reading { batch, names: vec![None; batch.texts()], moves: vec![None; batch.texts()] };
        for event in &batch.events {
            if let Some(Some(origin)) = origins.get(usize::from(event.trace)) {
                self.step(event, *origin, &mut reading, &lost_until);
            }
        }
    }

    fn step(&mut self, event: &Event, origin: Origin, reading: &mut Reading<'_>, lost_until: &impl Fn(&Event) -> Ns) {
        let (t, host) = (event.time, origin.host);
        let place = Place { host, cpu: event.cpu };
        self.see(place, t);
        let identity = reading.batch.identity(event.who).copied().unwrap_or_default();
        let named = identity.tid.map(|tid| self.thread_on(place, tid));
        if let Some(thread) = named {
            if origin.switches {
                self.runs(place, thread, t);
            }
            self.describe(thread, &identity, reading);
        }
        let id = |tid| MarkKey { host, tid, idle: None };
        match event.kind {
            Kind::Switch { prev, next, prev_state, prev_name, next_name } => {
                let prev = self.thread_on(place, prev);
                self.name(prev, prev_name, reading);
                let next = self.thread_on(place, next);
                self.name(next, next_name, reading);
                self.runs(place, prev, t);
                self.threads[prev as usize].change(t, Change::Set(None));
                self.threads[prev as usize].ended |= origin.generation.decode(prev_state, false) == Leaves::Dead;
                self.threads[next as usize].change(t, Change::Set(Some(place)));
                self.cpu(place, t).runs = Runs::Thread(next);
            }
            Kind::Fork { child, child_pid, name, .. } => {
                let child = self.open(id(child), false);
                self.threads[child as usize].pid.0 = Some(child_pid);
                self.name(child, name, reading);
            }
            Kind::Exec { tid, old_tid, .. } if tid != old_tid => {
                let thread = self.thread(id(old_tid));
                let first = self.thread(id(tid));
                self.threads[first as usize].ended |= first != thread;
                self.by_key.insert(id(tid), Some(thread));
                self.by_key.insert(id(old_tid), None);
                self.threads[thread as usize].tid = tid;
            }
            Kind::Process(process) => {
                let Some(process) = reading.batch.process_of(process).filter(|p| p.tid != 0) else { return };
                let at = self.thread(id(process.tid));
                let name = reading.name(&mut self.names, process.name);
                let thread = &mut self.threads[at as usize];
                thread.pid.1 = thread.pid.1.or(Some(process.pid));
                thread.name.1 = thread.name.1.or(name);
            }
            Kind::CallEntry { name } => {
                let what = reading.moves(name).flatten();
                self.call(place, named, t, Step::Entry(what));
            }
            Kind::CallExit { name, ret } => {
                let what = reading.moves(name);
                self.call(place, named, t, Step::Exit(what, ret));
            }
            Kind::Lost { until } if origin.switches => {
                self.lose(place, t, until.unwrap_or_else(|| lost_until(event)));
            }
            _ => {}
        }
    }

    fn describe(&mut self, thread: u32, identity: &ThreadContext, reading: &mut Reading<'_>) {
        let pid = &mut self.threads[thread as usize].pid.0;
        *pid = identity.pid.or(*pid);
        if let Some(name) = identity.name {
            self.name(thread, name, reading);
        }
    }

    fn name(&mut self, thread: u32, name: TextId, reading: &mut Reading<'_>) {
        let name = reading.name(&mut self.names, name);
        let known = &mut self.threads[thread as usize].name.0;
        *known = name.or(*known);
    }

    /// It turns out that `thread` runs at `place`.
    fn runs(&mut self, place: Place, thread: u32, t: Ns) {
        let on = Change::Set(Some(place));
        let runs = self.cpu(place, t).runs;
        match runs {
            Runs::Thread(other) if other == thread => return,
            Runs::Thread(other) => {
                self.contradict(t);
                self.threads[other as usize].change(t, Change::If(Some(place), None));
                self.threads[thread as usize].change(t, on);
            }
            Runs::Left => {
                self.cpu(place, t).seen = Some((t, thread));
                self.threads[thread as usize].change(t, on);
            }
            Runs::Unknown(since) => self.ran_since(place, thread, since, t),
        }
        self.cpu(place, t).runs = Runs::Thread(thread);
    }

    /// `thread` ran since `since` at least, unless it was seen elsewhere after that.
    fn ran_since(&mut self, place: Place, thread: u32, since: Ns, t: Ns) {
        let since = since.max(self.cpu(place, t).first).min(t);
        let thread = &mut self.threads[thread as usize];
        let from = if thread.slot.last().is_none_or(|last| last <= since) { since } else { t };
        thread.change(from, Change::Set(Some(place)));
    }

    fn call(&mut self, place: Place, named: Option<u32>, t: Ns, step: Step) {
        let cpu = self.cpu(place, t);
        match named.map_or(cpu.runs, Runs::Thread) {
            Runs::Thread(thread) => self.threads[thread as usize].calls.step(step),
            Runs::Left => cpu.head.push((t, Early::Call(step))),
            Runs::Unknown(_) => {}
        }
    }

    /// Events of a CPU were lost from `t` to `until`.
    fn lose(&mut self, place: Place, t: Ns, until: Ns) {
        let cpu = self.cpu(place, t);
        let runs = std::mem::replace(&mut cpu.runs, Runs::Unknown(until));
        match runs {
            Runs::Thread(thread) => {
                let thread = &mut self.threads[thread as usize];
                thread.change(t, Change::If(Some(place), None));
                thread.calls.lose();
            }
            Runs::Left => cpu.head.push((t, Early::Lost)),
            Runs::Unknown(_) => {}
        }
    }

    /// Which threads of this part the heads of `right` are; nothing for those that are new.
    fn heads(&self, right: &Part) -> Vec<Option<u32>> {
        right.threads.iter().map(|thread| if thread.head { self.find(thread.key) } else { None }).collect()
    }

    /// True when [`Part::append`] gives exactly what stepping through the events of `right` from here would.
    pub fn fits(&self, right: &Part) -> bool {
        let heads = self.heads(right);
        self.once_each(right, &heads) && right.cpus.iter().all(|(place, cpu)| self.fits_on(*place, cpu, right, &heads))
    }

    /// True when no thread is changed on account of two CPUs (it was thought to run on both): their order would be lost.
    fn once_each(&self, right: &Part, heads: &[Option<u32>]) -> bool {
        // A thread of the left, or else a new one of the right.
        let mut changed: HashSet<Result<u32, u32>> = HashSet::default();
        right.cpus.iter().all(|(place, cpu)| {
            let here = |thread: u32| heads.get(thread as usize).copied().flatten().ok_or(thread);
            let seen = cpu.seen.map(|(_, thread)| here(thread));
            let thread = match self.cpus.get(place).map(|left| left.runs) {
                Some(Runs::Thread(running)) => Some(Ok(running))
                    .filter(|running| !cpu.head.is_empty() || seen.is_some_and(|seen| seen != *running)),
                _ => seen,
            };
            thread.is_none_or(|thread| changed.insert(thread))
        })
    }

    fn fits_on(&self, place: Place, cpu: &Cpu, right: &Part, heads: &[Option<u32>]) -> bool {
        let here = |thread: u32| heads.get(thread as usize).copied().flatten();
        let met = |thread: u32| right.threads.get(thread as usize);
        let Some(Runs::Thread(running)) = self.cpus.get(&place).map(|left| left.runs) else {
            // Who is seen first ran before that: nothing else of it may be known from then.
            let first =
                |(t, at): (Ns, u32)| met(at).is_some_and(|thread| thread.head && thread.slot.begins() == Some(t));
            return cpu.seed.is_none() && cpu.seen.is_none_or(first);
        };
        if cpu.seed.is_some_and(|seed| here(seed) != Some(running)) {
            return false;
        }
        let other = cpu.seen.filter(|(_, thread)| here(*thread) != Some(running));
        // The same id, another incarnation: by its id alone the right part took one for the other.
        let tid = self.threads.get(running as usize).map(|thread| thread.tid);
        if other.is_some_and(|(_, thread)| met(thread).map(|thread| thread.key.tid) == tid) {
            return false;
        }
        // What is kept for whoever ran must come before all that the right part knows of that thread.
        let kept = cpu.head.last().map(|(t, _)| *t);
        let begins = || {
            let at = heads.iter().position(|head| *head == Some(running))?;
            met(at as u32)?.slot.begins()
        };
        match (kept.max(other.map(|(t, _)| t)), begins()) {
            (Some(last), Some(begin)) => last < begin || other.is_none() && last == begin && cpu.seen.is_some(),
            _ => true,
        }
    }

    /// Join the next part, which fits.
    pub fn append(&mut self, right: Part) {
        let heads = self.heads(&right);
        let names: Vec<NameId> =
            (0..right.names.len()).map(|at| self.names.intern(right.names.get(NameId::at(at)))).collect();
        let mut now = Vec::with_capacity(heads.len());
        for (thread, head) in right.threads.iter().zip(&heads) {
            now.push(head.unwrap_or_else(|| self.open(thread.key, false)));
        }
        let at = |thread: u32| now.get(thread as usize).copied().unwrap_or(thread);
        // In the order of CPUs: a table has none of its own.
        let mut cpus: Vec<(&Place, &Cpu)> = right.cpus.iter().collect();
        cpus.sort_unstable_by_key(|(place, _)| **place);
        for (place, cpu) in cpus {
            self.join_cpu(*place, cpu, at);
        }
        for (thread, here) in right.threads.into_iter().zip(&now) {
            let name = |id: Option<NameId>| id.and_then(|id| names.get(id.index()).copied());
            let mine = &mut self.threads[*here as usize];
            let on = &mut mine.on;
            thread.on.iter().for_each(|(place, time)| spend(on, Some(*place), Span::new(0, *time)));
            if thread.head {
                mine.slot.append(thread.slot, &mut |place, span| spend(on, place, span));
                mine.calls.append(thread.calls);
            } else {
                (mine.slot, mine.calls) = (thread.slot, thread.calls);
            }
            mine.tid = thread.tid;
            mine.ended |= thread.ended;
            mine.pid = (thread.pid.0.or(mine.pid.0), mine.pid.1.or(thread.pid.1));
            mine.name = (name(thread.name.0).or(mine.name.0), mine.name.1.or(name(thread.name.1)));
        }
        for (key, thread) in right.by_key {
            self.by_key.insert(key, thread.map(at));
        }
        self.end = self.end.max(right.end);
        let first = [self.odd.1, right.odd.1].into_iter().flatten().min();
        self.odd = (self.odd.0 + right.odd.0, first);
    }

    /// What the right part says of a CPU, before what it says of threads.
    fn join_cpu(&mut self, place: Place, right: &Cpu, at: impl Fn(u32) -> u32) {
        // The CPU may be new: its first event is the right part's.
        self.cpu(place, right.first);
        for (t, early) in &right.head {
            match early {
                Early::Call(step) => self.call(place, None, *t, *step),
                // To when it lasts stands in what the right part says of the CPU then.
                Early::Lost => self.lose(place, *t, *t),
            }
        }
        if let Some((t, thread)) = right.seen {
            let thread = at(thread);
            match self.cpu(place, right.first).runs {
                Runs::Thread(other) if other != thread => {
                    self.contradict(t);
                    self.threads[other as usize].change(t, Change::If(Some(place), None));
                }
                // Its own change at `t` comes with its slot.
                Runs::Unknown(since) => self.ran_since(place, thread, since, t),
                _ => {}
            }
        }
        let cpu = self.cpu(place, right.first);
        cpu.runs = match right.runs {
            Runs::Left => cpu.runs,
            Runs::Unknown(since) => Runs::Unknown(since),
            Runs::Thread(thread) => Runs::Thread(at(thread)),
        };
    }

    /// CPUs on which anything happened.
    pub fn places(&self) -> impl Iterator<Item = Place> {
        self.cpus.keys().copied()
    }

    /// From the first event of any CPU to the last of all.
    pub fn lasts(&self) -> Ns {
        let first = self.cpus.values().map(|cpu| cpu.first).min();
        first.zip(self.end).map_or(0, |(first, end)| end.saturating_sub(first))
    }

    /// Everything ends with the last event; on a CPU in `ends`, no later than said there.
    pub fn close(&mut self, ends: &HashMap<Place, Ns>) {
        let Some(last) = self.end else { return };
        for thread in &mut self.threads {
            let slot = std::mem::take(&mut thread.slot);
            let of = slot.value().flatten().and_then(|place| ends.get(&place).copied());
            let on = &mut thread.on;
            slot.close(of.map_or(last, |end| end.min(last)), &mut |place, span| spend(on, place, span));
        }
    }
}
