//! Generated machines of 1 to 16 CPUs on which requests are answered, with one planted cause that makes some of them
//! slow, or none; and the manner in which they are recorded.

use super::recorder::{Contexts, Dialect, Losses, Manner, Missing, Twice};
use super::truth::Execution;
use super::{Random, World, hindrances, service};

/// The planted cause of slow requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Plant {
    None,
    /// Another thread of the server holds the lock for long.
    Lock,
    /// Another process writes much.
    Disk,
    /// An urgent process takes the CPUs.
    Preemption,
    /// Some requests sleep.
    Sleep,
    /// Some requests compute.
    Cpu,
    /// The backend, another process, computes for some requests.
    Backend,
    /// A device floods the CPUs with interrupts.
    Interrupts,
    /// The server's control group has used up its CPU quota, on a kernel that throttles run queues.
    Quota,
    /// The same on a kernel that throttles each thread.
    QuotaOfThreads,
    /// An urgent process takes the CPUs, and leaves them in phase with a period.
    PeriodicNeighbour,
    /// A hypervisor takes CPUs away.
    Steal,
    /// Some requests compute, on CPUs without a tick.
    Tickless,
    /// The workers are bound to CPUs that an urgent process takes, while others are idle.
    Bound,
    /// An urgent process takes the CPUs, while a busy one has all others.
    Crowd,
    /// Another process freezes the server's control group.
    Frozen,
    /// Another process stops the server by a signal.
    Stopped,
    /// A holder of the lock, of low priority, waits for a CPU that another process has.
    Inversion,
    /// The holder of the lock has that CPU for itself, and works for long.
    SlowHolder,
    /// Memory must be freed for some requests.
    Reclaim,
    /// Memory must be cleared for some requests.
    Clearing,
    /// The frequency of the CPUs is a quarter now and then.
    LowFrequency,
    /// Some requests compute, and the frequency of the CPUs changes a little now and then.
    EvenFrequency,
    /// The CPU of a request that was woken needs time to leave its idle state.
    IdleExit,
    /// It is awake, and handles an interrupt first.
    IdleInterrupted,
}

impl Plant {
    /// Those of machines whose scheduler lets all threads run.
    pub const ALL: [Plant; 8] = [
        Plant::None,
        Plant::Lock,
        Plant::Disk,
        Plant::Preemption,
        Plant::Sleep,
        Plant::Cpu,
        Plant::Backend,
        Plant::Interrupts,
    ];

    /// Reasons for which a thread does not run although it could, and for each a twin: the same surface, and another
    /// cause.
    pub const HINDRANCES: [Plant; 17] = [
        Plant::Quota,
        Plant::QuotaOfThreads,
        Plant::PeriodicNeighbour,
        Plant::Steal,
        Plant::Tickless,
        Plant::Bound,
        Plant::Crowd,
        Plant::Frozen,
        Plant::Stopped,
        Plant::Inversion,
        Plant::SlowHolder,
        Plant::Reclaim,
        Plant::Clearing,
        Plant::LowFrequency,
        Plant::EvenFrequency,
        Plant::IdleExit,
        Plant::IdleInterrupted,
    ];

