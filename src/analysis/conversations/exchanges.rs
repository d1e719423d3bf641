//! The exchanges of a conversation over one socket: data in one direction, and the answer in the other.
//!
//! In: the data that a process receives and sends on the socket, in order. Out: for a server each request with its
//! reply, for a client each call with its answer. An exchange begins with the first data in its direction since the
//! last answer and ends with the last data of the answer, so what passes between an answer and the next request is in
//! none. When a request had arrived is kept apart from when it was received. That requests overlap (they are pipelined
//! or multiplexed) shows in no piece alone, only in their number: more pieces came than were begun one after the other,
//! and more answers left. Cost: O(1) for each piece.

use crate::base::span_list::{SpanList, SpanRoom};
use crate::base::time::{Span, Timestamp};
use crate::event::derived::ConversationSide;
use crate::event::descriptor::Descriptor;
use crate::timeline::ThreadId;

/// A part of the answer from which on an exchange counts as streamed, where most of its time passed meanwhile.
const STREAMED: u32 = 3;

/// A thread at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment {
    pub time: Timestamp,
    pub thread: ThreadId,
}

/// Data in one direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// When it had arrived, or the send was entered.
    pub begin: Timestamp,
    /// The exit of the call.
    pub end: Timestamp,
    pub thread: ThreadId,
    pub bytes: u64,
    /// The call named the address of a peer: this is a whole message.
    pub is_datagram: bool,
}

/// One request with its reply, or one call with its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Exchange {
    /// The exit of the receive that returned the request, or the entry of the send.
    pub begin: Moment,
    /// When the request had arrived at the latest, or the entry of the send.
    pub arrival: Timestamp,
    /// The exit of the last send of the reply, or of the last receive of the answer.
    pub end: Moment,
    /// The descriptor by which the process first knew the socket.
    pub descriptor: Descriptor,
    /// Bytes that the process received.
    pub bytes_in: u64,
    /// Bytes that it sent.
    pub bytes_out: u64,
}

/// An exchange that has begun.
#[derive(Clone, Copy, Debug)]
struct OpenExchange {
    begin: Moment,
    arrival: Timestamp,
    /// The end of the last piece in its direction.
    asked_until: Timestamp,
    asked_bytes: u64,
    /// Pieces in its direction that came apart from the one before.
    more_asked: u64,
    answer: Option<Answer>,
}

/// Its answer so far.
#[derive(Clone, Copy, Debug)]
struct Answer {
    first_end: Timestamp,
    end: Moment,
    bytes: u64,
    pieces: u32,
    /// Pieces that came apart from the one before.
    more: u64,
}

/// What is irregular in a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Irregularities {
    /// Exchanges without an answer.
    pub unanswered: u64,
    /// Requests that began before the one before was answered.
    pub overlapping: u64,
    /// Exchanges whose answer took most of their time, in parts.
    pub streamed: u64,
}

/// What is kept of exchanges.
#[derive(Debug)]
pub(super) enum ExchangeLog {
    Nothing,
    /// The times from arrival to end: that of which candidates are made.
    Spans(SpanList),
    /// All that is known of them.
    Whole(Vec<Exchange>),
}

impl ExchangeLog {
    fn add(&mut self, exchange: Exchange) {
        match self {
            ExchangeLog::Nothing => {}
            ExchangeLog::Spans(spans) => spans.push(Span::new(exchange.arrival, exchange.end.time)),
            ExchangeLog::Whole(all) => all.push(exchange),
        }
    }

    /// Add what another log keeps.
    pub fn append(&mut self, other: ExchangeLog) {
        match (&mut *self, other) {
            (_, ExchangeLog::Nothing) => {}
            (ExchangeLog::Spans(spans), ExchangeLog::Spans(more)) => spans.append(more),
            (ExchangeLog::Whole(all), ExchangeLog::Whole(more)) => all.extend(more),
            (log, other) => *log = other,
        }
    }
}

/// Which exchanges are kept, and what of them.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kept<'r> {
    /// Those of no side.
    Nothing,
    /// The times of those of both sides.
    Spans(&'r SpanRoom),
    /// Those of one side.
    Whole(ConversationSide),
}

impl Kept<'_> {
    fn log(self, side: ConversationSide) -> ExchangeLog {
        match self {
            Kept::Spans(room) => ExchangeLog::Spans(SpanList::new(room)),
            Kept::Whole(wanted) if wanted == side => ExchangeLog::Whole(Vec::new()),
            Kept::Whole(_) | Kept::Nothing => ExchangeLog::Nothing,
        }
    }
}

/// The exchanges of one side of a conversation, or of several, that are over.
#[derive(Debug)]
pub(super) struct ExchangesOfSide {
    /// In order of time in each conversation.
    pub log: ExchangeLog,
    /// Of all of them.
    pub irregularities: Irregularities,
}

