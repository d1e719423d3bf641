//! Control groups of either version: where their hierarchies are mounted, and what they count.
//!
//! In: `/proc/self/mountinfo` and the lines of `/proc/PID/cgroup`. Out: paths of groups, `/shop` of version 2 and
//! `cpu:/shop` of version 1, whose hierarchies have one controller or some; their values, under the same names for both
//! versions. A quota may be that of any group around one, so these are read, too.

use super::files::{GroupPaths, named_counts, pressure, text};
use crate::model::environment::{
    DISK_LIMITS, NR_THROTTLED, PERIOD_US, QUOTA_US, SampledTable, SampledValue, SampledValues, THROTTLED_US, WEIGHT,
};
use std::path::{Path, PathBuf};

/// Groups of a line, with those around them.
pub(super) const MOST_GROUPS: usize = 256;

/// Controllers whose values are read, and their names in version 1.
const CONTROLLERS: [(&str, &str); 3] = [("cpu", "cpu"), ("memory", "memory"), ("io", "blkio")];
/// Files of limits on disks in version 1, and the names of these limits in `io.max` of version 2.
const DISK_LIMIT_FILES: [(&str, &str); 4] = [
    ("blkio.throttle.read_bps_device", "rbps"),
    ("blkio.throttle.write_bps_device", "wbps"),
    ("blkio.throttle.read_iops_device", "riops"),
    ("blkio.throttle.write_iops_device", "wiops"),
];
/// Characters of all limits of a group on disks that are kept.
const LONGEST_LIMITS: usize = 256;
/// Figures of `memory.stat` in version 2, and in version 1.
const MEMORY_STAT: [&str; 9] = [
    "anon",
    "file",
    "pgmajfault",
    "pgscan_direct",
    "pgsteal_direct",
    "workingset_refault_anon",
    "workingset_refault_file",
    "total_pgmajfault",
    "total_rss",
];
/// Figures of `memory.events`.
const MEMORY_EVENTS: [&str; 5] = ["low", "high", "max", "oom", "oom_kill"];

/// A mounted hierarchy.
#[derive(Debug)]
struct Hierarchy {
    /// The controllers of version 1; none is version 2.
    controllers: Vec<String>,
    /// The group that its mount point shows.
    shown: String,
    place: PathBuf,
}

/// The mounted hierarchies.
#[derive(Debug)]
pub(super) struct Hierarchies(Vec<Hierarchy>);

impl Hierarchies {
    /// Those of this process.
    pub fn read(root: &Path) -> Hierarchies {
        let mounts = text(&root.join("proc/self/mountinfo")).unwrap_or_default();
        let hierarchy = |line: &str| {
            // `ID PARENT DEVICE SHOWN PLACE OPTIONS ... - TYPE SOURCE OPTIONS`.
            let (mount, about) = line.split_once(" - ")?;
            let (mut mount, mut about) = (mount.split(' ').skip(3), about.split(' '));
            let (shown, place) = (mount.next()?, mount.next()?);
            let controllers = match about.next()? {
                "cgroup2" => Vec::new(),
                "cgroup" => about.nth(1)?.split(',').map(str::to_owned).collect(),
                _ => return None,
            };
            let place = root.join(place.trim_start_matches('/'));
            Some(Hierarchy { controllers, shown: shown.to_owned(), place })
        };
        Hierarchies(mounts.lines().filter_map(hierarchy).collect())
    }

    /// By controller: the group of a process or thread, from the lines of its `cgroup` file.
    pub fn of_thread(&self, lines: &str) -> Vec<(&'static str, String)> {
        let named = CONTROLLERS.map(|(name, controller)| (name, self.group(lines, controller)));
        named.into_iter().filter_map(|(controller, group)| Some((controller, group?))).collect()
    }

    /// The group for one controller. A controller is in a hierarchy of version 1 or in that of version 2.
    fn group(&self, lines: &str, controller: &str) -> Option<String> {
        // `NUMBER:CONTROLLERS:PATH`.
        let parts = lines.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
        let mut unified = None;
        for (controllers, path) in parts {
            if controllers.split(',').any(|of| of == controller) {
                return Some(format!("{controller}:{path}"));
            }
            if controllers.is_empty() {
                unified = Some(path.to_owned());
            }
        }
        unified.filter(|_| self.0.iter().any(|hierarchy| hierarchy.controllers.is_empty()))
    }

