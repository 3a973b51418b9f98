//! Pieces of drawings: shapes and words in SVG, with colours by the name of a class.

use std::fmt::{self, Display, Formatter, Write};

use crate::Escaped;

/// A rectangle of a drawing with a colour's class and a tooltip.
#[derive(Clone, Copy, Debug)]
pub struct Rect<'a> {
    /// The class that has its colour.
    pub class: &'a str,
    /// Its left edge, in units of the drawing, like all fields that follow.
    pub x: f64,
    /// Its upper edge.
    pub y: f64,
    /// Its width.
    pub width: f64,
    /// Its height.
    pub height: f64,
    /// Its tooltip; [`Rect`] escapes it.
    pub title: &'a str,
}

impl Display for Rect<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { class, x, y, width, height, title } = self;
        write!(
            f,
            "<rect class=\"{class}\" x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" \
             height=\"{height:.2}\"><title>{}</title></rect>",
            Escaped(title)
        )
    }
}

/// Writes a word of a drawing, anchored at `start`, `middle` or `end`.
///
/// # Errors
/// Returns the writer's error; writing to a string never fails.
pub fn word(out: &mut String, (x, y): (f64, f64), anchor: &str, text: &str) -> fmt::Result {
    writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>",
        Escaped(text)
    )
}

/// Returns the maximum width of a word, with its margin: on a narrow page drawings shrink and words do not.
#[must_use]
pub fn word_width(text: &str) -> f64 {
    text.chars().count() as f64 * 12.0 + 8.0
}

/// Writes a line of a drawing.
///
/// # Errors
/// Returns the writer's error; writing to a string never fails.
pub fn line(out: &mut String, class: &str, from: (f64, f64), to: (f64, f64)) -> fmt::Result {
    let ((x1, y1), (x2, y2)) = (from, to);
    writeln!(
        out,
        "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
    )
}

/// Opens a drawing of this size, which shrinks with the page.
///
/// # Errors
/// Returns the writer's error; writing to a string never fails.
pub fn open(out: &mut String, width: f64, height: f64, label: &str) -> fmt::Result {
    writeln!(
        out,
        "<div class=\"wide\"><svg viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" \
         aria-label=\"{}\">",
        Escaped(label)
    )
}

/// Closes a drawing.
///
/// # Errors
/// Returns the writer's error; writing to a string never fails.
pub fn close(out: &mut String) -> fmt::Result {
    out.write_str("</svg></div>\n")
}

/// Writes a legend of classes and their names.
///
/// # Errors
/// Returns the writer's error; writing to a string never fails.
pub fn legend(out: &mut String, entries: &[(&str, &str)]) -> fmt::Result {
    out.write_str("<p class=\"legend\">")?;
    for (class, name) in entries {
        write!(out, "<span><i class=\"{class}\"></i>{}</span>", Escaped(name))?;
    }
    out.write_str("</p>\n")
}

/// Returns about `about` round times from `from` to `to`: 1, 2 or 5 times a power of ten nanoseconds apart.
pub fn round_times(from_ns: u64, to_ns: u64, about: u64) -> impl Iterator<Item = u64> {
    let wanted = (to_ns.saturating_sub(from_ns) / about.max(1)).max(1);
    let power = 10_u64.pow(wanted.ilog10());
    let factor = [1, 2, 5, 10].into_iter().find(|factor| factor * power >= wanted).unwrap_or(10);
    let step = power.saturating_mul(factor);
    let first = from_ns.div_ceil(step);
    (first..=to_ns / step).map(move |number| number * step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_within() {
        assert_eq!(round_times(0, 100, 5).collect::<Vec<_>>(), [0, 20, 40, 60, 80, 100]);
        assert_eq!(round_times(1_001, 3_999, 3).collect::<Vec<_>>(), [2_000, 3_000]);
        assert_eq!(round_times(7, 7, 5).collect::<Vec<_>>(), [7]);
    }
}
