//! Servers and clients, and the requests that they answer or make.

use super::host::{Exchange, Host, Thread};
use whyslow::parts::base::time::Ns;

/// Receives and sends that are used in turn.
const RECEIVES: [&str; 3] = ["read", "recvfrom", "recvmsg"];
const SENDS: [&str; 4] = ["write", "sendto", "writev", "sendmsg"];
/// `EAGAIN`.
const AGAIN: i64 = -11;
/// `F_DUPFD_CLOEXEC`.
const DUPLICATE: i64 = 1030;

/// A kind of server or client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A thread for each connection, in which it waits for requests.
    Blocking,
    /// One thread that waits for all connections at once.
    EventLoop,
    /// A thread waits for all connections and hands each request to another.
    Pool,
    /// A child process for each connection, which uses another descriptor for it.
    Forked,
    /// Two processes that accept connections of the same port.
    ReusePort,
    /// The client sends no more before the reply; each connection has one request.
    HalfClosed,
    /// Two requests at once on a connection.
    Pipelined,
    /// Requests begin while others are answered.
    Multiplexed,
    /// A client that pauses after each answer.
    Client,
    /// Connections that are older than the recording.
    Older,
}

impl Kind {
    pub const ALL: [Kind; 10] = [
        Kind::Blocking,
        Kind::EventLoop,
        Kind::Pool,
        Kind::Forked,
        Kind::ReusePort,
        Kind::HalfClosed,
        Kind::Pipelined,
        Kind::Multiplexed,
        Kind::Client,
        Kind::Older,
    ];

    pub fn task(self) -> &'static str {
        if self == Kind::Client { "call:client" } else { "serve:server" }
    }

    pub fn overlaps(self) -> bool {
        matches!(self, Kind::Pipelined | Kind::Multiplexed)
    }

    /// The requests that were made on a host.
    pub fn generate(self, host: &mut Host) -> Vec<Exchange> {
        match self {
            Kind::Blocking => blocking(host),
            Kind::EventLoop => event_loop(host),
            Kind::Pool => pool(host),
            Kind::Forked => forked(host),
            Kind::ReusePort => [blocking(host), blocking(host)].concat(),
            Kind::HalfClosed => half_closed(host),
            Kind::Pipelined => pipelined(host),
            Kind::Multiplexed => multiplexed(host),
            Kind::Client => client(host),
            Kind::Older => older(host),
        }
    }
}

/// A request that was received.
#[derive(Clone, Copy)]
struct Request {
    arrival: Ns,
    /// When the process had received its first data.
    begin: Ns,
    bytes: i64,
}

impl Request {
    fn answered(self, end: Ns, descriptor: i64, bytes_out: i64) -> Exchange {
        let Request { arrival, begin, bytes } = self;
        Exchange { begin, arrival, end, descriptor, bytes: [bytes, bytes_out] }
    }
}

fn receive(host: &mut Host) -> &'static str {
    RECEIVES[host.dice.below(RECEIVES.len())]
}

/// A time after now.
fn later(host: &mut Host, thread: &Thread) -> Ns {
    thread.now + host.dice.between(5_000, 400_000)
}

/// A receive that finds data: its bytes.
fn data(host: &mut Host, thread: &mut Thread, descriptor: i64) -> i64 {
    let (call, bytes) = (receive(host), host.dice.between(1, 5_000));
    host.call(thread, call, descriptor, bytes);
    bytes
}

/// A send: its exit and its bytes.
fn send(host: &mut Host, thread: &mut Thread, descriptor: i64) -> (Ns, i64) {
    let (call, bytes) = (SENDS[host.dice.below(SENDS.len())], host.dice.between(1, 5_000));
    let (_, exit) = host.call(thread, call, descriptor, bytes);
    (exit, bytes)
}

/// A reply in up to two sends, to a request that has begun.
fn reply(host: &mut Host, thread: &mut Thread, request: Request, descriptor: i64) -> Exchange {
    host.run(thread, 100_000);
    let (mut end, mut bytes_out) = send(host, thread, descriptor);
    if host.dice.once_in(3) {
        let (exit, more) = send(host, thread, descriptor);
        (end, bytes_out) = (exit, bytes_out + more);
    }
    request.answered(end, descriptor, bytes_out)
}

/// A receive in which a thread waits for data.
fn awaited(host: &mut Host, thread: &mut Thread, descriptor: i64) -> Request {
    let (call, bytes, at) = (receive(host), host.dice.between(1, 5_000), later(host, thread));
    let arrival = host.waiting_call(thread, call, descriptor, at, bytes);
    Request { arrival, begin: thread.now, bytes }
}

