//! Updates of keys: each is turned into a fingerprint of its part, and enters the write path.

use nandex_store::run::Entry;

use super::{CascadeLayout, Inner};
use crate::write::{BATCH, LOCKED_MAX, LogCodec, Partition, by_partition, check_log_of_sums};
use crate::{Error, Result, WhenFull};

impl Inner {
    /// Adds each count to its key, in order, and acknowledges.
    pub(super) fn add_keys<'k>(
        &self,
        mut counts: impl Iterator<Item = (&'k [u8], i64)>,
    ) -> Result<()> {
        let mut entries = Vec::new();
        let mut records = Vec::new();
        loop {
            entries.clear();
            for (key, count) in counts.by_ref().take(BATCH) {
                let (part, fingerprint) = self.place(key);
                entries.push((part, Entry { fingerprint, count }));
            }
            if entries.is_empty() {
                return self.acknowledge();
            }
            let counted = entries.iter().copied().filter(|(_, entry)| entry.count != 0);
            by_partition(self.partitions.len(), counted, |part, entries| {
                self.add_entries(part, entries, &mut records)
            })?;
        }
    }

    /// Adds a count to one key, and acknowledges.
    pub(super) fn add_key(&self, key: &[u8], count: i64) -> Result<()> {
        let (part, fingerprint) = self.place(key);
        if count != 0 {
            self.add_entries(part, &[Entry { fingerprint, count }], &mut Vec::new())?;
        }
        self.acknowledge()
    }

    fn add_entries(&self, part: usize, entries: &[Entry], records: &mut Vec<u8>) -> Result<()> {
        for entries in entries.chunks(LOCKED_MAX) {
            let _reservation = self.wait_for_log(self.codec.logged_bytes(entries))?;
            self.check_keys(entries)?;
            self.apply(part, entries, records)?;
        }
        Ok(())
    }

    /// Fails for updates if the filter has all the keys it was made for and may not grow.
    pub(super) fn check_keys(&self, entries: &[Entry]) -> Result<()> {
        let config = &self.layout.config;
        if config.when_full == WhenFull::Grow || entries.iter().all(|entry| entry.count < 0) {
            return Ok(());
        }
        let is_full = |held: u64| held + entries.len() as u64 > config.keys;
        // This counts a buffer twice while its merge ends, and never too few.
        if !is_full(self.layout.entries()) {
            return Ok(());
        }
        let held = self.entries_held();
        if is_full(held) {
            return Err(Error::KeysFull { entries: held, keys: config.keys });
        }
        Ok(())
    }

    /// Fingerprints stored, each once per buffer and run that has it. Takes the lock of each part in turn.
    fn entries_held(&self) -> u64 {
        let of = |part: &Partition<CascadeLayout>| {
            let state = part.read();
            state.entries_buffered() + state.level.entries()
        };
        self.partitions.iter().map(of).sum()
    }

    /// Fails for a filter whose buffers the log cannot cover.
    pub(super) fn check_log(volume: &nandex_store::Volume, config: &super::Config) -> Result<()> {
        let update_bytes = super::Config::update_bytes(config.universe()?) as u64;
        let bytes = config.buffer_entries.saturating_mul(update_bytes);
        let buffers = format!("{} fingerprints", config.buffer_entries);
        check_log_of_sums(volume, bytes, &buffers, "the filter with smaller buffers")
    }
}
