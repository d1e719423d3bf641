//! Waits for an answer that did not come in time.
//!
//! In: a segment of a path in which a timer ended the wait of its thread. Out: the time limit, and the port of the
//! server that did not answer, where the thread waited for a server; nothing otherwise. Two kinds of calls wait for an
//! answer until a time limit: those that receive or connect, up to the limit of their socket, and those that watch the
//! descriptors which they list. The latter wait for an answer if the last that the thread sent or connected before them
//! was to a server, and nothing came over that descriptor since. Sets of `epoll` hold many other descriptors, so
//! nothing follows from their time limits.
//!
//! A socket leads to a server if the calls before the wait show that the process connected it, or that it made the
//! socket and sent first, or if the environment of the recording says where the socket leads: only the environment has
//! the port. A server that has replied and waits for its client's next request does so in the same calls, so without
//! such evidence nothing is said. Cost: the calls before the wait.

use super::Walk;
use crate::analysis::outline::NoAnswer;
use crate::analysis::path::PathSegment;
use crate::base::time::{Ns, Span};
use crate::event::descriptor::{Descriptor, DescriptorOrigin, DescriptorUse, descriptor_origin, descriptor_use};
use crate::event::waiting_calls::{is_poll_of_listed, may_have_timed_out, timed_out};
use crate::model::environment::ServerPort;
use crate::timeline::Call;
use crate::timeline::reader::RowCursor;

/// Calls that are looked at before a wait.
const MOST: usize = 64;

/// What the calls before a wait show of a descriptor.
struct Asked {
    descriptor: Descriptor,
    /// The calls show that the process began the conversation over it.
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
            Asked { descriptor: wait.descriptor?.descriptor(), is_client }
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
            let (by, descriptor) = (descriptor_use(self.call_name(&call))?, call.descriptor?.descriptor());
            let moved = call.ret.is_some_and(|bytes| bytes > 0);
            if moved && matches!(by, DescriptorUse::Read | DescriptorUse::Receive) {
                answered.push(descriptor);
            }
            let asks = moved && matches!(by, DescriptorUse::Write | DescriptorUse::Send);
            (asks || by == DescriptorUse::Connect).then_some((descriptor, by))
        });
        let (descriptor, by) = descriptor.filter(|(asked, _)| !answered.contains(asked))?;
        let is_client = by == DescriptorUse::Connect || self.began(descriptor, before);
        Some(Asked { descriptor, is_client })
    }

    /// True if calls before one that sent, latest first, show that the process began the conversation: it connected the
    /// descriptor, or it made the socket and sent first.
    fn began(&self, asked: Descriptor, mut before: impl Iterator<Item = Call>) -> bool {
        let mut sent_first = true;
        let shown = before.find_map(|call| {
            let name = self.call_name(&call);
            let makes = call.ret.and_then(Descriptor::new) == Some(asked);
            let is_same = call.descriptor.is_some_and(|other| other.descriptor() == asked);
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
    fn server_port(&self, segment: &PathSegment, asked: Descriptor, span: Span) -> Option<ServerPort> {
        let thread = self.sources.timeline.thread(segment.thread)?;
        let environment = self.sources.timeline.environment(thread.host)?;
        environment.server_port(thread.pid, asked.number(), span)
    }
}

/// A time rounded to two digits: waits up to one time limit differ by what the wake-up took.
fn two_digits(ns: Ns) -> Ns {
    let unit = 10_i64.pow(ns.max(1).ilog10().saturating_sub(1));
    (ns + unit / 2) / unit * unit
}
