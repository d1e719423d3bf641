//! A model of random executions, as many as a busy minute has: a few types, some contexts each, metrics with gaps. Its
//! threads come from [`model_parts`], its numbers from the one generator.

use super::model_parts;
use super::random::Random;
use whyslow::parts::base::notice::Notice;
use whyslow::parts::base::time::{Span, Timestamp};
use whyslow::parts::model::column_values::ColumnValues;
use whyslow::parts::model::context::{ContextId, Frame, FrameKind};
use whyslow::parts::model::execution::ContextTime;
use whyslow::parts::model::metric::{ABSENT, Column, Metric};
use whyslow::parts::model::wait_kind::WaitKind;
use whyslow::parts::model::{Model, ThreadInfoId, TraceId, TraceInfo, TraceLevel};

/// Times of an execution in up to six contexts.
fn own_times(random: &mut Random, nodes: &[ContextId]) -> Vec<ContextTime> {
    let parts = 1 + random.below(6);
    (0..parts)
        .map(|_| ContextTime { context: nodes[random.below(nodes.len())], ns: 1 + random.below(2_000_000) as u64 })
        .collect()
}

/// `executions` of them, the same for the same seed.
pub fn model(executions: usize, seed: u64) -> Model {
    let mut random = Random::new(seed);
    let mut model = Model { origin: Timestamp::new(1_700_000_000_000_000_000), ..Model::default() };
    model.tasks = vec!["app:request".into()].into();
    model.traces.push(TraceInfo {
        label: "made-up".into(),
        level: TraceLevel::Machine,
        span: Span::new(model.origin, model.origin + 60_000_000_000),
        recorded: None,
    });
    let label = i64::from(model.names.intern("made-up").raw());
    let kinds = ["get", "put", "list"].map(|k| i64::from(model.names.intern(k).raw()));
    let process = model.names.intern("server");
    for tid in 0..16 {
        model_parts::thread(&mut model, "host", ("server", 100), (&format!("worker-{tid}"), 100 + tid));
    }
    let mut nodes: Vec<ContextId> = vec![model.contexts.child(None, Frame { kind: FrameKind::Process, name: process })];
    for i in 0..400 {
        let name = model.names.intern(&format!("function_{}", i % 250));
        let parent = nodes[random.below(nodes.len().min(60))];
        let kind = match i % 9 {
            7 => FrameKind::Wait(WaitKind::ALL[3 + i % 8]),
            8 => FrameKind::Thread(WaitKind::Thread),
            _ => FrameKind::Function,
        };
        let context = model.contexts.child(Some(parent), Frame { kind, name });
        if matches!(kind, FrameKind::Thread(_)) {
            model.contexts.who.insert((context, ThreadInfoId::at(i % 16)), 1 + random.below(1 << 30) as u64);
        }
        if context.index() == nodes.len() {
            nodes.push(context);
        }
    }
    let mut columns: Vec<Column> = [Metric::Duration, Metric::Start]
        .into_iter()
        .chain([WaitKind::Cpu, WaitKind::Disk, WaitKind::Thread].map(Metric::Time))
        .chain([Metric::Other, Metric::Syscalls, Metric::BytesRead, Metric::Threads, Metric::Trace, Metric::Type])
        .chain(["id", "status"].map(|f| Metric::Field(f.into())))
        .map(|metric| Column { metric, values: ColumnValues::default() })
        .collect();
    let mut at = model.origin;
    for i in 0..executions {
        at += 1 + random.below(400_000) as i64;
        let own = own_times(&mut random, &nodes);
        let of = |wanted: &dyn Fn(WaitKind) -> bool| -> i64 {
            own.iter().filter(|time| wanted(model.contexts.spent(time.context))).map(|time| time.ns as i64).sum()
        };
        let duration = of(&|_| true);
        let read = if random.below(3) == 0 { ABSENT } else { 512 * random.below(64) as i64 };
        for column in &mut columns {
            column.values.push(match &column.metric {
                Metric::Duration => duration,
                Metric::Start => at - model.origin,
                Metric::Time(s) => of(&|k| k == *s),
                Metric::Other => of(&|k| !k.row().has_metric),
                Metric::Syscalls => 3 + random.below(5) as i64,
                Metric::BytesRead => read,
                Metric::Trace => label,
                Metric::Type => kinds[random.below(3)],
                Metric::Field(f) if f == "id" => 70_000 + i as i64,
                Metric::Field(_) => 0,
                _ => 1 + random.below(3) as i64,
            });
        }
        let e = &mut model.executions;
        e.start.push(at);
        e.duration.push(duration);
        e.who.push(ThreadInfoId::at(random.below(16)));
        e.trace.push(TraceId::at(0));
        e.unsure.push(random.below(50) == 0);
        e.cpu.push(if random.below(9) == 0 { u16::MAX } else { random.below(8) as u16 });
        e.own.push(own);
    }
    model.executions.columns = columns;
    model.notices.add(Notice::UnresolvedWaits, 12, || "execution at 5 ns".into());
    model
}
