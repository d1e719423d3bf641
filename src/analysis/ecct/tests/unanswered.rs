//! Waits for answers that did not come in time.

use super::*;
use crate::event::descriptor::{Descriptor, NamedDescriptor};
use crate::model::environment::{ConnectedSocket, Environment, Protocol, ServerPort, ThreadSetting, ThreadSettings};

const MS: Ns = 1_000_000;
/// The descriptor that the calls name.
const SOCKET: i64 = 5;

/// Calls of the thread, each with its result, then one that a timer ended after 1,001 ms; what is said of that wait.
fn wait_after(
    calls: &[(&str, Option<i64>, i64)],
    wait: (&str, Option<i64>, i64),
    environment: Option<PlacedEnvironment>,
) -> String {
    let mut builder = TimelineBuilder::new(1);
    builder.segment(1, 0, 100 * MS, SegmentKind::Running, 0);
    builder.segment(1, 100 * MS, 1101 * MS, SegmentKind::Timer, 0);
    builder.segment(1, 1101 * MS, 1200 * MS, SegmentKind::Running, 0);
    let ends = (1..).map(|at| (at * MS, at * MS + MS / 2));
    let spans = ends.take(calls.len()).chain([(100 * MS, 1101 * MS)]);
    for ((name, descriptor, ret), (start, end)) in calls.iter().copied().chain([wait]).zip(spans) {
        let descriptor = descriptor.and_then(Descriptor::new).map(|it| NamedDescriptor::new(it, None));
        let name = builder.0.tables.names.intern(name);
        let call = Call { span: Span::of_ns(start, end), name, ret: Some(ret), descriptor };
        builder.0.threads[0].rows.calls.push(call);
    }
    builder.0.threads[0].thread.pid = 7;
    let tree = tree_in(&builder, environment, 1, 100 * MS, 1101 * MS);
    assert_eq!(tree.len(), 1, "{tree:?}");
    let path = tree.into_keys().next().unwrap();
    path.rsplit(';').next().unwrap().to_owned()
}

/// Each second a line that says where the socket leads.
fn environment() -> Option<PlacedEnvironment> {
    let port = ServerPort { protocol: Protocol::Udp, number: 53 };
    let sockets = Some(vec![ConnectedSocket { descriptor: SOCKET as u32, port }]);
    let settings = ThreadSettings { sockets: vec![ThreadSetting { line: 0, value: sockets }], ..Default::default() };
    let values = Environment { processes: BTreeMap::from([(7, settings)]), ..Environment::default() };
    let times = (0..3).map(|second| Timestamp::new(second * 1000 * MS)).collect();
    Some(PlacedEnvironment { values: std::sync::Arc::new(values), times })
}

#[test]
fn a_time_limit_after_a_question_is_no_answer() {
    const EAGAIN: i64 = -11;
    const AT: Option<i64> = Some(SOCKET);
    const PLAIN: &str = "[blocked.timer]";
    const NO_PORT: &str = "[no answer in 1000000000 on None]";
    const WITH_PORT: &str = "[no answer in 1000000000 on Some(53)]";
    let poll = ("poll", None, 0);
    let said = |calls: &[(&str, Option<i64>, i64)], wait| wait_after(calls, wait, None);
    let (connect, send, receive) = (("connect", AT, 0), ("sendto", AT, 40), ("recvfrom", AT, 40));
    let made = ("socket", None, SOCKET);
    for (calls, wanted) in [
        (&[connect, send][..], NO_PORT),
        // A question that is asked again, over a socket without a connection.
        (&[made, send, poll, send], NO_PORT),
        // A connection that is being made.
        (&[("connect", AT, -115)], NO_PORT),
        (&[connect, send, receive, ("write", AT, 9)], NO_PORT),
        // The answer came; the thread waits for something else.
        (&[connect, send, receive], PLAIN),
        // Replies to clients.
        (&[("accept4", Some(3), SOCKET), receive, send], PLAIN),
        (&[made, receive, send], PLAIN),
        // The descriptor was that of another open file before.
        (&[connect, ("close", AT, 0), send], PLAIN),
        // Nothing shows who began.
        (&[send], PLAIN),
        (&[], PLAIN),
    ] {
        assert_eq!(said(calls, poll), wanted, "{calls:?}");
    }
    // Many others may be in the set.
    assert_eq!(said(&[connect, send], ("epoll_wait", None, 0)), PLAIN);
    assert_eq!(said(&[connect, send], ("clock_nanosleep", None, 0)), PLAIN);
    assert_eq!(said(&[], ("connect", AT, -115)), NO_PORT);
    // Who receives may serve; the environment knows the sockets that the process has connected.
    let receives = ("recvfrom", AT, EAGAIN);
    assert_eq!(said(&[send], receives), PLAIN);
    assert_eq!(wait_after(&[send], receives, environment()), WITH_PORT);
    assert_eq!(wait_after(&[send], poll, environment()), WITH_PORT);
    assert_eq!(wait_after(&[send], ("recvfrom", Some(SOCKET + 1), EAGAIN), environment()), PLAIN);
}
