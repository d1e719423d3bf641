//! Properties other than time that separate the groups: type, trace, process, thread, host, CPU, and every numeric
//! metric.
//!
//! A name separates by the value whose shares differ most between the groups, a number by the probability that a slow
//! execution exceeds a fast one (Mann-Whitney's A, ALGORITHMS.md 7.5). The verdict also needs the part of the extra
//! time that the dimension *explains*: the difference that remains when each execution is replaced by the mean of the
//! others with its value (a standardisation; leaving oneself out makes values that occur once explain nothing). Cost
//! O(N log N) per dimension.

use super::failures::has_failed;
use super::members::values;
use super::tree::GroupPair;
use super::{Dimension, Group};
use crate::base::names::{NameId, fold_digits};
use crate::base::statistics::superiority;
use crate::model::Model;
use crate::model::column_values::ColumnValues;
use crate::model::execution::ExecutionId;
use crate::model::metric::{ABSENT, Metric, SUCCEEDED, Unit};
use crate::model::wait_kind::WaitKind;
use crate::model::weights::Weights;
use foldhash::HashMap;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Difference of the shares from which a name separates.
const APART: f64 = 0.5;
/// Probability from which a number separates.
const EXCEEDS: f64 = 0.9;
/// Classes into which a number is cut to find what it explains.
const CUTS: usize = 10;

/// The field with the value that a system call returned.
const RETURNED: &str = "ret";

/// Names of fields whose numbers have no meaningful order.
const IDENTIFIERS: [&str; 22] = [
    "id", "ID", "fd", "tid", "pid", "vtid", "vpid", "ptr", "addr", "address", "uaddr", "buf", "buffer", "key",
    "cookie", "seq", "handle", "hash", "inode", "ino", "sector", "port",
];

/// A dimension that separates the groups, with the values that the verdict needs.
pub(super) struct SeparatingDimension {
    pub dimension: Dimension,
    /// Part of the extra time that it explains; `None` if it may be a consequence of being slow.
    pub explains: Option<f64>,
    /// The kinds of first causes of which it may be the reason.
    pub decides: Decides,
    /// By execution of the model: its value, or class of values.
    pub classes: ColumnValues,
}

/// What a dimension may decide: the kinds of first causes of which it may be the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decides {
    /// Running time: of a numeric field of the delimiting events, which may be the size of the work, and of the
    /// frequency of the CPUs.
    Running,
    /// Running time, interrupts and pauses: of the CPU on which an execution begins. It may be an effect of other
    /// waits, because the scheduler moves threads away from a busy CPU.
    OnCpu,
    /// All kinds.
    All,
}

impl Decides {
    /// True if it may be the reason of a first cause of this kind; `None` is one over several kinds, or no cause.
    pub(super) fn about(self, kind: Option<WaitKind>) -> bool {
        match self {
            Decides::All => true,
            Decides::Running => kind == Some(WaitKind::Cpu),
            Decides::OnCpu => matches!(kind, Some(WaitKind::Cpu | WaitKind::Interrupted | WaitKind::Stolen)),
        }
    }
}

/// All dimensions that separate, best explanation first.
pub(super) fn dimensions(groups: &GroupPair<'_>, slow: &Group, fast: &Group) -> Vec<SeparatingDimension> {
    let model = groups.model;
    let filtered = |m: &Metric| slow.filters.iter().chain(&fast.filters).any(|f| f.metric == *m);
    let mut all = Vec::new();
    // One after the other: each has a number for each execution.
    names(model, |NameDimension { name, classes, texts }| {
        if !filtered(&Metric::Type) || name != "type" {
            all.extend(separating_name(groups, name, classes, &texts));
        }
    });
    for column in &model.executions.columns {
        let is_in_causes = matches!(
            column.metric,
            Metric::Duration | Metric::Time(_) | Metric::Other | Metric::Paused | Metric::Interleaved | Metric::Weight
        );
        if column.metric.unit() != Unit::Name && !is_in_causes && !filtered(&column.metric) {
            all.extend(separating_number(groups, &column.metric));
        }
    }
    if filtered(&Metric::Trace) {
        // Every property that goes with the trace separates groups that are traces. They began at other times
        // and are not of the same length.
        all.iter_mut().for_each(|s| s.explains = None);
        let by_construction = [Metric::Trace, Metric::Start, Metric::Elapsed].map(|metric| metric.name());
        all.retain(|s| !by_construction.contains(&s.dimension.name));
    }
    all.sort_by(|a, b| {
        let key = |s: &SeparatingDimension| s.explains.unwrap_or(-1.0);
        key(b).total_cmp(&key(a)).then_with(|| b.dimension.effect.abs().total_cmp(&a.dimension.effect.abs()))
    });
    all
}

