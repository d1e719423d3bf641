//! Themes by figures: contrast ratios (WCAG 2.2, 1.4.3), and distances of colours as people without one kind of cones
//! see them (the matrices of Machado, Oliveira and Fernandes 2009, severity 1; distances in CIE Lab 1976).

use ratatui::style::{Color, Style};
use whyslow::parts::tui::theme::{ColourDepth, StyleScope, Theme, built_in};

type Channels = [f64; 3];

const PROTANOPIA: [Channels; 3] =
    [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]];
const DEUTERANOPIA: [Channels; 3] =
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]];
const TRITANOPIA: [Channels; 3] =
    [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]];
const USUAL: [Channels; 3] = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];

const STATES: [StyleScope; 8] = [
    StyleScope::StateRunning,
    StyleScope::StateRunnable,
    StyleScope::StateInterrupted,
    StyleScope::StateDisk,
    StyleScope::StateNetwork,
    StyleScope::StateTimer,
    StyleScope::StateOther,
    StyleScope::StateUnknown,
];

fn theme(name: &str) -> Theme {
    let source = built_in().into_iter().find(|theme| theme.name == name).unwrap();
    Theme::compile(&source, ColourDepth::True).unwrap()
}

/// Red, green and blue as amounts of light, 0 to 1.
fn linear(colour: Color) -> Channels {
    let Color::Rgb(r, g, b) = colour else { panic!("{colour} depends on the terminal") };
    [r, g, b].map(|byte| {
        let part = f64::from(byte) / 255.0;
        if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
    })
}

fn contrast(a: Color, b: Color) -> f64 {
    let luminance = |colour| {
        let [r, g, b] = linear(colour);
        0.2126 * r + 0.7152 * g + 0.0722 * b
    };
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

/// Lightness and the two differences of colours, for eyes with this matrix.
fn lab(colour: Color, eyes: &[Channels; 3]) -> Channels {
    let light = linear(colour);
    let seen = eyes.map(|row| row.iter().zip(light).map(|(m, l)| m * l).sum::<f64>().clamp(0.0, 1.0));
    let [r, g, b] = seen;
    let x = (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.95047;
    let y = 0.2126 * r + 0.7152 * g + 0.0722 * b;
    let z = (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.08883;
    let [x, y, z] = [x, y, z].map(|t| if t > 0.008856 { t.cbrt() } else { 7.787 * t + 16.0 / 116.0 });
    [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
}

/// The distance of two colours for the eyes to which they look most alike.
fn distance(a: Color, b: Color) -> f64 {
    let for_eyes = |eyes: &[Channels; 3]| {
        let (a, b) = (lab(a, eyes), lab(b, eyes));
        a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
    };
    [USUAL, PROTANOPIA, DEUTERANOPIA, TRITANOPIA].iter().map(for_eyes).fold(f64::MAX, f64::min)
}

fn ground(theme: &Theme, style: Style) -> Color {
    style.bg.or(theme.style(StyleScope::Text).bg).unwrap()
}

/// Lines, bars and states: shapes, not text.
fn is_shape(scope: StyleScope) -> bool {
    matches!(scope, StyleScope::Rule | StyleScope::SlowBar | StyleScope::FastBar | StyleScope::Outside)
        || STATES.contains(&scope)
}

fn check_contrast(name: &str, text: f64, shapes: f64) {
    let theme = theme(name);
    let cursor = theme.style(StyleScope::Cursor).bg.unwrap();
    for &scope in StyleScope::ALL {
        let style = theme.style(scope);
        let Some(fg) = style.fg else { continue };
        let least = if is_shape(scope) { shapes } else { text };
        let ratio = contrast(fg, ground(&theme, style));
        assert!(ratio >= least, "{name}: {} has {ratio:.1}:1, not {least}:1", scope.name());
        // The cursor's line keeps the colours of its texts.
        let below = contrast(fg, cursor);
        let marked = style.bg.is_some() || is_shape(scope) || below >= least.min(4.5);
        assert!(marked, "{name}: {} under the cursor has {below:.1}:1", scope.name());
    }
}

#[test]
fn high_contrast_theme_has_seven_to_one_for_text() {
    check_contrast("high-contrast", 7.0, 4.5);
}

#[test]
fn color_blind_theme_has_readable_text() {
    check_contrast("color-blind", 4.5, 3.0);
}

#[test]
fn color_blind_theme_separates_groups_and_states_for_all_eyes() {
    let theme = theme("color-blind");
    let colour = |scope| theme.style(scope).fg.unwrap();
    for (slow, fast) in [
        (StyleScope::Slow, StyleScope::Fast),
        (StyleScope::Slow3, StyleScope::Fast3),
        (StyleScope::SlowBar, StyleScope::FastBar),
    ] {
        let distance = distance(colour(slow), colour(fast));
        assert!(distance >= 30.0, "{} and {}: {distance:.1}", slow.name(), fast.name());
    }
    for (at, &one) in STATES.iter().enumerate() {
        for &other in &STATES[..at] {
            let distance = distance(colour(one), colour(other));
            assert!(distance >= 20.0, "{} and {}: {distance:.1}", one.name(), other.name());
        }
    }
}

#[test]
fn distance_finds_red_and_green_alike() {
    let (red, green) = (Color::Rgb(170, 80, 0), Color::Rgb(110, 120, 0));
    assert!(distance(red, green) < 15.0 && distance(Color::Rgb(255, 158, 61), Color::Rgb(86, 180, 233)) > 30.0);
}
