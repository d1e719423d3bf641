//! The recording or label that is the fast side, typed in a line.

use super::prompt::{Prompt, PromptPurpose};
use crate::tui::app::App;
use crate::tui::job::Job;
use crate::tui::update::groups::can_regroup;

static BASELINE: PromptPurpose = PromptPurpose {
    label: |_| "compare with (recording or label; empty: none) ",
    typed: None,
    next: None,
    entered: |app, text| set(app, text.trim()),
};

/// Ask for it.
pub fn open(app: &mut App) {
    if can_regroup(app) {
        app.open(Prompt::new(&BASELINE, app.baseline.clone().unwrap_or_default()));
    }
}

/// Compare with a recording or label as the fast side; with none where the text is empty.
fn set(app: &mut App, text: &str) {
    let baseline = (!text.is_empty()).then(|| text.to_owned());
    if baseline == app.baseline {
        return;
    }
    let task = app.task().map(str::to_owned);
    app.begin(Job::SetBaseline { baseline, task })
}
