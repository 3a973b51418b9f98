//! The origin of a report: the command line, the version and the date.

use std::env;
use std::time::{SystemTime, UNIX_EPOCH};

use nandex_dedup::Provenance;

const DAY_S: u64 = 86_400;
/// The number of days of 400 years, after which the calendar repeats itself.
const ERA_DAYS: u64 = 146_097;

/// Returns the origin of this command, now.
pub fn now() -> Provenance {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let words: Vec<String> =
        env::args_os().skip(1).map(|word| quoted(&word.to_string_lossy())).collect();
    Provenance {
        command: format!("nandex {}", words.join(" ")),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        date: utc(since.as_secs()),
    }
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Formats seconds since 1970 as a date and time in UTC, by ISO 8601.
fn utc(seconds: u64) -> String {
    let (days, second) = (seconds / DAY_S, seconds % DAY_S);
    // Years that begin in March have their leap day last: days since 0000-03-01, in eras of 400 years.
    let days = days + 719_468;
    let (era, day) = (days / ERA_DAYS, days % ERA_DAYS);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = match month {
        0..=9 => (era * 400 + year, month + 3),
        _ => (era * 400 + year + 1, month - 9),
    };
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_dates_with_leap_years_where_they_belong() {
        for (seconds, date) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_799, "2000-02-29T23:59:59Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc(seconds), date);
        }
    }

    #[test]
    fn a_word_that_a_shell_would_change_is_quoted() {
        assert_eq!(quoted("--avg=8KiB"), "--avg=8KiB");
        assert_eq!(quoted("my photos"), "'my photos'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
