//! Updates of keys: each becomes a fingerprint of its partition, and enters the write path.

use nandex_store::{Durability, Volume};

use super::format::FINGERPRINT_BYTES;
use super::{Config, Inner};
use crate::model::text;
use crate::write::{BATCH, by_partition};
use crate::{Error, Result};

impl Inner {
    /// Adds each key, in order, and acknowledges.
    pub(super) fn add_keys(&self, keys: &[&[u8]]) -> Result<()> {
        let mut records = Vec::new();
        for keys in keys.chunks(BATCH) {
            let located: Vec<_> = keys.iter().map(|key| self.place(key)).collect();
            by_partition(self.partitions.len(), located.iter().copied(), |index, fingerprints| {
                self.reserve_and_apply(index, fingerprints, &mut records)
            })?;
        }
        self.acknowledge()
    }

    /// Adds one key, and acknowledges.
    pub(super) fn add_key(&self, key: &[u8]) -> Result<()> {
        let (index, fingerprint) = self.place(key);
        self.reserve_and_apply(index, &[fingerprint], &mut Vec::new())?;
        self.acknowledge()
    }

    /// Refuses a filter whose buffers the log cannot cover. Without durability it need not cover them: if the
    /// filter is opened with durability later, it saves its buffers before they are full.
    pub(super) fn check_log(volume: &Volume, config: &Config) -> Result<()> {
        let bytes = config.buffer_keys_in_all() * FINGERPRINT_BYTES as u64;
        let log_bytes = volume.log().capacity_bytes();
        if volume.durability() == Durability::Never || log_bytes >= 2 * bytes {
            return Ok(());
        }
        let reason = format!(
            "the volume's log of {} is too small for buffers of {} keys; create the volume with a log of at least {}, \
             or the filter with fewer or smaller buffers",
            text::bytes(log_bytes),
            config.buffer_keys_in_all(),
            text::bytes(4 * bytes)
        );
        Err(Error::Config { field: "log_bytes", reason })
    }
}
