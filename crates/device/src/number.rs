//! Numbers as people read them.

/// Units of bytes by powers of 1024.
const BYTES: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/// Formats a count in groups of three digits: `1,234,567`.
#[must_use]
pub fn show_count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats bytes in a unit of powers of 1024: `512 B`, `1.50 MiB`.
#[must_use]
pub fn show_bytes(bytes: u64) -> String {
    show_scaled(bytes as f64, 1024.0, &BYTES)
}

/// Formats bytes per second: `512 MiB/s`.
#[must_use]
pub fn show_rate(bytes_per_s: f64) -> String {
    format!("{}/s", show_scaled(bytes_per_s, 1024.0, &BYTES))
}

/// Formats nanoseconds in the unit that reads best: `640 ns`, `85.3 us`.
#[must_use]
pub fn show_time(ns: f64) -> String {
    show_scaled(ns, 1000.0, &["ns", "us", "ms", "s"])
}

/// Formats a number with three digits in one of these units, each `step` times the one before. Whole numbers of the
/// first unit have no decimals.
#[must_use]
pub fn show_scaled(number: f64, step: f64, units: &[&str]) -> String {
    let (mut scaled, mut unit) = (number, 0);
    while scaled >= step - 0.5 && unit + 1 < units.len() {
        scaled /= step;
        unit += 1;
    }
    let decimals = match scaled {
        _ if unit == 0 && scaled.fract() == 0.0 => 0,
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    let name = units.get(unit).copied().unwrap_or_default();
    format!("{scaled:.decimals$} {name}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_in_groups_of_three_digits() {
        let texts = [0, 999, 1000, 123_456, 1_234_567].map(show_count);
        assert_eq!(texts, ["0", "999", "1,000", "123,456", "1,234,567"]);
    }

    #[test]
    fn bytes_have_three_digits_and_a_unit() {
        let texts = [0, 1023, 1024, 1536, 250 << 20, 3 << 30, 1_073_600_000, u64::MAX];
        let shown = [
            "0 B", "1023 B", "1.00 KiB", "1.50 KiB", "250 MiB", "3.00 GiB", "1.00 GiB", "16.0 EiB",
        ];
        assert_eq!(texts.map(show_bytes), shown);
        assert_eq!(show_rate(512.0 * 1024.0 * 1024.0), "512 MiB/s");
        assert_eq!(show_rate(0.25), "0.25 B/s");
    }

    #[test]
    fn other_units_have_three_digits_too() {
        let times = [0.0, 640.0, 999.6, 12_345.0, 85_349.0, 3.2e12].map(show_time);
        assert_eq!(times, ["0 ns", "640 ns", "1.00 us", "12.3 us", "85.3 us", "3200 s"]);
        let counts = [7.0, 93_028.0, 1_268_090.0].map(|it| show_scaled(it, 1e3, &["", "k", "M"]));
        assert_eq!(counts, ["7", "93.0 k", "1.27 M"]);
    }
}
