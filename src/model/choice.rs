//! Why executions of this task are compared: what chose it, whose they are, and what else could have been asked about.
//!
//! PRODUCT.md, "The task that is chosen where none is named".

use crate::base::time::Ns;

/// Cells of the time of a recording in which a program's extra time is summed.
pub const CELLS: usize = 12;

/// What chose a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChosenBy {
    /// The user named it.
    #[default]
    Given,
    /// The program marks its executions itself.
    Marked,
    /// The recording was made for the program: it is the recorded command, or the only one whose calls were recorded.
    Recorded,
    /// Two recordings that are compared have the command in common.
    Shared,
    /// Nothing says what was meant.
    Guessed,
}

impl ChosenBy {
    /// As JSON has it.
    pub fn name(self) -> &'static str {
        match self {
            ChosenBy::Given => "given",
            ChosenBy::Marked => "marked",
            ChosenBy::Recorded => "recorded",
            ChosenBy::Shared => "shared",
            ChosenBy::Guessed => "guessed",
        }
    }
}

/// What executions that no event delimits are. The first is asked about before the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExecutionKind {
    /// From taking a connection to closing it.
    Connections,
    /// Answers of a server.
    Requests,
    /// Questions of a client.
    Questions,
    /// Iterations of a loop.
    Iterations,
    SystemCalls,
    /// Calls of a function.
    FunctionCalls,
    /// Lives of a process or thread.
    Lives,
}

impl ExecutionKind {
    /// In words, of a program.
    pub fn words(self) -> &'static str {
        match self {
            ExecutionKind::Connections => "connections",
            ExecutionKind::Requests => "requests",
            ExecutionKind::Questions => "calls to others",
            ExecutionKind::Iterations => "iterations",
            ExecutionKind::SystemCalls => "system calls",
            ExecutionKind::FunctionCalls => "function calls",
            ExecutionKind::Lives => "lives",
        }
    }
}

/// A task of a program that could be asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramTask {
    /// Name of the program's processes.
    pub program: String,
    /// What its executions are.
    pub kind: ExecutionKind,
    /// As `--task` takes it.
    pub task: String,
    /// How many executions it has.
    pub executions: usize,
    /// Half of them take at most this.
    pub p50_ns: Ns,
    /// 99 of a hundred take at most this.
    pub p99_ns: Ns,
    /// What the slowest twentieth takes beyond the median.
    pub tail_ns: Ns,
    /// That time by when it began, in equal parts of the recording.
    pub over_time: [Ns; CELLS],
    /// The tracer ran this program, or recorded the system calls of no other.
    pub is_recorded: bool,
}

/// The reason for choosing a task where the user named none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskChoice {
    /// What chose it.
    pub by: ChosenBy,
    /// The program whose executions they are, and what they are; `None` where it marks them itself.
    pub whose: Option<(String, ExecutionKind)>,
    /// The reason, as the end of a sentence; empty where the task needs none.
    pub why: String,
    /// Other tasks worth a look, at most two.
    pub others: Vec<String>,
    /// Of each program the task that is asked about first, the most promising program first; none where only the chosen
    /// one could be asked about.
    pub programs: Vec<ProgramTask>,
    /// The answer is where its time went, not what slow executions do differently: it has too few.
    pub profile: bool,
    /// Two labelled traces hold it: their executions are compared.
    pub by_trace: bool,
}

impl TaskChoice {
    /// True for a guess among programs of similar weight: the extra time of another one is at least half of that of the
    /// chosen one.
    pub fn is_open(&self) -> bool {
        let [chosen, others @ ..] = self.programs.as_slice() else { return false };
        let is_similar = |other: &ProgramTask| other.tail_ns.saturating_mul(2) >= chosen.tail_ns;
        self.by == ChosenBy::Guessed && others.iter().any(is_similar)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choice_is_open_among_programs_of_similar_weight() {
        let program = |tail_ns: Ns| ProgramTask {
            program: "p".to_owned(),
            kind: ExecutionKind::Requests,
            task: "serve:p".to_owned(),
            executions: 12,
            p50_ns: 1,
            p99_ns: 2,
            tail_ns,
            over_time: [0; CELLS],
            is_recorded: false,
        };
        let choice = |by: ChosenBy, tails: &[Ns]| TaskChoice {
            by,
            programs: tails.iter().map(|tail| program(*tail)).collect(),
            ..TaskChoice::default()
        };
        assert!(choice(ChosenBy::Guessed, &[10, 5]).is_open() && choice(ChosenBy::Guessed, &[10, 3, 50]).is_open());
        assert!(!choice(ChosenBy::Guessed, &[10, 4]).is_open() && !choice(ChosenBy::Guessed, &[10]).is_open());
        assert!(!choice(ChosenBy::Recorded, &[10, 9]).is_open() && !choice(ChosenBy::Guessed, &[]).is_open());
    }
}