/// A dimension of names.
struct NameDimension {
    name: &'static str,
    /// By execution.
    classes: ColumnValues,
    /// By class.
    texts: BTreeMap<i64, String>,
}

/// Pass all dimensions of names with two values or more.
fn names(model: &Model, mut pass: impl FnMut(NameDimension)) {
    let e = &model.executions;
    // `key_of`: equal numbers have equal texts, so that a text is made once for each.
    let mut add = |name, key_of: &dyn Fn(usize) -> Option<i64>, text_of: &dyn Fn(usize) -> Option<String>| {
        let mut ids: BTreeMap<String, i64> = BTreeMap::new();
        let mut class_of_key: HashMap<i64, i64> = HashMap::default();
        let mut class_of_text = |i: usize| {
            let next = ids.len() as i64;
            text_of(i).map_or(ABSENT, |text| *ids.entry(text).or_insert(next))
        };
        let classes: ColumnValues = (0..e.len())
            .map(|i| key_of(i).map_or(ABSENT, |key| *class_of_key.entry(key).or_insert_with(|| class_of_text(i))))
            .collect();
        if ids.len() > 1 {
            let texts = ids.into_iter().map(|(text, id)| (id, text)).collect();
            pass(NameDimension { name, classes, texts });
        }
    };
    let who = |i: usize| e.who.get(i).and_then(|w| model.who.get(w.index()));
    let text = |id: NameId| model.names.get(id).to_string();
    for (name, metric) in [("type", Metric::Type), ("role", Metric::Role), ("errno", Metric::Errno)] {
        if let Some(values) = values(model, &metric) {
            let value = |i: usize| values.get(i).filter(|v| *v != ABSENT);
            add(name, &value, &|i| value(i).map(|v| text(NameId::from_raw(v as u32))));
        }
    }
    let trace = |i: usize| e.trace.get(i).map(|trace| trace.index());
    add("trace", &|i| Some(trace(i)? as i64), &|i| model.traces.get(trace(i)?).map(|t| t.label.clone()));
    let thread = |i: usize| e.who.get(i).map(|who| who.index() as i64);
    add("host", &thread, &|i| who(i).map(|w| text(w.host)));
    add("process", &thread, &|i| who(i).map(|w| text(w.process)));
    let cpu = |i: usize| e.cpu.get(i).filter(|cpu| *cpu != u16::MAX);
    let several = model.who.iter().any(|w| Some(w.host) != model.who.first().map(|w| w.host));
    let host = |i: usize| who(i).filter(|_| several).map(|w| w.host);
    let place = |i: usize| Some(host(i).map_or(0, |host| i64::from(host.raw()) + 1) << 16 | i64::from(cpu(i)?));
    add("cpu", &place, &|i| {
        let (cpu, host) = (cpu(i)?, host(i).map(text));
        Some(host.map_or_else(|| cpu.to_string(), |host| format!("{cpu} of {host}")))
    });
    add("thread", &thread, &|i| who(i).map(|w| fold_digits(model.names.get(w.thread))));
}

fn share(groups: &GroupPair<'_>, members: &[ExecutionId], has: impl Fn(usize) -> bool) -> f64 {
    groups.mean(members, |i| f64::from(u8::from(has(i))))
}

