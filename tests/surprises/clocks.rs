//! Clocks and containers: version 7 of trace.dat, clocks of instances, recordings without a common clock or without
//! all threads.

use super::tracepoints::{BufferOf, MACHINES, PERF, PerfOptions, requests};
use super::{LITTLE, dump, json, output, warnings, written};
use std::path::Path;

#[test]
fn version_7_of_any_machine_has_the_events_of_version_6() {
    let events = requests();
    for machine in MACHINES {
        let top = BufferOf { name: "", clock: "mono", events: &events };
        let uname = (5, b"Linux host 6.1.0-test x86_64\0".to_vec());
        let bytes = machine.trace_dat_7(&[top], &[(4, b"local [mono]\0".to_vec()), uname.clone()]);
        assert_eq!(dump(&bytes), dump(&machine.trace_dat(&events, &[uname])), "{machine:?}");
        let trace = &json(&["info"], &bytes)["traces"][0];
        assert_eq!((&trace["clock"], &trace["format"]), (&"mono".into(), &"trace.dat 7".into()), "{trace:#}");
    }
}

/// 18: `trace-cmd` reports the clock of the top instance for all.
#[test]
fn clock_of_an_instance_is_its_own() {
    let events = requests();
    let reported = [(4, b"[local] mono\0".to_vec())];
    for machine in MACHINES {
        let buffers = |clocks: [&'static str; 2]| {
            let [first, second] = clocks.map(|clock| BufferOf { name: clock, clock, events: &events });
            [first, second]
        };
        let empty = BufferOf { name: "", clock: "local", events: &[] };
        let [one, _] = buffers(["mono", "mono"]);
        let alone = machine.trace_dat_7(&[empty, one], &reported);
        assert_eq!(json(&["info"], &alone)["traces"][0]["clock"], "mono");
        assert!(!warnings(&alone).contains("left out"), "{}", warnings(&alone));
        // Times of two clocks cannot be compared.
        let two = machine.trace_dat_7(&buffers(["mono", "boot"]), &reported);
        assert!(warnings(&two).contains("1 buffer was left out because its clock"), "{}", warnings(&two));
        assert_eq!(dump(&two).lines().count(), events.len());
        let both = machine.trace_dat_7(&buffers(["mono", "mono"]), &reported);
        assert_eq!(dump(&both).lines().count(), 2 * events.len());
    }
}

/// The counters of an instance follow its name.
#[test]
fn losses_of_an_instance_are_its_own() {
    let events = requests();
    let counters = |cpu: u32, n: u32| {
        format!("CPU: {cpu}\nentries: 1\noverrun: {n}\ncommit overrun: 0\ndropped events: 0\n\0").into_bytes()
    };
    let named = |name: &str| (2, format!("\nBuffer: {name}\n\n\0").into_bytes());
    for machine in MACHINES {
        let lost = |names: [&'static str; 2], options: &[(u16, Vec<u8>)]| {
            let buffers = names.map(|name| BufferOf { name, clock: "mono", events: &events });
            json(&["info"], &machine.trace_dat_7(&buffers, options))["lost"]["events"].clone()
        };
        let own = [(2, counters(0, 4)), named("other"), (2, counters(0, 5))];
        assert_eq!(lost(["", "other"], &own), 4 + 5, "{machine:?}");
        // Those of a buffer without data are of no stream.
        assert_eq!(lost(["", "third"], &own), 4, "{machine:?}");
    }
}

/// 12: without `-k` the clock is the scheduler's.
#[test]
fn perfs_own_clock_is_no_common_time_line() {
    for machine in MACHINES {
        let own = machine.perf_data_as(&requests(), &[], PerfOptions { clock: None, ..PERF });
        assert_eq!(json(&["info"], &own)["traces"][0]["clock"], "perf", "{machine:?}");
        let asked = machine.perf_data_as(&requests(), &[], PERF);
        assert_eq!(json(&["info"], &asked)["traces"][0]["clock"], "mono", "{machine:?}");
    }
}

/// 12: without `-a` a switch is recorded only where a recorded thread leaves.
#[test]
fn recording_of_own_threads_says_what_it_lacks() {
    for machine in MACHINES {
        let own = machine.perf_data_as(&requests(), &[], PerfOptions { own_threads: true, ..PERF });
        assert!(warnings(&own).contains("without -a"), "{}", warnings(&own));
        assert!(!warnings(&machine.perf_data_as(&requests(), &[], PERF)).contains("without -a"));
    }
    // perf sets `inherit` in either case.
    for (name, own) in [("exec.data", true), ("file.data", false)] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/recorders").join(name);
        assert_eq!(warnings(&std::fs::read(path).unwrap()).contains("without -a"), own, "{name}");
    }
    let path = written("perf.data", &LITTLE.perf_data_as(&requests(), &[], PerfOptions { own_threads: true, ..PERF }));
    assert!(output(&["info"], &path.path).contains("record with -a"));
}
