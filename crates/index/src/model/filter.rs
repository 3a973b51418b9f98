//! What a user asks of a filter.

use crate::WhenFull;

/// What a filter is for, and what it may take. The row of a filter's structure turns it into a configuration.
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
    /// Different keys it is made for.
    pub keys: u64,
    /// Rate of false positives with that many keys in it.
    pub rate: f64,
    /// RAM that it may take, in bytes: buffers, merges and its log's buffers.
    pub ram_bytes: u64,
    /// Is it for counting?
    pub counts: bool,
    /// What is kept of a key.
    pub stored_keys: StoredKeys,
    /// How many levels there are.
    pub fan_out: FanOut,
    /// What happens when it has as many keys as it was made for.
    pub when_full: WhenFull,
}

impl FilterRequirements {
    /// A filter that grows when there are more keys, and is not for counting.
    #[must_use]
    pub fn new(keys: u64, rate: f64, ram_bytes: u64) -> Self {
        let (fan_out, when_full) = (FanOut::default(), WhenFull::Grow);
        let stored_keys = StoredKeys::default();
        Self { keys, rate, ram_bytes, counts: false, stored_keys, fan_out, when_full }
    }
}

/// What a filter keeps of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum StoredKeys {
    /// A fingerprint as wide as the rate requires, of keys of any width.
    #[default]
    Fingerprints,
    /// All of it: every key has that many bytes, and there are no false positives. The rate does not matter then.
    Whole(u8),
}

/// What decides the number of levels on flash.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FanOut {
    /// As few as serve lookups and writes best.
    #[default]
    Advised,
    /// One level, however large.
    OneLevel,
    /// Each level is this many times larger than the one above.
    Times(u32),
}
