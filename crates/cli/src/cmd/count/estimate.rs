//! `--top N`: a running estimate of the most frequent of the keys that a run adds, without a scan of the table.

use anyhow::{Context, Result};
use nandex::raw::counting::{EstimateConfig, EstimatedKey, TopEstimate};
use nandex::raw::store::hash::KeyHasher;
use serde::Serialize;

use super::form::KeyForm;
use super::input::Amount;
use super::written::{JsonKey, WrittenKeys};
use crate::field::FieldFormat;
use crate::refuse;
use crate::size::{self, show_bytes, show_count};

/// The number of keys that it follows for each one requested, if the RAM suffices, and the least number.
const FOLLOWED_PER_KEY: usize = 100;
const FOLLOWED_MIN: usize = 10_000;
/// The longest key, in bytes, that it follows if a table accepts keys of any length.
const ANY_BYTES_MAX: usize = 256;
/// The reciprocal of the largest share of a run's RAM that it uses.
const RAM_SHARE: u64 = 8;
/// The RAM of a run that has no option for it.
pub const RAM_BYTES: u64 = 64 << 20;

/// The number of keys.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct EstimateArgs {
    /// Print the N most frequent of the keys that this run adds, each with a lower and an upper bound of its amount;
    /// estimated in up to an eighth of the RAM, without reading the table
    #[arg(long, value_name = "N", value_parser = size::parse_some)]
    top: Option<u64>,
}

impl EstimateArgs {
    /// Returns the sizes for keys of this form, within the run's RAM.
    ///
    /// # Errors
    /// RAM that suffices for fewer keys than requested.
    pub fn config(self, form: KeyForm, run_ram_bytes: u64) -> Result<Option<EstimateConfig>> {
        let Some(top) = self.top else { return Ok(None) };
        let count = usize::try_from(top)?;
        let key_bytes_max = match form {
            KeyForm::Fingerprints(_) => ANY_BYTES_MAX,
            _ => form.keys().stored_bytes(),
        };
        let ram_bytes = run_ram_bytes / RAM_SHARE;
        let wanted = count.saturating_mul(FOLLOWED_PER_KEY).max(FOLLOWED_MIN);
        // Each key takes more than one byte of RAM, so this is no less than what fits.
        let mut capacity = wanted.min(usize::try_from(ram_bytes)?);
        while capacity > 0 && (EstimateConfig { capacity, key_bytes_max }).ram_bytes() > ram_bytes {
            capacity -= capacity.div_ceil(16);
        }
        if count == 0 || capacity < count {
            refuse!(
                "--top {top}: an eighth of {} of RAM follows {} keys; ask for 1 to as many, or use `nandex count top` \
                 later, which is exact",
                show_bytes(run_ram_bytes),
                show_count(capacity as u64)
            );
        }
        Ok(Some(EstimateConfig { capacity, key_bytes_max }))
    }
}

/// The estimate of a run.
#[derive(Debug)]
pub struct RunningTop {
    count: usize,
    estimate: TopEstimate,
    written: WrittenKeys,
}

/// The result at the end of a run.
#[derive(Debug, Serialize)]
pub struct EstimatedTop {
    top: Vec<EstimatedRow>,
    /// The most that any other key can have.
    others_upper: i64,
    /// The number of additions of keys that are too long to follow.
    keys_not_followed: u64,
    ram_bytes: u64,
    #[serde(skip)]
    lines: Vec<String>,
}

/// A key with the bounds of its count.
#[derive(Debug, Serialize)]
struct EstimatedRow {
    #[serde(flatten)]
    key: JsonKey,
    lower: i64,
    upper: i64,
    certain: bool,
}

