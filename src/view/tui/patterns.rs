//! Patterns, anomalies and paths as the panes 3 and 4 show them: who is source or victim of what, which anomalies are
//! listed in which order, and where the cursors are.
//!
//! In: [`Anomalies`], replaced whole whenever q or s change. Out: [`Found`], with what each anomaly is worked out once
//! (linear in the steps of all paths), and the [`List`] of those that show. What the user pointed at is found again by
//! name: pattern, place and beginning of an anomaly.

use super::app::{Busy, Search};
use crate::analysis::patterns::measure::Settings;
use crate::base::notice::Notices;
use crate::base::time::Ns;
use crate::model::pattern::{Anomalies, Anomaly, Stream};
use crate::model::propagation::Step;
use crate::view::anomalies::rule;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What an anomaly is to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// So many other anomalies come of it.
    Source(u32),
    /// Late by itself; nobody is known to have waited for it.
    Alone,
    /// It waited for what began with this anomaly.
    Victim(u32),
    /// A wait that nothing recorded explains.
    Unexplained,
}

/// What mining found under some settings.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// All of it.
    pub anomalies: Anomalies,
    /// What is lost or unsure.
    pub notices: Notices,
    /// By anomaly: what it is to others.
    pub roles: Vec<Role>,
    /// By anomaly: the first path that it is on, and its step there.
    pub places: Vec<Option<(usize, usize)>>,
}

impl Found {
    /// Work out what each anomaly is.
    pub fn new(anomalies: Anomalies, notices: Notices) -> Found {
        let unknown = |a: &Anomaly| if a.source { Role::Alone } else { Role::Unexplained };
        let mut roles: Vec<Role> = anomalies.anomalies.iter().map(unknown).collect();
        let mut places = vec![None; roles.len()];
        // The paths of one source stand together.
        let of_source = anomalies.paths.chunk_by(|a, b| a.steps.first() == b.steps.first());
        let mut first = 0;
        for paths in of_source {
            let mut victims: BTreeSet<u32> = BTreeSet::new();
            let source = paths.first().and_then(|p| p.steps.first()).map(|s| s.anomaly);
            for (path, at) in paths.iter().zip(first..) {
                for (step, s) in path.steps.iter().enumerate() {
                    if let Some(place) = places.get_mut(s.anomaly as usize) {
                        place.get_or_insert((at, step));
                    }
                    victims.extend(Some(s.anomaly).filter(|a| Some(*a) != source));
                }
            }
            first += paths.len();
            let Some(source) = source else { continue };
            for victim in &victims {
                if let Some(role @ Role::Unexplained) = roles.get_mut(*victim as usize) {
                    *role = Role::Victim(source);
                }
            }
            if let Some(role) = roles.get_mut(source as usize).filter(|_| !victims.is_empty()) {
                *role = Role::Source(victims.len() as u32);
            }
        }
        Found { anomalies, notices, roles, places }
    }

    /// An anomaly.
    pub fn get(&self, at: u32) -> Option<&Anomaly> {
        self.anomalies.anomalies.get(at as usize)
    }

    /// Rank or thread of a stream, as people call it.
    pub fn place(&self, stream: u32) -> String {
        let stream = self.anomalies.streams.get(stream as usize);
        match stream {
            Some(stream) if !stream.label.is_empty() => stream.label.clone(),
            Some(Stream { rank: Some(rank), .. }) => format!("rank {rank}"),
            Some(stream) => stream.name.clone(),
            None => String::new(),
        }
    }

    /// What an anomaly is to others, in words.
    pub fn role(&self, at: u32) -> String {
        let source = if self.is_noise(at) { "noise" } else { "source" };
        match self.roles.get(at as usize) {
            Some(Role::Source(1)) => format!("{source}, 1 victim"),
            Some(Role::Source(n)) => format!("{source}, {n} victims"),
            Some(Role::Alone) => format!("{source}, alone"),
            Some(Role::Victim(source)) => {
                let place = self.get(*source).map_or(String::new(), |s| self.place(s.stream));
                format!("victim of {place}")
            }
            Some(Role::Unexplained) | None => "unexplained".into(),
        }
    }

    /// What took too long in it, and in which pattern.
    pub fn what(&self, anomaly: &Anomaly) -> String {
        let worst = anomaly.responsible.iter().max_by_key(|r| (r.excess_ns, Reverse(r.local.start)));
        let what = worst.map_or("", |r| r.what.as_str());
        let others = match anomaly.responsible.len() {
            0 | 1 => String::new(),
            n => format!(" and {} more", n - 1),
        };
        format!("{what}{others}, in {}", self.pattern(anomaly))
    }

    /// The pattern of an anomaly.
    pub fn pattern(&self, anomaly: &Anomaly) -> &str {
        anomaly.pattern.and_then(|p| self.anomalies.patterns.get(p as usize)).map_or("", |p| p.name.as_str())
    }

    /// An anomaly is the first step of a path and noise of the system.
    fn is_noise(&self, at: u32) -> bool {
        let place = self.places.get(at as usize).copied().flatten();
        place.and_then(|(path, _)| self.step(path, 0)).is_some_and(|s| s.anomaly == at && s.noise.is_some())
    }

    /// A step of a path.
    pub fn step(&self, path: usize, step: usize) -> Option<&Step> {
        self.anomalies.paths.get(path)?.steps.get(step)
    }

    /// Something that names an anomaly under any settings.
    fn name(&self, at: u32) -> Option<Name> {
        let anomaly = self.get(at)?;
        Some((self.pattern(anomaly).to_owned(), anomaly.stream, anomaly.span.start))
    }

