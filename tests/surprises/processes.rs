//! Functions on stacks: images that trace.dat lists, and chains that lost their callers.

use super::tracepoints::Given::{Number, Numbers};
use super::tracepoints::{Happened, SWITCH, USER_STACK, requests};
use super::{ATTR, LITTLE, json, written};
use object::{Object, ObjectSegment, ObjectSymbol};

/// PROCMAPS: names for the addresses of a process, whichever of its threads has the stack.
#[test]
fn listed_images_name_the_functions_on_user_stacks() {
    const PAGE: u64 = 4096;
    let program = std::env::current_exe().unwrap();
    let bytes = std::fs::read(&program).unwrap();
    let elf = object::File::parse(&*bytes).unwrap();
    let first = elf.segments().map(|segment| segment.address() / PAGE * PAGE).min().unwrap();
    let end = |segment: &object::Segment<'_, '_>| segment.address() + segment.file_range().1;
    let end = elf.segments().map(|segment| end(&segment)).max().unwrap().next_multiple_of(PAGE);
    let symbol =
        elf.symbols().find(|symbol| symbol.name().is_ok_and(|name| name.contains("requests8requests"))).unwrap();
    let base = 0x5555_0000_0000u64;
    let address = base + symbol.address() - first + 4;
    let mut events = Vec::new();
    for event in requests().into_iter().filter(|event| event.format != super::tracepoints::PRINT) {
        let stack = event.tid == 100 && event.format == SWITCH;
        let (time, cpu) = (event.time + 10, event.cpu);
        events.push(event);
        if stack {
            // The thread 100 of the process 90.
            let values = vec![Number(90), Numbers(vec![address, 0, 0, 0, 0, 0, 0, 0])];
            events.push(Happened { time, cpu, tid: 100, format: USER_STACK, values, ..Happened::default() });
        }
    }
    let path = program.display();
    let (middle, end) = (base + PAGE, base + end - first);
    let maps = format!("5a 2 server\n{base:x} {middle:x} {path}\n{middle:x} {end:x} {path}\n\0");
    let with = LITTLE.trace_dat(&events, &[(10, maps.into_bytes())]);
    // The recording names no machine, so that its path alone gives no names.
    let folder = program.parent().unwrap().to_str().unwrap();
    let names = |bytes: &[u8]| json(&["explain", "--symbols", folder, "--task", "read"], bytes)["causes"].to_string();
    assert!(names(&with).contains("requests::requests"), "{}", names(&with));
    assert!(!names(&LITTLE.trace_dat(&events, &[])).contains("requests::requests"));
}

/// 28: some functions of the C library lose their callers; those that the stacks before and after share are kept.
#[test]
fn chain_of_one_address_keeps_the_callers_around_it() {
    const KERNEL: u64 = -128i64 as u64;
    const USER: u64 = -512i64 as u64;
    let mut events = requests();
    let waits = events.iter_mut().filter(|event| event.format == SWITCH && event.tid == 100);
    for (number, event) in waits.enumerate() {
        // Every fourth wait, which is the long one, has lost its callers; the function itself has no name.
        let user: &[u64] = match number % 4 {
            3 => &[0x40_3010],
            2 => &[0x40_2010, 0x40_1020, 0x40_0030],
            _ => &[0x40_4010, 0x40_1020, 0x40_0030],
        };
        event.chain = [&[KERNEL, 0xffff_ffff_8100_0000, USER], user].concat();
    }
    let file = written("perf.data", &LITTLE.perf_data(&events, &[], ATTR));
    let map = "400000 100 main\n401000 100 handle_request\n402000 100 read_page\n404000 100 read_index\n";
    std::fs::write(file.path.with_file_name("perf-100.map"), map).unwrap();
    let folder = file.path.parent().unwrap().to_str().unwrap();
    // The map is found beside the recording, too.
    for symbols in [&["--symbols", folder][..], &[]] {
        let answer = super::output(&[&["explain", "--json", "--task", "read"], symbols].concat(), &file.path);
        let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
        let path = answer["causes"][0]["path"].to_string();
        for function in ["main", "handle_request"] {
            assert!(path.contains(function), "{function}: {answer:#}");
        }
    }
}
