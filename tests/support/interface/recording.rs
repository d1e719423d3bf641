//! The interface over a recording of the repository, with the work behind it that the program has.

use super::Session;
use std::path::Path;
use std::sync::Arc;
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::command::backend;
use whyslow::parts::compare::ComparisonRequest;
use whyslow::parts::input::Argument;
use whyslow::parts::tui::UiOptions;
use whyslow::parts::tui::app::App;
use whyslow::parts::tui::runner::Runner;
use whyslow::parts::tui::theme::ColourDepth;
use whyslow::parts::tui::update;

impl Session {
    /// A recording below `fixtures`, with the symbols of a folder there and no others, and with what a user sees of it
    /// first.
    #[allow(dead_code)]
    pub fn recording(trace: &str, symbols: &str, (columns, lines): (u16, u16)) -> Session {
        // Relative, since a message may show it.
        let fixtures = Path::new("fixtures");
        let trace_argument = Argument::parse(fixtures.join(trace));
        let (backend, first) = backend(trace_argument, &fixtures.join(symbols), &Ctx::new(1)).unwrap();
        let depth = ColourDepth::True;
        let suits = depth.suits(|_| None);
        let options = UiOptions { theme: None, suits, depth, ascii: false, mouse: false, keys: Arc::default() };
        let app = App::new(trace.to_owned(), ComparisonRequest::default(), options, (columns, lines)).unwrap();
        let runner = Runner::new(backend);
        let (copied, exported) = (Vec::new(), Arc::default());
        let mut session = Session { app, copied, ended: false, kept: 0, runner, exported, known: None };
        let effects = update::start(&mut session.app, first);
        session.perform(effects);
        session
    }
}
