//! The rules of [`super::threads`], one by one.

use super::threads::{Holder, HostTid, Observed, ThreadInstance, ThreadTable, Visit};
use crate::event::host::HostId;
use crate::timeline::ThreadId;

const HOST: HostId = HostId::at(0);

#[derive(Clone, Debug)]
struct Named {
    tid: i32,
    alive: bool,
}

impl ThreadInstance for Named {
    type Ended = Named;

    fn tid(&self) -> i32 {
        self.tid
    }

    fn set_tid(&mut self, tid: i32) {
        self.tid = tid;
    }

    fn is_alive(&self) -> bool {
        self.alive
    }
}

fn key(tid: i32) -> HostTid {
    HostTid::new(HOST, tid)
}

#[test]
fn visits_are_of_what_changed() {
    let mut table = ThreadTable::default();
    let ids: Vec<ThreadId> = (0..4).map(|tid| table.open(key(tid), Named { tid, alive: true })).collect();
    let visited = |table: &mut ThreadTable<Named>, again: Option<usize>| {
        let mut tids = Vec::new();
        table.visit_changed(|at, thread| {
            assert_eq!(at, thread.tid() as usize);
            tids.push(at);
            if Some(at) == again { Visit::Again } else { Visit::Known }
        });
        tids
    };
    assert_eq!(visited(&mut table, Some(2)), [0, 1, 2, 3], "new instances are");
    assert_eq!(table[ids[1]].tid(), 1);
    assert_eq!(visited(&mut table, None), [2], "reading changes nothing; one wants to be visited again");
    table[ids[3]].alive = false;
    assert_eq!(visited(&mut table, None), [3]);
    table.fork(key(0), Box::new(Named { tid: 4, alive: true }), |old| old.alive = false);
    assert_eq!(visited(&mut table, None), [0, 4], "a fork ends the one that had the id");
    assert_eq!(visited(&mut table, None), [0; 0]);
    table.iter_mut().for_each(|thread| thread.alive = true);
    assert_eq!(visited(&mut table, None).len(), 5);
}

#[test]
fn ended_instances_are_as_they_were_when_they_are_asked_for() {
    let mut table = ThreadTable::default();
    let ids: Vec<ThreadId> = (0..5000).map(|tid| table.open(key(tid), Named { tid, alive: true })).collect();
    ids.iter().for_each(|id| table[*id].alive = false);
    let visited = |table: &mut ThreadTable<Named>| {
        let mut count = 0;
        table.visit_changed(|_, _| {
            count += 1;
            Visit::Ended
        });
        count
    };
    assert_eq!((visited(&mut table), table.iter().count(), table.len()), (5000, 0, 5000));
    assert_eq!((table[ids[4321]].tid, table.alive(key(7)), table.latest(key(7))), (4321, None, Some(ids[7])));
    assert_eq!((visited(&mut table), table.iter().count()), (0, 0), "reading changes nothing");
    table[ids[3]].tid = 5;
    assert_eq!((table.iter().count(), visited(&mut table), table[ids[3]].tid), (1, 1, 5));
    table.wake_all();
    assert_eq!(table.iter().count(), 5000);
    let tids: Vec<i32> = table.into_parts().0.map(|named| named.tid).collect();
    assert_eq!((&tids[..3], tids[3], &tids[4..]), (&[0, 1, 2][..], 5, &(4..5000).collect::<Vec<_>>()[..]));
}

#[test]
fn holder_follows_forks_and_ends() {
    let mut table = ThreadTable::default();
    assert_eq!(table.holder(key(7)), Holder::Unseen);
    let first = table.open(key(7), Named { tid: 7, alive: true });
    assert_eq!(table.holder(key(7)), Holder::Alive(first));
    table[first].alive = false;
    assert_eq!((table.holder(key(7)), table.latest(key(7))), (Holder::Ended, Some(first)));
    assert_eq!(table.holder_on(key(7), Some(first)), Holder::Alive(first));
    let second = table.open(key(7), Named { tid: 7, alive: true });
    let (third, before) = table.fork(key(7), Box::new(Named { tid: 7, alive: true }), |old| old.alive = false);
    assert_eq!(before, Some(second));
    assert!(!table[second].is_alive());
    assert_eq!(table.holder(key(7)), Holder::Alive(third));
}

#[test]
fn take_over_ends_the_first_thread_and_frees_the_own_id() {
    let mut table = ThreadTable::default();
    let first = table.open(key(7), Named { tid: 7, alive: true });
    let other = table.open(key(8), Named { tid: 8, alive: true });
    table.take_over(other, key(8), key(7), |leader| leader.alive = false);
    assert_eq!((table.holder(key(7)), table.holder(key(8))), (Holder::Alive(other), Holder::Ended));
    assert_eq!((table[other].tid(), table[first].is_alive()), (7, false));
    table.take_over(other, key(7), key(7), |_| unreachable!());
    assert_eq!(table.holder(key(7)), Holder::Alive(other));
}

#[test]
fn on_cpu_distinguishes_idle_tasks_by_their_cpu() {
    let mut table = ThreadTable::default();
    let idle = table.open(HostTid::on_cpu(HOST, 1, 0), Named { tid: 0, alive: true });
    assert_eq!(table.holder_on(HostTid::on_cpu(HOST, 2, 0), Some(idle)), Holder::Unseen);
    assert_eq!(HostTid::on_cpu(HOST, 1, 7), key(7));
}

#[test]
fn observed_prefers_own_events_and_the_first_dump() {
    let mut pid = Observed::default();
    pid.fill(Some(1));
    pid.fill(Some(2));
    assert_eq!(pid.get(), Some(1));
    pid.observe(Some(3));
    pid.observe(None);
    assert_eq!(pid.get(), Some(3));
}
