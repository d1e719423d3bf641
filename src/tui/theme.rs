//! Themes: from `themes/*.toml` (built in, or a user's file by path) to one style per scope.
//!
//! In: TOML text that people write, so every mistake is an error with the scope and the remedy. Out: a [`Theme`] with
//! a style for every [`StyleScope`], colours already fitted to what the terminal can show. A scope that the file leaves
//! out takes the style of the scope before its last dot, in the end `text` (`slow.strong` -> `slow` -> `text`).

use ratatui::style::{Color, Modifier, Style};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;

/// The purpose of a style. The names in theme files are in [`StyleScope::name`].
macro_rules! scopes {
    ($($name:ident $text:literal $doc:literal;)+) => {
        /// The purpose of a style.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum StyleScope { $(#[doc = $doc] $name,)+ }
        impl StyleScope {
            pub const ALL: &'static [StyleScope] = &[$(StyleScope::$name),+];
            /// Its name in theme files.
            pub fn name(self) -> &'static str { match self { $(StyleScope::$name => $text,)+ } }
        }
    };
}

scopes! {
    Text       "text"            "Ordinary text, and the background.";
    Dim        "text.dim"        "Less important: units, guides, axes.";
    Strong     "text.strong"     "More important: names under the cursor, column heads.";
    Title      "title"           "The program's name and the pane in front.";
    Rule       "rule"            "Lines between panes and tables.";
    Key        "key"             "Keys in the footer and on the help page.";
    Verdict    "verdict"         "The verdict, when it is confident.";
    Unsure     "verdict.unsure"  "The verdict, when it is not.";
    Warning    "warning"         "Data is lost or uncertain.";
    Error      "error"           "Something failed.";
    Cursor     "cursor"          "The line under the cursor.";
    Match      "match"           "Found by the search.";
    Selection  "selection"       "A selected range of a histogram.";
    Progress   "progress"        "Progress of the analysis.";
    Slow       "slow"            "The slow group.";
    Slow1      "slow.1"          "Slower, by one to two standard deviations.";
    Slow2      "slow.2"          "Slower, by two to three.";
    Slow3      "slow.3"          "Slower, by more than three.";
    SlowBar    "slow.bar"        "Bars of the slow group.";
    Fast       "fast"            "The fast group.";
    Fast1      "fast.1"          "Faster, by one to two standard deviations.";
    Fast2      "fast.2"          "Faster, by two to three.";
    Fast3      "fast.3"          "Faster, by more than three.";
    FastBar    "fast.bar"        "Bars of the fast group.";
    Outside    "outside"         "Bars of executions that a group's own filter excludes.";
    Same       "same"            "Neither slower nor faster by a standard deviation.";
    StateRunning "state.running" "Timeline: on a CPU.";
    StateRunnable "state.runnable" "Timeline: ready to run, not on a CPU.";
    StateInterrupted "state.interrupted" "Timeline: on a CPU that ran an interrupt handler.";
    StateDisk  "state.disk"      "Timeline: waits for a disk.";
    StateNetwork "state.network" "Timeline: waits for the network.";
    StateTimer "state.timer"     "Timeline: waits for a timer.";
    StateOther "state.other"     "Timeline: waits for something else.";
    StateUnknown "state.unknown" "Timeline: the recording does not show the state.";
}

/// How many colours the terminal shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ColourDepth {
    /// None: bold, underlined and reversed text only.
    Mono,
    /// The 16 that every terminal names.
    Ansi,
    /// 256 by number.
    Indexed,
    /// 24 bits.
    True,
}

impl ColourDepth {
    /// Colour depth from the environment. `NO_COLOR` (not empty) wins over everything, as <https://no-color.org> asks.
    pub fn detect(var: impl Fn(&str) -> Option<String>) -> ColourDepth {
        let is = |name: &str| var(name).filter(|v| !v.is_empty());
        if is("NO_COLOR").is_some() {
            return ColourDepth::Mono;
        }
        let term = is("TERM").unwrap_or_default();
        match is("COLORTERM").as_deref() {
            Some("truecolor" | "24bit") => ColourDepth::True,
            _ if term.is_empty() || term == "dumb" || term.starts_with("vt") => ColourDepth::Mono,
            _ if term.contains("direct") => ColourDepth::True,
            _ if term.contains("256") => ColourDepth::Indexed,
            _ => ColourDepth::Ansi,
        }
    }

