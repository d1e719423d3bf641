//! Trees of recordings beside which the environment was sampled, and the same without it.

use super::waits_for_a_cpu::{MS, neighbours, paused_cpu};
use super::*;
use crate::analysis::timeline_builder::PID;
use crate::model::environment::{ControlGroup, Environment, EnvironmentClocks, ThreadSetting, ThreadSettings};
use crate::timeline::Host;
use std::sync::Arc;

/// Two samples around 400 ms: a process in a group without a quota, with its CPUs and priority; steal of CPU 0 in ms.
fn environment(allowed: &[(u32, u32)], is_usual: bool, steal: u64) -> Option<PlacedEnvironment> {
    let top = ControlGroup {
        path: "/".into(),
        is_outermost: true,
        is_sampled: true,
        has_usual_weight: true,
        ..ControlGroup::default()
    };
    let settings = ThreadSettings {
        group: vec![ThreadSetting { line: 0, value: 0 }],
        allowed: vec![ThreadSetting { line: 0, value: allowed.to_vec() }],
        is_usual: vec![ThreadSetting { line: 0, value: is_usual }],
        ..ThreadSettings::default()
    };
    let grown = [(0, 500), (1, 500 + steal)].map(|(line, value)| ThreadSetting { line, value });
    let values = Environment {
        lines: vec![EnvironmentClocks::default(); 2],
        groups: vec![top],
        processes: [(PID, settings)].into(),
        steal: [(0, grown.to_vec())].into(),
        ..Environment::default()
    };
    Some(PlacedEnvironment { values: Arc::new(values), times: vec![Timestamp::new(0), Timestamp::new(400 * MS)] })
}

/// The first step below the function, where a thread waited for CPU 0 in the place of which another one was to run on.
fn wait_of(idle: Ns, environment: Option<PlacedEnvironment>) -> String {
    let mut builder = neighbours(60, idle, SegmentKind::Running, SegmentKind::Preempted);
    let name = builder.0.tables.names.intern("alpha");
    builder.0.tables.hosts.push(Host { name, kernel_release: None });
    tree_in(&builder, environment, 1, 10 * MS, 70 * MS).into_keys().next().unwrap_or_default()
}

#[test]
fn only_cpus_on_which_the_thread_may_run_are_idle() {
    let both = Some(environment(&[(0, 1)], false, 0).unwrap());
    assert_eq!(wait_of(500, both), "M;[preempted];[1 of 2 idle];[of another priority];thread 2");
    assert_eq!(
        wait_of(500, environment(&[(0, 0)], false, 0)),
        "M;[preempted];[of another priority];thread 2",
        "bound to CPU 0"
    );
    assert_eq!(wait_of(500, None), "M;[preempted];[1 of 2 idle];[as under a quota];thread 2");
}

#[test]
fn counters_exclude_a_quota_and_a_usual_priority_the_other_reason() {
    assert_eq!(wait_of(0, None), "M;[preempted];[as under a quota];thread 2");
    assert_eq!(wait_of(0, environment(&[(0, 1)], true, 0)), "M;[preempted];thread 2");
    assert_eq!(wait_of(0, environment(&[(0, 1)], false, 0)), "M;[preempted];[of another priority];thread 2");
}

#[test]
fn steal_says_who_paused_a_cpu() {
    let of = |environment| {
        let builder = paused_cpu("local_timer");
        let ms = |text: &str, ms: Ns| (text.to_owned(), (ms * MS) as u64);
        let tree = tree_in(&builder, environment, 2, 30 * MS, 130 * MS);
        assert_eq!(tree.values().sum::<u64>(), ms("", 100).1);
        tree.into_keys().find(|path| path.starts_with("[stolen]")).unwrap_or_default()
    };
    assert_eq!(of(None), "[stolen]");
    assert_eq!(of(environment(&[(0, 1)], true, 60)), "[stolen];[by the hypervisor]");
    assert_eq!(of(environment(&[(0, 1)], true, 0)), "[stolen];[without steal]");
    // A quarter of it.
    assert_eq!(of(environment(&[(0, 1)], true, 14)), "[stolen];[without steal]");
}
