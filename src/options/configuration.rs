//! The configuration file: defaults of the command line, so that an option that is typed takes precedence.
//!
//! In: `config.toml` in the configuration folder, if it exists. Out: clap's definition with these defaults, which
//! `--help` then shows. An error names the file, the line and the remedy. PRODUCT.md, "Configuration".

use super::ColorChoice;
use crate::session::{self, UsageError};
use crate::tui::key_map::{KeyError, KeyMap, KeySetting};
use crate::tui::theme;
use anyhow::Context;
use clap::builder::OsStr;
use etcetera::BaseStrategy;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use toml::Spanned;

/// The settings of a configuration file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    theme: Option<Spanned<String>>,
    color: Option<ColorChoice>,
    ascii: Option<bool>,
    mouse: Option<bool>,
    #[serde(default)]
    symbols: Vec<Spanned<PathBuf>>,
    #[serde(default)]
    keys: BTreeMap<String, Spanned<String>>,
}

/// The configuration of the user.
#[derive(Clone, Debug, Default)]
pub struct Configuration {
    /// Names of options without their dashes, with their default values.
    defaults: Vec<(&'static str, Vec<OsString>)>,
}

impl Configuration {
    /// The user's configuration; the empty one where there is no file, or none that may be
    /// read. A wrong setting is a [`UsageError`].
    pub fn load() -> anyhow::Result<Configuration> {
        let Ok(folders) = etcetera::choose_base_strategy() else { return Ok(Configuration::default()) };
        let path = folders.config_dir().join("whyslow/config.toml");
        match session::text_of(&path) {
            Ok(text) => Ok(Configuration::parse(&path, &text)?),
            // After `sudo -u` the home is that of another user, who may not share the configuration.
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => {
                Ok(Configuration::default())
            }
            Err(e) => Err(e).with_context(|| format!("{} cannot be read", path.display())),
        }
    }

