//! Damaged and hostile files: each is refused in one line, or harmless.

use super::*;
use whyslow::parts::model::execution::ContextTime;
use whyslow::parts::saved::SavedKind;
use whyslow::parts::saved::container::{SavedFile, SavedFileWriter, SectionName};

/// The sections of a database of so many tasks of one recording: the one of all, and six of each.
fn sections(tasks: u32) -> Vec<SectionName> {
    let of_task =
        |task| ["tables", "used", "part", "executns", "own", "metrics"].map(|name| SectionName::new(name).of(task));
    [SectionName::new("contents")].into_iter().chain((0..tasks).flat_map(of_task)).collect()
}

/// The result must be sound, or one line.
fn survives(bytes: &[u8]) -> bool {
    let one_line = |e: &SavedFileError| {
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
    for task in 0..database.contents.tasks().len() {
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
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), written(&[random_model::model(40, 2), other_task(random_model::model(3, 4))])).unwrap();
    let whole = SavedFile::open(file.path(), SavedKind::Executions).unwrap();
    let whole: Vec<_> = sections(2).into_iter().map(|name| (name, whole.section(name).unwrap())).collect();
    let (mut sound, mut refused) = (0, 0);
    for round in 0..3000 {
        let mut writer = SavedFileWriter::new(SavedKind::Executions);
        let chosen = random.below(whole.len());
        for (at, (name, bytes)) in whole.iter().enumerate() {
            let mut bytes = bytes.clone();
            for _ in 0..if at == chosen { 1 + random.below(4) } else { 0 } {
                let place = random.below(bytes.len());
                bytes[place] = match random.below(4) {
                    0 => 0,
                    1 => 0xff,
                    2 => bytes[place].wrapping_add(1),
                    _ => random.below(256) as u8,
                };
            }
            // Now and then a section is there twice, or not at all.
            for _ in 0..if round % 50 == 0 && at == chosen { 2 * random.below(2) } else { 1 } {
                writer.add(*name, bytes.clone());
            }
        }
        *if survives(&writer.bytes().unwrap()) { &mut sound } else { &mut refused } += 1;
    }
    assert!(sound > 100 && refused > 1_000, "{sound} sound, {refused} refused");
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
        e.duration.push(1);
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
        writer.add(random_model::model(n, 1), &Ctx::new(1)).unwrap();
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
