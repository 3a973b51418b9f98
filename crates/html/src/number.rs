//! Numbers formatted for readers.

/// Formats a number for readers: three significant digits, and no powers of ten from a millionth to a
/// million.
#[must_use]
pub fn shown(number: f64) -> String {
    let size = number.abs();
    match size {
        0.0 => "0".into(),
        _ if !(1e-6..1e6).contains(&size) => format!("{number:.2e}"),
        _ => {
            let digits = 2 - size.log10().floor() as i32;
            format!("{number:.*}", usize::try_from(digits).unwrap_or(0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn three_digits_count() {
        let texts = [0.0, 0.000_123_4, 0.9996, 1.5, 12.345, 266.4, 12_345.6, 4e7, 1e-9].map(shown);
        assert_eq!(
            texts,
            ["0", "0.000123", "1.000", "1.50", "12.3", "266", "12346", "4.00e7", "1.00e-9"]
        );
    }
}
