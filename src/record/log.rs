//! Reads the log of a recording: the commands of the script (`+ `), their output, and what failed at the end (`! `).

use super::plan::RecordingPlan;

/// The text of `record.log`.
#[derive(Debug)]
pub(super) struct ScriptLog(pub String);

/// The last command before the script began to finish.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LastStep<'a> {
    pub program: Option<&'a str>,
    /// The last line that it wrote with a reason.
    pub said: Option<&'a str>,
}

/// The last line of a perf that could not place a probe; the reason is in the line before it.
const NO_REASON: &str = "Error: Failed to add events.";

impl ScriptLog {
    fn lines(&self) -> impl Iterator<Item = &str> {
        self.0.lines().map(str::trim).filter(|line| !line.is_empty())
    }

    /// The command that ended the recording.
    pub fn last_step(&self, plan: &RecordingPlan) -> LastStep<'_> {
        let finishing = plan.finishing();
        let mut last = LastStep { program: None, said: None };
        for line in self.lines().take_while(|line| !finishing.iter().any(|command| command == line)) {
            match line.strip_prefix("+ ") {
                Some(command) => last = LastStep { program: command.split_whitespace().next(), said: None },
                None if line == NO_REASON && last.said.is_some() => {}
                None => last.said = Some(line),
            }
        }
        last
    }

    /// The commands that failed beside the recording, with the last line of their output.
    pub fn unfinished(&self) -> Vec<String> {
        let (mut failed, mut said) = (Vec::new(), None);
        for line in self.lines() {
            match line.strip_prefix("! ") {
                Some(command) => {
                    let reason = said.map_or_else(String::new, |said| format!(" ({said})"));
                    failed.push(format!("`{command}` failed{reason}"));
                }
                None => said = Some(line).filter(|line| !line.starts_with("+ ")),
            }
        }
        failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Recorder;
    use crate::record::plan::RingBuffers;

    #[test]
    fn last_step_is_the_reason_of_perf() {
        let plan = RecordingPlan {
            recorder: Recorder::Perf,
            why: String::new(),
            notes: Vec::new(),
            prepare: Vec::new(),
            record: None,
            finish: Vec::new(),
            folder: "out".into(),
            trace: "out/perf.data".into(),
            kernel_symbols: None,
            control: None,
            duration: None,
            ring_buffers: RingBuffers::default(),
            cost: None,
            printer: None,
        };
        let log = |text: &str| ScriptLog(text.to_owned());
        let probe =
            "+ perf probe -x /bin/server 'handel'\nProbe point 'handel' not found.\n  Error: Failed to add events.\n";
        let log_of_probe = log(probe);
        let LastStep { program, said } = log_of_probe.last_step(&plan);
        assert_eq!((program, said), (Some("perf"), Some("Probe point 'handel' not found.")));
        assert_eq!(log("+ perf record\n  Error: Failed to add events.\n").last_step(&plan).said, Some(NO_REASON));
    }
}
