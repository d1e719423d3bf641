//! How often `explain` names the planted cause of generated machines first, and is wrong and sure.
//!
//! In: numbers of machines. Out: [`Rates`], by plant. The recording shows a cause where it has the events that prove
//! it; of the others an answer that names none is right as well.

use super::ask;
use super::simulator::plants::{Generated, Plant, words};
use super::simulator::recorder::{Missing, record};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// The grade of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grade {
    /// The first cause is the planted one, and the verdict is confident.
    Right,
    /// The first cause is the planted one; the verdict is not confident.
    RightUnsure,
    /// Another, and not confident: or there is nothing to be found, and the verdict is not confident.
    Honest,
    /// Another, and confident of it; or an error where the executions were recorded.
    Wrong,
}

/// The grade of the answer to a generated machine, whether it names a caller of the planted function, and its text.
fn grade(generated: &Generated, folder: &Path) -> (Grade, bool, String) {
    let recorded = record(&generated.world, &generated.manner, folder);
    let mut command = ask::program();
    command.args(["explain", "--json", "--threads", "1", "--task", "app:request", "--symbols"]).arg(&recorded.symbols);
    if generated.manner.kernel_stacks {
        command.arg("--kallsyms").arg(&recorded.kallsyms);
    }
    let out = ask::run(command.args(&recorded.traces));
    if std::env::var_os("WHYSLOW_KEEP").is_none() {
        let _ = std::fs::remove_dir_all(folder);
    }
    let said = String::from_utf8_lossy(&out.stderr).trim().to_owned();
    let lacks = generated.plant.lacks(&generated.manner);
    if !out.status.success() {
        // A refusal in one line is honest where the recording lacks the events of the plant.
        let refused = lacks && out.status.code().is_some() && said.lines().count() == 1;
        return (if refused { Grade::Honest } else { Grade::Wrong }, false, said);
    }
    let answer: Value = serde_json::from_slice(&out.stdout).unwrap();
    let confident = answer["verdict"]["confident"] == true;
    let sentence = answer["verdict"]["sentence"].as_str().unwrap_or("").to_owned();
    let right = generated.plant != Plant::None
        && names(generated, &answer["causes"][0], &sentence, lacks)
        && says(generated.plant, &sentence, lacks);
    let grade = match (right, confident) {
        (true, true) => Grade::Right,
        (true, false) => Grade::RightUnsure,
        (false, false) => Grade::Honest,
        (false, true) => Grade::Wrong,
    };
    let first = &answer["causes"][0];
    let said = format!("{sentence} [{} by {} in {}]", first["kind"], first["by"]["thread"], first["by"]["function"]);
    (grade, right && is_caller(first), said)
}

