//! Sizes and counts as people write them: `64MiB`, `64M`, `1e9`, `1_000`; and their display.
//!
//! `K`, `M`, `G` and `T` are powers of 1000. A size is in bytes, so they may be followed by a `B`, and `KiB`, `MiB`,
//! `GiB` and `TiB` are powers of 1024. A count takes none of these: `1B` would be one byte to some and a billion to
//! others. The result must be a whole number.

pub use nandex_device::number::{show_bytes, show_count, show_rate, show_scaled, show_time};

use crate::Error;

/// Suffixes of counts and their values, in lower case.
const COUNT_SUFFIXES: [(&str, u64); 5] =
    [("", 1), ("k", 1_000), ("m", 1_000_000), ("g", 1_000_000_000), ("t", 1_000_000_000_000)];

/// Further suffixes of sizes.
const BYTE_SUFFIXES: [(&str, u64); 9] = [
    ("b", 1),
    ("kb", 1_000),
    ("kib", 1 << 10),
    ("mb", 1_000_000),
    ("mib", 1 << 20),
    ("gb", 1_000_000_000),
    ("gib", 1 << 30),
    ("tb", 1_000_000_000_000),
    ("tib", 1 << 40),
];

/// The most decimal digits after the point that are read; more than any size needs.
const FRACTION_DIGITS_MAX: usize = 18;

/// Parses a size in bytes.
///
/// ```
/// assert_eq!(nandex::raw::size::parse("64MiB"), Ok(64 << 20));
/// assert_eq!(nandex::raw::size::parse("1e9"), Ok(1_000_000_000));
/// ```
///
/// # Errors
/// A sentence that says what is wrong with the text and what would be valid.
pub fn parse(text: &str) -> Result<u64, String> {
    let number = Number::split(text);
    let unit = number.unit(&COUNT_SUFFIXES).or_else(|| number.unit(&BYTE_SUFFIXES));
    let unit = unit.ok_or_else(|| {
        format!(
            "`{}` is not a unit; use K, M, G, T (powers of 1000) or KiB, MiB, GiB, TiB (powers of 1024)",
            number.suffix
        )
    })?;
    number.times(unit, "size; write it like 4096, 64MiB, 1.5G or 1e9")
}

/// Parses a count.
///
/// ```
/// assert_eq!(nandex::raw::size::parse_count("64M"), Ok(64_000_000));
/// assert!(nandex::raw::size::parse_count("1B").is_err());
/// ```
///
/// # Errors
/// A sentence that says what is wrong with the text and what would be valid; a unit of bytes.
pub fn parse_count(text: &str) -> Result<u64, String> {
    const UNITS: &str = "use K, M, G, T (powers of 1000), such as 64M, or 1e9";
    let number = Number::split(text);
    let suffix = number.suffix;
    let unit = number.unit(&COUNT_SUFFIXES).ok_or_else(|| match number.unit(&BYTE_SUFFIXES) {
        Some(_) => format!("`{suffix}` is a unit of bytes, and this is a count; {UNITS}"),
        None => format!("`{suffix}` is not a unit; {UNITS}"),
    })?;
    number.times(unit, "count; write it like 4096, 64M, 1.5G or 1e9")
}

/// A size or a count as [`db`](crate::db) takes it: a number, or text such as `"8MiB"`. The call that uses it reports
/// errors in the text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Quantity(Given);

/// The value as the program passed it.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Given {
    Number(Result<u64, String>),
    Text(String),
}

impl Quantity {
    /// Returns the number of bytes.
    ///
    /// # Errors
    /// [`Error::Config`] for `field` if it is not a size.
    pub(crate) fn bytes(&self, field: &'static str) -> crate::Result<u64> {
        self.read(field, parse)
    }

    /// Returns the count.
    ///
    /// # Errors
    /// [`Error::Config`] for `field` if it is not a count.
    pub(crate) fn count(&self, field: &'static str) -> crate::Result<u64> {
        self.read(field, parse_count)
    }

    fn read(
        &self,
        field: &'static str,
        parse: fn(&str) -> Result<u64, String>,
    ) -> crate::Result<u64> {
        let number = match &self.0 {
            Given::Number(number) => number.clone(),
            Given::Text(text) => parse(text),
        };
        number.map_err(|reason| Error::Config { field, reason })
    }
}

impl From<&str> for Quantity {
    fn from(text: &str) -> Self {
        Self(Given::Text(text.to_owned()))
    }
}

impl From<u64> for Quantity {
    fn from(number: u64) -> Self {
        Self(Given::Number(Ok(number)))
    }
}

impl From<usize> for Quantity {
    fn from(number: usize) -> Self {
        Self::from(number as u64)
    }
}

/// Accepts a plain integer literal.
impl From<i32> for Quantity {
    fn from(number: i32) -> Self {
        Self(Given::Number(u64::try_from(number).map_err(|_| format!("{number} is negative"))))
    }
}

