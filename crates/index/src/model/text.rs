//! The lines of a report: a name, a number in convenient units, and what the number is.

use std::fmt;

pub(crate) use nandex_device::number::show_time as time;
pub use nandex_device::number::{show_bytes as bytes, show_count as count};

/// One number of the report.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its name.
    pub name: &'static str,
    /// The number, with its unit.
    pub value: String,
    /// An explanation of the number.
    pub note: String,
}

/// Creates a line of the report.
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

/// Formats years, or days if there are few.
pub(crate) fn years(years: f64) -> String {
    if years >= 1.0 { format!("{years:.1} years") } else { format!("{:.1} days", years * 365.25) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_days_are_no_years() {
        assert_eq!(years(6.84), "6.8 years");
        assert_eq!(years(0.01), "3.7 days");
    }
}
