//! The questions that the archive of an MPI run cannot answer, and the commands that record the answers.
//!
//! In: what an archive holds, by its definitions. Out: as [`recorded`](super::recorded) gives it for traces. The
//! commands have the words PROGRAM and RANKS in the places of the user's own: how a program is built and started is not
//! in an archive. Options of Score-P: `scorep --help`, `scorep-info config-vars`; of EZTrace: `eztrace(1)`,
//! `eztrace_avail`.

use super::facts::ArchiveFacts;
use super::recorded::{MissingExtent, MissingTopic};

/// Something that archives hold only if it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ArchiveContent {
    /// Regions of the program's own functions.
    ProgramRegions,
    /// Operations on files.
    FileOperations,
}

/// A question that the scheduler's events answer, which no archive has.
const SCHEDULER: &str = "whether it computed or was preempted";

/// Of an archive.
pub fn missing(archive: &ArchiveFacts) -> Vec<MissingTopic> {
    let topic = |question, lacks: &str, without, command: String| MissingTopic {
        host: String::new(),
        question,
        extent: MissingExtent::Whole,
        lacks: vec![lacks.to_owned()],
        without,
        command,
    };
    // The tracer of the archive where it can, else Score-P.
    let traced = |options: &str, plugins: &str| match archive.creator.contains("EZTrace") {
        true => format!("mpirun -n RANKS eztrace -t \"{plugins}\" ./PROGRAM"),
        false => format!(
            "scorep{options} mpicc -g -o PROGRAM PROGRAM.c && SCOREP_ENABLE_TRACING=true \
             SCOREP_MPI_ENABLE_GROUPS=all mpirun -n RANKS ./PROGRAM"
        ),
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
    let has = |content| archive.holds.contains(&content);
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
