//! The hash of keys: options of the verbs that create filters and counts, which merge only if they hash alike.

use std::str::FromStr;

use anyhow::Result;
use clap::ValueEnum;
use nandex::raw::cascade::model::SHARED_HASH_KEY;
use nandex::raw::store::hash::{HashKind, KeyHasher};

/// The hash function and its key.
#[derive(Clone, Debug, clap::Args)]
pub struct HashArgs {
    /// Hash function of keys
    #[arg(long, value_name = "HASH", default_value = "xxh3")]
    hash: HashArg,
    /// Key of the hash: `shared`, the default of all filters and counts; `random`; or up to 32 digits in hex
    #[arg(long, value_name = "KEY", default_value = "shared")]
    hash_key: HashKeyArg,
}

/// A hash, by its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum HashArg {
    /// XXH3: fast, for trusted keys
    Xxh3,
    /// SipHash-1-3: for untrusted keys, with a secret key
    Sip13,
}

/// A hash key, by its word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HashKeyArg {
    /// A new random key.
    Random,
    /// This one.
    Given(u128),
}

impl HashKeyArg {
    /// Returns the key itself; `None` for one that is drawn when the volume is created.
    pub fn given(self) -> Option<u128> {
        match self {
            Self::Given(key) => Some(key),
            Self::Random => None,
        }
    }
}

impl FromStr for HashKeyArg {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "shared" => Ok(Self::Given(SHARED_HASH_KEY)),
            "random" => Ok(Self::Random),
            _ => u128::from_str_radix(word.trim_start_matches("0x"), 16).map(Self::Given).map_err(
                |_| {
                    format!(
                        "`{word}` is not a hash key; choose shared, random, or up to 32 digits in hex"
                    )
                },
            ),
        }
    }
}

impl HashArgs {
    /// Returns the hash function with its key.
    ///
    /// # Errors
    /// The kernel has no random key.
    pub fn hasher(&self) -> Result<KeyHasher> {
        let kind = match self.hash {
            HashArg::Xxh3 => HashKind::Xxh3,
            HashArg::Sip13 => HashKind::Sip13,
        };
        let key = match self.hash_key {
            HashKeyArg::Given(key) => key,
            HashKeyArg::Random => nandex::raw::device::random_u128()?,
        };
        Ok(KeyHasher::new(kind, key))
    }
}

/// Returns the hash function's name on the command line.
pub fn hash_name(kind: HashKind) -> &'static str {
    match kind {
        HashKind::Identity => "identity",
        HashKind::Xxh3 => "xxh3",
        HashKind::Sip13 => "sip13",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_are_no_choices_are_refused_with_the_choices() {
        assert_eq!("shared".parse(), Ok(HashKeyArg::Given(SHARED_HASH_KEY)));
        assert_eq!("0xff".parse(), Ok(HashKeyArg::Given(255)));
        assert!("secret".parse::<HashKeyArg>().unwrap_err().contains("32 digits in hex"));
    }
}
