//! Exact numbers, and their readable forms.

use std::fmt;

pub(crate) use nandex_device::number::show_count as grouped;

use serde::{Serialize, Serializer};

/// A quotient, rounded once to the nearest thousandth. It is clamped at 2^64 thousandths.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Thousandths(u64);

impl Thousandths {
    /// Returns `part / whole`; `None` if `whole` is 0.
    #[must_use]
    pub fn ratio(part: u128, whole: u128) -> Option<Self> {
        if whole == 0 {
            return None;
        }
        let rounded = part.checked_mul(1000).and_then(|it| it.checked_add(whole / 2));
        let quotient = rounded.map_or(u128::MAX, |it| it / whole);
        Some(Self(u64::try_from(quotient).unwrap_or(u64::MAX)))
    }

    /// Returns a number in a time of nanoseconds as a rate per second; `None` if no time passed.
    #[must_use]
    pub fn per_second(count: u128, ns: u64) -> Option<Self> {
        Self::ratio(count.saturating_mul(1_000_000_000), u128::from(ns))
    }

    /// Returns `part` of `whole` in percent; `None` if `whole` is 0.
    #[must_use]
    pub fn percent(part: u128, whole: u128) -> Option<Self> {
        Self::ratio(part.saturating_mul(100), whole)
    }

    /// Returns the number of thousandths.
    #[must_use]
    pub const fn thousandths(self) -> u64 {
        self.0
    }

    /// Returns the nearest float, for drawings and JSON.
    #[must_use]
    pub fn float(self) -> f64 {
        self.0 as f64 / 1000.0
    }
}

/// Rounds to the decimals of the precision, half up, if that is below 3.
impl fmt::Display for Thousandths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = f.precision().unwrap_or(3).min(3) as u32;
        let step = 10_u64.pow(3 - decimals);
        let rounded = self.0 / step + u64::from(self.0 % step * 2 >= step && step > 1);
        let unit = 10_u64.pow(decimals);
        let whole = grouped(rounded / unit);
        let text = match decimals {
            0 => whole,
            _ => format!("{whole}.{:0width$}", rounded % unit, width = decimals as usize),
        };
        f.pad_integral(true, "", &text)
    }
}

impl Serialize for Thousandths {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.float())
    }
}

/// Formats a time without rounding, in the largest unit below it: `10.24 us`, `1.5 ms`, `640 ns`.
#[must_use]
pub fn exact_time(ns: u64) -> String {
    let (unit, name) = match ns {
        0..1_000 => (1, "ns"),
        1_000..1_000_000 => (1_000, "us"),
        1_000_000..1_000_000_000 => (1_000_000, "ms"),
        _ => (1_000_000_000, "s"),
    };
    format!("{} {name}", decimal(ns, unit))
}

/// Formats a time with three digits: `85.3 us`, `1.50 ms`; whole ones have no decimals.
pub(super) fn time(ns: u64) -> String {
    scaled(ns.into(), 1000, &["ns", "us", "ms", "s"])
}

/// Formats a number with three digits, or all of those before its point: `0.640`, `85.3`, `1,235`.
pub(super) fn three_digits(number: Thousandths) -> String {
    match number.0 {
        0 => "0".into(),
        1..1_000 => number.to_string(),
        1_000..9_995 => format!("{number:.2}"),
        9_995..99_950 => format!("{number:.1}"),
        _ => format!("{number:.0}"),
    }
}

/// Formats picoseconds as nanoseconds: `2.5 ns`.
pub(super) fn exact_ps(ps: u64) -> String {
    format!("{} ns", decimal(ps, 1000))
}

/// Formats `value / unit` with as many decimals as it needs; the unit is a power of ten.
pub(super) fn decimal(value: u64, unit: u64) -> String {
    let digits = unit.ilog10() as usize;
    if digits == 0 || value.is_multiple_of(unit) {
        return (value / unit).to_string();
    }
    let text = format!("{}.{:0digits$}", value / unit, value % unit);
    text.trim_end_matches('0').to_owned()
}

/// Formats nanoseconds as microseconds with three digits.
pub(super) fn micros(ns: u64) -> String {
    three_digits(Thousandths(ns))
}

/// Formats nanoseconds in thousandths as microseconds, rounded to the nanosecond.
pub(super) fn mean_micros(ns: Thousandths) -> String {
    let whole = ns.0 / 1000 + u64::from(ns.0 % 1000 >= 500);
    micros(whole)
}