fn separating_name(
    groups: &GroupPair<'_>,
    name: &str,
    classes: ColumnValues,
    texts: &BTreeMap<i64, String>,
) -> Option<SeparatingDimension> {
    let counted = |members: &[ExecutionId]| {
        let mut counts: HashMap<i64, u64> = HashMap::default();
        let weight = |e: &ExecutionId| groups.weights.of(e.index());
        members.iter().for_each(|e| *counts.entry(classes.at(e.index())).or_default() += weight(e));
        counts
    };
    let (in_slow, in_fast) = (counted(groups.slow), counted(groups.fast));
    let shares = texts.iter().map(|(class, text)| {
        let of =
            |counts: &HashMap<i64, u64>, all: u64| counts.get(class).copied().unwrap_or(0) as f64 / all.max(1) as f64;
        (text, of(&in_slow, groups.counts[0]), of(&in_fast, groups.counts[1]))
    });
    // The value that the slow executions have; the values that they lack follow from it.
    // That successes take longer than failures is no finding: a failed call does nothing.
    let shares = shares.filter(|(text, ..)| name != "errno" || text.as_str() != SUCCEEDED);
    let (text, slow, fast) = shares.max_by(|a, b| (a.1 - a.2).total_cmp(&(b.1 - b.2)))?;
    let effect = slow - fast;
    if effect < APART {
        return None;
    }
    let explains = Some(explained(groups, &classes, |i| groups.model.executions.duration(i) as f64));
    let dimension = Dimension { name: name.into(), value: text.clone(), slow_share: slow, fast_share: fast, effect };
    let decides = if name == "cpu" { Decides::OnCpu } else { Decides::All };
    Some(SeparatingDimension { dimension, explains, decides, classes })
}

fn separating_number(groups: &GroupPair<'_>, metric: &Metric) -> Option<SeparatingDimension> {
    let mut values = values(groups.model, metric)?;
    if *metric == Metric::Field(RETURNED.into()) {
        // The errors of failed calls are no sizes.
        let size = |(i, value): (usize, i64)| if has_failed(groups.model, i) { ABSENT } else { value };
        values = Cow::Owned(values.iter().enumerate().map(size).collect());
    }
    if is_identifier(metric, &values) {
        return None;
    }
    let of = |members: &[ExecutionId]| -> Vec<(i64, u64)> {
        let mut present = Vec::with_capacity(members.len());
        let value = |e: &ExecutionId| Some((values.get(e.index())?, groups.weights.of(e.index())));
        present.extend(members.iter().filter_map(value).filter(|(v, _)| *v != ABSENT));
        present
    };
    let (mut slow, mut fast) = (of(groups.slow), of(groups.fast));
    let superiority = superiority(&mut fast, &mut slow)?;
    if (1.0 - EXCEEDS..=EXCEEDS).contains(&superiority) {
        return None;
    }
    let unit = metric.unit();
    // The bound that nine of ten fast executions, which are sorted now, do not cross.
    let all: u64 = fast.iter().map(|(_, weight)| weight).sum();
    let at = if superiority > 0.5 { all * 9 / 10 } else { all / 10 };
    let upto = fast.iter().scan(0, |upto, (value, weight)| {
        *upto += weight;
        Some((*value, *upto))
    });
    let bound =
        upto.filter(|(_, upto)| *upto > at).map(|(value, _)| value).next().or(fast.last().map(|last| last.0))?;
    let beyond = |v: i64| v != ABSENT && if superiority > 0.5 { v > bound } else { v < bound };
    let shares = |members| share(groups, members, |i| values.get(i).is_some_and(beyond));
    let sign = if superiority > 0.5 { ">" } else { "<" };
    let dimension = Dimension {
        name: metric.name(),
        value: format!("{sign} {}", unit.exact(bound)),
        slow_share: shares(groups.slow),
        fast_share: shares(groups.fast),
        effect: superiority,
    };
    let is_field = matches!(metric, Metric::Field(_)) && !is_of_answer(groups.model, metric);
    let classes = if *metric == Metric::CpuKhz { tenths(&values) } else { cuts(&values) };
    // Calls, faults, bytes and threads may be a consequence of waiting; a field came with the request.
    let duration = |i: usize| groups.model.executions.duration(i) as f64;
    let explains = match metric {
        Metric::CpuKhz => Some(saved_at_usual_frequency(groups, &values) / extra(groups, duration).max(1.0)),
        _ => is_field.then(|| explained(groups, &classes, duration)),
    };
    let decides = if is_field || *metric == Metric::CpuKhz { Decides::Running } else { Decides::All };
    Some(SeparatingDimension { dimension, explains, decides, classes })
}

