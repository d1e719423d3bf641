//! Totals of waiting, a part of `whyslow anomalies`: wait states, their causes, imbalance, efficiencies.
//!
//! In: a [`Waiting`]. Out: the fields `wait_states`, `delay_costs`, `imbalance`, `efficiency`, `regions` and
//! `critical_path` of the document (PRODUCT.md), and a few lines for people.

use super::strips;
use super::strips::{StripContent, StripJson};
use crate::base::time::Ns;
use crate::base::{clean, figure};
use crate::model::waiting::{Imbalance, RankTime, RegionTime, WaitPlace, WaitStateTotal, Waiting};
use serde::Serialize;
use std::fmt::Write;

/// The fields of the document.
#[derive(Clone, Debug, Serialize)]
pub struct WaitingJson {
    wait_states: Vec<StateJson>,
    delay_costs: Vec<CostJson>,
    imbalance: Vec<ImbalanceJson>,
    efficiency: Option<EfficiencyJson>,
    regions: Vec<RegionJson>,
    critical_path: Vec<RankTimeJson>,
    strip: StripJson,
}

#[derive(Clone, Debug, Serialize)]
struct RankTimeJson {
    label: String,
    rank: Option<u32>,
    function: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    call_path: Vec<String>,
    ns: Ns,
}

#[derive(Clone, Debug, Serialize)]
struct StateJson {
    kind: &'static str,
    waits: u64,
    ns: Ns,
    share: f64,
    by: Vec<RowJson>,
}

#[derive(Clone, Debug, Serialize)]
struct RowJson {
    #[serde(flatten)]
    at: RankTimeJson,
    waits: u64,
    causes: Vec<RankTimeJson>,
}

#[derive(Clone, Debug, Serialize)]
struct CostJson {
    #[serde(flatten)]
    by: RankTimeJson,
    share: f64,
}

#[derive(Clone, Debug, Serialize)]
struct ImbalanceJson {
    #[serde(flatten)]
    by: RankTimeJson,
    mean_ns: Ns,
    cost_ns: Ns,
    share: f64,
}

#[derive(Clone, Debug, Serialize)]
struct EfficiencyJson {
    parallel: f64,
    load_balance: f64,
    communication: f64,
    serialisation: f64,
    transfer: f64,
    ideal_ns: Ns,
}

#[derive(Clone, Debug, Serialize)]
struct RegionJson {
    function: String,
    ns: Ns,
    visits: u64,
    mean_ns: Ns,
    max_ns: Ns,
    max_label: String,
    max_over_mean: f64,
    by: Vec<RankShareJson>,
}

#[derive(Clone, Debug, Serialize)]
struct RankShareJson {
    label: String,
    rank: Option<u32>,
    ns: Ns,
}

fn doer(d: &RankTime) -> RankTimeJson {
    RankTimeJson {
        label: clean::owned(&d.label),
        rank: d.rank,
        function: (!d.function.is_empty()).then(|| clean::owned(&d.function)),
        call_path: d.call_path.iter().map(|f| clean::owned(f)).collect(),
        ns: d.ns,
    }
}

fn ratio(a: Ns, b: Ns) -> f64 {
    a as f64 / b.max(1) as f64
}

/// The fields of an MPI run; empty lists for other recordings.
pub fn json(found: Option<&Waiting>) -> WaitingJson {
    let none = Waiting::default();
    let w = found.unwrap_or(&none);
    let row = |r: &WaitPlace| RowJson { at: doer(&r.at), waits: r.waits, causes: r.causes.iter().map(doer).collect() };
    let state = |s: &WaitStateTotal| StateJson {
        kind: s.kind.name(),
        waits: s.waits,
        ns: s.ns,
        share: s.share,
        by: s.rows.iter().map(row).collect(),
    };
    let imbalance =
        |i: &Imbalance| ImbalanceJson { by: doer(&i.at), mean_ns: i.mean_ns, cost_ns: i.cost_ns, share: i.share };
    let region = |r: &RegionTime| RegionJson {
        function: clean::owned(&r.function),
        ns: r.ns,
        visits: r.visits,
        mean_ns: r.mean_ns,
        max_ns: r.max_ns,
        max_label: clean::owned(&r.max_label),
        max_over_mean: ratio(r.max_ns, r.mean_ns),
        by: r.by.iter().map(|b| RankShareJson { label: clean::owned(&b.label), rank: b.rank, ns: b.ns }).collect(),
    };
    WaitingJson {
        wait_states: w.states.iter().map(state).collect(),
        delay_costs: w.costs.iter().map(|c| CostJson { by: doer(c), share: ratio(c.ns, w.waited_ns) }).collect(),
        imbalance: w.imbalances.iter().map(imbalance).collect(),
        efficiency: w.efficiency.map(|e| EfficiencyJson {
            parallel: e.parallel,
            load_balance: e.load_balance,
            communication: e.communication,
            serialisation: e.serialisation,
            transfer: e.transfer,
            ideal_ns: e.ideal_ns,
        }),
        regions: w.regions.iter().map(region).collect(),
        critical_path: w.critical_path.iter().map(doer).collect(),
        strip: strips::json(&w.strip),
    }
}