    /// In the words of `explain --json`.
    pub fn kind(self) -> &'static str {
        match self {
            Plant::None => "",
            Plant::Lock | Plant::Frozen | Plant::Inversion | Plant::SlowHolder => "blocked.thread",
            Plant::Disk => "blocked.disk",
            Plant::Preemption | Plant::PeriodicNeighbour | Plant::Bound | Plant::Crowd => "preempted",
            Plant::IdleExit | Plant::IdleInterrupted => "preempted",
            Plant::Sleep => "blocked.timer",
            Plant::Cpu | Plant::Tickless | Plant::Reclaim | Plant::Clearing => "cpu",
            Plant::LowFrequency | Plant::EvenFrequency => "cpu",
            Plant::Backend => "blocked.network",
            Plant::Interrupts => "interrupted",
            Plant::Quota | Plant::QuotaOfThreads => "throttled",
            Plant::Steal => "stolen",
            Plant::Stopped => "stopped",
        }
    }

    /// The thread at fault, where it is not the request's own.
    pub fn culprit(self) -> Option<&'static str> {
        match self {
            Plant::Lock => Some("housekeeper"),
            Plant::Disk => Some("backupd"),
            Plant::Preemption => Some("telemetryd"),
            Plant::Backend => Some("backend"),
            Plant::PeriodicNeighbour => Some("collector"),
            Plant::Bound | Plant::Crowd => Some("packer"),
            Plant::Frozen => Some("snapshotd"),
            Plant::Stopped => Some("debugd"),
            Plant::Inversion => Some("render"),
            Plant::SlowHolder => Some("keeper"),
            Plant::None | Plant::Sleep | Plant::Cpu | Plant::Interrupts => None,
            Plant::Quota | Plant::QuotaOfThreads | Plant::Steal | Plant::Tickless => None,
            Plant::Reclaim | Plant::Clearing | Plant::LowFrequency | Plant::EvenFrequency => None,
            Plant::IdleExit | Plant::IdleInterrupted => None,
        }
    }

    /// Functions of which one must be named where stacks are recorded.
    pub fn functions(self) -> &'static [&'static str] {
        match self {
            Plant::Lock | Plant::SlowHolder => &["compact_table"],
            Plant::Disk => &["flush_archive", "load_record"],
            Plant::Preemption | Plant::Bound | Plant::Crowd | Plant::Inversion => &["encode_frames"],
            Plant::Sleep => &["retry_backoff"],
            Plant::Cpu => &["rebuild_index"],
            Plant::Backend => &["scan_partition"],
            Plant::PeriodicNeighbour => &["collect_metrics"],
            Plant::Reclaim | Plant::Clearing => &["fill_cache"],
            Plant::None | Plant::Interrupts | Plant::Frozen | Plant::Stopped => &[],
            // No tick samples the function.
            Plant::Quota | Plant::QuotaOfThreads | Plant::Steal | Plant::Tickless => &[],
            Plant::LowFrequency | Plant::IdleExit | Plant::IdleInterrupted => &[],
            Plant::EvenFrequency => &["rebuild_index"],
        }
    }

    /// What the sentence must say where the recording proves it, and what it must never say.
    pub fn says(self) -> (Option<&'static str>, &'static [&'static str]) {
        match self {
            Plant::PeriodicNeighbour => (None, &["quota"]),
            Plant::Tickless => (None, &["paused", "hypervisor"]),
            Plant::Crowd => (None, &["idle", "quota"]),
            Plant::Inversion => (Some("render"), &[]),
            Plant::SlowHolder => (None, &["render"]),
            Plant::Reclaim => (Some("direct reclaim"), &[]),
            Plant::Clearing => (Some("cleared the pages"), &["reclaim"]),
            Plant::LowFrequency => (Some("CPU frequencies"), &[]),
            Plant::EvenFrequency => (None, &["frequencies"]),
            Plant::IdleExit => (Some("leaving its idle state"), &[]),
            Plant::IdleInterrupted => (None, &["idle state"]),
            _ => (None, &[]),
        }
    }

    /// The recording lacks the events that prove this cause.
    pub fn lacks(self, manner: &Manner) -> bool {
        let none = |m: &[Missing]| m.iter().any(|m| manner.missing.contains(m));
        if self == Plant::None {
            return false;
        }
        // The counters have the clock of LTTng's recordings.
        let uncounted = !manner.environment || manner.dialect == Dialect::Perf;
        none(&[Missing::Switches])
            || match self {
                Plant::Lock | Plant::Frozen | Plant::Stopped | Plant::Inversion | Plant::SlowHolder => {
                    none(&[Missing::Wakeups, Missing::Waking])
                }
                Plant::Disk => none(&[Missing::Wakeups, Missing::Block, Missing::Interrupts]),
                Plant::Sleep => none(&[Missing::Wakeups]) || none(&[Missing::HrTimers]) && none(&[Missing::Calls]),
                Plant::Backend => {
                    none(&[Missing::Wakeups, Missing::Waking, Missing::Network, Missing::Interrupts])
                        || manner.dialect == Dialect::Perf
                }
                Plant::Interrupts => none(&[Missing::Interrupts]),
                Plant::Quota => uncounted,
                Plant::QuotaOfThreads => uncounted && !manner.kernel_stacks,
                // Either kind of event shows the scheduler's clock.
                Plant::Steal => none(&[Missing::Vectors]) && none(&[Missing::HrTimers]),
                Plant::Reclaim | Plant::Clearing => !manner.kernel_stacks,
                Plant::None | Plant::Preemption | Plant::Cpu | Plant::Tickless => false,
                Plant::PeriodicNeighbour | Plant::Bound | Plant::Crowd => false,
                Plant::LowFrequency | Plant::EvenFrequency | Plant::IdleInterrupted => false,
                Plant::IdleExit => none(&[Missing::IdleStates, Missing::Wakeups]),
            }
    }
}

/// A generated machine.
pub struct Generated {
    pub plant: Plant,
    pub cpus: usize,
    pub world: World,
    pub manner: Manner,
}

/// A machine by its number.
pub fn machine(seed: u64) -> Generated {
    let mut dice = Random::new(seed ^ 0x00ac_415e);
    let plant = Plant::ALL[seed as usize % Plant::ALL.len()];
    let manner = manner(&mut dice, seed);
    let cpus = [1, 2, 2, 3, 4, 4, 6, 8, 12, 16][dice.below(10)];
    shown(plant, cpus, manner, |attempt| service::build(plant, cpus, seed * 31 + attempt))
}