/// Running time that slow executions would not need on average if their CPUs ran at the mean frequency of the fast
/// ones, in ns: running takes as many cycles at another frequency. `khz` is by execution.
pub(super) fn saved_at_usual_frequency(groups: &GroupPair<'_>, khz: &ColumnValues) -> f64 {
    let Some(running) = groups.model.executions.column(&Metric::Time(WaitKind::Cpu)) else { return 0.0 };
    let known = |i: usize| {
        let khz = khz.get(i).filter(|khz| *khz != ABSENT)? as f64;
        Some((khz, running.values.get(i)? as f64 * groups.weights.of(i) as f64))
    };
    let (mut time, mut cycles) = (0.0, 0.0);
    for (khz, ns) in groups.fast.iter().filter_map(|e| known(e.index())) {
        time += ns;
        cycles += ns * khz;
    }
    let usual = if time > 0.0 { cycles / time } else { return 0.0 };
    let saved: f64 =
        groups.slow.iter().filter_map(|e| known(e.index())).map(|(khz, ns)| ns * (1.0 - khz / usual)).sum();
    saved / groups.counts[0].max(1) as f64
}

/// By how much a value is greater in slow executions than in fast ones, on average.
fn extra(groups: &GroupPair<'_>, value: impl Fn(usize) -> f64) -> f64 {
    groups.mean(groups.slow, &value) - groups.mean(groups.fast, &value)
}

/// True for what is known of a conversation only when it has been answered, or how long its request was not read: that
/// did not come with the request.
fn is_of_answer(model: &Model, metric: &Metric) -> bool {
    let Metric::Field(name) = metric else { return false };
    let task = model.tasks.get(model.task).map_or("", |task| task.as_str());
    match name.as_str() {
        "bytes_out" | "unread_ns" => task.starts_with("serve:"),
        "bytes_in" => task.starts_with("call:"),
        _ => false,
    }
}

/// Cut values into classes of about equal size; equal values are in one class.
fn cuts(values: &ColumnValues) -> ColumnValues {
    let sorted = super::members::sorted_present(values.iter());
    let class = |v: i64| (sorted.partition_point(|s| *s < v) * CUTS / sorted.len().max(1)) as i64;
    values.iter().map(|v| if v == ABSENT { ABSENT } else { class(v) }).collect()
}

/// Cut values above zero into classes of equal width: tenths of the greatest.
fn tenths(values: &ColumnValues) -> ColumnValues {
    let most = values.iter().max().unwrap_or(0).max(1);
    let class = |v: i64| (i128::from(v) * CUTS as i128 / i128::from(most)) as i64;
    values.iter().map(|v| if v == ABSENT { ABSENT } else { class(v) }).collect()
}

/// By execution of the model: the mean of the others with its class.
pub(super) fn expected(
    weights: Weights<'_>,
    classes: &ColumnValues,
    value: impl Fn(usize) -> f64,
) -> impl Fn(usize) -> f64 {
    let mut sums: BTreeMap<i64, (f64, f64)> = BTreeMap::new();
    for (i, class) in classes.iter().enumerate() {
        let (sum, weight) = (sums.entry(class).or_default(), weights.of(i) as f64);
        *sum = (sum.0 + weight, sum.1 + value(i) * weight);
    }
    let all = sums.values().fold((0.0, 0.0), |a, s| (a.0 + s.0, a.1 + s.1));
    move |i: usize| {
        let (n, sum) = sums.get(&classes.at(i)).copied().unwrap_or_default();
        if n > 1.0 { (sum - value(i)) / (n - 1.0) } else { all.1 / all.0.max(1.0) }
    }
}

