//! The questions that the archive of an MPI run cannot answer, and the commands that record the answers.
//!
//! In: what an archive holds, by its definitions. Out: as [`recorded`](super::recorded) gives it for traces: an archive
//! is one, whose events are the [`ArchiveContent`]s that it holds, so a database keeps them in the same form. The
//! commands have the words PROGRAM and RANKS in the places of the user's own: how a program is built and started is not
//! in an archive. Options of Score-P: `scorep --help`, `scorep-info config-vars`; of EZTrace: `eztrace(1)`,
//! `eztrace_avail`.

use super::topic::{MissingExtent, MissingTopic, RecordingWay};
use crate::model::facts::ArchiveFacts;
use crate::model::recorded::{ArchiveContent, Recorded};
use crate::model::recorder::TraceRecorder;

/// A question that the scheduler's events answer, which no archive has.
const SCHEDULER: &str = "whether it computed or was preempted";

/// What an archive recorded; `name` distinguishes it from others.
pub fn recorded(archive: &ArchiveFacts, name: &str) -> Recorded {
    let eztrace = archive.creator.contains("EZTrace");
    Recorded {
        host: name.to_owned(),
        recorder: if eztrace { TraceRecorder::Eztrace } else { TraceRecorder::ScoreP },
        events: archive.holds.iter().map(|content| content.word().to_owned()).collect(),
        ..Recorded::default()
    }
}

/// Of an archive.
pub fn missing(archive: &ArchiveFacts) -> Vec<MissingTopic> {
    of(&recorded(archive, ""), "")
}

/// Of what an archive recorded.
pub(super) fn of(archive: &Recorded, host: &str) -> Vec<MissingTopic> {
    let topic = |question, lacks: &str, without, command: String| MissingTopic {
        host: host.to_owned(),
        question,
        extent: MissingExtent::Whole,
        lacks: vec![lacks.to_owned()],
        without,
        command,
        way: RecordingWay::Run,
    };
    // The tracer of the archive where it can, else Score-P.
    let traced = |options: &str, plugins: &str| {
        if archive.recorder == TraceRecorder::Eztrace {
            format!("mpirun -n RANKS eztrace -t \"{plugins}\" ./PROGRAM")
        } else {
            format!(
                "scorep{options} mpicc -g -o PROGRAM PROGRAM.c && SCOREP_ENABLE_TRACING=true \
             SCOREP_MPI_ENABLE_GROUPS=all mpirun -n RANKS ./PROGRAM"
            )
        }
    };
    let scorep = "scorep --io=posix mpicc -g -o PROGRAM PROGRAM.c && SCOREP_ENABLE_TRACING=true \
                  SCOREP_MPI_ENABLE_GROUPS=all mpirun -n RANKS ./PROGRAM";
    let functions = topic(
        "functions that ran",
        "functions of the program (Score-P: built with scorep)",
        "time between calls of MPI belongs to a rank, not to a function",
        scorep.to_owned(),
    );
    let files = topic(
        "which files were read and written",
        "operations on files (Score-P: scorep --io=posix; EZTrace: -t posixio)",
        "time in files counts as time of the function around it",
        traced(" --io=posix", "mpi posixio"),
    );
    let scheduler = topic(
        SCHEDULER,
        "events of the kernel of each node",
        "time outside of MPI counts as computation, even where another program ran",
        "whyslow record --duration 10s".to_owned(),
    );
    let scheduler = MissingTopic { way: RecordingWay::Machine, ..scheduler };
    let has = |content: ArchiveContent| archive.events.contains(content.word());
    let functions = (!has(ArchiveContent::ProgramRegions)).then_some(functions);
    let files = (!has(ArchiveContent::FileOperations)).then_some(files);
    functions.into_iter().chain(files).chain([scheduler]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(creator: &str, holds: &[ArchiveContent]) -> Vec<MissingTopic> {
        let holds = holds.iter().copied().collect();
        missing(&ArchiveFacts { creator: creator.to_owned(), holds, ..ArchiveFacts::default() })
    }

    #[test]
    fn missing_names_the_options_of_the_tracer() {
        let all = of("Score-P 8.4", &[]);
        assert_eq!(all.len(), 3);
        assert!(all[1].command.starts_with("scorep --io=posix mpicc "), "{all:?}");
        let eztrace = of("EZTrace 2.1", &[ArchiveContent::ProgramRegions]);
        assert_eq!(eztrace.len(), 2);
        assert_eq!(eztrace[0].command, "mpirun -n RANKS eztrace -t \"mpi posixio\" ./PROGRAM");
        let whole = of("Score-P 8.4", &[ArchiveContent::ProgramRegions, ArchiveContent::FileOperations]);
        assert_eq!(whole.iter().map(|topic| topic.question).collect::<Vec<_>>(), [SCHEDULER]);
    }
}
