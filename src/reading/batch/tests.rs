//! Merging of streams, and the tables of a batch.

use super::*;
use crate::base::statistics::Random;
use crate::base::time::Timestamp;
use crate::event::kind::{Context, Kind};
use crate::event::remark::Priority;

fn at(ns: i64, kind: Kind) -> Event {
    Event { time: Timestamp::new(ns), who: ThreadContextId::ABSENT, trace: 0, cpu: 0, kind }
}

/// From thread 1 to thread 2.
fn switch() -> Kind {
    let [prev_name, next_name] = [TextId::NONE; 2];
    Kind::Switch { prev: 1, next: 2, prev_state: 0, prev_name, next_name, priorities: [Priority::UNKNOWN; 2] }
}

#[test]
fn merge_puts_causes_first_and_keeps_the_order_of_streams() {
    let leave = Kind::Leave { context: Context::Timer };
    let exit = Kind::Exit { tid: 1 };
    let free = Kind::Free { tid: 1 };
    let mut batch = Batch::default();
    let switch = switch();
    // The switch blocks the exit after it, though the exit alone would go before the other stream's switch.
    batch.merge(&[vec![at(5, switch), at(5, exit)], vec![at(5, leave), at(5, switch), at(6, free)], vec![]]);
    let kinds: Vec<Kind> = batch.events.iter().map(|e| e.kind).collect();
    assert_eq!(kinds, [leave, switch, exit, switch, free]);
}

#[test]
fn merge_takes_the_smallest_head_of_any_number_of_streams() {
    let fork = Kind::Fork { parent: 1, child: 2, child_pid: 2, child_vtid: 0, name: TextId::NONE };
    let kinds = [fork, switch(), Kind::Free { tid: 1 }];
    let mut random = Random::new(11);
    for streams in 0..200 {
        let stream = |rank: u16| -> Vec<Event> {
            let times = (0..random.below(30)).scan(0, |t, _| {
                *t += random.below(3) as i64;
                Some(*t)
            });
            let times: Vec<i64> = times.collect();
            times.iter().map(|t| Event { cpu: rank, ..at(*t, kinds[random.below(3)]) }).collect()
        };
        let streams: Vec<Vec<Event>> = (0..streams % 9).map(stream).collect();
        let mut batch = Batch::default();
        batch.merge(&streams);
        let mut left: Vec<&[Event]> = streams.iter().map(Vec::as_slice).collect();
        let mut expected = Vec::new();
        let smallest = |left: &[&[Event]]| {
            let heads = left.iter().enumerate().filter_map(|(rank, events)| Some((rank, *events.first()?)));
            heads.min_by_key(|(rank, event)| (event.time, event.kind.tie_class(), *rank))
        };
        while let Some((rank, event)) = smallest(&left) {
            expected.push(event);
            left[rank] = &left[rank][1..];
        }
        assert_eq!(batch.events, expected);
    }
}

#[test]
fn marks_have_the_fields_that_were_stored_since_the_one_before() {
    let mut batch = Batch::default();
    let name = batch.text(b"bytes");
    for fields in [2, 0, 3] {
        (0..fields).for_each(|value| batch.mark_field(name, value));
        let id = batch.mark(MarkBody { task: 0, begins: true, key: None, kind: None });
        let values: Vec<i64> = batch.fields_of(id).iter().map(|field| field.value).collect();
        assert_eq!(values, (0..fields).collect::<Vec<i64>>());
    }
    assert!(batch.fields_of(MarkId::at(3)).is_empty());
}

#[test]
fn sort_by_time_keeps_the_order_of_equal_times() {
    let free = |tid| Kind::Free { tid };
    let mut events = vec![at(3, free(1)), at(1, free(2)), at(3, free(3)), at(3, free(4))];
    sort_by_time(&mut events);
    assert_eq!(events, [at(1, free(2)), at(3, free(1)), at(3, free(3)), at(3, free(4))]);
}
