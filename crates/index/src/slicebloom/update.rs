//! Updates of keys: each is turned into a fingerprint of its partition, and enters the write path.

use nandex_store::Volume;

use super::format::FINGERPRINT_BYTES;
use super::{Config, Inner};
use crate::Result;
use crate::write::{BATCH, by_partition, check_log_of_sums};

impl Inner {
    /// Adds each key, in order, and acknowledges.
    pub(super) fn add_keys<'k>(&self, mut keys: impl Iterator<Item = &'k [u8]>) -> Result<()> {
        let mut records = Vec::new();
        loop {
            let located: Vec<_> = keys.by_ref().take(BATCH).map(|key| self.place(key)).collect();
            if located.is_empty() {
                return self.acknowledge();
            }
            by_partition(self.partitions.len(), located.iter().copied(), |index, fingerprints| {
                self.reserve_and_apply(index, fingerprints, &mut records)
            })?;
        }
    }

    /// Adds one key, and acknowledges.
    pub(super) fn add_key(&self, key: &[u8]) -> Result<()> {
        let (index, fingerprint) = self.place(key);
        self.reserve_and_apply(index, &[fingerprint], &mut Vec::new())?;
        self.acknowledge()
    }

    /// Fails for a filter whose buffers the log cannot cover.
    pub(super) fn check_log(volume: &Volume, config: &Config) -> Result<()> {
        let bytes = config.buffer_keys_in_all() * FINGERPRINT_BYTES as u64;
        let buffers = format!("{} keys", config.buffer_keys_in_all());
        check_log_of_sums(volume, bytes, &buffers, "the filter with fewer or smaller buffers")
    }
}
