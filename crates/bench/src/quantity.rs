//! Numbers as people write them: `64M` entries, `256MiB` of memory, `0,.3,1` fractions.

use std::time::Duration;

/// Reads a whole number with an optional suffix: `K M G T` are powers of 1000 (as are `KB` and so on), `KiB
/// MiB GiB TiB` powers of 1024. A fraction is fine if the product is whole: `1.5M`.
///
/// # Errors
/// A sentence that says what is wrong with `text`.
pub fn parse_quantity(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'));
    let (digits, suffix) = text.split_at(split.unwrap_or(text.len()));
    let factor = factor(suffix.trim()).ok_or_else(|| {
        format!("`{text}`: unknown suffix `{suffix}`; write K, M, G, T (powers of 1000) or KiB, MiB, GiB, TiB")
    })?;
    let digits = digits.replace('_', "");
    if let Ok(whole) = digits.parse::<u64>() {
        return whole.checked_mul(factor).ok_or_else(|| format!("`{text}` passes 2^64"));
    }
    let number: f64 = digits.parse().map_err(|_| format!("`{text}` is no number"))?;
    let product = number * factor as f64;
    if product.fract() != 0.0 || product >= (1u64 << 53) as f64 {
        return Err(format!("`{text}` is no whole number"));
    }
    Ok(product as u64)
}

fn factor(suffix: &str) -> Option<u64> {
    let suffix = suffix.to_ascii_lowercase();
    let (base, letters) = match suffix.strip_suffix("ib") {
        Some(letters) => (1024u64, letters),
        None => (1000, suffix.strip_suffix('b').unwrap_or(&suffix)),
    };
    let power = match letters {
        "" if base == 1000 => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        _ => return None,
    };
    Some(base.pow(power))
}

/// Reads one fraction from 0 to 1.
///
/// # Errors
/// A sentence that says what is wrong with `text`.
pub fn parse_fraction(text: &str) -> Result<f64, String> {
    let number: f64 = text.trim().parse().map_err(|_| format!("`{text}` is no number"))?;
    if (0.0..=1.0).contains(&number) {
        Ok(number)
    } else {
        Err(format!("`{text}` is not between 0 and 1"))
    }
}

/// Reads a number of seconds.
///
/// # Errors
/// A sentence that says what is wrong with `text`.
pub fn parse_seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.trim().parse().map_err(|_| format!("`{text}` is no number"))?;
    Duration::try_from_secs_f64(number).map_err(|_| format!("{number} s is no length of time"))
}

/// Writes a count with three figures and a suffix of 1000: `1.23 M`.
#[must_use]
pub fn show_count(number: f64) -> String {
    let mut scaled = number;
    for suffix in ["", " k", " M", " G"] {
        if scaled.abs() < 999.5 {
            return format!("{}{suffix}", three_figures(scaled));
        }
        scaled /= 1000.0;
    }
    format!("{} T", three_figures(scaled))
}

/// Writes bytes with three figures and a suffix of 1024: `1.23 MiB`.
#[must_use]
pub fn show_bytes(bytes: f64) -> String {
    let mut scaled = bytes;
    for suffix in ["B", "KiB", "MiB", "GiB"] {
        if scaled.abs() < 1023.5 {
            return format!("{} {suffix}", three_figures(scaled));
        }
        scaled /= 1024.0;
    }
    format!("{} TiB", three_figures(scaled))
}

/// Writes nanoseconds in the unit that reads best.
#[must_use]
pub fn show_ns(ns: u64) -> String {
    let ns = ns as f64;
    match ns {
        _ if ns < 1e3 => format!("{ns:.0} ns"),
        _ if ns < 1e6 => format!("{} us", three_figures(ns / 1e3)),
        _ if ns < 1e9 => format!("{} ms", three_figures(ns / 1e6)),
        _ => format!("{} s", three_figures(ns / 1e9)),
    }
}

fn three_figures(number: f64) -> String {
    match number.abs() {
        size if size >= 99.95 || number.fract() == 0.0 => format!("{number:.0}"),
        size if size >= 9.995 => format!("{number:.1}"),
        _ => format!("{number:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_of_1000_and_1024_are_told_apart() {
        assert_eq!(parse_quantity("64M"), Ok(64_000_000));
        assert_eq!(parse_quantity("64 MB"), Ok(64_000_000));
        assert_eq!(parse_quantity("256MiB"), Ok(256 << 20));
        assert_eq!(parse_quantity("1.5k"), Ok(1500));
        assert_eq!(parse_quantity("1_000"), Ok(1000));
    }

    #[test]
    fn nonsense_is_refused_with_a_sentence() {
        for text in ["", "M", "12X", "1.5", "99999999999G", "-3", "3ib"] {
            assert!(parse_quantity(text).is_err(), "{text}");
        }
        assert!(parse_quantity("12X").unwrap_err().contains("`X`"));
        assert!(parse_fraction("1.2").unwrap_err().contains("between 0 and 1"));
        assert!(parse_fraction("much").is_err());
    }

    #[test]
    fn numbers_are_shown_with_three_figures() {
        assert_eq!(show_count(93_028.0), "93.0 k");
        assert_eq!(show_count(1_268_090.0), "1.27 M");
        assert_eq!(show_bytes(1536.0), "1.50 KiB");
        assert_eq!(show_ns(999), "999 ns");
        assert_eq!(show_ns(25_400), "25.4 us");
    }
}
