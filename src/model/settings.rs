//! Settings of the search for anomalies, and the verdict on a pattern under them.
//!
//! ALGORITHMS.md 9.4: the reference group is the fastest part `q` of a pattern's occurrences; an occurrence from the
//! threshold on is an anomaly.

/// How the limit of a pattern is found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThresholdRule {
    /// `s` times the longest of the reference group.
    #[default]
    Quotient,
    /// Median + 5 robust standard deviations (1.4826 times the median absolute deviation).
    Robust,
}

impl ThresholdRule {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            ThresholdRule::Quotient => "quotient",
            ThresholdRule::Robust => "robust",
        }
    }
}

/// Settings of the user.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Part of the occurrences that is the reference, in (0, 1].
    pub q: f64,
    /// Threshold, over 1.
    pub s: f64,
    /// How limits are found.
    pub limit: ThresholdRule,
}

impl Default for Settings {
    /// The values of the paper's figures.
    fn default() -> Self {
        Settings { q: 0.75, s: 2.0, limit: ThresholdRule::Quotient }
    }
}

/// Why a pattern's occurrences are looked at, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PatternVerdict {
    /// Its longest occurrence reaches the limit.
    Selected,
    /// It occurs too seldom for statistics.
    TooFew,
    /// No occurrence reaches the limit.
    Regular,
}

impl PatternVerdict {
    /// The reason, for people.
    pub fn reason(self) -> &'static str {
        match self {
            PatternVerdict::Selected => "selected",
            PatternVerdict::TooFew => "too few occurrences",
            PatternVerdict::Regular => "no occurrence reaches the limit",
        }
    }
}

/// Fewer executions of one population give no statistics: none of them is an anomaly.
pub const FEWEST_EXECUTIONS: usize = 10;
