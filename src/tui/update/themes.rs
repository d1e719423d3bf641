//! The theme in force: chosen, or suited to the terminal's background.

use crate::tui::app::App;
use crate::tui::background::Background;
use crate::tui::theme::Theme;

/// The built-in theme for a light or a dark background, unless the user has chosen one.
pub fn suit_background(app: &mut App, background: Background) {
    let suits = match background {
        Background::Light => "light",
        Background::Dark => "dark",
    };
    let chosen = app.options.theme.is_some() || app.theme.name != app.options.suits;
    let source = app.themes.iter().find(|t| t.name == suits);
    if let Some(Ok(theme)) = source.filter(|_| !chosen).map(|source| Theme::compile(source, app.options.depth)) {
        app.options.suits = suits;
        app.theme = theme;
    }
}

/// The theme after the one in force.
pub fn next_theme(app: &mut App) {
    let at = app.themes.iter().position(|t| t.name == app.theme.name).unwrap_or(0);
    take_theme(app, (at + 1) % app.themes.len().max(1));
}

/// Draw with the theme at this position.
pub fn take_theme(app: &mut App, at: usize) {
    let Some(source) = app.themes.get(at) else { return };
    match Theme::compile(source, app.options.depth) {
        Ok(theme) => {
            app.say(format!("theme {theme}"));
            app.theme = theme;
        }
        Err(error) => app.report_failure(error.to_string()),
    }
}