    /// The folder of a group.
    fn folder(&self, group: &str) -> Option<PathBuf> {
        let (controller, path) = match group.split_once(':') {
            Some((controller, path)) if !controller.contains('/') => (Some(controller), path),
            _ => (None, group),
        };
        let is_its = |hierarchy: &&Hierarchy| match controller {
            Some(controller) => hierarchy.controllers.iter().any(|of| of == controller),
            None => hierarchy.controllers.is_empty(),
        };
        let below = |hierarchy: &Hierarchy| {
            let path = path.strip_prefix(hierarchy.shown.trim_end_matches('/'))?;
            // A group outside of what is shown begins with `..`.
            let path = path.trim_start_matches('/');
            (!path.split('/').any(|part| part == "..")).then(|| hierarchy.place.join(path))
        };
        self.0.iter().filter(is_its).find_map(below)
    }

    /// The values of some groups and of those around them.
    pub fn sample(&self, groups: &GroupPaths) -> SampledTable {
        let mut table = SampledTable::new();
        for group in groups {
            let mut at = Some(group.as_str());
            while let Some(path) = at.filter(|path| !table.contains_key(*path) && table.len() < MOST_GROUPS) {
                if let Some(folder) = self.folder(path) {
                    table.insert(path.to_owned(), values(&folder));
                }
                at = around(path);
            }
        }
        table
    }
}

/// The path of the group around one.
fn around(path: &str) -> Option<&str> {
    let (above, last) = path.rsplit_once('/')?;
    match (last.is_empty(), above.is_empty() || above.ends_with(':')) {
        (true, _) => None,
        // The slash of the top belongs to its name.
        (false, true) => path.get(..=above.len()),
        (false, false) => Some(above),
    }
}

/// What a group limits and counts.
fn values(folder: &Path) -> SampledValues {
    let mut values = SampledValues::new();
    let read = |name: &str| text(&folder.join(name)).map(|all| all.trim().to_owned());
    let number = |name: &str| read(name)?.parse::<u64>().ok();
    let mut count =
        |name: &str, value: Option<u64>| value.map(|value| values.insert(name.to_owned(), SampledValue::Count(value)));
    let quota =
        read("cpu.max").or_else(|| Some(format!("{} {}", read("cpu.cfs_quota_us")?, read("cpu.cfs_period_us")?)));
    let (quota, period) = quota.as_deref().and_then(|all| all.split_once(' ')).unzip();
    count(PERIOD_US, period.and_then(|period| period.parse().ok()));
    count(WEIGHT, number("cpu.weight").or_else(|| number("cpu.shares")));
    let stat = read("cpu.stat").unwrap_or_default();
    let wanted = ["usage_usec", "nr_periods", NR_THROTTLED, "throttled_usec", "throttled_time"];
    for (name, value) in named_counts(&stat, &wanted) {
        match name {
            // Version 1 counts nanoseconds.
            "throttled_time" => count(THROTTLED_US, Some(value / 1000)),
            "throttled_usec" => count(THROTTLED_US, Some(value)),
            "usage_usec" => count("usage_us", Some(value)),
            name => count(name, Some(value)),
        };
    }
    count("memory.current", number("memory.current").or_else(|| number("memory.usage_in_bytes")));
    count("memory.failcnt", number("memory.failcnt"));
    for (file, wanted) in [("memory.stat", &MEMORY_STAT[..]), ("memory.events", &MEMORY_EVENTS[..])] {
        let all = read(file).unwrap_or_default();
        for (name, value) in named_counts(&all, wanted) {
            count(&format!("{file}.{name}"), Some(value));
        }
    }
    let memory = read("memory.max").or_else(|| read("memory.limit_in_bytes"));
    for (name, limit) in
        [(QUOTA_US, quota.map(str::to_owned)), ("memory.max", memory), ("memory.high", read("memory.high"))]
    {
        limit.map(|limit| values.insert(name.to_owned(), limited(&limit)));
    }
    if let Some(limits) = disk_limits(read) {
        values.insert(DISK_LIMITS.to_owned(), SampledValue::Text(limits));
    }
    for of in ["cpu", "memory", "io"] {
        pressure(&read(&format!("{of}.pressure")).unwrap_or_default(), of, &mut values);
    }
    values
}

/// The limits on disks, `max` where there are none; `None` where the group has no such files. `read` reads a file.
fn disk_limits(read: impl Fn(&str) -> Option<String>) -> Option<String> {
    let all = match read("io.max") {
        // The kernel leaves out devices without a limit.
        Some(all) => all.lines().collect::<Vec<_>>().join("; "),
        None => {
            let of = |(file, name): (&str, &str)| Some((name.to_owned(), read(file)?));
            let files: Vec<_> = DISK_LIMIT_FILES.into_iter().filter_map(of).collect();
            if files.is_empty() {
                return None;
            }
            let limit = |(name, lines): &(String, String)| {
                let one = |line: &str| line.split_once(' ').map(|(of, at)| format!("{of} {name}={at}"));
                lines.lines().filter_map(one).collect::<Vec<_>>()
            };
            files.iter().flat_map(limit).collect::<Vec<_>>().join("; ")
        }
    };
    let all: String = all.chars().take(LONGEST_LIMITS).collect();
    Some(if all.is_empty() { "max".to_owned() } else { all })
}

