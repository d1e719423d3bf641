//! Events that become rows of the running thread of a CPU.
//!
//! In: an event on a CPU whose thread is known, of that thread as far as its context says. Out: a row or a part of one,
//! or the answer that the machine has to follow the event. What each needs is in ALGORITHMS.md section 10.2.

use super::lane::{ContextFit, KnownCall};
use super::{IDLE, Preparation};
use crate::event::kind::{Event, Kind, TextId, ThreadContextId};
use crate::state::kernel::calls::timed_out;
use crate::state::kernel::prepared::{LocalSample, OpenLocalCall};

impl Preparation<'_> {
    /// The context of an event, if it has one, describes the running thread; what may be applied later will be.
    fn confirm(&mut self, lane: usize, event: &Event, fit: ContextFit) {
        let of = &mut self.lanes[lane];
        if fit == ContextFit::New
            && let Some(context) = self.batch.context(event.who)
        {
            of.describe(event.who, context);
            of.pending.contexts.push(event.who);
        }
    }

    /// Follow an event of the running thread. False if the machine has to.
    pub(super) fn follow(&mut self, lane: usize, event: &Event, fit: ContextFit) -> bool {
        let Event { time: t, kind, .. } = *event;
        let of = &mut self.lanes[lane];
        let mut confirms = fit != ContextFit::Absent;
        match kind {
            Kind::Stack { origin, user, kernel, witness } => {
                confirms &= witness;
                if of.tid != Some(IDLE) {
                    of.rows.samples.push(LocalSample { time: t, origin, user, kernel });
                    [user, kernel].into_iter().flatten().for_each(|stack| self.need_stack(stack));
                }
            }
            Kind::CallEntry { name } if of.is_outside() && of.call == KnownCall::Outside && name != TextId::NONE => {
                of.call = KnownCall::Inside(OpenLocalCall { since: t, name });
                of.pending.has_called = true;
                self.need_name(name);
            }
            Kind::CallExit { name, ret } if of.is_outside() => {
                let KnownCall::Inside(call) = of.call else { return false };
                // A call that a timer ended changes the cause of a wait.
                let is_usual = [TextId::NONE, call.name].contains(&name)
                    && !timed_out(self.batch.text_of(call.name).unwrap_or(""), ret);
                if !is_usual {
                    return false;
                }
                of.end_call(call, t, ret);
            }
            Kind::Raise { soft_irq } => {
                if !of.raise(soft_irq) {
                    return false;
                }
            }
            Kind::Enter { .. } | Kind::Leave { .. } => return self.hold(lane, event, fit),
            _ => return false,
        }
        let pending = &mut self.lanes[lane].pending;
        pending.events += 1;
        pending.last = t;
        if confirms {
            pending.confirmed_at = Some(t);
        }
        self.confirm(lane, event, fit);
        true
    }

    /// Hold the entry into an interrupt context, or the exit from it; with the last exit the interruption is a row.
    /// False if the machine has to follow it.
    fn hold(&mut self, lane: usize, event: &Event, fit: ContextFit) -> bool {
        let of = &mut self.lanes[lane];
        let can_hold = match event.kind {
            Kind::Enter { context, .. } => of.enter(context),
            Kind::Leave { context } => of.leave(context) && !of.held.is_empty(),
            _ => false,
        };
        if !can_hold {
            return false;
        }
        let who = if fit == ContextFit::Absent { ThreadContextId::ABSENT } else { ThreadContextId::CONFIRMED };
        of.held.push(Event { who, ..*event });
        if of.is_outside() {
            of.end_interruption(event.time);
        }
        self.confirm(lane, event, fit);
        if let Kind::Enter { name, .. } = event.kind {
            self.need_name(name);
        }
        true
    }
}
