//! The questions that a recording cannot answer, and the commands that record the answers: for `info` and for the data
//! quality page.
//!
//! Texts from the recording (a host's name) are cleaned; names of events are plain words already
//! ([`recorded`](crate::model::recorded)).

use crate::advice::topic::{MissingExtent, MissingTopic, RecordingWay};
use crate::advice::{archive_gaps, missing, questions};
use crate::base::clean;
use crate::model::Model;
use crate::model::facts::{ArchiveFacts, Facts};
use crate::model::recorded::Recorded;
use serde::Serialize;
use std::fmt::Write;

/// A question that the traces cannot answer.
#[derive(Clone, Debug, Serialize)]
pub struct MissingJson {
    host: Option<String>,
    question: &'static str,
    extent: &'static str,
    lacks: Vec<String>,
    effect: &'static str,
    command: String,
    #[serde(skip)]
    way: RecordingWay,
}

/// Of some traces.
pub fn of(facts: &Facts) -> Vec<MissingJson> {
    json(missing::missing(facts.traces.iter().filter_map(|trace| trace.recorded.as_ref())))
}

pub fn of_archive(archive: &ArchiveFacts) -> Vec<MissingJson> {
    json(archive_gaps::missing(archive))
}

/// Of traces and archives that recorded this.
pub fn of_recorded(all: &[Recorded]) -> Vec<MissingJson> {
    json(missing::missing(all.iter()))
}

/// Of the traces of a model.
pub fn of_model(model: &Model) -> Vec<MissingJson> {
    json(questions::missing(model))
}

fn json(missing: Vec<MissingTopic>) -> Vec<MissingJson> {
    let json = |topic: MissingTopic| MissingJson {
        host: (!topic.host.is_empty()).then(|| clean::owned(&topic.host)),
        question: topic.question,
        extent: match topic.extent {
            MissingExtent::Whole => "whole",
            MissingExtent::Part => "part",
        },
        lacks: topic.lacks,
        effect: topic.without,
        command: topic.command,
        way: topic.way,
    };
    missing.into_iter().map(json).collect()
}

impl MissingJson {
    /// The question, its consequence and the events, in one line.
    fn sentence(&self) -> String {
        let host = self.host.as_ref().map_or_else(String::new, |host| format!("{host}: "));
        // The consequence is that of a question without any answer.
        let effect = if self.extent == "part" { ", in part".to_owned() } else { format!(": {}", self.effect) };
        format!("{host}{}{effect}; not recorded: {}", self.question, self.lacks.join(", "))
    }
}

/// The sentences, and the commands with what they are for.
pub struct MissingText {
    /// One for each question.
    pub sentences: Vec<String>,
    /// Each command once.
    pub commands: Vec<MissingCommand>,
}

/// A command that records what is missing.
pub struct MissingCommand {
    /// What it is for.
    pub purpose: String,
    /// One line for a shell.
    pub line: String,
}

/// As texts.
pub fn text(missing: &[MissingJson]) -> MissingText {
    let mut lines: Vec<&str> = Vec::new();
    for m in missing {
        if !m.command.is_empty() && !lines.contains(&m.command.as_str()) {
            lines.push(&m.command);
        }
    }
    let command = |line: &&str| {
        let of_line: Vec<&MissingJson> = missing.iter().filter(|m| m.command == *line).collect();
        let questions: Vec<&str> = of_line.iter().map(|m| m.question).collect();
        let what = if questions.len() == missing.len() { "all of it".to_owned() } else { questions.join(", ") };
        let purpose = if of_line.iter().all(|m| m.way == RecordingWay::Run) {
            format!("to record the program again with {what}:")
        } else {
            format!("to record 10 s with {what}, as root:")
        };
        MissingCommand { purpose, line: (*line).to_owned() }
    };
    let commands = lines.iter().map(command).collect();
    MissingText { sentences: missing.iter().map(MissingJson::sentence).collect(), commands }
}

/// A section of `info`.
pub fn write(missing: &[MissingJson], out: &mut String) -> std::fmt::Result {
    if missing.is_empty() {
        return Ok(());
    }
    let MissingText { sentences, commands } = text(missing);
    writeln!(out, "\nquestions that this recording cannot answer")?;
    sentences.iter().try_for_each(|sentence| writeln!(out, "    {sentence}"))?;
    for MissingCommand { purpose, line } in commands {
        writeln!(out, "{purpose}\n    {line}")?;
    }
    Ok(())
}

/// Write what an archive cannot answer; its commands hold names in the places of the user's own.
pub fn write_of_archive(missing: &[MissingJson], out: &mut String) -> std::fmt::Result {
    if missing.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nquestions that this archive cannot answer")?;
    for topic in missing {
        writeln!(out, "    {}\n        {}", topic.sentence(), topic.command)?;
    }
    Ok(())
}