/// Part of the groups' difference in `value` that remains when each execution is replaced by the mean of the other
/// executions of its class.
pub(super) fn explained(groups: &GroupPair<'_>, classes: &ColumnValues, value: impl Fn(usize) -> f64) -> f64 {
    let whole = extra(groups, &value);
    let remains = extra(groups, expected(groups.weights, classes, &value));
    if whole == 0.0 { 0.0 } else { remains / whole }
}

/// True for a number that identifies executions and says nothing of their size: an identifier or an address by its
/// name, or a number with (nearly) as many values as there are executions.
fn is_identifier(metric: &Metric, values: &ColumnValues) -> bool {
    let Metric::Field(name) = metric else { return false };
    let name = name.trim_start_matches('_');
    let ends = ["_id", "Id", "ptr", "addr", "address", "_fd", "_tid", "_pid", "_seq", "_key", "_cookie", "uuid"];
    let named = IDENTIFIERS.contains(&name) || ends.iter().any(|end| name.ends_with(end));
    let mut present: Vec<i64> = values.iter().filter(|v| *v != ABSENT).collect();
    let all = present.len();
    present.sort_unstable();
    present.dedup();
    named || present.len() * 10 >= all * 9 || present.iter().all(|v| *v == 0 || is_address(*v))
}

/// True for a number at one of the ends of a 64-bit address space, where programs and the kernel are mapped.
fn is_address(value: i64) -> bool {
    !(-(1 << 30)..1 << 46).contains(&value)
}

#[cfg(test)]
mod tests {
    use crate::base::ctx::Ctx;
    use crate::compare::scenario::ModelBuilder;
    use crate::compare::{Basis, Comparison, ComparisonRequest, compare};
    use crate::model::metric::{Column, Metric};
    use crate::model::wait_kind::WaitKind;

    /// The comparison of 400 executions with a field of this name; one in ten is slow, and the field's values depend on
    /// the execution's number and whether it is slow.
    fn compared(task: &str, field: &str, value: impl Fn(i64, bool) -> i64) -> Comparison {
        let mut builder = ModelBuilder::new(3);
        let is_slow = |i: i64| i % 10 == 3;
        for i in 0..400 {
            let ns = builder.around(1.0) + if is_slow(i) { 20_000_000 } else { 0 };
            builder.run("x", "p", "p", 1, &[("p;main;work", ns)]);
        }
        let mut model = builder.seal();
        model.tasks = vec![task.to_owned()].into();
        let values = (0..400).map(|i| value(i, is_slow(i))).collect();
        model.executions.columns.push(Column { metric: Metric::Field(field.into()), values });
        compare(&model, &ComparisonRequest::default(), &Ctx::new(1)).unwrap()
    }

    fn dimensions(field: &str, value: impl Fn(i64, bool) -> i64) -> Vec<String> {
        compared("app:request", field, value).dimensions.into_iter().map(|dimension| dimension.name).collect()
    }

    #[test]
    fn size_of_an_answer_is_listed_and_explains_nothing() {
        let basis = |task, field| {
            let comparison = compared(task, field, |i, slow| i % 20 + if slow { 1000 } else { 0 });
            assert_eq!(comparison.dimensions[0].name, format!("field.{field}"));
            comparison.verdict.basis
        };
        assert_eq!(basis("serve:redis-server", "bytes_in"), Basis::Dimension);
        assert_eq!(basis("serve:redis-server", "bytes_out"), Basis::Cause);
        assert_eq!(basis("serve:redis-server,from=arrival", "unread_ns"), Basis::Cause);
        assert_eq!(basis("call:redis-cli", "bytes_out"), Basis::Dimension);
        assert_eq!(basis("call:redis-cli", "bytes_in"), Basis::Cause);
    }