    /// The built-in theme that suits it: on a light background, as far as the terminal reports one in `COLORFGBG`
    /// (`foreground;background`, by the numbers of the 16 colours), the light one.
    pub fn suits(self, var: impl Fn(&str) -> Option<String>) -> &'static str {
        let background = var("COLORFGBG").and_then(|v| v.rsplit(';').next().and_then(|n| n.parse::<u8>().ok()));
        match self {
            ColourDepth::Mono => "mono",
            ColourDepth::Ansi => "ansi",
            // White and light grey; of the bright colours all but the bright black.
            ColourDepth::Indexed | ColourDepth::True if matches!(background, Some(7 | 9..=15)) => "light",
            ColourDepth::Indexed | ColourDepth::True => "dark",
        }
    }

    /// The nearest colour that it shows.
    fn fit(self, color: Color) -> Color {
        match (self, color) {
            (ColourDepth::Mono, _) => Color::Reset,
            (ColourDepth::Indexed, Color::Rgb(r, g, b)) => Color::Indexed(cube(r, g, b)),
            (ColourDepth::Ansi, Color::Rgb(r, g, b)) => nearest_ansi(r, g, b),
            (ColourDepth::Ansi, Color::Indexed(_)) => Color::Reset,
            _ => color,
        }
    }
}

/// Number of the nearest colour in the 6x6x6 cube or the grey ramp of 256-colour terminals.
fn cube(r: u8, g: u8, b: u8) -> u8 {
    const LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    let level = |v: u8| (0..6u8).min_by_key(|i| LEVELS[usize::from(*i)].abs_diff(v)).unwrap_or(0);
    let far = |a: [u8; 3]| -> u32 { [r, g, b].iter().zip(a).map(|(x, y)| u32::from(x.abs_diff(y)).pow(2)).sum() };
    let at = [level(r), level(g), level(b)];
    let coloured = at.map(|i| LEVELS[usize::from(i)]);
    let mean = (u16::from(r) + u16::from(g) + u16::from(b)) / 3;
    let step = (mean.saturating_sub(3) / 10).min(23) as u8;
    let grey = 8 + 10 * step;
    if far([grey; 3]) < far(coloured) { 232 + step } else { 16 + 36 * at[0] + 6 * at[1] + at[2] }
}

const ANSI: [(&str, Color, [u8; 3]); 16] = [
    ("black", Color::Black, [0, 0, 0]),
    ("red", Color::Red, [205, 49, 49]),
    ("green", Color::Green, [13, 188, 121]),
    ("yellow", Color::Yellow, [200, 180, 30]),
    ("blue", Color::Blue, [36, 114, 200]),
    ("magenta", Color::Magenta, [188, 63, 188]),
    ("cyan", Color::Cyan, [17, 168, 205]),
    ("gray", Color::Gray, [200, 200, 200]),
    ("dark-gray", Color::DarkGray, [102, 102, 102]),
    ("light-red", Color::LightRed, [241, 76, 76]),
    ("light-green", Color::LightGreen, [35, 209, 139]),
    ("light-yellow", Color::LightYellow, [245, 245, 67]),
    ("light-blue", Color::LightBlue, [59, 142, 234]),
    ("light-magenta", Color::LightMagenta, [214, 112, 214]),
    ("light-cyan", Color::LightCyan, [41, 184, 219]),
    ("white", Color::White, [255, 255, 255]),
];

fn nearest_ansi(r: u8, g: u8, b: u8) -> Color {
    let far = |a: [u8; 3]| -> u32 { [r, g, b].iter().zip(a).map(|(x, y)| u32::from(x.abs_diff(y)).pow(2)).sum() };
    ANSI.iter().min_by_key(|(_, _, rgb)| far(*rgb)).map_or(Color::Reset, |(_, color, _)| *color)
}

/// The usual red, green and blue of a colour, for pictures; `None` for the terminal's own.
pub fn rgb(color: Color) -> Option<[u8; 3]> {
    match color {
        Color::Rgb(r, g, b) => Some([r, g, b]),
        Color::Indexed(i @ 16..=231) => {
            const LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];
            let i = i - 16;
            Some([i / 36, i / 6 % 6, i % 6].map(|v| LEVELS[usize::from(v)]))
        }
        Color::Indexed(i @ 232..) => Some([8 + 10 * (i - 232); 3]),
        Color::Indexed(i) => ANSI.get(usize::from(i)).map(|(_, _, rgb)| *rgb),
        named => ANSI.iter().find(|(_, color, _)| *color == named).map(|(_, _, rgb)| *rgb),
    }
}

/// A mistake in a theme file; the text has the place and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("theme {theme}: {what}")]
pub struct ThemeError {
    theme: String,
    what: String,
}

/// A theme as written: its name and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThemeSource {
    /// `dark`, or a path.
    pub name: String,
    /// TOML.
    pub text: String,
}

