//! The task `profile`: the samples of a profiler, of one program or of all, and of one of the events that were sampled.
//!
//! `profile[=PROGRAM][,event=EVENT]`; without a program the command that was recorded, with `*` every program.
//! PRODUCT.md, "Profiles".

/// What the name of such a task begins with.
const PROFILE: &str = "profile";
/// In place of a program's name: all of them.
pub const EVERY_PROGRAM: &str = "*";

/// Which samples are asked about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfileTask {
    /// The program by the name of its process; [`EVERY_PROGRAM`] for all. `None`: the command that was recorded.
    pub program: Option<String>,
    /// The event that was sampled. `None`: a clock, else the event with most samples.
    pub event: Option<String>,
}

impl std::fmt::Display for ProfileTask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(PROFILE)?;
        if let Some(program) = &self.program {
            write!(f, "={program}")?;
        }
        self.event.as_ref().map_or(Ok(()), |event| write!(f, ",event={event}"))
    }
}

/// The task as users write it; `None` for other forms. The error is the right form.
pub fn parse(typed: &str) -> Option<Result<ProfileTask, &'static str>> {
    let rest = typed.strip_prefix(PROFILE)?;
    let (program, event) = match rest.split_once(",event=") {
        Some((program, event)) => (program, Some(event)),
        None => (rest, None),
    };
    let program = match program.strip_prefix('=') {
        Some(name) => Some(name),
        None if program.is_empty() => None,
        // Another name that begins so.
        None => return None,
    };
    let form = "write profile[=PROGRAM][,event=EVENT]";
    let is_empty = |name: Option<&str>| name.is_some_and(str::is_empty);
    if is_empty(program) || is_empty(event) {
        return Some(Err(form));
    }
    Some(Ok(ProfileTask { program: program.map(str::to_owned), event: event.map(str::to_owned) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_reads_what_display_writes() {
        for typed in ["profile", "profile=indexer", "profile=*,event=cycles", "profile,event=cpu_core/cycles/"] {
            assert_eq!(parse(typed).unwrap().unwrap().to_string(), typed);
        }
        assert!(parse("profile=").unwrap().is_err() && parse("profile,event=").unwrap().is_err());
        assert!(parse("profiler:start").is_none() && parse("read").is_none());
    }
}
