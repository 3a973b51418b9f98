//! Changes of keys: each is turned into a change of the stored bytes, and enters the write path.

use super::buffer::KeyChange;
use super::change::Change;
use super::format::record_bytes;
use super::read::KeyPlace;
use super::{Config, Inner};
use crate::write::{BATCH, by_partition, check_log_of_sums};
use crate::{Error, Result};

impl Inner {
    /// Applies each change to its key, in order, and acknowledges.
    pub(super) fn change_keys<'k>(
        &self,
        mut changes: impl Iterator<Item = (&'k [u8], Change)>,
    ) -> Result<()> {
        let width = self.placing().width();
        // The vector is as long as the batch from the start: a key and its place take 64 bytes, and growing would copy
        // them.
        let most = changes.size_hint().0.min(BATCH);
        let mut located: Vec<(KeyPlace, Change)> = Vec::with_capacity(most);
        let mut records = Vec::new();
        loop {
            located.clear();
            for (key, change) in changes.by_ref().take(BATCH) {
                located.push((self.locate_changed(key, change)?, change));
            }
            if located.is_empty() {
                return self.acknowledge();
            }
            let updates = located.iter().filter(|(_, change)| !change.is_nothing());
            let updates = updates.map(|(at, change)| (at.partition, update(at, *change, width)));
            by_partition(self.partitions.len(), updates, |index, updates| {
                self.reserve_and_apply(index, updates, &mut records)
            })?;
        }
    }

    /// Applies a change to one key, and acknowledges. Allocates no memory unless the buffer does.
    pub(super) fn change_key(&self, key: &[u8], change: Change) -> Result<()> {
        let at = self.locate_changed(key, change)?;
        if !change.is_nothing() {
            let update = update(&at, change, self.placing().width());
            self.reserve_and_apply(at.partition, &[update], &mut Vec::new())?;
        }
        self.acknowledge()
    }

    /// Returns the place of a key that changes. Fails for a key of another width, and an amount that no sum can have.
    fn locate_changed(&self, key: &[u8], change: Change) -> Result<KeyPlace> {
        self.placing().check(key)?;
        if change.amount == i64::MIN {
            return Err(Error::CountRange { count: 0, amount: change.amount });
        }
        Ok(self.locate(key))
    }

    /// Fails for a table whose buffers the log cannot cover.
    pub(super) fn check_log(volume: &nandex_store::Volume, config: &Config) -> Result<()> {
        let (short, _) = record_bytes(config.keys.stored_bytes());
        let bytes = config.buffer_entries.saturating_mul(short as u64);
        let buffers = format!("{} keys", config.buffer_entries);
        check_log_of_sums(volume, bytes, &buffers, "the table with smaller buffers")
    }
}

pub(super) fn update(at: &KeyPlace, change: Change, width: usize) -> KeyChange<'_> {
    KeyChange { place: at.place, key: &at.key[..width], change }
}
