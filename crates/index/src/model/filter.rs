//! The requirements of a filter.

use crate::WhenFull;

/// The use of a filter, and the resources that it may take. The row of a filter's structure turns it into a
/// configuration.
///
/// ```
/// use nandex::{FilterRequirements, cascade};
///
/// let requirements = FilterRequirements::new(1_000_000, 0.01, 8 << 20);
/// let config = cascade::Config::advised(&requirements)?;
/// assert!(config.costs()?.ram_bytes <= 8 << 20);
/// # Ok::<(), nandex::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FilterRequirements {
    /// The number of different keys it is made for.
    pub keys: u64,
    /// The rate of false positives with this number of keys.
    pub rate: f64,
    /// RAM that it may take, in bytes: buffers, merges and its log's buffers.
    pub ram_bytes: u64,
    /// Whether it is for counting.
    pub counts: bool,
    /// The stored form of a key.
    pub stored_keys: StoredKeys,
    /// The number of levels.
    pub fan_out: FanOut,
    /// The policy when it has as many keys as it was made for.
    pub when_full: WhenFull,
}

impl FilterRequirements {
    /// Returns the requirements of a filter that grows beyond `keys`, and is not for counting.
    #[must_use]
    pub fn new(keys: u64, rate: f64, ram_bytes: u64) -> Self {
        let (fan_out, when_full) = (FanOut::default(), WhenFull::Grow);
        let stored_keys = StoredKeys::default();
        Self { keys, rate, ram_bytes, counts: false, stored_keys, fan_out, when_full }
    }
}

/// The stored form of a key in a filter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum StoredKeys {
    /// A fingerprint as wide as the rate requires, of keys of any width.
    #[default]
    Fingerprints,
    /// The whole key: every key has this number of bytes, and there are no false positives. The rate is then ignored.
    Whole(u8),
}

/// The choice of the number of levels on flash.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FanOut {
    /// The number of levels that suits lookups and writes best.
    #[default]
    Advised,
    /// One level, however large.
    OneLevel,
    /// Each level is this many times larger than the one above.
    Times(u32),
}
