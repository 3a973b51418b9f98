//! Numbers as users write them, such as the fractions `0,.3,1`, and floats in readable form.

use std::time::Duration;

use nandex::raw::size::show_scaled;

/// Reads one fraction from 0 to 1.
///
/// # Errors
/// Returns a sentence that says why `text` is refused.
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
/// Returns a sentence that says why `text` is refused.
pub fn parse_seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.trim().parse().map_err(|_| format!("`{text}` is no number"))?;
    Duration::try_from_secs_f64(number).map_err(|_| format!("{number} s is no length of time"))
}

/// Writes a count with three figures and a suffix of 1000: `1.23 M`.
#[must_use]
pub fn show_count(number: f64) -> String {
    show_scaled(number, 1e3, &["", "k", "M", "G", "T"])
}

/// Writes bytes with three figures and a suffix of 1024: `1.23 MiB`.
#[must_use]
pub fn show_bytes(bytes: f64) -> String {
    nandex::raw::size::show_bytes(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_refused_with_a_sentence() {
        assert!(parse_fraction("1.2").unwrap_err().contains("between 0 and 1"));
        assert!(parse_fraction("much").is_err());
    }

    #[test]
    fn numbers_are_shown_with_three_figures() {
        assert_eq!(show_count(93_028.0), "93.0 k");
        assert_eq!(show_count(1_268_090.0), "1.27 M");
        assert_eq!(show_bytes(1536.0), "1.50 KiB");
    }
}
