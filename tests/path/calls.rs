//! Functions and system calls of a thread.

use super::*;

/// The stacks that function events leave on thread 1: when, and the functions as letters, outermost first.
fn functions(s: &mut KernelEvents) -> Vec<(Ns, String)> {
    let recording = s.recording();
    let thread = recording.find_thread(HostId::at(0), 1, Timestamp::new(0)).unwrap();
    let text = |stack: Option<_>| -> String {
        let addresses = stack.map_or(&[][..], |stack| recording.stacks().get(stack));
        // Callers stand one behind their first address.
        let letter = |(depth, a): (usize, &u64)| (*a as u8 - u8::from(depth > 0)) as char;
        addresses.iter().enumerate().map(letter).collect::<Vec<_>>().into_iter().rev().collect()
    };
    recording.reader(Asker::Path).samples(thread).all().map(|s| (s.time.ns(), text(s.user))).collect()
}

#[test]
fn functions_nest_and_outer_exits_close_lost_ones() {
    let mut s = kernel_events();
    s.switch(0, 0, 0, READY, 1);
    let function = |enters, letter: char| Kind::Function { enters, address: letter as u64 };
    s.at(1, 0, function(false, 'Z')).at(2, 0, function(true, 'A')).at(3, 0, function(true, 'B'));
    s.at(4, 0, function(true, 'C')).at(5, 0, function(false, 'B')).at(6, 0, function(true, 'D'));
    // The fast variant's exit does not say which.
    s.at(7, 0, Kind::Function { enters: false, address: 0 }).at(8, 0, function(false, 'Q'));
    s.at(9, 0, Kind::Exec { tid: 1, old_tid: 1, path: TextId::NONE }).at(10, 0, function(false, 'A'));
    let stack_at = |t, stack: &str| (t, stack.to_owned());
    let wanted = [
        stack_at(2, "A"),
        stack_at(3, "AB"),
        stack_at(4, "ABC"),
        stack_at(5, "A"),
        stack_at(6, "AD"),
        stack_at(7, "A"),
        stack_at(9, ""),
    ];
    assert_eq!(functions(&mut s), wanted);
}

#[test]
fn endless_recursion_is_bounded() {
    let mut s = kernel_events();
    s.switch(0, 0, 0, READY, 1);
    for t in 0..1000 {
        s.at(1 + t, 0, Kind::Function { enters: true, address: 65 });
    }
    for t in 0..1000 {
        s.at(2000 + t, 0, Kind::Function { enters: false, address: 65 });
    }
    let all = functions(&mut s);
    assert_eq!((all.len(), all.last().unwrap().1.as_str()), (256, ""));
}

#[test]
fn latency_events_give_calls_that_were_not_recorded() {
    let mut s = kernel_events();
    s.switch(0, 0, 0, READY, 1).at(300, 0, Kind::Latency { ns: 200 }).at(350, 0, Kind::Latency { ns: 120 });
    let recording = s.recording();
    let thread = recording.find_thread(HostId::at(0), 1, Timestamp::new(0)).unwrap();
    let spans: Vec<_> = recording.reader(Asker::Path).calls(thread).all().map(|c| c.span).collect();
    assert_eq!(spans, [span(100, 300), span(300, 350)]);
}

#[test]
fn calls_do_not_span_lost_events() {
    let mut s = kernel_events();
    s.switch(10, 0, 0, READY, 1);
    called(&mut s, 20, 1, "read", None);
    s.at(30, 0, Kind::Lost { source: LossSource::Reported, until: Timestamp::new(30), resumes: Timestamp::new(30) });
    called(&mut s, 50, 1, "futex", Some(0));
    let recording = s.recording();
    let one = recording.find_thread(HostId::at(0), 1, Timestamp::new(20)).unwrap();
    let calls: Vec<_> = recording.reader(Asker::Path).calls(one).all().map(|c| c.span).collect();
    assert_eq!(calls, [span(20, 30), span(30, 50)]);
}
