//! Properties of executions that are no amounts, as metrics: who ran them, and where.
//!
//! In: a model with its threads. Out: a column of names for each property of which there are several values (a single
//! one distinguishes nothing), and the values of any property for filters. Cost: a look-up for each execution and
//! property.

use super::Model;
use super::metric::{ABSENT, Column, Metric};
use crate::base::names::NameId;

/// The properties.
const CATEGORIES: [Metric; 5] = [Metric::Process, Metric::Thread, Metric::Tid, Metric::Host, Metric::CpuId];

/// Add the columns of a model whose executions are complete.
pub fn add(model: &mut Model) {
    let numbers = model.who.iter().map(|who| i64::from(who.tid)).chain(cpus(model));
    let mut numbers: Vec<i64> = numbers.collect();
    numbers.sort_unstable();
    numbers.dedup();
    // Numbers are names here: the distance between two says nothing.
    for number in numbers {
        model.names.intern(&number.to_string());
    }
    for metric in CATEGORIES {
        let Some(values) = values(model, &metric).filter(|_| model.executions.column(&metric).is_none()) else {
            continue;
        };
        let mut present = values.iter().filter(|value| **value != ABSENT);
        let first = present.next();
        if present.any(|value| Some(value) != first) {
            model.executions.columns.push(Column { metric, values: values.into() });
        }
    }
    // As in a model of several recordings.
    model.executions.columns.sort_by(|a, b| a.metric.cmp(&b.metric));
}

/// The CPUs on which executions began, where they are known.
fn cpus(model: &Model) -> impl Iterator<Item = i64> {
    model.executions.cpu.iter().filter(|cpu| *cpu != u16::MAX).map(i64::from)
}

/// The values of a property by execution, names of the model; `None` for other metrics.
pub fn values(model: &Model, metric: &Metric) -> Option<Vec<i64>> {
    let executions = &model.executions;
    let id = |name: NameId| i64::from(name.raw());
    let number = |number: i64| model.names.find(&number.to_string()).map_or(ABSENT, id);
    let of_thread = |value: &dyn Fn(&super::ThreadInfo) -> i64| {
        let by_thread: Vec<i64> = model.who.iter().map(value).collect();
        let of = |who: super::ThreadInfoId| by_thread.get(who.index()).copied().unwrap_or(ABSENT);
        executions.who.iter().map(of).collect()
    };
    let values: Vec<i64> = match metric {
        Metric::Process => of_thread(&|who| id(who.process)),
        Metric::Thread => of_thread(&|who| id(who.thread)),
        Metric::Tid => of_thread(&|who| number(who.tid.into())),
        Metric::Host => of_thread(&|who| id(who.host)),
        Metric::CpuId => {
            let cpu = |cpu: u16| if cpu == u16::MAX { ABSENT } else { number(cpu.into()) };
            executions.cpu.iter().map(cpu).collect()
        }
        _ => return None,
    };
    // Executions of MPI runs have no CPU.
    (values.len() == executions.len()).then_some(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::time::Timestamp;
    use crate::model::{ThreadInfo, ThreadInfoId};

    #[test]
    fn add_makes_columns_of_what_differs() {
        let mut model = Model::default();
        let [host, process, thread] = ["h", "p", "t"].map(|name| model.names.intern(name));
        for tid in [7, 8] {
            model.who.push(ThreadInfo { host, process, pid: 7, tid, thread });
        }
        for (who, cpu) in [(0, 1), (1, 1), (0, u16::MAX)] {
            model.executions.start.push(Timestamp::ZERO);
            model.executions.duration.push(5);
            model.executions.who.push(ThreadInfoId::at(who));
            model.executions.cpu.push(cpu);
        }
        add(&mut model);
        let metrics: Vec<Metric> = model.executions.columns.iter().map(|column| column.metric.clone()).collect();
        assert_eq!(metrics, [Metric::Tid]);
        let named = |metric: &Metric| -> Vec<String> {
            values(&model, metric).unwrap().into_iter().map(|value| model.name_of(value).to_owned()).collect()
        };
        assert_eq!(named(&Metric::Tid), ["7", "8", "7"]);
        assert_eq!(named(&Metric::CpuId), ["1", "1", ""]);
        assert_eq!(named(&Metric::Process), ["p", "p", "p"]);
    }
}
