//! Command lines: as values, and as a user would type them.

use std::borrow::Cow;
use std::fmt;

/// Columns of a line before the next option begins a new line.
const WIDTH: usize = 100;

/// A program and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellCommand(Vec<String>);

impl ShellCommand {
    /// A line of words, the program first.
    pub fn new<W: Into<String>>(words: impl IntoIterator<Item = W>) -> ShellCommand {
        ShellCommand(words.into_iter().map(Into::into).collect())
    }

    /// The same with more words.
    pub fn with<W: Into<String>>(mut self, words: impl IntoIterator<Item = W>) -> ShellCommand {
        self.0.extend(words.into_iter().map(Into::into));
        self
    }

    /// The program's name.
    pub fn program(&self) -> &str {
        self.0.first().map_or("", |word| word)
    }
}

/// The alternate form (`{:#}`) breaks long lines before options.
impl fmt::Display for ShellCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut column = 0;
        for (i, word) in self.0.iter().enumerate() {
            let word = quoted(word);
            let full = f.alternate() && word.starts_with('-') && column + word.len() > WIDTH;
            let space = match (i, full) {
                (0, _) => "",
                (_, false) => " ",
                (_, true) => " \\\n  ",
            };
            column = if full { 2 } else { column + space.len() } + word.len();
            write!(f, "{space}{word}")?;
        }
        Ok(())
    }
}

/// A word in quotes if a POSIX shell needs them.
pub fn quoted(word: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return Cow::Borrowed(word);
    }
    Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_command_is_read_back_by_a_shell() {
        let words = ["perf", "-e", "irq:*", "it's", "", "a b", "$(x)", "id != 2", "plain-1.2"];
        let line = ShellCommand::new(words);
        let script = format!("for word in {line}; do printf '%s\\n' \"$word\"; done");
        let printed = std::process::Command::new("sh").arg("-c").arg(script).output().unwrap();
        assert_eq!(String::from_utf8(printed.stdout).unwrap().lines().collect::<Vec<_>>(), words);
        let long = ShellCommand::new(std::iter::repeat_n("--option", 30));
        let folded = format!("{long:#}");
        assert!(folded.lines().count() > 2 && folded.lines().all(|line| line.len() < WIDTH + 10));
        assert_eq!(folded.replace(" \\\n  ", " "), long.to_string());
    }
}
