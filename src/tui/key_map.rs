//! The keys in force: the table of actions with the user's own keys.
//!
//! In: settings, each an action by its name in the palette and keys with blanks between them. Out: the rows by which
//! keys are understood and shown. A setting that names no action or no key, or a key that has another action in the
//! same pane, is refused. A pane's own actions take precedence over those of all panes.

use super::actions::ActionScope::{self, Any};
use super::actions::{Action, KeyBinding};
use super::key::KeyPress;
use super::key_bindings::TABLE;
use std::borrow::Cow;
use std::str::FromStr;

/// Keys that the user gives an action: `ACTION=KEYS`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySetting {
    /// Its name in the palette.
    pub action: String,
    /// Blanks between them; empty takes the action's keys away.
    pub keys: String,
}

/// The reason why a setting is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// No equals sign.
    #[error("write ACTION=KEYS, as in export=Z")]
    Form,
    /// There is no such action.
    #[error("no action `{0}`{1}; `?` and `:` in the interface list them")]
    Action(String, Suggestion),
    /// There is no such key.
    #[error("no key `{0}`; write keys as x, X, F2, Enter, Ctrl-l, Alt-x, Shift-Left, blanks between them")]
    Key(String),
    /// The key has another action.
    #[error("`{key}` of `{action}` is already the key of `{other}`; give one of them another key")]
    Taken {
        key: String,
        /// The action that is to have it.
        action: &'static str,
        /// The action that has it.
        other: &'static str,
    },
    /// Users leave the program or find the keys by this action.
    #[error("`{0}` needs a key")]
    Needed(&'static str),
}

/// The action with the nearest name, if one is near.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suggestion(Option<&'static str>);

impl std::fmt::Display for Suggestion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.map_or(Ok(()), |name| write!(f, ", did you mean `{name}`?"))
    }
}

impl FromStr for KeySetting {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<KeySetting, KeyError> {
        // `=` is a key, too; no name of an action contains it.
        let (action, keys) = text.split_once('=').ok_or(KeyError::Form)?;
        let setting = KeySetting { action: action.trim().to_owned(), keys: keys.trim().to_owned() };
        KeyMap::new(std::slice::from_ref(&setting)).map_or_else(
            // Another setting may free the key.
            |error| if matches!(error, KeyError::Taken { .. }) { Ok(()) } else { Err(error) },
            |_| Ok(()),
        )?;
        Ok(setting)
    }
}

/// Actions that must have a key.
const NEEDED: [Action; 3] = [Action::Quit, Action::Help, Action::Close];

/// The table of actions with the keys in force.
#[derive(Clone, Debug)]
pub struct KeyMap {
    rows: Vec<KeyBinding>,
}

impl Default for KeyMap {
    fn default() -> KeyMap {
        KeyMap { rows: TABLE.to_vec() }
    }
}

impl KeyMap {
    /// The table with these settings; the last one of an action counts.
    pub fn new(settings: &[KeySetting]) -> Result<KeyMap, KeyError> {
        let mut map = KeyMap::default();
        let mut changed = Vec::new();
        for setting in settings {
            let mut keys = Vec::new();
            for text in setting.keys.split_whitespace() {
                let key = KeyPress::parse(text).ok_or_else(|| KeyError::Key(text.to_owned()))?;
                keys.push(key.to_string());
            }
            let keys: Cow<'static, str> = Cow::Owned(keys.join(" "));
            let mut found = false;
            for row in map.rows.iter_mut().filter(|row| row.name == setting.action) {
                row.keys.clone_from(&keys);
                found = true;
                changed.push(row.action);
            }
            if !found {
                return Err(KeyError::Action(setting.action.clone(), nearest(&setting.action)));
            }
        }
        map.check(&changed)?;
        Ok(map)
    }