    /// Twins: slow executions run as many cycles at a third of the frequency, or three times as many.
    #[test]
    fn a_lower_frequency_explains_what_more_cycles_do_not() {
        let verdict = |is_slower: bool| {
            let mut builder = ModelBuilder::new(3);
            for i in 0..400 {
                let ns = builder.around(5.0) * if i % 20 == 3 { 3 } else { 1 };
                builder.run("x", "p", "p", 1, &[("p;main;work", ns)]);
            }
            let mut model = builder.seal();
            let khz = (0..400).map(|i| if i % 20 == 3 && is_slower { 1_000_000 } else { 3_000_000 }).collect();
            let running = (0..400).map(|i| model.executions.duration(i)).collect();
            let columns = [(Metric::Time(WaitKind::Cpu), running), (Metric::CpuKhz, khz)];
            model.executions.columns.extend(columns.map(|(metric, values)| Column { metric, values }));
            compare(&model, &ComparisonRequest::default(), &Ctx::new(1)).unwrap().verdict
        };
        let slower = verdict(true);
        let whole = "The slow executions ran at CPU frequencies < 3000000 kHz (95% of them, 0% of the fast ones)";
        assert!(slower.confident && slower.sentence.starts_with(whole), "{slower:?}");
        assert!(!verdict(false).sentence.contains("frequencies"), "{:?}", verdict(false));
        assert!(verdict(false).sentence.starts_with("Running"), "{:?}", verdict(false));
    }

    /// Two of three slow executions run at a quarter of the frequency, the others wait for a disk.
    #[test]
    fn a_lower_frequency_of_some_slow_executions_is_said_of_the_cause() {
        let mut builder = ModelBuilder::new(3);
        let is_slow = |i: i64| i % 20 == 3;
        let is_clocked = |i: i64| is_slow(i) && i % 60 != 3;
        for i in 0..600 {
            let ns = builder.around(5.0) * if is_clocked(i) { 4 } else { 1 };
            let disk = if is_slow(i) && !is_clocked(i) { 15_000_000 } else { 0 };
            builder.run("x", "p", "p", 1, &[("p;main;work", ns), ("p;main;load;[pread64];{disk}", disk)]);
        }
        let mut model = builder.seal();
        let disk = |i: usize| if is_slow(i as i64) && !is_clocked(i as i64) { 15_000_000 } else { 0 };
        let running = (0..600).map(|i| model.executions.duration(i) - disk(i)).collect();
        let khz = (0..600).map(|i| if is_clocked(i) { 750_000 } else { 3_000_000 }).collect();
        let columns = [(Metric::Time(WaitKind::Cpu), running), (Metric::CpuKhz, khz)];
        model.executions.columns.extend(columns.map(|(metric, values)| Column { metric, values }));
        let verdict = compare(&model, &ComparisonRequest::default(), &Ctx::new(1)).unwrap().verdict;
        assert!(verdict.sentence.starts_with("Running work on the CPU: "), "{verdict:?}");
        assert!(verdict.sentence.ends_with(" of it because of lower CPU frequencies."), "{verdict:?}");
    }

    #[test]
    fn dimensions_are_sizes_and_no_identifiers() {
        let size = |i: i64, slow: bool| i % 20 + if slow { 1000 } else { 0 };
        assert_eq!(dimensions("bytes", size), ["field.bytes"]);
        for identifier in ["id", "request_id", "buf", "skbaddr", "_uaddr", "user_ptr", "cookie", "fd"] {
            assert!(dimensions(identifier, size).is_empty(), "{identifier}");
        }
        // As many values as executions, or addresses by whatever name.
        assert!(dimensions("ticket", |i, slow| i + if slow { 1000 } else { 0 }).is_empty());
        assert!(dimensions("object", |i, slow| 0x7f12_0000_0000 + size(i, slow) * 4096).is_empty());
        assert!(dimensions("object", |i, slow| -0x7700_0000_0000 + size(i, slow) * 64).is_empty());
    }
}
