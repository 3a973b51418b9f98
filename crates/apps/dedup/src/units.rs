//! Figures formatted for people.

/// Converts a count to a float; exact up to 2^53.
pub(crate) fn float(count: u64) -> f64 {
    count as f64
}

/// Returns `part` over `whole`, or `None` if `whole` is 0.
pub(crate) fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole != 0).then(|| float(part) / float(whole))
}

pub(crate) use nandex::raw::size::{show_bytes as bytes, show_count as count, show_rate as rate};

/// Formats three significant digits: `0.123`, `1.23`, `12.3`, `123`; nothing finer than a thousandth.
pub(crate) fn digits(value: f64) -> String {
    let decimals = if value < 0.9995 {
        3
    } else if value < 9.995 {
        2
    } else if value < 99.95 {
        1
    } else {
        0
    };
    format!("{value:.decimals$}")
}

/// Formats `12.3 %`.
pub(crate) fn percent(fraction: f64) -> String {
    format!("{:.1} %", 100.0 * fraction)
}

/// Formats `1 h 02 min`, `3 min 05 s` or `4.20 s`.
pub(crate) fn duration(seconds: f64) -> String {
    if seconds < 60.0 {
        return format!("{} s", digits(seconds));
    }
    let minutes = (seconds / 60.0).floor();
    if minutes < 60.0 {
        return format!("{minutes:.0} min {:02.0} s", (seconds % 60.0).floor());
    }
    format!("{:.0} h {:02.0} min", (minutes / 60.0).floor(), minutes % 60.0)
}

/// Characters that change the direction of those that follow.
const TURNS: [char; 11] = [
    '\u{200e}', '\u{200f}', '\u{202a}', '\u{202b}', '\u{202c}', '\u{202d}', '\u{202e}', '\u{2066}',
    '\u{2067}', '\u{2068}', '\u{2069}',
];

/// Returns whether a character changes what a terminal or a page shows, other than by being shown.
#[must_use]
pub fn is_hidden(character: char) -> bool {
    character.is_control() || TURNS.contains(&character)
}

/// Escapes characters that would change what a terminal or a page shows, which names of files may contain.
#[must_use]
pub fn printable(text: &str) -> String {
    let show = |c: char| if is_hidden(c) { c.escape_default().collect() } else { c.to_string() };
    text.chars().map(show).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_change_a_terminal_is_shown_and_not_done() {
        assert_eq!(printable("caf\u{e9} a\nb"), "caf\u{e9} a\\nb");
        assert_eq!(printable("\u{1b}[2J\u{202e}x"), "\\u{1b}[2J\\u{202e}x");
    }

    #[test]
    fn figures_have_three_digits_down_to_thousandths() {
        let texts = [0.0, 0.0831, 0.9999, 1.234, 99.96, 1234.5].map(digits);
        assert_eq!(texts, ["0.000", "0.083", "1.00", "1.23", "100", "1234"]);
    }

    #[test]
    fn durations_grow_with_the_time() {
        assert_eq!([4.2, 185.0, 3720.0].map(duration), ["4.20 s", "3 min 05 s", "1 h 02 min"]);
    }
}