/// A thread waits for a connection, whose descriptor it gets.
fn accept(host: &mut Host, thread: &mut Thread, descriptor: i64) {
    let at = later(host, thread);
    host.waiting_call(thread, "accept4", 3, at, descriptor);
}

fn blocking(host: &mut Host) -> Vec<Exchange> {
    let mut listener = host.process("server");
    let mut all = Vec::new();
    for round in 0..2 {
        let mut latest = listener.now;
        for descriptor in 5..8 {
            let mut worker = host.thread(&listener);
            // The descriptors of the first round are closed by then.
            listener.now = listener.now.max(latest);
            accept(host, &mut listener, descriptor);
            worker.now = worker.now.max(listener.now + 1_000);
            for _ in 0..host.dice.between(4, 9) {
                let request = awaited(host, &mut worker, descriptor);
                // There is no more.
                if host.dice.once_in(4) {
                    let call = receive(host);
                    host.call(&mut worker, call, descriptor, AGAIN);
                }
                all.push(reply(host, &mut worker, request, descriptor));
            }
            host.call(&mut worker, "close", descriptor, 0);
            if round == 0 {
                latest = latest.max(worker.now + 1_000);
            }
        }
        listener.now = listener.now.max(latest);
    }
    all
}

fn event_loop(host: &mut Host) -> Vec<Exchange> {
    let mut server = host.process("server");
    let mut all = Vec::new();
    for descriptor in 5..10 {
        accept(host, &mut server, descriptor);
    }
    host.call(&mut server, "eventfd2", 0, 30);
    // Requests whose end has not arrived.
    let mut begun: [Option<Request>; 10] = [None; 10];
    for _ in 0..40 {
        let mut ready: Vec<i64> = (5..10).filter(|_| host.dice.once_in(3)).collect();
        let of_own = host.dice.once_in(6);
        if of_own {
            ready.insert(0, 30);
        }
        if ready.is_empty() {
            continue;
        }
        let waits = !host.dice.once_in(4);
        let until = later(host, &server);
        host.enter(&mut server, "epoll_wait", 4, 0);
        let entry = server.now;
        let woken = waits.then(|| host.wait(&mut server, until));
        host.exit(&mut server, "epoll_wait", ready.len() as i64);
        let exit = server.now;
        let mut late = Vec::new();
        for (at, descriptor) in ready.iter().copied().enumerate() {
            if descriptor == 30 {
                host.call(&mut server, "read", 30, 8);
                continue;
            }
            let arrival = match woken {
                Some(woken) if at == 0 => woken,
                Some(_) => exit,
                None => entry,
            };
            let bytes = data(host, &mut server, descriptor);
            let whole = Request { arrival, begin: server.now, bytes };
            let before = begun[descriptor as usize].take();
            let request = before.map_or(whole, |first| Request { bytes: first.bytes + bytes, ..first });
            if host.dice.once_in(6) {
                begun[descriptor as usize] = Some(request);
                continue;
            }
            host.run(&mut server, 20_000);
            late.push((request, descriptor));
            if host.dice.once_in(2) {
                for (request, descriptor) in late.drain(..) {
                    all.push(answer(host, &mut server, request, descriptor));
                }
            }
        }
        for (request, descriptor) in late {
            all.push(answer(host, &mut server, request, descriptor));
        }
    }
    all
}

/// A reply in one send.
fn answer(host: &mut Host, thread: &mut Thread, request: Request, descriptor: i64) -> Exchange {
    let (end, bytes) = send(host, thread, descriptor);
    request.answered(end, descriptor, bytes)
}

fn pool(host: &mut Host) -> Vec<Exchange> {
    let mut poller = host.process("server");
    let mut workers: Vec<Thread> = (0..3).map(|_| host.thread(&poller)).collect();
    for descriptor in 5..9 {
        accept(host, &mut poller, descriptor);
    }
    let mut all = Vec::new();
    for turn in 0..30 {
        let descriptor = 5 + turn % 4;
        let worker = &mut workers[turn as usize % 3];
        poller.now = poller.now.max(worker.now + 1_000);
        let until = later(host, &poller);
        let arrival = host.waiting_call(&mut poller, "epoll_wait", 4, until, 1);
        worker.now = worker.now.max(arrival - 3_000);
        host.hand_over(&mut poller, worker);
        let bytes = data(host, worker, descriptor);
        let request = Request { arrival, begin: worker.now, bytes };
        all.push(reply(host, worker, request, descriptor));
        // The same connection is served by another worker next.
        poller.now = poller.now.max(worker.now);
    }
    all
}