/// Accepts `1e9`.
impl From<f64> for Quantity {
    fn from(number: f64) -> Self {
        let is_whole = number >= 0.0 && number < 2f64.powi(64) && number.fract() == 0.0;
        let whole = if is_whole { Ok(number as u64) } else { Err(()) };
        Self(Given::Number(whole.map_err(|()| format!("{number} is no whole number"))))
    }
}

/// A number as text, split into digits, a power of ten and a unit.
struct Number<'t> {
    text: &'t str,
    mantissa: &'t str,
    exponent: i32,
    suffix: &'t str,
}

impl<'t> Number<'t> {
    fn split(text: &'t str) -> Self {
        let text = text.trim();
        let (mantissa, rest) = text.split_at(number_end(text));
        let (exponent, suffix) = exponent(rest).unwrap_or((0, rest));
        Self { text, mantissa, exponent, suffix: suffix.trim() }
    }

    fn unit(&self, suffixes: &[(&str, u64)]) -> Option<u64> {
        let suffix = self.suffix.to_ascii_lowercase();
        suffixes.iter().find(|(name, _)| *name == suffix).map(|(_, unit)| *unit)
    }

    /// Returns its value with this unit. `what` names the expected kind of value and how to write it.
    fn times(&self, unit: u64, what: &str) -> Result<u64, String> {
        let text = self.text;
        let (digits, decimals) =
            digits(self.mantissa).ok_or_else(|| format!("`{text}` is not a {what}"))?;
        let product = scale(digits, self.exponent - decimals, unit);
        product.map_err(|why| format!("`{text}` {why}"))
    }
}

/// Returns the end of the digits, points and underscores at the start.
fn number_end(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len())
}

/// Parses `e9` at the start of the text after the number, and returns the rest of the text.
fn exponent(rest: &str) -> Option<(i32, &str)> {
    let after = rest.strip_prefix(['e', 'E'])?;
    let end = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
    let power: u8 = after[..end].parse().ok()?;
    Some((i32::from(power), &after[end..]))
}

/// Returns the digits as one whole number, and the number of digits after the point.
fn digits(mantissa: &str) -> Option<(u128, i32)> {
    let plain = mantissa.replace('_', "");
    let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.len() > FRACTION_DIGITS_MAX {
        return None;
    }
    let decimals = i32::try_from(fraction.len()).ok()?;
    format!("{whole}{fraction}").parse().ok().map(|digits| (digits, decimals))
}

/// Returns `digits * 10^power * unit`, if that is a whole number that fits.
fn scale(digits: u128, power: i32, unit: u64) -> Result<u64, &'static str> {
    const TOO_LARGE: &str = "is too large: at most 2^64 - 1";
    let ten = 10_u128.checked_pow(power.unsigned_abs()).ok_or(TOO_LARGE)?;
    let product = digits.checked_mul(u128::from(unit)).ok_or(TOO_LARGE)?;
    let whole = if power >= 0 {
        product.checked_mul(ten).ok_or(TOO_LARGE)?
    } else if product % ten == 0 {
        product / ten
    } else {
        return Err("is no whole number");
    };
    u64::try_from(whole).map_err(|_| TOO_LARGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        let samples = [
            ("0", 0),
            ("4096", 4096),
            ("64MiB", 64 << 20),
            ("64 mib", 64 << 20),
            ("64M", 64_000_000),
            ("64MB", 64_000_000),
            ("1e9", 1_000_000_000),
            ("1.5e3K", 1_500_000),
            ("1.5KiB", 1536),
            ("1_000_000", 1_000_000),
            ("2TiB", 2 << 40),
            ("16b", 16),
            ("18446744073709551615", u64::MAX),
        ];
        for (text, size) in samples {
            assert_eq!(parse(text), Ok(size), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused_with_a_reason() {
        let samples = [
            ("", "is not a size"),
            ("many", "is not a unit"),
            ("-1", "is not a unit"),
            ("1.2.3", "is not a size"),
            (".", "is not a size"),
            ("64MiBs", "is not a unit"),
            ("1e", "is not a unit"),
            ("0.3", "is no whole number"),
            ("18446744073709551616", "too large"),
            ("1e99", "too large"),
            ("99999999TiB", "too large"),
        ];
        for (text, reason) in samples {
            let error = parse(text).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn a_count_takes_no_unit_of_bytes() {
        for (text, count) in [("64M", 64_000_000), ("1.5k", 1500), ("1e9", 1_000_000_000), ("7", 7)]
        {
            assert_eq!(parse_count(text), Ok(count), "{text}");
        }
        let samples = [
            ("1B", "`B` is a unit of bytes, and this is a count; use K, M, G, T"),
            ("1b", "`b` is a unit of bytes"),
            ("4KiB", "`KiB` is a unit of bytes"),
            ("1GB", "`GB` is a unit of bytes"),
            ("1bn", "`bn` is not a unit; use K, M, G, T (powers of 1000), such"),
            ("many", "`many` is not a unit; use K, M, G, T (powers of 1000), such"),
            (".", "`.` is not a count"),
        ];
        for (text, reason) in samples {
            let error = parse_count(text).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
