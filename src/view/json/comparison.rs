//! Groups, verdict and causes of a comparison: the parts that the documents share, before and after their own.

use crate::base::time::Timestamp;
use crate::base::{clean, figure};
use crate::compare::{Basis, Cause, Comparison, Culprit, Dimension, Group, GroupsOrigin, SlowKind, Spread};
use crate::model::Model;
use crate::model::choice::{CELLS, ChosenBy, ProgramTask};
use crate::model::profile::Profile;
use serde::Serialize;

/// The first keys of a document.
#[derive(Serialize)]
pub(super) struct Head {
    schema: &'static str,
    task: String,
    task_chosen_by: &'static str,
    /// The program whose executions they are, where the user did not name the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<String>,
    /// What else could be asked about, the chosen program first; empty unless the task was guessed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    programs: Vec<ProgramTaskJson>,
    recording: RecordingJson,
    slow: GroupJson,
    fast: GroupJson,
    extra_ns: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<ProfileJson>,
    verdict: VerdictJson,
}

/// What is counted where the executions are samples of a profiler.
#[derive(Serialize)]
struct ProfileJson {
    event: String,
    /// `ns`, or the event: the unit of all numbers whose names end in `_ns`.
    unit: String,
    whose: String,
    other_events: Vec<String>,
    left_out: Vec<ProgramJson>,
}

/// A task of a program that could be asked about.
#[derive(Serialize)]
struct ProgramTaskJson {
    program: String,
    task: String,
    kind: &'static str,
    executions: usize,
    p50_ns: i64,
    p99_ns: i64,
    /// What the slowest twentieth takes beyond the median.
    tail_ns: i64,
    /// That time in twelve equal parts of the recording.
    over_time_ns: [i64; CELLS],
    is_recorded: bool,
}

fn programs(model: &Model) -> Vec<ProgramTaskJson> {
    let guessed = model.choice.iter().filter(|choice| choice.by == ChosenBy::Guessed);
    let programs = guessed.flat_map(|choice| &choice.programs);
    let json = |one: &ProgramTask| ProgramTaskJson {
        program: clean::owned(&one.program),
        task: clean::owned(&one.task),
        kind: one.kind.words(),
        executions: one.executions,
        p50_ns: one.p50_ns,
        p99_ns: one.p99_ns,
        tail_ns: one.tail_ns,
        over_time_ns: one.over_time,
        is_recorded: one.is_recorded,
    };
    programs.map(json).collect()
}

#[derive(Serialize)]
struct ProgramJson {
    program: String,
    amount: u64,
}

fn profile(profile: &Profile) -> ProfileJson {
    let event = clean::owned(&profile.event);
    ProfileJson {
        unit: if profile.is_time() { "ns".to_owned() } else { event.clone() },
        event,
        whose: clean::owned(&profile.whose),
        other_events: profile.other_events.iter().map(|event| clean::owned(event)).collect(),
        left_out: profile
            .left_out
            .iter()
            .map(|one| ProgramJson { program: clean::owned(&one.program), amount: one.amount })
            .collect(),
    }
}

impl Head {
    pub(super) fn new(schema: &'static str, model: &Model, c: &Comparison) -> Head {
        Head {
            schema,
            task: model.tasks.get(model.task).map_or_else(String::new, |t| clean::owned(t)),
            task_chosen_by: model.choice.as_ref().map_or(ChosenBy::Given, |choice| choice.by).name(),
            program: model
                .choice
                .as_ref()
                .and_then(|choice| choice.whose.as_ref())
                .map(|(program, _)| clean::owned(program)),
            programs: programs(model),
            recording: recording(model),
            slow: group(model, &c.slow),
            fast: group(model, &c.fast),
            extra_ns: c.extra_ns,
            profile: model.profile.as_ref().map(profile),
            verdict: verdict(c),
        }
    }
}

/// When and where the traces were recorded.
#[derive(Serialize)]
struct RecordingJson {
    /// First and last event, on the common time line.
    start_ns: Timestamp,
    end_ns: Timestamp,
    /// In UTC; null for clocks that count from the start of a machine.
    time_of_day: Option<String>,
    hosts: Vec<String>,
    executions: u64,
}

fn recording(model: &Model) -> RecordingJson {
    let span = model.span();
    RecordingJson {
        start_ns: span.start,
        end_ns: span.end,
        time_of_day: figure::time_of_day(span.start.since(Timestamp::ZERO)),
        hosts: model.hosts().into_iter().map(clean::owned).collect(),
        executions: model.executions.count(),
    }
}

/// The last keys of a document.
#[derive(Serialize)]
pub(super) struct Tail {
    causes: Vec<CauseJson>,
    kinds: Vec<KindJson>,
    dimensions: Vec<DimensionJson>,
    warnings: Vec<String>,
}

