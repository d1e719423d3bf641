//! Moments and spans from whole nanoseconds since the origin, as tests write times.
#![allow(dead_code)]

use whyslow::parts::base::time::{Ns, Span, Timestamp};

/// The span from `start` to `end`.
pub fn span(start: Ns, end: Ns) -> Span {
    Span::of_ns(start, end)
}

/// Every nanosecond inside of a span.
pub fn instants(span: Span) -> impl Iterator<Item = Timestamp> {
    (span.start.ns()..span.end.ns()).map(Timestamp::new)
}
