//! A recording of one thread's requests, whose times are given by call path.

use crate::support::model_parts;
use whyslow::parts::base::time::{Span, Timestamp};
use whyslow::parts::model::column_values::ColumnValues;
use whyslow::parts::model::execution::ContextTime;
use whyslow::parts::model::metric::{Column, Metric};
use whyslow::parts::model::{Model, TraceId, TraceInfo, TraceLevel};

/// So many requests; `parts` gives each one's paths, as `model_parts` reads them, with their nanoseconds.
pub fn recording(requests: u64, parts: impl Fn(u64) -> Vec<(String, u64)>) -> Model {
    const START: Timestamp = Timestamp::new(1_700_000_000_000_000_000);
    let mut model = Model { tasks: vec!["app:request".to_owned()].into(), origin: START, ..Model::default() };
    let who = model_parts::thread(&mut model, "host", ("server", 1), ("worker", 2));
    let mut column = Column { metric: Metric::Duration, values: ColumnValues::default() };
    let mut at = START;
    for number in 0..requests {
        let own = parts(number).into_iter().map(|(path, ns)| {
            let context = model_parts::context(&mut model, "host", &path, 0);
            ContextTime { context, ns }
        });
        let own: Vec<ContextTime> = own.collect();
        let duration: i64 = own.iter().map(|part| part.ns as i64).sum();
        column.values.push(duration);
        let all = &mut model.executions;
        all.start.push(at);
        all.duration.push(duration);
        all.who.push(who);
        all.trace.push(TraceId::at(0));
        all.unsure.push(false);
        all.own.push(own);
        at += 10_000_000;
    }
    model.executions.columns = vec![column];
    model.traces.push(TraceInfo {
        label: "made-up".into(),
        level: TraceLevel::Machine,
        span: Span::new(START, at),
        recorded: None,
    });
    model
}