fn forked(host: &mut Host) -> Vec<Exchange> {
    let mut listener = host.process("server");
    let mut all = Vec::new();
    for connection in 0..6 {
        accept(host, &mut listener, 5);
        let mut child = host.fork(&mut listener);
        host.call(&mut listener, "close", 5, 0);
        let mut descriptor = 5;
        if connection % 2 == 0 {
            host.enter(&mut child, "fcntl", 5, DUPLICATE);
            host.exit(&mut child, "fcntl", 11);
            host.call(&mut child, "close", 5, 0);
            descriptor = 11;
        }
        for _ in 0..5 {
            let request = awaited(host, &mut child, descriptor);
            let exchange = reply(host, &mut child, request, descriptor);
            all.push(Exchange { descriptor: 5, ..exchange });
        }
    }
    all
}

fn half_closed(host: &mut Host) -> Vec<Exchange> {
    let mut server = host.process("server");
    let mut all = Vec::new();
    for _ in 0..30 {
        accept(host, &mut server, 5);
        let request = awaited(host, &mut server, 5);
        let call = receive(host);
        host.call(&mut server, call, 5, 0);
        all.push(reply(host, &mut server, request, 5));
        host.call(&mut server, "close", 5, 0);
        // The number may be that of a file next.
        if host.dice.once_in(3) {
            host.call(&mut server, "openat", -100, 5);
            host.call(&mut server, "read", 5, 100);
            host.call(&mut server, "write", 5, 100);
            host.call(&mut server, "close", 5, 0);
        }
    }
    all
}

fn pipelined(host: &mut Host) -> Vec<Exchange> {
    let mut server = host.process("server");
    let mut all = Vec::new();
    for descriptor in 5..9 {
        accept(host, &mut server, descriptor);
        for _ in 0..8 {
            let first = awaited(host, &mut server, descriptor);
            let second = awaited(host, &mut server, descriptor);
            host.run(&mut server, 30_000);
            let (_, sent) = send(host, &mut server, descriptor);
            host.run(&mut server, 30_000);
            let (end, more) = send(host, &mut server, descriptor);
            let both = Request { bytes: first.bytes + second.bytes, ..first };
            all.push(both.answered(end, descriptor, sent + more));
        }
    }
    all
}

fn multiplexed(host: &mut Host) -> Vec<Exchange> {
    let mut server = host.process("server");
    let mut all = Vec::new();
    for descriptor in 5..8 {
        accept(host, &mut server, descriptor);
        let mut request = awaited(host, &mut server, descriptor);
        // One more has begun whenever one is answered.
        request.bytes += awaited(host, &mut server, descriptor).bytes;
        for turn in 0..10 {
            host.run(&mut server, 30_000);
            let (mut end, mut sent) = send(host, &mut server, descriptor);
            if turn == 9 {
                let (exit, more) = send(host, &mut server, descriptor);
                (end, sent) = (exit, sent + more);
            }
            all.push(request.answered(end, descriptor, sent));
            if turn < 9 {
                request = awaited(host, &mut server, descriptor);
            }
        }
        host.call(&mut server, "close", descriptor, 0);
    }
    all
}

fn client(host: &mut Host) -> Vec<Exchange> {
    let mut client = host.process("client");
    let mut all = Vec::new();
    for _ in 0..4 {
        host.call(&mut client, "socket", 2, 6);
        host.call(&mut client, "connect", 6, 0);
        for _ in 0..8 {
            let bytes = host.dice.between(1, 2_000);
            let (begin, _) = host.call(&mut client, "sendto", 6, bytes);
            let mut received = awaited(host, &mut client, 6).bytes;
            if host.dice.once_in(3) {
                received += data(host, &mut client, 6);
            }
            let arrival = begin;
            all.push(Exchange { begin, arrival, end: client.now, descriptor: 6, bytes: [received, bytes] });
            let until = later(host, &client);
            host.waiting_call(&mut client, "nanosleep", 0, until, 0);
        }
        host.call(&mut client, "close", 6, 0);
    }
    all
}

fn older(host: &mut Host) -> Vec<Exchange> {
    let mut all = Vec::new();
    for _ in 0..3 {
        let mut server = host.process("server");
        // The reply to a request from before the recording.
        send(host, &mut server, 9);
        for _ in 0..10 {
            let request = awaited(host, &mut server, 9);
            all.push(reply(host, &mut server, request, 9));
        }
    }
    all
}
