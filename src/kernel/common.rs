//! Events that are the same in kernel and user-space traces: system calls, call stacks, functions, images, delimiters.
//!
//! In: an event and the thread on which it happened, where that is known. Out: its data in that thread and in the
//! timeline. Cost: O(1) for each event, and the fields of a delimiter.

use super::machine::{BatchIds, Machine};
use super::thread_state::Sched;
use crate::base::figure;
use crate::base::names::Names;
use crate::base::notice::Notice;
use crate::event::host::TraceOrigin;
use crate::event::kind::{Event, Kind, MarkId, TextId, WeightId};
use crate::event::stack::SampleWeight;
use crate::reading::batch::{MarkKey, WeightBody};
use crate::timeline::{MarkField, MarkRow, PageFault, StackSample, ThreadId};
use smallvec::SmallVec;

/// The fields of most marks.
type MarkFields = SmallVec<[MarkField; 8]>;

impl Machine {
    /// Events that are the same in kernel and user-space traces: they happen on `thread`.
    pub(super) fn common(
        &mut self,
        event: &Event,
        origin: TraceOrigin,
        thread: Option<ThreadId>,
        ids: &mut BatchIds<'_>,
    ) {
        let t = event.time;
        match event.kind {
            Kind::CallEntry { name, descriptor } => {
                if let (Some(thread), Some(name)) = (thread, ids.name(&mut self.out, name)) {
                    self.enter_call(thread, t, name, descriptor);
                }
            }
            Kind::CallExit { name, ret } => {
                if let Some(thread) = thread {
                    let name = ids.name(&mut self.out, name);
                    self.leave_call(thread, t, name, ret);
                }
            }
            Kind::Stack { origin, user, kernel, weight, .. } => {
                if let Some(thread) = thread.filter(|thread| !self.threads[*thread].thread.idle) {
                    let user = ids.stack(&mut self.out.tables, user);
                    let kernel = ids.stack(&mut self.out.tables, kernel);
                    let weight = self.weight(weight, ids).into();
                    let state = &mut self.threads[thread];
                    let before = state.last_sample;
                    // Delivered late by another stream: it was taken when the thread left the CPU.
                    let running = matches!(state.sched, Sched::Running(_));
                    let time = if running { t } else { state.start_of_segment().clamp(before.min(t), t) };
                    state.push_sample(StackSample { time, origin, user, kernel, weight });
                }
            }
            Kind::Function { enters, address } => {
                if let Some(thread) = thread {
                    self.function(thread, t, enters, address);
                }
            }
            Kind::Latency { ns } => {
                if let Some(thread) = thread {
                    self.latency(thread, t, ns);
                }
            }
            Kind::PageFault => {
                if let (Some(thread), Some(faults)) = (thread, &mut self.out.page_faults) {
                    faults.push(PageFault { thread, time: t });
                }
            }
            Kind::Image(id) => {
                let batch = ids.batch;
                if let Some(change) = batch.image_of(id) {
                    self.user_image(origin.host, event, change, thread, ids);
                }
            }
            Kind::Mark(id) => self.mark(event, id, origin, thread, ids),
            _ => {}
        }
    }

    /// What a sample counts for.
    fn weight(&mut self, id: WeightId, ids: &mut BatchIds<'_>) -> Option<SampleWeight> {
        let WeightBody { event, amount } = *ids.batch.weight_of(id)?;
        Some(SampleWeight { event: ids.name(&mut self.out, event)?, amount })
    }

    /// A delimiter of a task.
    fn mark(
        &mut self,
        event: &Event,
        id: MarkId,
        origin: TraceOrigin,
        thread: Option<ThreadId>,
        ids: &mut BatchIds<'_>,
    ) {
        let batch = ids.batch;
        let Some(body) = batch.mark_of(id) else { return };
        let mut name = |id: TextId| ids.name(&mut self.out, id).unwrap_or(Names::MISSING);
        let mark = MarkRow {
            number: 0,
            time: event.time,
            task: body.task,
            begins: body.begins,
            thread,
            trace: u32::from(event.trace),
            cpu: event.cpu,
            key: body.key.map(|key| match key {
                MarkKey::Number(n) => n,
                MarkKey::Text(text) => i64::from(name(text).raw()),
            }),
            kind: body.kind.map(&mut name),
        };
        let fields = batch.fields_of(id).iter();
        let fields: MarkFields = fields.map(|of| MarkField { name: name(of.name), value: of.value }).collect();
        if self.pair(origin.host, thread, &mark) {
            return;
        }
        if thread.is_none() {
            self.notices.add(Notice::UnattachedUser, 1, || figure::moment(event.time.ns()));
        }
        self.sealed.marks.push(mark, &fields);
    }
}
