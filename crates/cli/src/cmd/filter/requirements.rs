//! The requirements of a new filter: options of the verbs that create one.

use std::str::FromStr;

use anyhow::Result;
use nandex::raw::Stated;
use nandex::raw::model::FanOut;
use nandex::raw::store::fingerprint::Universe;
use nandex::raw::store::hash::KeyHasher;
use nandex::raw::store::schedule::Channels;
use nandex::{FilterRequirements, WhenFull, cascade, slicebloom};

use super::kind::FilterConfig;
use crate::console::Console;
use crate::hashing::HashArgs;
use crate::key_feed::{KeyArgs, advised_beside};
use crate::size;
use crate::stated::StatedArgs;

/// The number of keys that a filter is sized for if nothing is known.
const KEYS_UNKNOWN: u64 = 100_000_000;
/// The fewest keys that an estimate sizes a filter for.
const KEYS_MIN: u64 = 100_000;

/// The places in buffers for each key of a filter that holds all of them in RAM where they fit.
const BUFFERS_PER_KEY: u64 = 4;
/// The rate of a window, unless it is stated.
const WINDOW_RATE: f64 = 1e-6;

/// The needs of a verb that creates a filter.
#[derive(Clone, Copy, Debug)]
pub struct Aim {
    /// Its rate of false positives; `None` for the lowest there is.
    pub rate: Option<f64>,
    /// The bytes that the rest of the verb takes of the RAM that is stated.
    pub others: fn(u64) -> u64,
}

/// The requirements of a new filter.
#[derive(Clone, Debug, clap::Args)]
pub struct FilterRequirementArgs {
    /// Number of different keys to size the filter for; default: the estimated number of keys in the inputs
    #[arg(long, value_name = "COUNT", value_parser = size::parse_some)]
    keys: Option<u64>,
    /// Create a window: it has the last COUNT keys that were inserted, forgets older ones, and deletes none
    #[arg(
        long,
        value_name = "COUNT",
        value_parser = size::parse_some,
        conflicts_with_all = ["keys", "fan_out", "counts", "refuse"]
    )]
    window: Option<u64>,
    /// Most RAM to use
    #[arg(long, value_name = "SIZE", value_parser = size::parse_some_bytes, default_value = "64MiB")]
    ram: u64,
    /// Levels on flash: auto, one, or the ratio of each level's size to the one above
    #[arg(long, value_name = "TIMES", default_value = "auto")]
    fan_out: FanOutArg,
    /// Store counts compactly: for keys that are added often
    #[arg(long)]
    counts: bool,
    /// Refuse more keys than the filter is sized for, which keeps its rate of false positives
    #[arg(long)]
    refuse: bool,
    #[command(flatten)]
    hashing: HashArgs,
    #[command(flatten)]
    stated: StatedArgs,
}

/// A fan-out, parsed from its word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FanOutArg(FanOut);

impl FromStr for FanOutArg {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "auto" => Ok(Self(FanOut::Advised)),
            "one" => Ok(Self(FanOut::OneLevel)),
            _ => match word.parse() {
                Ok(times @ 2..) => Ok(Self(FanOut::Times(times))),
                _ => Err(format!(
                    "`{word}` is not a fan-out; choose auto, one, or a number from 2 on"
                )),
            },
        }
    }
}

impl FilterRequirementArgs {
    /// Returns the hash function of keys.
    ///
    /// # Errors
    /// As [`HashArgs::hasher`].
    pub fn hasher(&self) -> Result<KeyHasher> {
        self.hashing.hasher()
    }

    /// Returns the parameters, and options of this run.
    pub fn stated(&self) -> Stated {
        self.stated.stated()
    }

    /// Returns the configuration for a device with these channels, with the largest buffers that fit the RAM and the
    /// given parameters. Prints the number of keys that it is sized for if that was not given.
    ///
    /// # Errors
    /// Invalid sizes, with valid ones; a failed read of the inputs.
    pub fn config(
        &self,
        inputs: &KeyArgs,
        aim: Aim,
        channels: &Channels,
        console: &Console,
    ) -> Result<FilterConfig> {
        Ok(match self.advised(inputs, aim, console)?.aligned_to(channels) {
            FilterConfig::Set(config) => FilterConfig::Set(self.stated.on_one(config)?),
            FilterConfig::Window(config) => FilterConfig::Window(self.stated.on_one(config)?),
        })
    }

    fn advised(&self, inputs: &KeyArgs, aim: Aim, console: &Console) -> Result<FilterConfig> {
        if let Some(window) = self.window {
            let rate = aim.rate.unwrap_or(WINDOW_RATE);
            let advise =
                |ram| slicebloom::Config::advised(&FilterRequirements::new(window, rate, ram));
            let what = format!("a window of {window} keys at a rate of {rate}");
            return Ok(FilterConfig::Window(advised_beside(
                (self.ram, &what),
                aim.others,
                advise,
            )?));
        }
        let keys = match self.keys {
            Some(keys) => keys,
            None => {
                let keys = inputs.estimate()?.map_or(KEYS_UNKNOWN, |keys| keys + keys / 8);
                let keys = keys.max(KEYS_MIN);
                if aim.rate.is_some() {
                    let shown = size::show_count(keys);
                    console.note(&format!(
                        "made for {shown} keys; with more it errs more often; give their number with --keys"
                    ));
                }
                keys
            }
        };
        // With all fingerprints there are, the rate does not depend on the number of keys, which then only limits the
        // buffers: they are filled up in turn, so that all keys fit when they are larger.
        let (keys, rate) = match aim.rate {
            Some(rate) => (keys, rate),
            None => {
                let keys = keys.saturating_mul(BUFFERS_PER_KEY);
                (keys, keys as f64 / Universe::SIZE_MAX as f64)
            }
        };
        let when_full = if self.refuse { WhenFull::Refuse } else { WhenFull::Grow };
        let (counts, fan_out) = (self.counts, self.fan_out.0);
        let advise = |ram| {
            let asked = FilterRequirements::new(keys, rate, ram);
            cascade::Config::advised(&FilterRequirements { counts, fan_out, when_full, ..asked })
        };
        let what = format!("a filter for {keys} keys at a rate of {rate}");
        Ok(FilterConfig::Set(advised_beside((self.ram, &what), aim.others, advise)?))
    }

    /// The RAM of the run, in bytes.
    pub fn ram(&self) -> u64 {
        self.ram
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_are_no_choices_are_refused_with_the_choices() {
        assert_eq!("one".parse(), Ok(FanOutArg(FanOut::OneLevel)));
        assert_eq!("8".parse(), Ok(FanOutArg(FanOut::Times(8))));
        assert!("1".parse::<FanOutArg>().unwrap_err().contains("auto, one, or a number from 2"));
    }
}