impl Tail {
    pub(super) fn new(c: &Comparison) -> Tail {
        Tail {
            causes: c.causes.iter().map(cause).collect(),
            kinds: c.kinds.iter().map(kind).collect(),
            dimensions: c.dimensions.iter().map(dimension).collect(),
            warnings: c.warnings.iter().map(|w| clean::owned(w)).collect(),
        }
    }
}

#[derive(Serialize)]
struct GroupJson {
    count: u64,
    /// Of how many executions they are.
    of: u64,
    /// Absent where it is empty.
    mean_ns: Option<i64>,
    #[serde(flatten)]
    spread: Option<SpreadJson>,
    filters: Vec<String>,
}

#[derive(Serialize)]
struct SpreadJson {
    p50_ns: i64,
    p95_ns: i64,
    p99_ns: i64,
    max_ns: i64,
}

fn group(model: &Model, g: &Group) -> GroupJson {
    let filters = g.filters.iter().map(|f| clean::owned(&f.to_string())).collect();
    let mean_ns = (!g.members.is_empty()).then_some(g.mean_ns);
    let spread = |Spread { p50_ns, p95_ns, p99_ns, max_ns }| SpreadJson { p50_ns, p95_ns, p99_ns, max_ns };
    let of = model.executions.count();
    GroupJson { count: g.count, of, mean_ns, spread: g.spread.map(spread), filters }
}

#[derive(Serialize)]
struct VerdictJson {
    confident: bool,
    basis: &'static str,
    groups: &'static str,
    sentence: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    delays: Option<String>,
}

fn verdict(c: &Comparison) -> VerdictJson {
    VerdictJson {
        confident: c.verdict.confident,
        basis: match c.verdict.basis {
            Basis::Cause => "cause",
            Basis::Dimension => "dimension",
            Basis::Place => "place",
            Basis::Profile => "profile",
            Basis::None => "none",
        },
        groups: match c.verdict.groups {
            GroupsOrigin::Given => "given",
            GroupsOrigin::Gap => "gap",
            GroupsOrigin::Valley => "valley",
            GroupsOrigin::Percentile => "percentile",
            GroupsOrigin::Trace => "trace",
            GroupsOrigin::All => "all",
        },
        sentence: clean::owned(&c.verdict.sentence),
        delays: c.verdict.delays.as_deref().map(clean::owned),
    }
}

#[derive(Serialize)]
struct ByJson {
    host: Option<String>,
    process: Option<String>,
    pid: Option<i32>,
    tid: Option<i32>,
    thread: Option<String>,
    function: Option<String>,
}

fn by(c: &Culprit) -> ByJson {
    let text = |t: &Option<String>| t.as_deref().map(clean::owned);
    ByJson {
        host: text(&c.host),
        process: text(&c.process),
        pid: c.pid,
        tid: c.tid,
        thread: text(&c.thread),
        function: text(&c.function),
    }
}

#[derive(Serialize)]
struct CauseJson {
    rank: Option<u32>,
    kind: Option<&'static str>,
    extra_ns: i64,
    share: f64,
    deviations: Option<f64>,
    p_value: Option<f64>,
    slow_affected: f64,
    fast_affected: f64,
    path: Vec<String>,
    by: ByJson,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<CausePartJson>,
    sentence: String,
}

/// What a cause over several kinds has of one kind.
#[derive(Serialize)]
struct CausePartJson {
    kind: &'static str,
    extra_ns: i64,
    phrase: String,
}

fn cause(c: &Cause) -> CauseJson {
    CauseJson {
        rank: c.rank,
        kind: c.kind.map(|k| k.name()),
        extra_ns: c.extra_ns,
        share: c.share,
        deviations: c.deviations,
        p_value: c.p_value,
        slow_affected: c.slow_affected,
        fast_affected: c.fast_affected,
        path: c.path.iter().map(|p| clean::owned(p)).collect(),
        by: by(&c.by),
        parts: c
            .parts
            .iter()
            .map(|part| CausePartJson {
                kind: part.kind.name(),
                extra_ns: part.extra_ns,
                phrase: clean::owned(&part.phrase),
            })
            .collect(),
        sentence: clean::owned(&c.sentence),
    }
}

#[derive(Serialize)]
struct DimensionJson {
    name: String,
    value: String,
    slow_share: f64,
    fast_share: f64,
    effect: f64,
}

fn dimension(d: &Dimension) -> DimensionJson {
    DimensionJson {
        name: clean::owned(&d.name),
        value: clean::owned(&d.value),
        slow_share: d.slow_share,
        fast_share: d.fast_share,
        effect: d.effect,
    }
}

#[derive(Serialize)]
struct KindJson {
    count: u64,
    mean_ns: i64,
    /// Rank of the cause that most of their extra time has.
    cause: Option<u32>,
    sentence: String,
}

fn kind(k: &SlowKind) -> KindJson {
    KindJson { count: k.count, mean_ns: k.mean_ns, cause: k.cause, sentence: clean::owned(&k.sentence) }
}
