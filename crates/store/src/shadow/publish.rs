//! From a written draft to a logical block's newest version: the steps, in the one order that is safe.

use nandex_device::Device;

use super::{Draft, MAP_UPDATE_BYTES, MapUpdate, Shadow};
use crate::mutants::{Barrier, is_on};
use crate::{Error, Log, Poison, Result};

/// The parts of a volume that a structure needs to publish its drafts.
#[derive(Clone, Copy, Debug)]
pub struct Journal<'a> {
    /// The device that the blocks are on.
    pub device: &'a dyn Device,
    /// The volume's log.
    pub log: &'a Log,
    /// The volume's mark of a failed write or sync.
    pub poison: &'a Poison,
    /// The bytes before a map update's in the structure's log entries, which distinguish them from its other entries.
    pub prefix: &'a [u8],
}

/// A draft whose pages are durable, so that a map may name it.
#[derive(Debug)]
#[must_use = "a draft that is not published is lost"]
pub struct DurableDraft(Draft);

/// The event that makes published drafts durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Published {
    /// The next sync of the log, or the next checkpoint.
    Logged,
    /// The next checkpoint, because the log was full. Until then their old versions take up spares.
    AwaitsCheckpoint,
}

impl Shadow {
    /// Makes written drafts the newest versions of their logical blocks, each with its number of entries.
    /// Combines [`make_durable`](Self::make_durable) and [`publish_durable`](Self::publish_durable), for
    /// structures with nothing to do in between.
    ///
    /// # Errors
    /// As for those two.
    pub fn publish(
        &self,
        journal: Journal<'_>,
        written: impl IntoIterator<Item = (Draft, u32)>,
    ) -> Result<Published> {
        let written: Vec<_> = written.into_iter().collect();
        self.sync_drafts(&journal)?;
        let mut published = Published::Logged;
        for (draft, entries) in written {
            match self.publish_durable(&journal, DurableDraft(draft), entries, &[])? {
                Published::Logged => {}
                awaits => published = awaits,
            }
        }
        Ok(published)
    }

    /// Makes a written draft durable. Every write to it must have completed. Costs one sync.
    ///
    /// # Errors
    /// [`Error::Poisoned`], or the sync's failure, which poisons the volume.
    pub fn make_durable(&self, journal: &Journal<'_>, draft: Draft) -> Result<DurableDraft> {
        self.sync_drafts(journal)?;
        Ok(DurableDraft(draft))
    }

    fn sync_drafts(&self, journal: &Journal<'_>) -> Result<()> {
        journal.poison.check()?;
        if is_on(Barrier::ShadowSyncsBlocks) {
            journal.poison.guard(journal.device.sync())?;
        }
        Ok(())
    }

    /// Makes a durable draft the newest version of its logical block, and logs that, with `suffix` after the map
    /// update's bytes. A crash finds the block old or new. Does not wait, so the caller may hold the lock under which
    /// the entries of the new version leave RAM.
    ///
    /// Entries that the new version took from buffers stay in the log until a checkpoint has captured the map with it;
    /// so nothing is lost if the log was too full for the map update. Costs 20 bytes, prefix and suffix in the log.
    ///
    /// # Errors
    /// A failure of the log other than [`Error::LogFull`].
    pub fn publish_durable(
        &self,
        journal: &Journal<'_>,
        DurableDraft(draft): DurableDraft,
        entries: u32,
        suffix: &[u8],
    ) -> Result<Published> {
        // The map changes first: a checkpoint that is captured in between holds the map update, and its replay changes
        // nothing. In the other order the checkpoint's tail might be past the record while its map lacks the map
        // update, and the old block would be freed nevertheless.
        let update = self.update_map(draft, entries);
        match journal.append(self, update, suffix) {
            Err(Error::LogFull { .. }) => Ok(Published::AwaitsCheckpoint),
            result => result.map(|()| Published::Logged),
        }
    }

    /// Makes a durable draft the newest version of its logical block, which survives a crash only with the next
    /// checkpoint: for versions that the structure's maps describe in a way that a log entry could not.
    pub fn publish_with_checkpoint(&self, DurableDraft(draft): DurableDraft, entries: u32) {
        self.update_map(draft, entries);
    }

    /// Frees blocks that wait only for a sync of the log, and syncs it if none is free otherwise. Returns whether one
    /// is free; if not, that takes a checkpoint, or the end of another rewrite.
    ///
    /// # Errors
    /// As [`Log::sync`].
    pub fn make_space(&self, log: &Log) -> Result<bool> {
        self.synced(log.synced());
        if self.free_blocks() == 0 && self.pool.lock().awaits_log() {
            log.sync()?;
            self.synced(log.synced());
        }
        Ok(self.free_blocks() > 0)
    }
}

impl Journal<'_> {
    fn append(&self, shadow: &Shadow, update: MapUpdate, suffix: &[u8]) -> Result<()> {
        let bytes: [u8; MAP_UPDATE_BYTES] = update.encode();
        let record = self.log.append(shadow.structure, &[self.prefix, &bytes, suffix])?;
        shadow.logged(update, record);
        Ok(())
    }
}
