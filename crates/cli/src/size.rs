//! Sizes and counts as people read them; [`parse`] and [`parse_count`] read what they write.

use std::ops::RangeInclusive;

pub use nandex::size::{parse, parse_count};
pub use nandex_html::grouped as show_count;

/// Reads a size within a range.
///
/// # Errors
/// As [`parse`]; a size out of range, with the range.
pub fn parse_within(text: &str, range: RangeInclusive<u64>) -> Result<u64, String> {
    let found = parse(text)?;
    if range.contains(&found) {
        return Ok(found);
    }
    Err(format!("{found} is not in {}..={}", range.start(), range.end()))
}

/// Reads a count of 1 or more.
///
/// # Errors
/// As [`parse_count`]; 0.
pub fn parse_some(text: &str) -> Result<u64, String> {
    match parse_count(text)? {
        0 => Err("0 is too few; ask for 1 or more".into()),
        found => Ok(found),
    }
}

/// Shows bytes for people: `1.5 MiB`.
pub fn show_bytes(bytes: u64) -> String {
    const UNITS: [(u64, &str); 4] =
        [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match UNITS.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", bytes as f64 / *unit as f64),
        None => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_counts_are_shown_with_units_and_commas() {
        assert_eq!(show_bytes(1023), "1023 B");
        assert_eq!(show_bytes(1536), "1.5 KiB");
        assert_eq!(show_bytes(3 << 30), "3.0 GiB");
        assert_eq!(show_count(7), "7");
        assert_eq!(show_count(1_234_567), "1,234,567");
        assert_eq!(show_count(123_456), "123,456");
    }
}
