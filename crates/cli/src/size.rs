//! Sizes and counts as people write them, with [`parse`] and [`parse_count`].

use std::ops::RangeInclusive;

pub use nandex::raw::size::{parse, parse_count, show_bytes, show_count};

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