/// A limit; the -1 of version 1 is the `max` of version 2.
fn limited(text: &str) -> SampledValue {
    text.parse().map_or_else(|_| SampledValue::Text("max".to_owned()), SampledValue::Count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn around_goes_to_the_top() {
        let all =
            |path: &'static str| std::iter::successors(Some(path), |path| around(path)).skip(1).collect::<Vec<_>>();
        assert_eq!(all("/a/b/c"), ["/a/b", "/a", "/"]);
        assert_eq!(all("cpu:/a/b"), ["cpu:/a", "cpu:/"]);
        assert!(all("/").is_empty() && all("cpu:/").is_empty());
    }

    #[test]
    fn groups_of_both_versions_are_found_and_read() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(
            "proc/self/mountinfo",
            "21 1 0:20 / /cg/unified rw - cgroup2 cgroup2 rw\n\
             22 1 0:21 /pod /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct\n",
        );
        write("cg/unified/a/b/cpu.max", "20000 100000\n");
        write("cg/unified/a/b/cpu.stat", "usage_usec 5\nnr_periods 9\nnr_throttled 4\nthrottled_usec 812\n");
        write("cg/unified/a/b/memory.events", "low 0\nmax 7\n");
        write("cg/unified/a/b/cpu.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=33\n");
        write("cg/unified/a/cpu.max", "max 100000\n");
        write("cg/cpu/shop/cpu.cfs_quota_us", "30000\n");
        write("cg/cpu/shop/cpu.stat", "nr_periods 9\nnr_throttled 2\nthrottled_time 81200\n");
        write("cg/cpu/shop/cpu.cfs_period_us", "100000\n");
        write("cg/cpu/cpu.cfs_quota_us", "-1\n");
        write("cg/cpu/cpu.cfs_period_us", "100000\n");
        let all = Hierarchies::read(root.path());
        let of = all.of_thread("4:cpu,cpuacct:/pod/shop\n0::/a/b\n");
        let both = "/a/b".to_owned();
        assert_eq!(of, [("cpu", "cpu:/pod/shop".to_owned()), ("memory", both.clone()), ("io", both)]);
        let table = all.sample(&GroupPaths::from(["cpu:/pod/shop".to_owned(), "/a/b".to_owned()]));
        let value = |group: &str, name: &str| table.get(group)?.get(name).cloned();
        assert_eq!(value("/a/b", QUOTA_US), Some(SampledValue::Count(20_000)));
        assert_eq!(value("/a/b", THROTTLED_US), Some(SampledValue::Count(812)));
        assert_eq!(value("/a/b", "memory.events.max"), Some(SampledValue::Count(7)));
        assert_eq!(value("/a/b", "pressure.cpu.some_us"), Some(SampledValue::Count(33)));
        let none = Some(SampledValue::Text("max".to_owned()));
        assert_eq!((value("/a", QUOTA_US), value("/a", PERIOD_US)), (none.clone(), Some(SampledValue::Count(100_000))));
        assert_eq!(value("cpu:/pod/shop", THROTTLED_US), Some(SampledValue::Count(81)));
        assert_eq!(value("cpu:/pod/shop", QUOTA_US), Some(SampledValue::Count(30_000)));
        // The group that the mount shows is its top; what is around it is not to be seen.
        assert_eq!(value("cpu:/pod", QUOTA_US), none);
        assert!(!table.contains_key("cpu:/"));
    }

    #[test]
    fn limits_on_disks_have_one_form() {
        let of = |files: &[(&str, &str)]| {
            let files: BTreeMap<String, String> = files.iter().map(|(n, t)| ((*n).into(), (*t).into())).collect();
            disk_limits(|name| files.get(name).cloned())
        };
        let second = "254:0 rbps=4194304 wbps=max riops=max wiops=max";
        assert_eq!(of(&[("io.max", second)]).as_deref(), Some(second));
        let first =
            [("blkio.throttle.read_bps_device", "254:0 4194304"), ("blkio.throttle.write_iops_device", "8:0 9")];
        assert_eq!(of(&first).as_deref(), Some("254:0 rbps=4194304; 8:0 wiops=9"));
        assert_eq!(of(&[("io.max", "")]).as_deref(), Some("max"));
        assert_eq!(of(&[("blkio.throttle.read_bps_device", "")]).as_deref(), Some("max"));
        assert_eq!(of(&[]), None);
    }
}
