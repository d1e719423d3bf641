//! How releases are made: workflows that name all they run exactly and may write nothing but where they publish, and
//! the scripts of `packaging/` that need no network.
//!
//! In: the workflows (a package leaves them out: nothing is checked there), the scripts. Out: each offender as one
//! line.
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Name and text of each workflow, in order of the names.
fn workflows() -> Vec<(String, String)> {
    let folder = root().join(".github/workflows");
    if !folder.is_dir() && !root().join(".git").exists() {
        return Vec::new();
    }
    let mut found: Vec<(String, String)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), std::fs::read_to_string(path).unwrap()))
        .collect();
    found.sort();
    assert_eq!(found.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["ci.yml", "release.yml"]);
    found
}

/// Each line of all workflows that `is_offender`, with the workflow's name.
fn offenders(is_offender: impl Fn(&str) -> bool) -> Vec<String> {
    let lines = |(name, text): &(String, String)| {
        let found = text.lines().filter(|line| !line.trim_start().starts_with('#') && is_offender(line));
        found.map(|line| format!("{name}: {}", line.trim())).collect::<Vec<_>>()
    };
    workflows().iter().flat_map(lines).collect()
}

fn is_version(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    parts.len() == 3 && parts.iter().all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
}

/// Whether a line runs an action other than by `uses: OWNER/NAME@DIGEST # vVERSION`. The owner of an action can move
/// its tags; the version is for the reader and for the program that proposes newer ones.
fn is_action_without_digest(line: &str) -> bool {
    let step = line.trim_start().trim_start_matches("- ");
    let exact = |action: &str| {
        let (name, rest) = action.split_once('@')?;
        let (digest, version) = rest.split_once(" # v")?;
        let is_digest = digest.len() == 40 && digest.bytes().all(|b| b.is_ascii_hexdigit());
        (name.contains('/') && !name.starts_with('.') && is_digest && is_version(version)).then_some(())
    };
    line.contains("uses") && line.contains(':') && step.strip_prefix("uses: ").and_then(exact).is_none()
}

#[test]
fn is_action_without_digest_takes_one_form_alone() {
    let digest = "3d3c42e5aac5ba805825da76410c181273ba90b1";
    let good = format!("      - uses: actions/checkout@{digest} # v7.0.1");
    assert!(!is_action_without_digest(&good));
    assert!(!is_action_without_digest("      - run: cargo test"));
    let bad = [
        "- uses: actions/checkout@v7".to_owned(),
        format!("- uses: actions/checkout@{digest}"),
        format!("- uses: actions/checkout@{digest} # v7"),
        format!("- uses: actions/checkout@{} # v7.0.1", &digest[..39]),
        format!("- {{ uses: actions/checkout@{digest} }}"),
        "- uses: docker://alpine:3".to_owned(),
        "- \"uses\": actions/checkout@v7".to_owned(),
    ];
    for line in bad {
        assert!(is_action_without_digest(&line), "{line}");
    }
}

#[test]
fn workflows_name_actions_by_digest() {
    let found = offenders(is_action_without_digest);
    assert!(found.is_empty(), "{found:#?}");
}

/// A program that a workflow installs has one version, built from the versions of its own lock file.
#[test]
fn workflows_name_versions_of_programs() {
    let is_exact = |install: &str| {
        let command = install.split("&&").next().unwrap_or_default();
        let mut words = command.split_whitespace();
        let version = words.next().and_then(|word| word.split_once('@')).map(|(_, version)| version);
        version.is_some_and(is_version) && words.any(|word| word == "--locked")
    };
    assert!(is_exact(" cargo-deny@0.20.2 --locked && cargo deny check"));
    assert!(!is_exact(" cargo-deny --locked") && !is_exact(" cargo-deny@0.20.2 && cargo deny --locked check"));
    let found = offenders(|line| line.split("cargo install").skip(1).any(|install| !is_exact(install)));
    assert!(found.is_empty(), "{found:#?}");
}

