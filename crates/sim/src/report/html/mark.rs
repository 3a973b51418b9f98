//! Pieces of the page: escaped words, axes, colours by name.

use std::fmt::{self, Display, Formatter, Write};

/// Words in which nothing is markup. Control characters are left out, but for line ends.
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                c if c.is_control() && c != '\n' => {}
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// A rectangle of a drawing with a colour's class and a tooltip.
pub(super) struct Rect<'a> {
    pub class: &'a str,
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
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

/// A word of a drawing, anchored at `start`, `middle` or `end`.
pub(super) fn word(out: &mut String, (x, y): (f64, f64), anchor: &str, text: &str) -> fmt::Result {
    writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>",
        Escaped(text)
    )
}

/// A line of a drawing.
pub(super) fn line(out: &mut String, class: &str, from: (f64, f64), to: (f64, f64)) -> fmt::Result {
    let ((x1, y1), (x2, y2)) = (from, to);
    writeln!(
        out,
        "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
    )
}

/// Opens a drawing of that size, which shrinks with the page.
pub(super) fn open(out: &mut String, width: f64, height: f64, label: &str) -> fmt::Result {
    writeln!(
        out,
        "<div class=\"wide\"><svg viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" \
         aria-label=\"{}\">",
        Escaped(label)
    )
}

/// Closes a drawing.
pub(super) fn close(out: &mut String) -> fmt::Result {
    out.write_str("</svg></div>\n")
}

/// A legend of classes and their names.
pub(super) fn legend(out: &mut String, entries: &[(&str, &str)]) -> fmt::Result {
    out.write_str("<p class=\"legend\">")?;
    for (class, name) in entries {
        write!(out, "<span><i class=\"{class}\"></i>{name}</span>")?;
    }
    out.write_str("</p>\n")
}

/// Round times from `from` to `to`, about so many: 1, 2 or 5 times a power of ten nanoseconds apart.
pub(super) fn round_times(from_ns: u64, to_ns: u64, about: u64) -> impl Iterator<Item = u64> {
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
    fn nothing_in_words_is_markup() {
        assert_eq!(
            Escaped("<a b='\"&\u{1b}'>\n").to_string(),
            "&lt;a b=&#39;&quot;&amp;&#39;&gt;\n"
        );
    }

    #[test]
    fn ticks_are_round_and_within() {
        assert_eq!(round_times(0, 100, 5).collect::<Vec<_>>(), [0, 20, 40, 60, 80, 100]);
        assert_eq!(round_times(1_001, 3_999, 3).collect::<Vec<_>>(), [2_000, 3_000]);
        assert_eq!(round_times(7, 7, 5).collect::<Vec<_>>(), [7]);
    }
}
