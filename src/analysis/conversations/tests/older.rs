//! Conversations that are older than the recording.

use super::*;
use crate::analysis::timeline_builder::HOST;
use crate::model::environment::{
    ConnectedSocket, Environment, PlacedEnvironment, Protocol, ServerPort, ThreadSetting, ThreadSettings,
};
use std::collections::BTreeMap;
use std::sync::Arc;

#[test]
fn what_is_older_than_the_recording_is_a_socket_by_its_use() {
    let awaited = |more: Calls<'_>| {
        let mut builder = server(1);
        waits(&mut builder, 1, &[(20, 40)]);
        calls(&mut builder, 1, &[("epoll_wait", 19, 43, 3, 1), ("read", 44, 45, 5, 10), ("write", 60, 65, 5, 7)]);
        calls(&mut builder, 1, more);
        served(&builder).len()
    };
    assert_eq!((awaited(&[]), awaited(&[("lseek", 70, 71, 5, 0)])), (1, 0));
    // Data that no thread waited for may be that of a file, unless only sockets allow the call.
    let unawaited = |more: Calls<'_>| {
        let mut builder = server(1);
        waits(&mut builder, 1, &[]);
        calls(&mut builder, 1, &[("read", 44, 45, 5, 10), ("write", 60, 65, 5, 7)]);
        calls(&mut builder, 1, more);
        served(&builder).len()
    };
    assert_eq!((unawaited(&[]), unawaited(&[("shutdown", 70, 71, 5, 0)])), (0, 1));
    // Threads wake each other by a counter of eight bytes.
    let mut builder = server(1);
    waits(&mut builder, 1, &[(20, 40)]);
    calls(&mut builder, 1, &[("epoll_wait", 19, 43, 3, 1), ("read", 44, 45, 5, 8), ("write", 60, 65, 5, 8)]);
    assert_eq!(served(&builder), []);
}

#[test]
fn older_conversation_counts_as_the_process_has_the_others() {
    let older = [("recvfrom", 10, 11, 9, 1), ("sendto", 20, 21, 9, 1), ("recvfrom", 30, 31, 9, 1)];
    let with = |more: Calls<'_>| {
        let mut builder = server(1);
        waits(&mut builder, 1, &[]);
        calls(&mut builder, 1, &older);
        calls(&mut builder, 1, more);
        (served(&builder).len(), rows(&builder, ConversationSide::Calls).len())
    };
    assert_eq!(with(&[]), (1, 1));
    let accepted = [("accept4", 50, 51, 4, 5), ("read", 60, 61, 5, 1), ("write", 62, 63, 5, 1)];
    // What contradicts the others is left out where there are others.
    let connected = [("connect", 70, 71, 6, 0), ("write", 72, 73, 6, 1), ("read", 74, 75, 6, 1)];
    assert_eq!(with(&accepted), (2, 1));
    assert_eq!(with(&[accepted, connected].concat()), (2, 1));
    // A process that sleeps before it sends asks by itself.
    let mut builder = server(1);
    waits(&mut builder, 1, &[]);
    let slept = [("recvfrom", 10, 11, 9, 1), ("clock_nanosleep", 12, 19, -1, 0)];
    calls(&mut builder, 1, &slept);
    calls(&mut builder, 1, &[("sendto", 20, 21, 9, 1), ("recvfrom", 30, 31, 9, 1)]);
    assert_eq!((served(&builder).len(), rows(&builder, ConversationSide::Calls).len()), (0, 1));
}

#[test]
fn older_conversation_is_a_call_where_the_environment_knows_that_the_process_connected_it() {
    let mut builder = server(1);
    builder.0.threads[0].thread.pid = 100;
    waits(&mut builder, 1, &[]);
    // One with a client and one with a database, each over a connection that is older than the recording.
    let asked = [("recvfrom", 10, 11, 9, 1), ("sendto", 20, 21, 4, 2), ("recvfrom", 30, 31, 4, 3)];
    let answered = [("sendto", 40, 41, 9, 1), ("recvfrom", 50, 51, 9, 1), ("sendto", 60, 61, 9, 1)];
    calls(&mut builder, 1, &[&asked[..], &answered[..]].concat());
    let both = |environment: Option<PlacedEnvironment>, side| {
        let mut recorded = builder.recorded();
        environment.into_iter().for_each(|environment| recorded.set_environment(HOST, environment));
        let timeline = recorded.seal();
        let found = find(&timeline, &task(side, "server"), &Ctx::new(1)).unwrap();
        let descriptors = found.map(|found| found.exchanges.iter().map(|it| it.descriptor.number()).collect());
        descriptors.unwrap_or_else(|_| Vec::new())
    };
    let port = ServerPort { protocol: Protocol::Tcp, number: 5432 };
    let sockets = vec![ThreadSetting { line: 0, value: Some(vec![ConnectedSocket { descriptor: 4, port }]) }];
    let settings = ThreadSettings { sockets, ..ThreadSettings::default() };
    let values = Environment { processes: BTreeMap::from([(100, settings)]), ..Environment::default() };
    let times = [0, 1000].into_iter().map(Timestamp::new).collect();
    let sampled = PlacedEnvironment { values: Arc::new(values), times };
    assert_eq!(both(Some(sampled), ConversationSide::Calls), [4]);
    assert!(both(None, ConversationSide::Calls).contains(&9), "nothing shows the side of either");
}