/// A cause is the planted one: of its kind, by its culprit and, where stacks show it, in its function.
fn names(generated: &Generated, cause: &Value, sentence: &str, lacks: bool) -> bool {
    let (plant, manner) = (generated.plant, &generated.manner);
    // Only network and interrupt events prove that the backend woke the request by a packet; that it was the backend is
    // true all the same.
    let as_thread = plant == Plant::Backend && lacks && cause["kind"] == "blocked.thread";
    // That its CPU was idle while a thread was ready to run shows that something held it back, and what that may be.
    let as_held =
        plant.kind() == "throttled" && lacks && cause["kind"] == "preempted" && sentence.starts_with("Held back");
    if cause["kind"] != plant.kind() && !as_thread && !as_held {
        return false;
    }
    let by = [&cause["by"]["process"], &cause["by"]["thread"]];
    // Where the recording does not show the culprit, an answer that names none is right: the request's own thread is
    // the innermost one then.
    let names_none = by.iter().all(|b| b.is_null()) || cause["by"]["thread"] == "worker-*";
    let culprit = plant.culprit().is_none_or(|culprit| by.iter().any(|b| **b == culprit) || lacks && names_none);
    let mut words: Vec<&str> = cause["path"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    words.extend(cause["by"]["function"].as_str());
    let shows_functions =
        manner.stacks && !manner.missing.contains(&Missing::Calls) && !manner.missing.contains(&Missing::HrTimers);
    let functions = plant.functions();
    culprit
        && (!shows_functions
            || lacks && !as_thread
            || is_caller(cause)
            || functions.is_empty()
            || functions.iter().any(|f| words.contains(f)))
}

/// The sentence says what the recording proves, and nothing that is not so.
fn says(plant: Plant, sentence: &str, lacks: bool) -> bool {
    let (proved, never) = plant.says();
    proved.is_none_or(|words| lacks || sentence.contains(words)) && never.iter().all(|words| !sentence.contains(words))
}

/// The function is a caller of the planted one: true, but less exact. No tick may have sampled the planted one itself.
fn is_caller(cause: &Value) -> bool {
    ["main", "housekeeping"].iter().any(|f| cause["by"]["function"] == *f)
}

/// Grades of the answers about many machines, by plant.
pub struct Rates {
    /// By plant: machines, right of those that recorded what is needed, those, right of the others, unsure, wrong.
    table: BTreeMap<Plant, [usize; 6]>,
    /// Wrong and sure, with a plant and without.
    wrong: Vec<(u64, String)>,
    without_plant: Vec<(u64, String)>,
    /// Right, and the function named is a caller of the planted one.
    callers: usize,
}

/// Of the machines of these numbers that `machine` makes.
pub fn rates(numbers: std::ops::Range<u64>, folder: &str, machine: fn(u64) -> Generated) -> Rates {
    let next = std::sync::atomic::AtomicU64::new(numbers.start);
    let found = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    if seed >= numbers.end {
                        break;
                    }
                    let generated = machine(seed);
                    let own = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{folder}-{seed}"));
                    let (grade, caller, said) = grade(&generated, &own);
                    let (plant, lacks) = (generated.plant, generated.plant.lacks(&generated.manner));
                    let line =
                        format!("{seed}: {plant:?}, {} CPUs, {}: {said}", generated.cpus, words(&generated.manner));
                    if std::env::var_os("WHYSLOW_VERBOSE").is_some() {
                        println!("{grade:?} {line}");
                    }
                    found.lock().unwrap().push((seed, plant, lacks, (grade, caller), line));
                }
            });
        }
    });
    let mut found = found.into_inner().unwrap();
    found.sort_by_key(|f| f.0);
    let mut rates = Rates { table: BTreeMap::new(), wrong: Vec::new(), without_plant: Vec::new(), callers: 0 };
    for (seed, plant, lacks, (grade, caller), line) in found {
        rates.callers += usize::from(caller);
        let row = rates.table.entry(plant).or_default();
        let right = matches!(grade, Grade::Right | Grade::RightUnsure);
        row[0] += 1;
        row[1] += usize::from(right && !lacks);
        row[2] += usize::from(!lacks);
        row[3] += usize::from(right && lacks);
        row[4] += usize::from(matches!(grade, Grade::Honest | Grade::RightUnsure));
        row[5] += usize::from(grade == Grade::Wrong);
        if grade == Grade::Wrong {
            let list = if plant == Plant::None { &mut rates.without_plant } else { &mut rates.wrong };
            list.push((seed, line));
        }
    }
    rates
}

impl Rates {
    fn print(&self) {
        println!(
            "| planted | machines | right, of those that recorded what is needed | right, of the others | not sure | wrong and sure |"
        );
        println!("|---|---|---|---|---|---|");
        for (plant, [all, right, needed, lucky, unsure, wrong]) in &self.table {
            if *plant == Plant::None {
                println!("| nothing | {all} | | | {unsure} | {wrong} |");
            } else {
                println!(
                    "| {plant:?} | {all} | {right} of {needed} | {lucky} of {} | {unsure} | {wrong} |",
                    all - needed
                );
            }
        }
        println!("{} of the right ones name a caller of the planted function.", self.callers);
    }

    fn sum(&self, column: usize) -> usize {
        self.table.iter().filter(|(plant, _)| **plant != Plant::None).map(|(_, row)| row[column]).sum()
    }

    /// Nothing wrong and sure; right in at least nine tenths of those that recorded what is needed; sure in at most a
    /// twentieth of those without a plant.
    pub fn hold(&self) {
        self.print();
        assert!(self.wrong.is_empty(), "{:#?}", self.wrong);
        let (found, of) = (self.sum(1), self.sum(2));
        assert!(found * 10 >= of * 9, "right in {found} of {of}");
        let none = self.table.get(&Plant::None).map_or(0, |row| row[0]);
        assert!(self.without_plant.len() * 20 <= none, "{:#?}", self.without_plant);
    }
}