/// A machine by its number, on which threads do not run although they could; or a twin of such a machine.
pub fn hindered(seed: u64) -> Generated {
    let mut dice = Random::new(seed ^ 0x4e1d_bacc);
    let plant = Plant::HINDRANCES[seed as usize % Plant::HINDRANCES.len()];
    let mut manner = manner(&mut dice, seed);
    (manner.environment, manner.kernel_stacks) = (dice.once_in(2), dice.once_in(2) && manner.stacks);
    let (cpus, is_busy) = (hindrances::cpus(plant, &mut dice), dice.once_in(2));
    if matches!(plant, Plant::IdleExit | Plant::IdleInterrupted) && dice.once_in(4) {
        manner.missing.push(Missing::IdleStates);
    }
    shown(plant, cpus, manner, |attempt| hindrances::build(plant, (cpus, is_busy), seed * 31 + attempt))
}

/// The truth decides: a plant that the schedule does not show to be the largest part is drawn again.
fn shown(plant: Plant, cpus: usize, manner: Manner, build: impl Fn(u64) -> World) -> Generated {
    for attempt in 0..=20 {
        let world = build(attempt);
        if plant == Plant::None || share(&world, plant) > 0.6 {
            return Generated { plant, cpus, world, manner };
        }
    }
    panic!("the plant {plant:?} has no effect on {cpus} CPUs, {}", words(&manner))
}

/// The part of the difference between slow and fast executions that the plant made, by the schedule: of those in the
/// slowest twentieth and those in the faster half.
pub fn share(world: &World, plant: Plant) -> f64 {
    let mut all = world.schedule.executions("app:request_begin", "app:request_end");
    if all.len() < 60 {
        return 0.0;
    }
    all.sort_by_key(|e| e.to - e.from);
    let (slow, fast) = (&all[all.len() * 19 / 20..], &all[..all.len() / 2]);
    let of = |executions: &[Execution]| -> (f64, f64) {
        let (mut planted, mut total) = (0.0, 0.0);
        for execution in executions {
            for ((kind, thread, function), ns) in world.schedule.spent(execution) {
                let by = plant.culprit().is_none_or(|culprit| thread == culprit);
                let functions = plant.functions();
                if kind == plant.kind() && by && (functions.is_empty() || functions.contains(&function)) {
                    planted += ns;
                }
                total += ns;
            }
        }
        (planted / executions.len() as f64, total / executions.len() as f64)
    };
    let ((slow_planted, slow_total), (fast_planted, fast_total)) = (of(slow), of(fast));
    (slow_planted - fast_planted) / (slow_total - fast_total)
}

/// The manner of a recording: a quarter record everything, the others have one or two peculiarities.
fn manner(dice: &mut Random, seed: u64) -> Manner {
    let mut manner = Manner { seed, ..Manner::default() };
    let missing = [
        Missing::Wakeups,
        Missing::Waking,
        Missing::Wakeup,
        Missing::Migrations,
        Missing::Switches,
        Missing::Life,
        Missing::HrTimers,
        Missing::Interrupts,
        Missing::Vectors,
        Missing::Network,
        Missing::Block,
        Missing::Calls,
        Missing::Statedump,
    ];
    for _ in 0..[0, 1, 1, 2][dice.below(4)] {
        match dice.below(12) {
            0 => manner.contexts = Contexts::Tid,
            1 => manner.contexts = Contexts::None,
            2 => manner.stacks = false,
            3 => manner.twice = Some(Twice::WithStacks(dice.between(3_000, 12_000))),
            4 => manner.twice = Some(Twice::InChannel(dice.between(3_000, 12_000))),
            5 => manner.second_session = Some(dice.between(3_000, 12_000)),
            6 => manner.namespaces_recorded = false,
            7 => manner.losses = if dice.once_in(2) { Losses::Reported } else { Losses::Unreported },
            8 => manner.dialect = Dialect::Perf,
            9 => manner.user_clock_ahead = Some(dice.between(200_000, 3_000_000)),
            _ => manner.missing.push(missing[dice.below(missing.len())]),
        }
    }
    manner
}

/// The manner in a few words.
pub fn words(manner: &Manner) -> String {
    let mut words: Vec<String> = manner.missing.iter().map(|m| format!("no {m:?}")).collect();
    let mut say = |holds: bool, word: &str| {
        if holds {
            words.push(word.to_owned());
        }
    };
    say(manner.contexts == Contexts::Tid, "tid only");
    say(manner.contexts == Contexts::None, "no contexts");
    say(!manner.stacks, "no stacks");
    say(matches!(manner.twice, Some(Twice::WithStacks(_))), "switches twice with stacks");
    say(matches!(manner.twice, Some(Twice::InChannel(_))), "switches twice");
    say(manner.second_session.is_some(), "two sessions");
    say(!manner.namespaces_recorded, "containers unrecorded");
    say(manner.losses == Losses::Reported, "reported losses");
    say(manner.losses == Losses::Unreported, "unreported losses");
    say(manner.dialect == Dialect::Perf, "perf's names");
    say(manner.user_clock_ahead.is_some(), "another clock");
    let everything = words.is_empty();
    if manner.environment {
        words.push("counters".to_owned());
    }
    if manner.kernel_stacks {
        words.push("the kernel's stacks".to_owned());
    }
    if everything {
        words.insert(0, "everything".to_owned())
    }
    words.join(", ")
}