/// The jobs of a workflow, each with its name and its lines.
fn jobs(text: &str) -> Vec<(&str, Vec<&str>)> {
    let mut jobs: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in text.lines().skip_while(|line| *line != "jobs:").skip(1) {
        let name = line.strip_prefix("  ").filter(|rest| !rest.starts_with([' ', '#']));
        if let Some(name) = name.and_then(|rest| rest.strip_suffix(':')) {
            jobs.push((name, Vec::new()));
        } else if let Some((_, lines)) = jobs.last_mut() {
            lines.push(line.trim());
        }
    }
    jobs
}

/// Only the job that publishes may write. It begins for a pushed tag alone, and runs nothing that a change of the
/// repository or a dependency brings in.
#[test]
fn one_job_may_write() {
    for (name, text) in workflows() {
        assert!(text.contains("\n\npermissions:\n  contents: read\n\n"), "{name} may do more than read");
        let jobs = jobs(&text);
        let writes = |line: &str| line.contains(": write") || line.contains("write-all") || line.contains("gh release");
        let writing: Vec<_> = jobs.iter().filter(|(_, lines)| lines.iter().any(|line| writes(line))).collect();
        let names: Vec<&str> = writing.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, if name == "release.yml" { vec!["publish"] } else { vec![] }, "{name}");
        for (_, lines) in writing {
            assert!(lines.contains(&"if: github.event_name == 'push' && github.ref_type == 'tag'"));
            let runs_other =
                |line: &&&str| ["checkout", "cargo", "packaging/"].iter().any(|other| line.contains(other));
            assert_eq!(lines.iter().find(runs_other), None);
        }
    }
}

/// Releases are built by one version of Rust, which is not older than the oldest that the package promises.
#[test]
fn releases_are_built_by_one_toolchain() {
    let number = |text: &str| -> Vec<u32> { text.split('.').map(|part| part.parse().unwrap()).collect() };
    let toolchain = std::fs::read_to_string(root().join("packaging/toolchain")).unwrap();
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let oldest = manifest.lines().find_map(|l| l.strip_prefix("rust-version = \"")?.strip_suffix('"')).unwrap();
    assert!(is_version(toolchain.trim()), "{toolchain}");
    assert!(number(toolchain.trim()) >= number(oldest), "{toolchain} is older than {oldest}");
}

#[test]
fn checksums_hold_for_all_files_and_fail_for_a_changed_one() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["B.deb", "_c", "a b.tar.gz", "whyslow.cdx.json"];
    for name in names {
        std::fs::write(folder.path().join(name), name).unwrap();
    }
    let script = || Command::new(root().join("packaging/checksums")).arg(folder.path()).output().unwrap();
    let check = || {
        let program =
            Command::new("sha256sum").args(["--check", "--strict", "SHA256SUMS"]).current_dir(&folder).output();
        program.unwrap()
    };
    // A second run does not sum up what the first one wrote.
    for _ in 0..2 {
        let written = script();
        assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
        let sums = std::fs::read_to_string(folder.path().join("SHA256SUMS")).unwrap();
        assert_eq!(sums.lines().map(|line| &line[66..]).collect::<Vec<_>>(), names);
        assert!(check().status.success());
    }
    std::fs::write(folder.path().join("_c"), "changed").unwrap();
    let checked = check();
    assert!(!checked.status.success() && String::from_utf8_lossy(&checked.stdout).contains("_c: FAILED"));
    std::fs::create_dir(folder.path().join("folder")).unwrap();
    assert!(!script().status.success());
    assert!(!folder.path().join("SHA256SUMS").exists());
}

