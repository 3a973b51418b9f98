//! The lines of a report: a name, a number in handy units, and what the number is.

use std::fmt;

/// One number of the report.
#[derive(Clone, Debug)]
pub struct Line {
    /// What it is called.
    pub name: &'static str,
    /// The number, with its unit.
    pub value: String,
    /// What the number is.
    pub note: String,
}

/// A line of the report.
pub fn line(name: &'static str, value: String, note: impl Into<String>) -> Line {
    Line { name, value, note: note.into() }
}

/// Writes the lines with their columns aligned.
pub(crate) fn write(f: &mut fmt::Formatter<'_>, lines: Vec<Line>) -> fmt::Result {
    for Line { name, value, note } in lines {
        writeln!(f, "{name:<15} {value:>15}  {note}")?;
    }
    Ok(())
}

const BYTES: [&str; 6] = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"];

/// Bytes in binary units, three digits.
pub fn bytes(value: u64) -> String {
    scaled(value as f64, 1024.0, &BYTES)
}

/// Nanoseconds in decimal units, three digits.
pub(crate) fn time(ns: f64) -> String {
    scaled(ns, 1000.0, &["ns", "us", "ms", "s"])
}

/// Years, or days where they are few.
pub(crate) fn years(years: f64) -> String {
    if years >= 1.0 { format!("{years:.1} years") } else { format!("{:.1} days", years * 365.25) }
}

fn scaled(value: f64, step: f64, units: &[&str]) -> String {
    let (mut value, mut unit) = (value, 0);
    while value >= step && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.digits$} {}", units[unit])
}

/// A count with thousands separators.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    let groups: Vec<_> =
        groups.map(|group| std::str::from_utf8(group).expect("digits are ASCII")).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_units_that_leave_three_digits() {
        assert_eq!(bytes(0), "0.00 bytes");
        assert_eq!(bytes(1536), "1.50 KiB");
        assert_eq!(bytes(250 << 20), "250 MiB");
        assert_eq!(bytes(u64::MAX), "16384 PiB");
        assert_eq!(time(12_345.0), "12.3 us");
        assert_eq!(years(6.84), "6.8 years");
        assert_eq!(years(0.01), "3.7 days");
        assert_eq!(count(0), "0");
        assert_eq!(count(1_234_567), "1,234,567");
    }
}
