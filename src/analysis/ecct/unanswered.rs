//! Waits for an answer that did not come in time.
//!
//! In: a segment of a path in which a timer ended the wait of its thread. Out: the time limit, and the port of the
//! server that did not answer, where the thread waited for one: a call that receives, or that connects, and reached the
//! time limit of its socket; or one that watches descriptors (`poll`, not a set of `epoll`, in which many others may
//! be), and the last that the thread sent or connected before it was for a server, and nothing came from there since. A
//! socket leads to a server if calls show that the process connected it, or made it and sent first, or if the
//! environment of the recording says where it leads: only there the port is known. A thread that has replied to a
//! client and waits for the next request does so in the same calls; for it nothing is said. Cost: the calls before the
//! wait.

use super::Walk;
use crate::analysis::outline::NoAnswer;
use crate::analysis::path::PathSegment;
use crate::base::time::{Ns, Span};
use crate::event::descriptor::{DescriptorOrigin, DescriptorUse, NamedDescriptor, descriptor_origin, descriptor_use};
use crate::event::waiting_calls::{is_poll_of_listed, may_have_timed_out, timed_out};
use crate::model::environment::ServerPort;
use crate::state::reader::RowCursor;
use crate::state::timeline::Call;

/// Calls that are looked at before a wait.
const MOST: usize = 64;

/// What the calls before a wait show of a descriptor.
struct Asked {
    descriptor: NamedDescriptor,
    /// The process has connected it, or named the address of the server.
    is_client: bool,
}

impl Walk<'_, '_> {
    /// The answer for which the thread of a segment waited until its time limit.
    pub(super) fn unanswered(&self, segment: &PathSegment) -> Option<NoAnswer> {
        let mut calls = self.reader.calls(segment.thread);
        let wait = calls.at(segment.span.start)?;
        let (name, ret) = (self.call_name(&wait), wait.ret?);
        let asked = if is_poll_of_listed(name) && timed_out(name, ret) {
            self.asked(&mut calls)?
        } else if may_have_timed_out(name, ret) {
            // Only a client connects; who receives may serve.
            let is_client = descriptor_use(name) == Some(DescriptorUse::Connect);
            Asked { descriptor: wait.descriptor?, is_client }
        } else {
            return None;
        };
        let port = self.server_port(segment, asked.descriptor, wait.span);
        (asked.is_client || port.is_some()).then(|| NoAnswer { within: two_digits(wait.span.len()), port })
    }

    fn call_name(&self, call: &Call) -> &str {
        self.sources.timeline.names().get(call.name)
    }

    /// The descriptor over which the thread asked last, before the row of a cursor, if nothing came over it since.
    fn asked(&self, calls: &mut RowCursor<'_, Call>) -> Option<Asked> {
        let mut before = std::iter::from_fn(|| calls.previous_row()).take(MOST);
        let mut answered = Vec::new();
        let descriptor = before.by_ref().find_map(|call| {
            let (by, descriptor) = (descriptor_use(self.call_name(&call))?, call.descriptor?);
            let moved = call.ret.is_some_and(|bytes| bytes > 0);
            if moved && matches!(by, DescriptorUse::Read | DescriptorUse::Receive) {
                answered.push(descriptor.descriptor());
            }
            let asks = moved && matches!(by, DescriptorUse::Write | DescriptorUse::Send);
            (asks || by == DescriptorUse::Connect).then_some((descriptor, by))
        });
        let (descriptor, by) = descriptor.filter(|(asked, _)| !answered.contains(&asked.descriptor()))?;
        let is_client = by == DescriptorUse::Connect || self.is_connected(descriptor, before);
        Some(Asked { descriptor, is_client })
    }

    /// True if calls before one that sent, latest first, show that the process began the conversation: it connected the
    /// descriptor, or it made the socket and sent first.
    fn is_connected(&self, named: NamedDescriptor, mut before: impl Iterator<Item = Call>) -> bool {
        let number = i64::from(named.descriptor().number());
        let mut sent_first = true;
        let shown = before.find_map(|call| {
            let name = self.call_name(&call);
            let makes = call.ret == Some(number);
            let is_same = call.descriptor.is_some_and(|other| other.descriptor() == named.descriptor());
            match descriptor_use(name) {
                Some(DescriptorUse::Connect) if is_same => Some(true),
                // Before that the descriptor was that of another open file.
                Some(DescriptorUse::Close) if is_same => Some(false),
                Some(DescriptorUse::Accept | DescriptorUse::Duplicate) if makes => Some(false),
                Some(DescriptorUse::Read | DescriptorUse::Receive) if is_same => {
                    sent_first &= call.ret.is_none_or(|bytes| bytes <= 0);
                    None
                }
                Some(DescriptorUse::Write | DescriptorUse::Send) if is_same => {
                    sent_first = true;
                    None
                }
                _ => descriptor_origin(name)
                    .filter(|_| makes)
                    .map(|origin| origin == DescriptorOrigin::Socket && sent_first),
            }
        });
        shown == Some(true)
    }

    /// The port to which an open file of the segment's thread leads, by the environment.
    fn server_port(&self, segment: &PathSegment, named: NamedDescriptor, span: Span) -> Option<ServerPort> {
        let thread = self.sources.timeline.thread(segment.thread)?;
        let environment = self.sources.timeline.environment(thread.host)?;
        environment.server_port(thread.pid, named.descriptor().number(), span)
    }
}

/// A time rounded to two digits: waits up to one time limit differ by what the wake-up took.
fn two_digits(ns: Ns) -> Ns {
    let unit = 10_i64.pow(ns.max(1).ilog10().saturating_sub(1));
    (ns + unit / 2) / unit * unit
}