/// A toolchain that compiles nothing: the program that it "builds", by the profile of published programs alone, is a
/// script, which names the source folder if `NAMING` is set, and `seen` in the target folder holds the settings that
/// cargo was given.
const CARGO: &str = r#"#!/bin/sh
[ "$1" = build ] || exit 0
[ "$2 $3" = "--profile dist" ] || exit 1
env | grep -E '^(RUST|CARGO_)' | sort > "$CARGO_TARGET_DIR/seen"
mkdir -p "$CARGO_TARGET_DIR/x86_64-unknown-linux-gnu/dist"
program=$CARGO_TARGET_DIR/x86_64-unknown-linux-gnu/dist/whyslow
printf '#!/bin/sh\necho "a page of $*" %s\n' "${NAMING:+$PWD/src/main.rs}" > "$program"
chmod 777 "$program"
"#;
const RUSTC: &str = r#"#!/bin/sh
case "$*" in
    --version) echo "rustc $RUSTUP_TOOLCHAIN (of a test)" ;;
    "--version --verbose") echo "commit-hash: 0123" ;;
    "--print sysroot") echo /sysroot ;;
esac
"#;

/// Runs `packaging/build` in a copy of what it packs, below `place`, by that toolchain.
fn build(place: &Path, settings: &[(&str, &str)]) -> Output {
    for folder in ["tools", "source/packaging", "home/registry/src/an-index", "target"] {
        std::fs::create_dir_all(place.join(folder)).unwrap();
    }
    for (name, text) in [("cargo", CARGO), ("rustc", RUSTC)] {
        let tool = place.join("tools").join(name);
        std::fs::write(&tool, text).unwrap();
        std::fs::set_permissions(&tool, Permissions::from_mode(0o755)).unwrap();
    }
    let packed = ["README.md", "CHANGELOG.md", "SECURITY.md", "LICENSE-APACHE", "LICENSE-MIT"];
    for name in packed.iter().chain(&["packaging/build", "packaging/pages", "packaging/toolchain"]) {
        std::fs::copy(root().join(name), place.join("source").join(name)).unwrap();
    }
    let path = format!("{}:{}", place.join("tools").display(), std::env::var("PATH").unwrap());
    Command::new("sh")
        .args(["-c", "umask ${UMASK:-022}; exec packaging/build x86_64-unknown-linux-gnu ../out"])
        .current_dir(place.join("source"))
        .env("PATH", path)
        .env("CARGO_HOME", place.join("home"))
        .env("CARGO_TARGET_DIR", place.join("target"))
        .env("SOURCE_DATE_EPOCH", "1700000000")
        .envs(settings.iter().copied())
        .output()
        .unwrap()
}

#[test]
fn archives_are_equal_in_any_folder_and_environment() {
    let folder = tempfile::tempdir().unwrap();
    let (plain, other) = (folder.path().join("a"), folder.path().join("another one, with spaces"));
    let settings = [
        ("RUSTFLAGS", "-Cdebuginfo=2"),
        ("CARGO_PROFILE_DIST_LTO", "off"),
        ("TZ", "Pacific/Chatham"),
        ("UMASK", "077"),
    ];
    for (place, settings) in [(&plain, &settings[..0]), (&other, &settings[..])] {
        let built = build(place, settings);
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let seen = std::fs::read_to_string(place.join("target/seen")).unwrap();
        assert!(!seen.contains("-Cdebuginfo=2") && !seen.contains("LTO"), "{seen}");
        for (from, to) in [("source", "/whyslow"), ("target", "/target"), ("home/registry/src/an-index", "/cargo")] {
            let flag = format!("--remap-path-prefix={}={to}", place.join(from).display());
            assert!(seen.contains(&flag), "no {flag} in {seen}");
        }
    }
    let archive = |place: &Path| std::fs::read(place.join("out/whyslow-x86_64-unknown-linux-gnu.tar.gz")).unwrap();
    assert!(archive(&plain).len() > 1000);
    assert!(archive(&plain) == archive(&other));
    let refused = build(&plain, &[("NAMING", "1")]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("names the folder"), "{said}");
}