    /// The text in which filters and searches look.
    fn text(&self, at: u32) -> String {
        let Some(anomaly) = self.get(at) else { return String::new() };
        format!("{} {} {}", self.place(anomaly.stream), self.role(at), self.what(anomaly)).to_lowercase()
    }
}

type Name = (String, u32, Ns);

/// Order of the list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Most time too much first.
    #[default]
    Extra,
    /// The furthest over its reference first.
    Factor,
    /// In order of time.
    Time,
    /// By rank or thread.
    Place,
    /// By pattern.
    Pattern,
}

impl Order {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Order::Extra => "extra time",
            Order::Factor => "factor",
            Order::Time => "time",
            Order::Place => "place",
            Order::Pattern => "pattern",
        }
    }

    /// The one after it.
    pub fn next(self) -> Order {
        match self {
            Order::Extra => Order::Factor,
            Order::Factor => Order::Time,
            Order::Time => Order::Place,
            Order::Place => Order::Pattern,
            Order::Pattern => Order::Extra,
        }
    }
}

/// State of the anomaly list.
#[derive(Clone, Debug, Default)]
pub struct List {
    /// Anomalies shown, in order.
    pub visible: Vec<u32>,
    /// The row under the cursor.
    pub row: usize,
    /// The first row shown.
    pub offset: usize,
    /// Order.
    pub order: Order,
    /// Words that must all occur; empty: all anomalies.
    pub filter: String,
    /// The last search; its matches are anomalies.
    pub search: Search,
}

impl List {
    /// Choose and order what shows.
    pub fn rebuild(&mut self, found: &Found) {
        let words: Vec<String> = self.filter.split_whitespace().map(str::to_lowercase).collect();
        let all = 0..found.anomalies.anomalies.len() as u32;
        let fits = |at: &u32| {
            words.is_empty() || {
                let text = found.text(*at);
                words.iter().all(|w| text.contains(w))
            }
        };
        self.visible = all.filter(fits).collect();
        let of = |at: &u32| found.get(*at);
        match self.order {
            // As they come.
            Order::Extra => {}
            Order::Factor => {
                let factor = |at: &u32| of(at).map_or(0.0, |a| a.factor);
                self.visible.sort_by(|a, b| factor(b).total_cmp(&factor(a)).then(a.cmp(b)));
            }
            Order::Time => self.visible.sort_by_key(|at| (of(at).map(|a| a.span.start), *at)),
            Order::Place => self.visible.sort_by_key(|at| (of(at).map(|a| (a.stream, a.span.start)), *at)),
            Order::Pattern => {
                self.visible.sort_by_key(|at| (of(at).map_or("", |a| found.pattern(a)), *at));
            }
        }
        let text = std::mem::take(&mut self.search.text);
        self.find(found, text);
    }

    /// Search a text among those that show.
    pub fn find(&mut self, found: &Found, text: String) {
        let wanted = text.to_lowercase();
        let fits = |at: &&u32| found.text(**at).contains(&wanted);
        let matches = if text.is_empty() { Vec::new() } else { self.visible.iter().filter(fits).copied().collect() };
        self.search = Search { text, matches };
    }

    /// The anomaly under the cursor.
    pub fn here(&self) -> Option<u32> {
        self.visible.get(self.row).copied()
    }

    /// Put the cursor on an anomaly, if it shows.
    pub fn go_to(&mut self, at: u32) -> bool {
        let row = self.visible.iter().position(|v| *v == at);
        self.row = row.unwrap_or(self.row);
        row.is_some()
    }
}

/// State of the path pane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathPane {
    /// Position of the path.
    pub path: usize,
    /// The step under the cursor.
    pub step: usize,
    /// The first step shown.
    pub offset: usize,
}

/// Everything about patterns on the screen.
#[derive(Clone, Debug, Default)]
pub struct Patterns {
    /// q, s and how limits are found, as asked.
    pub settings: Settings,
    /// What was found under the settings before, or these.
    pub found: Option<Arc<Found>>,
    /// Mining, or judging anew.
    pub busy: Option<Busy>,
    /// Why there is nothing.
    pub failure: Option<String>,
    /// The anomaly list.
    pub list: List,
    /// The path.
    pub path: PathPane,
}

impl Patterns {
    /// Take a new result; cursors go where they were, by name.
    pub fn replace(&mut self, found: Arc<Found>) {
        let old = self.found.take();
        let listed = old.as_ref().and_then(|old| old.name(self.list.here()?));
        let step = old.as_ref().and_then(|old| old.name(old.step(self.path.path, self.path.step)?.anomaly));
        let search =
            |name: &Name| (0..found.anomalies.anomalies.len() as u32).find(|at| found.name(*at).as_ref() == Some(name));
        let (listed, step) = (listed.as_ref().and_then(search), step.as_ref().and_then(search));
        self.list.rebuild(&found);
        if !listed.is_some_and(|at| self.list.go_to(at)) {
            self.list.row = 0;
        }
        let place = step.and_then(|at| *found.places.get(at as usize)?);
        self.path = place.map_or(PathPane::default(), |(path, step)| PathPane { path, step, offset: 0 });
        self.found = Some(found);
    }

    /// The settings in words: `q 0.75, s 2`, or that they do not count.
    pub fn rule(&self) -> String {
        rule(self.settings.limit, self.settings.q, self.settings.s)
    }

    /// Position of the selected path, where there is one.
    pub fn selected(&self) -> Option<(&Arc<Found>, usize)> {
        let found = self.found.as_ref()?;
        (self.path.path < found.anomalies.paths.len()).then_some((found, self.path.path))
    }
}
