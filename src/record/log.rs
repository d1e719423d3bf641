//! Reads the log of a recording: the commands of the script (`+ `), their output, and what failed at the end (`! `).

use super::plan::RecordingPlan;

/// The text of `record.log`.
#[derive(Debug)]
pub(super) struct ScriptLog(pub String);

/// The last command before the script began to finish.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LastStep<'a> {
    /// Its program.
    pub program: Option<&'a str>,
    /// The last line that it wrote.
    pub said: Option<&'a str>,
}

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
                None => last.said = Some(line),
            }
        }
        last
    }

    /// The commands that failed behind the recording, with the last line of their output.
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