/// Formats a count and its noun: `1 page`, `2 pages`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(count))
}

/// Formats bytes with three digits and a unit of powers of 1000, as device vendors count: `256 GB`.
pub(super) fn decimal_bytes(bytes: u128) -> String {
    scaled(bytes, 1000, &["B", "kB", "MB", "GB", "TB", "PB", "EB"])
}

/// Formats bytes with three digits and a unit of powers of 1024: `4 KiB`, `1.50 GiB`.
pub(super) fn binary_bytes(bytes: u128) -> String {
    scaled(bytes, 1024, &["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"])
}

fn scaled(bytes: u128, base: u128, units: &[&str]) -> String {
    let mut unit = 1;
    let mut index = 0;
    // 999.5 of a unit would be shown as 1000 of it.
    while index + 1 < units.len() && bytes * 2 >= unit * 1999 {
        unit *= base;
        index += 1;
    }
    let name = units[index];
    if bytes.is_multiple_of(unit) {
        return format!("{} {name}", bytes / unit);
    }
    let decimals =
        if bytes * 200 < unit * 1999 { 2 } else { usize::from(bytes * 20 < unit * 1999) };
    let shown = Thousandths::ratio(bytes, unit).unwrap_or_default();
    format!("{shown:.decimals$} {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quotient_is_rounded_once_and_nothing_is_divided_by_nothing() {
        let ratio = |part, whole| Thousandths::ratio(part, whole).map(|it| it.thousandths());
        assert_eq!(ratio(1, 3), Some(333));
        assert_eq!(ratio(2, 3), Some(667));
        assert_eq!(ratio(1, 2000), Some(1));
        assert_eq!(ratio(7, 0), None);
        assert_eq!(ratio(u128::MAX, 1), Some(u64::MAX));
    }

    #[test]
    fn a_rate_below_a_second_is_finite_and_exact() {
        let rate = Thousandths::per_second(3, 600).unwrap();
        assert_eq!(rate.to_string(), "5,000,000.000");
        assert_eq!(Thousandths::per_second(3, 0), None);
    }

    #[test]
    fn thousandths_are_shown_with_the_decimals_that_are_asked_for() {
        let number = Thousandths::ratio(12_345_678, 1000).unwrap();
        assert_eq!(format!("{number}"), "12,345.678");
        assert_eq!(format!("{number:.2}"), "12,345.68");
        assert_eq!(format!("{number:.0}"), "12,346");
        assert_eq!(format!("{number:>12.1}"), "    12,345.7");
    }

    #[test]
    fn times_are_shown_without_rounding() {
        let samples = [
            (0, "0 ns"),
            (640, "640 ns"),
            (10_240, "10.24 us"),
            (60_000, "60 us"),
            (1_000_001, "1.000001 ms"),
            (2_500_000_000, "2.5 s"),
        ];
        for (ns, text) in samples {
            assert_eq!(exact_time(ns), text);
        }
        assert_eq!(exact_ps(2500), "2.5 ns");
        assert_eq!(exact_ps(31), "0.031 ns");
    }

    #[test]
    fn times_and_numbers_for_people_have_three_digits() {
        let micros = [0, 7, 640, 9_994, 9_995, 85_340, 99_950, 1_234_567].map(micros);
        assert_eq!(micros, ["0", "0.007", "0.640", "9.99", "10.0", "85.3", "100", "1,235"]);
        let times = [0, 640, 60_000, 10_240, 1_000_001, 999_999, 2_500_000_000].map(time);
        assert_eq!(times, ["0 ns", "640 ns", "60 us", "10.2 us", "1.00 ms", "1.00 ms", "2.50 s"]);
        let rate = Thousandths::per_second(3, 600).unwrap();
        assert_eq!(three_digits(rate), "5,000,000");
    }

    #[test]
    fn bytes_have_three_digits_or_are_whole() {
        assert_eq!(decimal_bytes(256_000_000_000), "256 GB");
        assert_eq!(decimal_bytes(999), "999 B");
        assert_eq!(decimal_bytes(1234), "1.23 kB");
        assert_eq!(decimal_bytes(12_345), "12.3 kB");
        assert_eq!(decimal_bytes(999_999), "1.00 MB");
        assert_eq!(binary_bytes(4096), "4 KiB");
        assert_eq!(binary_bytes(1536), "1.50 KiB");
    }
}
