//! Exact numbers from the fields of a line, with the expected text if they are none.

use super::error::Misfit;

/// The bytes of a sector in every format that counts sectors.
const SECTOR_BYTES: u64 = 512;

/// Returns the next field, which must exist.
pub(super) fn need<'a>(field: Option<&'a str>, what: &str) -> Result<&'a str, Misfit> {
    field.ok_or_else(|| Misfit::missing(what))
}

/// Parses a decimal number without a sign.
pub(super) fn number(field: &str, what: &str) -> Result<u64, Misfit> {
    let digits = field.bytes().all(|byte| byte.is_ascii_digit());
    let number = if digits { field.parse().ok() } else { None };
    number.ok_or_else(|| Misfit::new(format!("{what}, a whole number below 2^64"), field))
}

/// Parses sectors, and returns them as bytes.
pub(super) fn sectors(field: &str, what: &str) -> Result<u64, Misfit> {
    let bytes = number(field, what)?.checked_mul(SECTOR_BYTES);
    bytes.ok_or_else(|| Misfit::new(format!("{what}, in sectors that end below 2^64 bytes"), field))
}

/// Checks a length in bytes at an offset: above 0, and ending below 2^64.
pub(super) fn extent(offset: u64, bytes: u64, field: &str) -> Result<(u64, u64), Misfit> {
    if bytes > 0 && offset.checked_add(bytes).is_some() {
        return Ok((offset, bytes));
    }
    Err(Misfit::new("a size above 0 that ends below 2^64 bytes", field))
}

/// Parses a decimal fraction in units of 10^-places, rounded to the nearest, without going through a float.
pub(super) fn decimal(field: &str, places: usize, what: &str) -> Result<u128, Misfit> {
    let (whole, fraction) = field.split_once('.').unwrap_or((field, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let bounded = whole.len() <= 24 && !(whole.is_empty() && fraction.is_empty());
    if !(bounded && digits(whole) && digits(fraction)) {
        return Err(Misfit::new(format!("{what}, a decimal number such as 5265.313"), field));
    }
    let fraction = fraction.bytes().chain(std::iter::repeat(b'0'));
    let mut units = 0u128;
    for byte in whole.bytes().chain(fraction.clone().take(places)) {
        units = units * 10 + u128::from(byte - b'0');
    }
    let half = fraction.clone().nth(places).is_some_and(|byte| byte >= b'5');
    Ok(units + u128::from(half))
}
