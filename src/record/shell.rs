//! Command lines as values, printed in the form that a POSIX shell reads back.

use std::borrow::Cow;
use std::fmt;

/// An option that would pass this column begins a new line.
const WIDTH: usize = 100;

/// A program and its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShellCommand(Vec<String>);

impl ShellCommand {
    /// A command of these words, the program first.
    pub fn new<W: Into<String>>(words: impl IntoIterator<Item = W>) -> ShellCommand {
        ShellCommand(words.into_iter().map(Into::into).collect())
    }

    /// This command with another one at its end, which it runs.
    pub fn around(self, inner: ShellCommand) -> ShellCommand {
        self.with(["--"]).with(inner.0)
    }

    /// The same command with more words at its end.
    pub fn with<W: Into<String>>(mut self, words: impl IntoIterator<Item = W>) -> ShellCommand {
        self.0.extend(words.into_iter().map(Into::into));
        self
    }
}

/// The alternate form (`{:#}`) breaks long lines before options.
impl fmt::Display for ShellCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut column = 0;
        for (i, word) in self.0.iter().enumerate() {
            let word = quoted(word);
            let wraps = f.alternate() && word.starts_with('-') && column + word.len() > WIDTH;
            let space = match (i, wraps) {
                (0, _) => "",
                (_, false) => " ",
                (_, true) => " \\\n  ",
            };
            column = if wraps { 2 } else { column + space.len() } + word.len();
            write!(f, "{space}{word}")?;
        }
        Ok(())
    }
}

/// The word, in quotes if a POSIX shell would read it differently without.
pub fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c));
    if is_plain && !word.is_empty() {
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
        let wrapped = format!("{long:#}");
        assert!(wrapped.lines().count() > 2 && wrapped.lines().all(|line| line.len() < WIDTH + 10));
        assert_eq!(wrapped.replace(" \\\n  ", " "), long.to_string());
    }
}