impl RunningTop {
    /// Creates an empty estimate; returns `None` if none is requested.
    ///
    /// # Errors
    /// As [`EstimateArgs::config`]; a format in which the keys cannot be shown.
    pub fn new(
        args: EstimateArgs,
        (form, format): (KeyForm, Option<FieldFormat>),
        (hasher, run_ram_bytes): (KeyHasher, u64),
    ) -> Result<Option<Self>> {
        let Some(config) = args.config(form, run_ram_bytes)? else { return Ok(None) };
        let count = usize::try_from(args.top.unwrap_or(0))?;
        let written = WrittenKeys::new(form, format)?;
        Ok(Some(Self { count, estimate: TopEstimate::new(config, hasher)?, written }))
    }

    /// Adds the amounts that are added to the table.
    ///
    /// # Errors
    /// Amounts whose sum exceeds 63 bits.
    pub fn add(&mut self, amounts: &[Amount]) -> Result<()> {
        let too_much = "--top adds up all amounts, and they are too large for that: leave it out";
        let mut amounts = amounts.iter();
        amounts.try_for_each(|(key, amount)| self.estimate.add(key, *amount)).context(too_much)
    }

    /// Returns the current result.
    ///
    /// # Errors
    /// A key that cannot be shown.
    pub fn estimated(&self) -> Result<EstimatedTop> {
        let top = self.estimate.top(self.count);
        let rows = top.iter().map(|it| self.row(it)).collect::<Result<_>>()?;
        Ok(EstimatedTop {
            top: rows,
            others_upper: self.estimate.others().upper,
            keys_not_followed: self.estimate.too_long(),
            ram_bytes: self.estimate.ram_bytes(),
            lines: top.iter().map(|it| self.line(it)).collect::<Result<_>>()?,
        })
    }

    fn row(&self, it: &EstimatedKey) -> Result<EstimatedRow> {
        Ok(EstimatedRow {
            key: self.written.json_key(self.written.form.key_of(&it.key)?)?,
            lower: it.bounds.lower,
            upper: it.bounds.upper,
            certain: it.is_certain,
        })
    }

    fn line(&self, it: &EstimatedKey) -> Result<String> {
        let key = self.written.key_line(self.written.form.key_of(&it.key)?)?;
        let mark = if it.is_certain { "" } else { "\t?" };
        Ok(format!("{key}\t{}\t{}{mark}\n", it.bounds.lower, it.bounds.upper))
    }
}

impl EstimatedTop {
    /// The RAM that the estimate took, in bytes.
    pub fn ram_bytes(&self) -> u64 {
        self.ram_bytes
    }

    /// Returns a summary for people, without the keys.
    pub fn summary(&self) -> String {
        format!(
            "key, lower bound and upper bound of what was added; others have at most {}; in {}",
            show_count(self.others_upper.unsigned_abs()),
            show_bytes(self.ram_bytes)
        )
    }

    /// Returns a line for each key, with its bounds.
    pub fn lines(&self) -> String {
        self.lines.concat()
    }

    /// Returns a note for people about the keys that it did not follow.
    pub fn note(&self) -> Option<String> {
        let keys = show_count(self.keys_not_followed);
        (self.keys_not_followed > 0).then(|| {
            format!("{keys} keys of more than {ANY_BYTES_MAX} bytes are counted, and not followed by --top")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_follows_as_many_keys_as_an_eighth_of_the_ram_takes() {
        let config =
            |top, ram_bytes| EstimateArgs { top: Some(top) }.config(KeyForm::Texts(31), ram_bytes);
        assert_eq!(config(10, RAM_BYTES).unwrap().unwrap().capacity, FOLLOWED_MIN);
        let many = config(10_000, RAM_BYTES).unwrap().unwrap();
        assert!(many.ram_bytes() <= 8 << 20 && many.capacity > 50_000, "{many:?}");
        for (top, ram_bytes) in [(0, RAM_BYTES), (1 << 40, RAM_BYTES), (1000, 1 << 16), (1, 0)] {
            let error = config(top, ram_bytes).unwrap_err().to_string();
            assert!(error.contains("an eighth of"), "{error}");
        }
        assert_eq!(EstimateArgs::default().config(KeyForm::Numbers, 0).unwrap(), None);
    }
}