    /// Refuse keys of changed actions that mean another action, too, and needed actions without keys.
    fn check(&self, changed: &[Action]) -> Result<(), KeyError> {
        for row in self.rows.iter().filter(|row| changed.contains(&row.action)) {
            if row.keys.is_empty() && NEEDED.contains(&row.action) {
                return Err(KeyError::Needed(row.name));
            }
            let meets = |other: &&KeyBinding| {
                let dialogs = [ActionScope::Timeline, ActionScope::Overview];
                let both_panes = !dialogs.contains(&row.scope) && !dialogs.contains(&other.scope);
                other.scope == row.scope || (both_panes && (other.scope == Any || row.scope == Any))
            };
            for key in keys_of(row) {
                let others = self.rows.iter().filter(|other| other.action != row.action).filter(meets);
                if let Some(other) = others.into_iter().find(|other| keys_of(other).any(|k| k == key)) {
                    return Err(KeyError::Taken { key: key.to_owned(), action: row.name, other: other.name });
                }
            }
        }
        Ok(())
    }

    /// The rows, in the order of the help page.
    pub fn rows(&self) -> &[KeyBinding] {
        &self.rows
    }

    /// One row per action: the pane's own row if there is one.
    pub fn all(&self, scope: ActionScope) -> impl Iterator<Item = &KeyBinding> {
        self.rows.iter().filter(move |e| {
            let mut same = self.rows.iter().filter(|o| o.action == e.action);
            let own = same.clone().find(|o| o.scope == scope);
            own.or_else(|| same.next()).is_some_and(|o| o.scope == e.scope)
        })
    }

    /// The action of a key in a pane; the pane's own actions take precedence over those of all panes.
    pub fn bound(&self, key: KeyPress, scope: ActionScope) -> Option<Action> {
        let text = key.to_string();
        let has = |e: &&KeyBinding| keys_of(e).any(|k| k == text);
        let own = self.rows.iter().filter(|e| e.scope == scope).find(has);
        own.or_else(|| self.rows.iter().filter(|e| e.scope == Any).find(has)).map(|e| e.action)
    }
}

fn keys_of(row: &KeyBinding) -> impl Iterator<Item = &str> {
    row.keys.split(' ').filter(|key| !key.is_empty())
}

fn nearest(name: &str) -> Suggestion {
    let distances = TABLE.iter().map(|row| (strsim::osa_distance(name, row.name), row.name));
    Suggestion(
        distances.min().filter(|(distance, name)| *distance <= 2 && *distance < name.len()).map(|(_, name)| name),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(settings: &[&str]) -> Result<KeyMap, KeyError> {
        let parsed: Result<Vec<KeySetting>, KeyError> = settings.iter().map(|text| text.parse()).collect();
        KeyMap::new(&parsed?)
    }

    fn action(map: &KeyMap, key: &str, scope: ActionScope) -> Option<Action> {
        map.bound(KeyPress::parse(key).unwrap(), scope)
    }

    #[test]
    fn setting_replaces_the_keys_of_an_action_in_every_pane() {
        let map = map(&["export=Z Alt-e", "slow group=S", "swap="]).unwrap();
        assert_eq!(action(&map, "Z", ActionScope::Tree), Some(Action::Export));
        assert_eq!(action(&map, "Alt-e", ActionScope::Path), Some(Action::Export));
        assert_eq!(action(&map, "e", ActionScope::Tree), None);
        assert_eq!(action(&map, "x", ActionScope::Tree), None);
        for scope in [ActionScope::Tree, ActionScope::Histograms, ActionScope::Overview] {
            assert_eq!(action(&map, "S", scope), Some(Action::MakeSlow));
            assert_eq!(action(&map, "s", scope), None);
        }
    }

    #[test]
    fn settings_may_exchange_keys() {
        let map = map(&["export=D", "save database=e"]).unwrap();
        assert_eq!(action(&map, "D", ActionScope::Tree), Some(Action::Export));
        assert_eq!(action(&map, "e", ActionScope::Tree), Some(Action::SaveDatabase));
    }

    #[test]
    fn refused_setting_names_key_and_actions() {
        for (setting, message) in [
            ("export", "write ACTION=KEYS"),
            ("exprot=Z", "no action `exprot`, did you mean `export`?"),
            ("export=Hyper-e", "no key `Hyper-e`"),
            ("export=x", "`x` of `export` is already the key of `swap`"),
            ("export=s", "`s` of `export` is already the key of `slow group`"),
            ("quit=", "`quit` needs a key"),
        ] {
            let error = map(&[setting]).unwrap_err().to_string();
            assert!(error.starts_with(message), "{setting}: {error}");
        }
    }
}