/// Those that come with the program, in the order of the key `t`.
pub fn built_in() -> Vec<ThemeSource> {
    [
        ("dark", include_str!("../../themes/dark.toml")),
        ("light", include_str!("../../themes/light.toml")),
        ("ansi", include_str!("../../themes/ansi.toml")),
        ("high-contrast", include_str!("../../themes/high-contrast.toml")),
        ("color-blind", include_str!("../../themes/color-blind.toml")),
        ("mono", include_str!("../../themes/mono.toml")),
    ]
    .map(|(name, text)| ThemeSource { name: name.into(), text: text.into() })
    .into()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ThemeFile {
    #[serde(default)]
    palette: BTreeMap<String, String>,
    scopes: BTreeMap<String, WrittenScope>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a colour, or a table of fg, bg, bold, dim, italic, underline, reverse")]
enum WrittenScope {
    Colour(String),
    Style(WrittenStyle),
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct WrittenStyle {
    fg: Option<String>,
    bg: Option<String>,
    bold: bool,
    dim: bool,
    italic: bool,
    underline: bool,
    reverse: bool,
}

/// One style per scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Theme {
    /// As in its source.
    pub name: String,
    styles: Vec<Style>,
}

impl Theme {
    /// Read a theme and fit its colours to the terminal.
    pub fn compile(source: &ThemeSource, depth: ColourDepth) -> Result<Theme, ThemeError> {
        let wrong = |what: String| ThemeError { theme: source.name.clone(), what };
        let file: ThemeFile =
            toml::from_str(&source.text).map_err(|e| wrong(e.to_string().trim_end().replace('\n', " ")))?;
        if let Some(unknown) = file.scopes.keys().find(|k| StyleScope::ALL.iter().all(|s| s.name() != *k)) {
            let known: Vec<&str> = StyleScope::ALL.iter().map(|s| s.name()).collect();
            return Err(wrong(format!("unknown scope {unknown}; the scopes are {}", known.join(", "))));
        }
        let mut styles = Vec::new();
        for scope in StyleScope::ALL {
            let mut name = scope.name();
            let written = loop {
                match (file.scopes.get(name), name.rsplit_once('.')) {
                    (Some(written), _) => break Some(written),
                    (None, Some((parent, _))) => name = parent,
                    (None, None) => break file.scopes.get(StyleScope::Text.name()),
                }
            };
            let colour = |text: &String| {
                let text = file.palette.get(text).unwrap_or(text);
                parse_colour(text).map(|c| depth.fit(c)).ok_or_else(|| {
                    wrong(format!(
                        "scope {name}: {text:?} is not a colour; write #rrggbb, a name of [palette], or one of \
                         default, black, red, ... light-cyan, white"
                    ))
                })
            };
            let mut style = Style::default();
            match written {
                None => {}
                Some(WrittenScope::Colour(fg)) => style.fg = Some(colour(fg)?),
                Some(WrittenScope::Style(s)) => {
                    style.fg = s.fg.as_ref().map(colour).transpose()?;
                    style.bg = s.bg.as_ref().map(colour).transpose()?;
                    for (set, modifier) in [
                        (s.bold, Modifier::BOLD),
                        (s.dim, Modifier::DIM),
                        (s.italic, Modifier::ITALIC),
                        (s.underline, Modifier::UNDERLINED),
                        (s.reverse, Modifier::REVERSED),
                    ] {
                        if set {
                            style.add_modifier |= modifier;
                        }
                    }
                }
            }
            styles.push(style);
        }
        Ok(Theme { name: source.name.clone(), styles })
    }

    /// The style of a scope.
    pub fn style(&self, scope: StyleScope) -> Style {
        self.styles.get(scope as usize).copied().unwrap_or_default()
    }

    /// The scope for a part of the difference: as its deviations say, but no stronger than its share of the whole
    /// deserves, so that the strongest colour is where the time is.
    pub fn of_difference(deviations: Option<f64>, share: f64) -> StyleScope {
        let most = match share.abs() {
            share if share >= 0.2 => f64::MAX,
            share if share >= 0.05 => 2.9,
            share if share >= 0.01 => 1.9,
            _ => 0.0,
        };
        Theme::of_deviations(deviations.map(|d| d.clamp(-most, most)))
    }

    /// The scope for a delay with this share of all delay: the strongest where the time is, dim below a hundredth.
    pub fn of_share(share: f64) -> StyleScope {
        match Theme::of_difference(Some(f64::MAX), share) {
            StyleScope::Same => StyleScope::Dim,
            scope => scope,
        }
    }

    /// The scope for a difference of this many deviations: neutral below 1, full from 3 (ALGORITHMS.md 7.3).
    pub fn of_deviations(deviations: Option<f64>) -> StyleScope {
        match deviations {
            Some(d) if d >= 3.0 => StyleScope::Slow3,
            Some(d) if d >= 2.0 => StyleScope::Slow2,
            Some(d) if d >= 1.0 => StyleScope::Slow1,
            Some(d) if d <= -3.0 => StyleScope::Fast3,
            Some(d) if d <= -2.0 => StyleScope::Fast2,
            Some(d) if d <= -1.0 => StyleScope::Fast1,
            _ => StyleScope::Same,
        }
    }
}

impl fmt::Display for Theme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

fn parse_colour(text: &str) -> Option<Color> {
    if text == "default" {
        return Some(Color::Reset);
    }
    if let Some(hex) = text.strip_prefix('#').filter(|h| h.len() == 6 && h.is_ascii()) {
        let part = |at: usize| hex.get(at..at + 2).and_then(|h| u8::from_str_radix(h, 16).ok());
        return Some(Color::Rgb(part(0)?, part(2)?, part(4)?));
    }
    ANSI.iter().find(|(name, _, _)| *name == text).map(|(_, color, _)| *color)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> ThemeSource {
        ThemeSource { name: "t".into(), text: text.into() }
    }

    #[test]
    fn those_built_in_compile_at_every_depth() {
        for s in built_in() {
            for depth in [ColourDepth::Mono, ColourDepth::Ansi, ColourDepth::Indexed, ColourDepth::True] {
                Theme::compile(&s, depth).unwrap();
            }
        }
    }

    #[test]
    fn scopes_fall_back_to_the_part_before_the_dot_and_then_to_text() {
        let t = Theme::compile(
            &source("[scopes]\ntext = 'white'\nslow = 'red'\n'slow.3' = 'light-red'"),
            ColourDepth::Ansi,
        )
        .unwrap();
        assert_eq!(t.style(StyleScope::Slow3).fg, Some(Color::LightRed));
        assert_eq!(t.style(StyleScope::SlowBar).fg, Some(Color::Red));
        assert_eq!(t.style(StyleScope::Rule).fg, Some(Color::White));
    }

    #[test]
    fn mistakes_are_named() {
        let error = |text: &str| Theme::compile(&source(text), ColourDepth::True).unwrap_err().to_string();
        assert!(error("[scopes]\ntexd = 'red'").contains("unknown scope texd"));
        assert!(error("[scopes]\ntext = '#12345'").contains("is not a colour"));
        assert!(error("[scopes]\ntext = { foreground = 'red' }").contains("expected a colour"));
    }

    #[test]
    fn the_environment_decides_how_many_colours() {
        let depth = |pairs: &[(&str, &str)]| {
            ColourDepth::detect(|name| pairs.iter().find(|(n, _)| *n == name).map(|(_, v)| v.to_string()))
        };
        assert_eq!(
            depth(&[("TERM", "xterm-256color"), ("NO_COLOR", "1"), ("COLORTERM", "truecolor")]),
            ColourDepth::Mono
        );
        assert_eq!(depth(&[("TERM", "xterm-256color"), ("NO_COLOR", "")]), ColourDepth::Indexed);
        assert_eq!(depth(&[("TERM", "screen"), ("COLORTERM", "truecolor")]), ColourDepth::True);
        assert_eq!(depth(&[("TERM", "linux")]), ColourDepth::Ansi);
        assert_eq!(depth(&[]), ColourDepth::Mono);
    }

    #[test]
    fn the_ground_decides_between_dark_and_light() {
        let suits = |depth: ColourDepth, value: Option<&str>| depth.suits(|_| value.map(str::to_owned));
        assert_eq!(
            (suits(ColourDepth::True, Some("0;15")), suits(ColourDepth::Indexed, Some("0;default;7"))),
            ("light", "light")
        );
        assert_eq!((suits(ColourDepth::True, Some("15;0")), suits(ColourDepth::True, Some("x"))), ("dark", "dark"));
        assert_eq!((suits(ColourDepth::True, None), suits(ColourDepth::Ansi, Some("0;15"))), ("dark", "ansi"));
    }

    #[test]
    fn fewer_colours_take_the_nearest() {
        assert_eq!(ColourDepth::Indexed.fit(Color::Rgb(255, 0, 0)), Color::Indexed(196));
        assert_eq!(ColourDepth::Indexed.fit(Color::Rgb(118, 118, 118)), Color::Indexed(243));
        assert_eq!(ColourDepth::Ansi.fit(Color::Rgb(240, 80, 80)), Color::LightRed);
    }
}
