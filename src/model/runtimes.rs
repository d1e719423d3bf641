//! Programs that compile code while they run, and what makes them write its names.
//!
//! In: the paths of the files that a process had mapped. Out: the option of its runtime. Recorders know nothing but the
//! addresses of such code.

/// A runtime: the beginning of the name of its program or library, its name, and what makes it write a map of names.
struct Runtime {
    file: &'static str,
    name: &'static str,
    option: &'static str,
}

/// Libraries before programs: `java` is a program, and any program may load `libjvm.so`.
const RUNTIMES: [Runtime; 9] = [
    Runtime { file: "libjvm.so", name: "Java", option: JAVA },
    Runtime { file: "libcoreclr.so", name: ".NET", option: "set DOTNET_PerfMapEnabled=1" },
    Runtime { file: "libnode.so", name: "Node.js", option: NODE },
    Runtime { file: "libpython3.", name: "Python", option: PYTHON },
    Runtime { file: "java", name: "Java", option: JAVA },
    Runtime { file: "dotnet", name: ".NET", option: "set DOTNET_PerfMapEnabled=1" },
    Runtime { file: "nodejs", name: "Node.js", option: NODE },
    Runtime { file: "node", name: "Node.js", option: NODE },
    Runtime { file: "python3", name: "Python", option: PYTHON },
];

const JAVA: &str = "start it with -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit -XX:+PreserveFramePointer";
const NODE: &str = "start it with --perf-basic-prof";
const PYTHON: &str = "start it with -X perf (Python 3.12 or newer)";

/// The name of the runtime among some files, and the option that makes it write the names of its code.
pub fn remedy<'a>(paths: impl Iterator<Item = &'a str> + Clone) -> (&'static str, &'static str) {
    let is_of = |runtime: &Runtime, path: &str| {
        let file = path.rsplit('/').next().unwrap_or(path);
        let rest = file.strip_prefix(runtime.file);
        // The name itself, or a version after it.
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(|c: char| c.is_ascii_digit() || c == '.'))
    };
    let known = RUNTIMES.iter().find(|runtime| paths.clone().any(|path| is_of(runtime, path)));
    known
        .map_or(("", "start its runtime with the option that makes it write perf-PID.map or jit-PID.dump"), |runtime| {
            (runtime.name, runtime.option)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remedy_knows_runtimes_by_their_files() {
        let option = |paths: &[&str]| remedy(paths.iter().copied());
        assert_eq!(option(&["/lib/libc.so.6", "/usr/bin/node"]), ("Node.js", NODE));
        assert_eq!(option(&["/opt/app/server", "/usr/lib/jvm/17/lib/server/libjvm.so"]), ("Java", JAVA));
        assert_eq!(option(&["/usr/bin/python3.12"]), ("Python", PYTHON));
        assert_eq!(option(&["/opt/libpython3.13.so.1.0", "/opt/run"]), ("Python", PYTHON));
        assert_eq!(option(&["/opt/app/node_exporter", "/opt/luajit"]).0, "");
    }
}
