//! Damaged and hostile files: each is refused in one line, or harmless.

use super::*;
use whyslow::parts::model::execution::ContextTime;

/// Little-endian numbers in header and table.
fn put(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

fn get(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

/// Make all checksums right, so that only the meaning of the bytes can be wrong.
fn seal(bytes: &mut [u8]) {
    let sections = get(bytes, 12).min(bytes.len() / 32 - 1);
    for entry in (0..sections).map(|i| 32 + 32 * i) {
        let (from, length) = (get(bytes, entry + 16), get(bytes, entry + 24));
        if let Some(section) = bytes.get(from..from.saturating_add(length)) {
            let sum = crc32fast::hash(section);
            put(bytes, entry + 12, sum);
        }
    }
    put(bytes, 28, 0);
    let sum = crc32fast::hash(&bytes[..32 + 32 * sections]);
    put(bytes, 28, sum);
}

/// The result must be sound, or one line.
fn survives(bytes: &[u8]) -> bool {
    let one_line = |e: &DatabaseError| {
        let said = e.to_string();
        assert!(!said.contains('\n') && said.contains("whyslow"), "{said}");
    };
    let database = match open(bytes) {
        Ok(database) => database,
        Err(e) => {
            one_line(&e);
            return false;
        }
    };
    for task in 0..database.tasks.len() {
        match database.model(task, &Ctx::new(1)) {
            Ok(model) => {
                assert_eq!(explain::check(&model, 1), Vec::<String>::new());
                compare(&model, &compare::ComparisonRequest::default(), &Ctx::new(1)).ok();
            }
            Err(e) => {
                one_line(&e);
                return false;
            }
        }
    }
    true
}

#[test]
fn prefixes_of_a_database_are_refused() {
    let bytes = written(&[random_model::model(7, 3)]);
    assert!(survives(&bytes));
    for length in (0..bytes.len()).filter(|l| *l < 700 || l % 7 == 0) {
        assert!(!survives(&bytes[..length]), "the first {length} bytes");
    }
    assert!(!survives(&[&bytes[..], b"more"].concat()));
}

#[test]
fn databases_with_a_flipped_bit_are_refused() {
    let bytes = written(&[random_model::model(5, 9)]);
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        assert!(!survives(&damaged), "byte {at}");
    }
}

#[test]
fn inconsistent_files_with_right_checksums_are_refused_or_harmless() {
    let mut random = Random::new(5);
    let bytes = written(&[random_model::model(40, 2), random_model::model(3, 4)]);
    let table = 32 + 32 * get(&bytes, 12);
    for round in 0..3000 {
        let mut damaged = bytes.clone();
        for _ in 0..1 + random.below(4) {
            let at =
                if round % 3 == 0 { 8 + random.below(table - 8) } else { table + random.below(bytes.len() - table) };
            damaged[at] = match random.below(4) {
                0 => 0,
                1 => 0xff,
                2 => damaged[at].wrapping_add(1),
                _ => random.below(256) as u8,
            };
        }
        seal(&mut damaged);
        survives(&damaged);
    }
}

#[test]
fn database_of_another_version_names_the_remedy() {
    let bytes = written(&[random_model::model(2, 1)]);
    let present = u32::from_le_bytes(bytes[8..12].try_into().unwrap());
    for (version, remedy) in
        [(present - 1, "whyslow build"), (present + 1, "newer whyslow"), (u32::MAX, "newer whyslow")]
    {
        let mut other = bytes.clone();
        put(&mut other, 8, version);
        let said = open(&other).unwrap_err().to_string();
        assert!(said.contains(remedy) && said.contains(&format!("format {version}")), "{said}");
    }
}

/// A bomb: one deep path, and executions that all stand at its end. What it would unpack to is refused before.
#[test]
fn small_file_allocates_little() {
    use whyslow::parts::model::context::{Frame, FrameKind};
    let mut model = random_model::model(0, 1);
    let name = model.names.intern("f");
    let mut at = None;
    for _ in 0..60_000 {
        at = Some(model.contexts.child(at, Frame { kind: FrameKind::Function, name }));
    }
    for i in 0..100_000 {
        let e = &mut model.executions;
        e.start.push(model.origin + i);
        e.end.push(model.origin + i + 1);
        e.who.push(whyslow::parts::model::ThreadInfoId::at(0));
        e.trace.push(whyslow::parts::model::TraceId::at(0));
        e.unsure.push(false);
        e.cpu.push(0);
        e.own.push(vec![ContextTime { context: at.unwrap(), ns: 1 }]);
    }
    model.executions.columns.clear();
    let bytes = written(&[model]);
    let started = Instant::now();
    assert!(!survives(&bytes));
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}

/// Opening is linear: ten times the executions take about ten times as long (`cargo bench --bench database` has the
/// milliseconds).
#[test]
fn open_is_linear_in_the_executions() {
    let folder = folder();
    let write = |n: usize| {
        let path: PathBuf = folder.path().join(format!("{n}.why"));
        let mut writer = Writer::new(Facts::default(), Notices::default());
        writer.add(&random_model::model(n, 1));
        let length = writer.save(Output::open(&path).unwrap()).unwrap();
        assert!(length < 60 * n as u64, "{length} bytes for {n} executions");
        path
    };
    let time = |path: &PathBuf, n: usize| {
        let start = Instant::now();
        let model = Database::open(path).unwrap().model(0, &Ctx::new(1)).unwrap();
        assert_eq!(model.executions.len(), n);
        start.elapsed()
    };
    let sizes = [20_000, 200_000];
    let paths = sizes.map(write);
    let mut least = [Duration::MAX; 2];
    // A busy machine takes longer, never shorter: the least of some rounds is the cost.
    let is_linear = (0..20).any(|_| {
        for (least, (path, n)) in least.iter_mut().zip(paths.iter().zip(sizes)) {
            *least = time(path, n).min(*least);
        }
        least[1] < least[0] * 40
    });
    assert!(is_linear, "{:?} for 20,000 and {:?} for 200,000", least[0], least[1]);
}
