//! An instance of tracefs: a ring buffer of the kernel with its own events, threads and clock.
//!
//! In: what it records. Out: a folder below `instances`, which is removed when its value is dropped. The kernel's
//! `Documentation/trace/ftrace.rst` and `events.rst` describe the files.

use super::pages::DrainedCpu;
use crate::record::RecordError;
use crate::record::recorder_commands::path_text;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The clock of all recordings: the one that LTTng and perf use, too.
const CLOCK: &str = "mono";

/// The file that switches recording on and off, and the list of the threads whose events are recorded.
pub const SWITCH: &str = "tracing_on";
pub const CHOICE: &str = "set_event_pid";

/// The longest time until the kernel has made the files of an instance.
const APPEARS_WITHIN: Duration = Duration::from_secs(2);

/// Times that the removal of a busy instance is tried again, and the pause before each.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(20);

/// An event of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedEvent {
    /// `SYSTEM:NAME`.
    pub name: String,
    /// The condition in the kernel's filter language; `None`: it is always recorded.
    pub filter: Option<String>,
}

/// What an instance records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceSetup {
    pub name: String,
    /// KiB of buffer for each CPU.
    pub buffer: u64,
    pub events: Vec<RecordedEvent>,
    /// The threads whose events are recorded, with those that they begin; `None`: all threads.
    pub chosen: Option<Vec<u32>>,
    /// Each event is followed by the stacks of kernel and program.
    pub has_stacks: bool,
}

/// An instance; dropping it removes it.
#[derive(Debug)]
pub struct Instance {
    setup: InstanceSetup,
    path: PathBuf,
}

impl Instance {
    /// Make an instance that does not record yet.
    pub fn create(tracefs: &Path, setup: InstanceSetup) -> Result<Instance, RecordError> {
        let path = tracefs.join("instances").join(&setup.name);
        let failed = |why: String| RecordError::failed(path_text(&path), why);
        std::fs::create_dir(&path).map_err(|e| failed(e.to_string()))?;
        let begin = Instant::now();
        while !path.join(SWITCH).exists() {
            if begin.elapsed() > APPEARS_WITHIN {
                let _ = std::fs::remove_dir(&path);
                return Err(failed("no ring buffer appeared: this is no tracefs".to_owned()));
            }
            std::thread::sleep(PAUSE);
        }
        let instance = Instance { setup, path };
        instance.set_up()?;
        Ok(instance)
    }

    fn set_up(&self) -> Result<(), RecordError> {
        let InstanceSetup { buffer, events, chosen, has_stacks, .. } = &self.setup;
        self.switch(false)?;
        self.set("trace_clock", CLOCK)?;
        self.set("buffer_size_kb", &buffer.to_string())?;
        if let Some(threads) = chosen {
            self.set("options/event-fork", "1")?;
            let threads: Vec<String> = threads.iter().map(u32::to_string).collect();
            // Without any, the kernel would record all threads; no thread has the largest id.
            self.set(CHOICE, if threads.is_empty() { "4194304".to_owned() } else { threads.join(" ") }.as_str())?;
        }
        if *has_stacks {
            self.set("options/userstacktrace", "1")?;
        }
        for RecordedEvent { name, filter } in events {
            let folder = event_folder(name);
            if let Some(filter) = filter {
                self.set(&format!("{folder}/filter"), filter)?;
            }
            if *has_stacks {
                self.set(&format!("{folder}/trigger"), "stacktrace")?;
            }
            self.set(&format!("{folder}/enable"), "1")?;
        }
        Ok(())
    }

    /// Write a setting.
    fn set(&self, file: &str, value: &str) -> Result<(), RecordError> {
        let path = self.path.join(file);
        let written = File::options().write(true).truncate(true).open(&path);
        let written = written.and_then(|mut file| file.write_all(value.as_bytes()));
        written.map_err(|e| RecordError::failed(path_text(&path), format!("{value}: {e}")))
    }

    /// Switch recording on or off.
    pub fn switch(&self, on: bool) -> Result<(), RecordError> {
        self.set(SWITCH, if on { "1" } else { "0" })
    }

    /// Record the events of the thread that calls this, too.
    pub fn choose_this_thread(&self) -> Result<(), RecordError> {
        let path = self.path.join(CHOICE);
        // Opened otherwise, the list would lose its other threads.
        choose_this_thread(&path).map_err(|e| RecordError::failed(path_text(&path), e.to_string()))
    }

    pub fn name(&self) -> &str {
        &self.setup.name
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folders of its events below `events`.
    pub fn event_folders(&self) -> impl Iterator<Item = PathBuf> + '_ {
        self.setup.events.iter().map(|event| self.path.join(event_folder(&event.name)))
    }

    /// The pages of its CPUs, in order, and a file for each in a folder.
    pub fn cpus(&self, folder: &Path) -> io::Result<Vec<DrainedCpu>> {
        let mut numbers: Vec<u32> = std::fs::read_dir(self.path.join("per_cpu"))?
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.strip_prefix("cpu")?.parse().ok())
            .collect();
        numbers.sort_unstable();
        numbers.into_iter().map(|cpu| DrainedCpu::open(&self.cpu_folder(cpu), cpu, folder)).collect()
    }

    /// What each CPU has counted: events, losses.
    pub fn stats(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path.join("per_cpu")).into_iter().flatten().flatten();
        let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        folders.sort_unstable();
        folders
            .iter()
            .filter_map(|folder| {
                let cpu = folder.file_name()?.to_str()?.strip_prefix("cpu")?;
                Some(format!("CPU: {cpu}\n{}", std::fs::read_to_string(folder.join("stats")).ok()?))
            })
            .collect()
    }

    fn cpu_folder(&self, cpu: u32) -> PathBuf {
        self.path.join("per_cpu").join(format!("cpu{cpu}"))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // It is busy while a program reads one of its files.
        for _ in 0..TRIES {
            match std::fs::remove_dir(&self.path) {
                Err(e) if e.kind() == io::ErrorKind::ResourceBusy => std::thread::sleep(PAUSE),
                _ => return,
            }
        }
    }
}

/// Add the thread that calls this to a list of threads whose events are recorded, with those that they begin.
pub fn choose_this_thread(list: &Path) -> io::Result<()> {
    let tid = rustix::thread::gettid().as_raw_nonzero().to_string();
    File::options().append(true).open(list)?.write_all(tid.as_bytes())
}

/// The folder of an event below that of an instance.
fn event_folder(name: &str) -> String {
    format!("events/{}", name.replacen(':', "/", 1))
}
