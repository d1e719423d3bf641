//! Executions of a generated server with other calls than usual: an additional call, a missing one, one in place of
//! another that takes as long, another order, a rare branch. None costs much, and each is found with the step that
//! differs, with delimited executions or without.

use super::anomalies;
use super::simulator::recorder::{Manner, Missing};
use super::simulator::{Machine, Op, Random, World, turns};
use serde_json::Value;
use std::cell::Cell;
use std::rc::Rc;

/// How some executions differ.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Detour {
    None,
    Additional,
    Missing,
    Instead,
    Order,
    Branch,
}

/// One execution in this many differs.
const RARE: usize = 45;

/// A server whose executions write to a log and to a local socket, but for those that follow `detour`; and the number
/// of these.
fn server(detour: Detour) -> (World, usize) {
    let mut m = Machine::new(2, 7);
    let (server, client) = (m.process("server"), m.process("client"));
    let count = Rc::new(Cell::new(0));
    for _ in 0..3 {
        let ((to, from), (log, local, spare)) = (m.connection(), (m.channel(), m.channel(), m.channel()));
        let counted = Rc::clone(&count);
        let request = move |dice: &mut Random| {
            let mut calls = vec![Op::Write(log, 1), Op::SendLocal(local, 1)];
            if dice.once_in(RARE) {
                counted.set(counted.get() + 1);
                match detour {
                    Detour::None => {}
                    Detour::Additional => calls.insert(1, Op::Kill(spare)),
                    Detour::Missing => drop(calls.remove(1)),
                    Detour::Instead => calls[1] = Op::Kill(spare),
                    Detour::Order => calls.swap(0, 1),
                    Detour::Branch => {
                        let retry = vec![Op::Sleep(dice.about(4_000)), Op::Run(dice.about(1_000)), Op::Write(log, 2)];
                        calls.insert(1, Op::Call("retry_backoff", retry));
                    }
                }
            }
            calls.insert(0, Op::Run(dice.about(200_000)));
            Op::Call("handle_request", calls)
        };
        let worker = turns(move |dice, _| {
            let (begin, end) = (Op::Mark("app:request_begin", vec![]), Op::Mark("app:request_end", vec![]));
            vec![Op::Receive(to), begin, request(dice), end, Op::Send(from, 0)]
        });
        m.thread(server, "worker", worker);
        let asks = turns(move |dice, _| vec![Op::Sleep(dice.about(700_000)), Op::Send(to, 1), Op::Receive(from)]);
        m.thread(client, "client", asks);
    }
    let world = m.run(400_000_000);
    (world, count.get())
}

/// The rows of the server's workers that differ in their route: what, how, and how often.
fn rows(answer: &Value) -> Vec<(String, String, u64)> {
    let differs = |s: &&Value| s["route"].is_string() && s["name"] == "worker";
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let row = |s: &Value| (text(&s["what"]), text(&s["route"]), s["occurrences"].as_u64().unwrap());
    answer["sources"].as_array().unwrap().iter().filter(differs).map(row).collect()
}

/// The one row of a detour, with about as many occurrences as there are, and each execution's differing step.
fn holds(answer: &Value, what: &str, change: &str, count: usize, name: &str) {
    let rows = rows(answer);
    let [(found, route, occurrences)] = &rows[..] else { panic!("{name}: {rows:?}") };
    assert_eq!((found.as_str(), route.as_str()), (what, change), "{name}");
    // A few are cut by the recording's ends.
    assert!(occurrences.abs_diff(count as u64) <= 4, "{name}: {occurrences} of {count}");
    let differs = |a: &&Value| a["responsible"].as_array().unwrap().iter().any(|r| r["route"] == change);
    let anomalies = answer["anomalies"].as_array().unwrap();
    // An execution that another thread delayed in its differing step is in the row of that thread.
    let differing = anomalies.iter().filter(differs).count() as u64;
    assert!(differing >= *occurrences && differing <= count as u64, "{name}: {differing}, {occurrences} of {count}");
}

#[test]
fn differing_calls_are_an_anomaly_with_the_differing_step() {
    for (detour, what, change) in [
        (Detour::Additional, "tgkill", "additional"),
        (Detour::Missing, "sendmsg", "missing"),
        (Detour::Instead, "tgkill instead of sendmsg", "instead"),
        (Detour::Order, "sendmsg, write instead of write, sendmsg", "order"),
        (Detour::Branch, "clock_nanosleep, write", "additional"),
    ] {
        let (world, count) = server(detour);
        assert!(count > 10, "{count}");
        let name = format!("route-{detour:?}");
        let answer = anomalies(&world, &Manner::default(), &name, &[]);
        assert_eq!(answer["summary"]["task"], "app:request");
        holds(&answer, what, change, count, &name);
        // Cheap differences, and those that save time, claim none of the executions' time and come after those that
        // cost more.
        let sources = answer["sources"].as_array().unwrap();
        assert!(sources.iter().all(|s| s["share"].as_f64().unwrap() < 0.02), "{name}");
        let costs: Vec<i64> =
            sources.iter().filter(|s| s["idle"] == false).map(|s| s["affected_ns"].as_i64().unwrap()).collect();
        assert!(costs.is_sorted_by(|a, b| a >= b), "{name}: {costs:?}");
        if detour == Detour::Branch {
            let row = sources.iter().find(|s| s["route"].is_string()).unwrap();
            assert_eq!(row["function"], "retry_backoff");
        }
    }
}

#[test]
fn iterations_of_a_loop_are_compared_where_no_executions_exist() {
    for (detour, what, change) in
        [(Detour::Additional, "tgkill", "additional"), (Detour::Missing, "sendmsg", "missing")]
    {
        let (world, count) = server(detour);
        let name = format!("turns-{detour:?}");
        // Without scheduler events the causes of waits are unknown.
        let manner = Manner { missing: vec![Missing::Switches, Missing::Wakeups], ..Manner::default() };
        let answer = anomalies(&world, &manner, &name, &[]);
        assert!(answer["summary"]["executions"].is_null());
        holds(&answer, what, change, count, &name);
    }
}

#[test]
fn usual_calls_are_no_anomaly() {
    let (world, _) = server(Detour::None);
    let answer = anomalies(&world, &Manner::default(), "route-none", &[]);
    assert_eq!(rows(&answer), []);
}