impl ExchangesOfSide {
    /// Add those of other conversations.
    pub fn append(&mut self, other: ExchangesOfSide) {
        self.log.append(other.log);
        let (all, more) = (&mut self.irregularities, other.irregularities);
        all.unanswered += more.unanswered;
        all.overlapping += more.overlapping;
        all.streamed += more.streamed;
    }
}

/// The exchanges of a conversation as one side has them.
#[derive(Debug)]
pub(super) struct Exchanges {
    side: ConversationSide,
    descriptor: Descriptor,
    /// Each receive returns a whole message: a request that gets no reply ends with the next.
    pub has_datagrams: bool,
    open: Option<OpenExchange>,
    log: ExchangeLog,
    irregularities: Irregularities,
    /// Pieces beyond one for each exchange, and answers.
    more_asked: u64,
    more_answered: u64,
}

impl Exchanges {
    /// None so far.
    pub fn new(side: ConversationSide, descriptor: Descriptor, kept: Kept<'_>) -> Exchanges {
        let irregularities = Irregularities::default();
        Exchanges {
            side,
            descriptor,
            has_datagrams: false,
            open: None,
            log: kept.log(side),
            irregularities,
            more_asked: 0,
            more_answered: 0,
        }
    }

    /// When the exchange began that has no answer yet.
    pub fn begun(&self) -> Option<Timestamp> {
        self.open.filter(|open| open.answer.is_none()).map(|open| open.begin.time)
    }

    /// The process received data.
    pub fn receive(&mut self, piece: Piece) {
        match self.side {
            ConversationSide::Serves => self.ask(piece),
            ConversationSide::Calls => self.answer(piece),
        }
    }

    /// The process sent data.
    pub fn send(&mut self, piece: Piece) {
        match self.side {
            ConversationSide::Serves => self.answer(piece),
            ConversationSide::Calls => self.ask(piece),
        }
    }

    fn ask(&mut self, piece: Piece) {
        let is_message = self.has_datagrams && self.side == ConversationSide::Serves;
        if self.open.is_some_and(|open| open.answer.is_some() || is_message) {
            self.finish();
        }
        if let Some(open) = &mut self.open {
            open.more_asked += u64::from(piece.begin > open.asked_until);
            open.asked_until = piece.end;
            open.asked_bytes = open.asked_bytes.saturating_add(piece.bytes);
            return;
        }
        let begun = match self.side {
            ConversationSide::Serves => piece.end,
            ConversationSide::Calls => piece.begin,
        };
        let begin = Moment { time: begun, thread: piece.thread };
        let (arrival, asked_until, asked_bytes) = (piece.begin, piece.end, piece.bytes);
        self.open = Some(OpenExchange { begin, arrival, asked_until, asked_bytes, more_asked: 0, answer: None });
    }

    fn answer(&mut self, piece: Piece) {
        // An answer to what was asked before the recording, or a greeting.
        let Some(open) = &mut self.open else { return };
        let end = Moment { time: piece.end.max(open.begin.time), thread: piece.thread };
        match &mut open.answer {
            Some(answer) => {
                answer.more += u64::from(piece.begin > answer.end.time);
                answer.bytes = answer.bytes.saturating_add(piece.bytes);
                answer.pieces = answer.pieces.saturating_add(1);
                answer.end = answer.end.max(end);
            }
            None => {
                open.answer = Some(Answer { first_end: end.time, end, bytes: piece.bytes, pieces: 1, more: 0 });
            }
        }
    }

    /// The open exchange is over.
    fn finish(&mut self) {
        let Some(open) = self.open.take() else { return };
        let Some(answer) = open.answer else {
            self.irregularities.unanswered += 1;
            return;
        };
        let (bytes_in, bytes_out) = match self.side {
            ConversationSide::Serves => (open.asked_bytes, answer.bytes),
            ConversationSide::Calls => (answer.bytes, open.asked_bytes),
        };
        let until_answer = answer.first_end.since(open.arrival);
        let is_streamed = answer.pieces >= STREAMED && answer.end.time.since(answer.first_end) > until_answer;
        self.irregularities.streamed += u64::from(is_streamed);
        self.more_asked += open.more_asked;
        self.more_answered += answer.more;
        let OpenExchange { begin, arrival, .. } = open;
        let (end, descriptor) = (answer.end, self.descriptor);
        self.log.add(Exchange { begin, arrival, end, descriptor, bytes_in, bytes_out });
    }

    /// The conversation is over, or the recording.
    pub fn close(mut self) -> ExchangesOfSide {
        self.finish();
        self.irregularities.overlapping = self.more_asked.min(self.more_answered);
        ExchangesOfSide { log: self.log, irregularities: self.irregularities }
    }
}