    /// The text of the file at `path`. Relative paths in it begin at its folder.
    fn parse(path: &Path, text: &str) -> Result<Configuration, UsageError> {
        let wrong = |at: usize, why: &str| {
            let line = text[..at.min(text.len())].matches('\n').count() + 1;
            UsageError(format!("{}:{line}: {}", path.display(), why.replace('\n', " ")))
        };
        let settings: Settings =
            toml::from_str(text).map_err(|e| wrong(e.span().map_or(0, |span| span.start), e.message()))?;
        let folder = path.parent().unwrap_or(Path::new("."));
        let mut defaults: Vec<(&'static str, Vec<OsString>)> = Vec::new();
        if let Some(theme) = settings.theme {
            let (at, name) = (theme.span().start, theme.into_inner());
            let built_in = theme::built_in();
            let value = if built_in.iter().any(|theme| theme.name == name) {
                OsString::from(name)
            } else {
                folder.join(&name).into_os_string()
            };
            if !built_in.iter().any(|theme| value == *theme.name) && !Path::new(&value).is_file() {
                let names: Vec<&str> = built_in.iter().map(|theme| theme.name.as_str()).collect();
                let shown = Path::new(&value).display();
                let why = format!("theme: {shown} is no file; name a theme file or one of {}", names.join(", "));
                return Err(wrong(at, &why));
            }
            defaults.push(("theme", vec![value]));
        }
        if let Some(color) = settings.color {
            defaults.push(("color", vec![color.name().into()]));
        }
        for (option, value) in [("ascii", settings.ascii), ("mouse", settings.mouse)] {
            defaults.extend(value.map(|value| (option, vec![value.to_string().into()])));
        }
        let mut symbols = Vec::new();
        for given in settings.symbols {
            let (at, path) = (given.span().start, folder.join(given.into_inner()));
            if !path.is_dir() {
                let why = "no such folder; name the one that holds the traced programs";
                return Err(wrong(at, &format!("symbols: {}: {why}", path.display())));
            }
            symbols.push(path.into_os_string());
        }
        if !symbols.is_empty() {
            defaults.push(("symbols", symbols));
        }
        defaults.extend(keys(settings.keys, wrong)?.map(|keys| ("key", keys)));
        Ok(Configuration { defaults })
    }

    /// The definition of the command line with these defaults, in every command that has the option.
    pub fn applied(&self, definition: clap::Command) -> clap::Command {
        if self.defaults.is_empty() {
            return definition;
        }
        let commands: Vec<String> = definition.get_subcommands().map(|c| c.get_name().to_owned()).collect();
        let with_own = self.with_defaults(definition);
        commands.iter().fold(with_own, |all, name| all.mut_subcommand(name, |command| self.with_defaults(command)))
    }

    fn with_defaults(&self, mut command: clap::Command) -> clap::Command {
        for (option, values) in &self.defaults {
            let found = command.get_arguments().find(|arg| arg.get_long() == Some(option));
            if let Some(id) = found.map(|arg| arg.get_id().clone()) {
                let values: Vec<OsStr> = values.iter().map(|value| OsStr::from(value.clone())).collect();
                command = command.mut_arg(id, |arg| arg.default_values_os(values));
            }
        }
        command
    }
}

/// The values of `--key` for the table `keys`; none where it is empty.
fn keys(
    table: BTreeMap<String, Spanned<String>>,
    wrong: impl Fn(usize, &str) -> UsageError,
) -> Result<Option<Vec<OsString>>, UsageError> {
    let mut settings: Vec<KeySetting> = Vec::new();
    for (action, keys) in &table {
        let setting = KeySetting { action: action.clone(), keys: keys.get_ref().clone() };
        if let Err(error) = KeyMap::new(std::slice::from_ref(&setting))
            && !matches!(error, KeyError::Taken { .. })
        {
            return Err(wrong(keys.span().start, &format!("keys: {error}")));
        }
        settings.push(setting);
    }
    // Whether two actions have one key can be seen only in all of them.
    if let Err(error) = KeyMap::new(&settings) {
        let of_action = |name: &str| table.get(name).map(|keys| keys.span().start);
        let at = match &error {
            KeyError::Taken { action, .. } => of_action(action),
            _ => None,
        };
        return Err(wrong(at.unwrap_or(0), &format!("keys: {error}")));
    }
    let words = settings.iter().map(|s| OsString::from(format!("{}={}", s.action, s.keys)));
    Ok((!settings.is_empty()).then(|| words.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Configuration, String> {
        Configuration::parse(Path::new("/c/config.toml"), text).map_err(|e| e.to_string())
    }

    #[test]
    fn parse_names_file_line_and_remedy() {
        for (text, message) in [
            ("mouse = true\ncolour = \"never\"", "/c/config.toml:2: unknown field `colour`, expected one of `theme`"),
            ("\n\nascii = 1", "/c/config.toml:3: invalid type: integer `1`, expected a boolean"),
            ("color = \"sometimes\"", "/c/config.toml:1: unknown variant `sometimes`, expected one of `auto`"),
            ("theme = \"none-such\"", "/c/config.toml:1: theme: /c/none-such is no file; name a theme file or one of"),
            ("symbols = [\"/none/such\"]", "/c/config.toml:1: symbols: /none/such: no such folder"),
            ("theme =", "/c/config.toml:1: "),
            ("[keys]\nexprot = \"Z\"", "/c/config.toml:2: keys: no action `exprot`, did you mean `export`?"),
            ("[keys]\n\nexport = \"Hyper-e\"", "/c/config.toml:3: keys: no key `Hyper-e`"),
            ("[keys]\nexport = \"x\"", "/c/config.toml:2: keys: `x` of `export` is already the key of `swap`"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.starts_with(message) && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn parse_takes_every_setting() {
        let text = "theme = \"light\"\ncolor = \"always\"\nascii = true\nmouse = false\nsymbols = [\"/\"]\n\
                    [keys]\nexport = \"Z\"\n";
        let defaults = parse(text).unwrap().defaults;
        let texts: Vec<(&str, String)> =
            defaults.iter().map(|(name, values)| (*name, values[0].to_string_lossy().into_owned())).collect();
        let wanted = [
            ("theme", "light"),
            ("color", "always"),
            ("ascii", "true"),
            ("mouse", "false"),
            ("symbols", "/"),
            ("key", "export=Z"),
        ];
        assert_eq!(texts, wanted.map(|(name, value)| (name, value.to_owned())));
        assert!(parse("").unwrap().defaults.is_empty());
    }
}
