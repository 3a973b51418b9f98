//! Sizes and counts as people write them, with [`parse`] and [`parse_count`].

use std::ops::RangeInclusive;

pub use nandex::raw::size::{parse, parse_count, show_bytes, show_count};

/// Formats a number of things: `1 file`, `12,000 files`.
#[must_use]
pub fn counted(count: u64, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", show_count(count))
}

/// Reads a size within a range; `what` has that many bytes, as in `keys have`.
///
/// # Errors
/// As [`parse`]; a size out of range, with the range.
pub fn parse_within(text: &str, what: &str, range: RangeInclusive<u64>) -> Result<u64, String> {
    let found = parse(text)?;
    if range.contains(&found) {
        return Ok(found);
    }
    Err(format!("{what} {} to {} bytes", range.start(), range.end()))
}

/// Reads a size of one byte or more.
///
/// # Errors
/// As [`parse`]; 0.
pub fn parse_some_bytes(text: &str) -> Result<u64, String> {
    match parse(text)? {
        0 => Err("0 bytes are too few; give a size such as 64MiB".into()),
        found => Ok(found),
    }
}

/// Reads a share: 0 to 1.
///
/// # Errors
/// Another number, or no number.
pub fn parse_share(text: &str) -> Result<f64, String> {
    number(text)
        .filter(|found| (0.0..=1.0).contains(found))
        .ok_or_else(|| "expected a share from 0 to 1".into())
}

/// Reads a rate: above 0 and below 1.
///
/// # Errors
/// As [`parse_share`].
pub fn parse_rate(text: &str) -> Result<f64, String> {
    let found = number(text).filter(|found| *found > 0.0 && *found < 1.0);
    found.ok_or_else(|| "expected a rate above 0 and below 1, such as 0.001".into())
}

/// Reads a similarity: above 0 and up to 1.
///
/// # Errors
/// As [`parse_share`].
pub fn parse_similarity(text: &str) -> Result<f64, String> {
    let found = number(text).filter(|found| *found > 0.0 && *found <= 1.0);
    found.ok_or_else(|| "expected a similarity above 0 and up to 1".into())
}

/// Reads a finite number above 0.
///
/// # Errors
/// As [`parse_share`].
pub fn parse_positive(text: &str) -> Result<f64, String> {
    number(text).filter(|found| *found > 0.0).ok_or_else(|| "expected a number above 0".into())
}

/// Reads a limit of page reads for each absent key: 0.0001 to 10.
///
/// # Errors
/// As [`parse_share`].
pub fn parse_miss_reads(text: &str) -> Result<f64, String> {
    let found = number(text).filter(|found| (0.0001..=10.0).contains(found));
    found.ok_or_else(|| "expected 0.0001 to 10 reads".into())
}

/// Reads a distance: a finite number of 0 or more.
///
/// # Errors
/// As [`parse_share`].
pub fn parse_distance(text: &str) -> Result<f64, String> {
    number(text)
        .filter(|found| *found >= 0.0)
        .ok_or_else(|| "expected a distance of 0 or more".into())
}

/// Reads a finite number above 0 that single precision has.
///
/// # Errors
/// As [`parse_share`].
pub fn parse_width(text: &str) -> Result<f32, String> {
    let found = text.parse().ok().filter(|found: &f32| found.is_finite() && *found > 0.0);
    found.ok_or_else(|| "expected a number above 0".into())
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|found: &f64| found.is_finite())
}

/// Reads a count of 1 or more.
///
/// # Errors
/// As [`parse_count`]; 0.
pub fn parse_some(text: &str) -> Result<u64, String> {
    match parse_count(text)? {
        0 => Err("0 is too few; give 1 or more".into()),
        found => Ok(found),
    }
}