/// Width of the text's strips.
const COLUMNS: usize = 80;
/// Lines of each list in the text.
const SHOWN: usize = 5;

/// For people: the totals, their causes, and their distribution over time in strips of at most `rows` rows.
pub fn write(w: &Waiting, rows: usize, out: &mut String) -> std::fmt::Result {
    if w.states.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nwaiting, out of a total of {} over all ranks and threads", figure::duration(w.whole_ns))?;
    for s in w.states.iter().take(2 * SHOWN) {
        let (kind, length, share) = (s.kind.words(), figure::duration(s.ns), figure::percent(s.share, 1));
        let place = s.rows.first().map_or_else(String::new, |r| {
            let cause = r.causes.first().map_or_else(String::new, |c| format!(" for {}", text(c)));
            format!(", most of it in {} of {}{cause}", clean::text(&r.at.function), clean::text(&r.at.label))
        });
        writeln!(out, "{length:>11} {share:>7}  {kind}{place}")?;
    }
    if !w.costs.is_empty() {
        writeln!(out, "causes of the {} spent waiting for late ranks or threads", figure::duration(w.waited_ns))?;
    }
    for c in w.costs.iter().take(SHOWN) {
        writeln!(
            out,
            "{:>11} {:>7}  {}",
            figure::duration(c.ns),
            figure::percent(ratio(c.ns, w.waited_ns), 1),
            text(c)
        )?;
    }
    write_regions(w, out)?;
    if let Some(e) = w.efficiency {
        let ideal = figure::duration(e.ideal_ns);
        writeln!(
            out,
            "parallel efficiency {} = load balance {} x serialisation {} x transfer {}",
            figure::percent(e.parallel, 1),
            figure::percent(e.load_balance, 1),
            figure::percent(e.serialisation, 1),
            figure::percent(e.transfer, 1)
        )?;
        writeln!(
            out,
            "  load balance: mean / largest time of a rank in the program's own code; serialisation: the largest / \
             {ideal}; transfer: {ideal} / {}",
            figure::duration(w.window.len())
        )?;
        writeln!(out, "  {ideal} is the length of the run on a network that delivers every message at once")?;
    }
    let strips = [("waiting", StripContent::Waiting), ("computing", StripContent::Computing)];
    for (title, shown) in strips.into_iter().filter(|_| rows > 0) {
        writeln!(out, "\n{title} over time, from 0 % ( ) to 100 % (#)")?;
        for line in strips::lines(&w.strip, shown, rows, COLUMNS) {
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}

/// The regions of the program with their balance, and who carries the critical path.
fn write_regions(w: &Waiting, out: &mut String) -> std::fmt::Result {
    if !w.regions.is_empty() {
        writeln!(out, "time in the program's own regions: of all ranks, mean, and most of one")?;
    }
    for r in w.regions.iter().take(SHOWN) {
        let [all, mean, most] = [r.ns, r.mean_ns, r.max_ns].map(figure::duration);
        let times = figure::digits(ratio(r.max_ns, r.mean_ns));
        let (function, label) = (clean::text(&r.function), clean::text(&r.max_label));
        writeln!(out, "{all:>11} {mean:>9}  {function}: {most} on {label}, {times} times the mean")?;
    }
    let length = w.window.len();
    if !w.critical_path.is_empty() {
        writeln!(out, "computing on the critical path, which is {} long", figure::duration(length))?;
    }
    for p in w.critical_path.iter().take(SHOWN) {
        writeln!(out, "{:>11} {:>7}  {}", figure::duration(p.ns), figure::percent(ratio(p.ns, length), 1), text(p))?;
    }
    Ok(())
}

fn text(d: &RankTime) -> String {
    let label = clean::text(&d.label);
    if d.function.is_empty() { label.into_owned() } else { format!("{label}, {}", clean::text(&d.function)) }
}
