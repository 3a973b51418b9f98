//! The buffer in RAM: a quotient filter, the deck's Q0, and what has to be known of it when it leaves.

use nandex_store::run::{Entry, Source};

use crate::quotient::{RankFilter, Shape};
use crate::{Error, Result};

/// Updates that go into the buffer and the log together.
#[derive(Clone, Copy, Debug)]
pub(super) enum Updates<'a> {
    /// Each fingerprint is there once more.
    Insert(&'a [u64]),
    /// Each fingerprint is there once less.
    Delete(&'a [u64]),
    /// Each fingerprint is there so many times more or less.
    Add(&'a [Entry]),
}

impl<'a> Updates<'a> {
    pub(super) fn len(self) -> usize {
        match self {
            Self::Insert(fingerprints) | Self::Delete(fingerprints) => fingerprints.len(),
            Self::Add(entries) => entries.len(),
        }
    }

    /// All but the first so many.
    pub(super) fn after(self, count: usize) -> Self {
        match self {
            Self::Insert(fingerprints) => Self::Insert(&fingerprints[count..]),
            Self::Delete(fingerprints) => Self::Delete(&fingerprints[count..]),
            Self::Add(entries) => Self::Add(&entries[count..]),
        }
    }

    /// The first so many.
    pub(super) fn first(self, count: usize) -> Self {
        match self {
            Self::Insert(fingerprints) => Self::Insert(&fingerprints[..count]),
            Self::Delete(fingerprints) => Self::Delete(&fingerprints[..count]),
            Self::Add(entries) => Self::Add(&entries[..count]),
        }
    }
}

/// Fingerprints in RAM.
#[derive(Debug)]
pub(super) struct Buffer {
    filter: RankFilter,
    /// Updates since it was empty or just as an image on flash.
    pub updates: u64,
    /// May there be tombstones in it?
    pub has_deletes: bool,
}

impl Buffer {
    pub(super) fn new(shape: Shape) -> Self {
        Self { filter: RankFilter::new(shape), updates: 0, has_deletes: false }
    }

    /// Applies updates up to the first that finds no room; gives how many there were.
    ///
    /// # Errors
    /// A count past 63 bits. Those before it are applied.
    pub(super) fn apply(&mut self, updates: Updates<'_>) -> Result<usize> {
        let count = match updates {
            Updates::Insert(fingerprints) => self.filter.add_many(fingerprints)?,
            Updates::Delete(fingerprints) => {
                self.has_deletes = true;
                self.add_each(fingerprints.iter().map(|fingerprint| (*fingerprint, -1)))?
            }
            Updates::Add(entries) => {
                self.has_deletes |= entries.iter().any(|entry| entry.count < 0);
                self.add_each(entries.iter().map(|entry| (entry.fingerprint, entry.count)))?
            }
        };
        self.updates += count as u64;
        Ok(count)
    }

    fn add_each(&mut self, updates: impl Iterator<Item = (u64, i64)>) -> Result<usize> {
        let mut done = 0;
        for (fingerprint, count) in updates {
            match self.filter.add(fingerprint, count) {
                Err(Error::FilterFull { .. }) => break,
                added => added?,
            }
            done += 1;
        }
        Ok(done)
    }

    /// Takes in an image, which is on flash and so no update.
    ///
    /// # Errors
    /// A failed read, or damage.
    pub(super) fn load(&mut self, image: &mut dyn Source) -> Result<()> {
        let updates = self.updates;
        let mut batch = Vec::new();
        while image.next_batch(&mut batch)? {
            let taken = self.apply(Updates::Add(&batch))?;
            assert_eq!(taken, batch.len(), "an image that is loaded fits");
            batch.clear();
        }
        self.updates = updates;
        Ok(())
    }

    pub(super) fn count(&self, fingerprint: u64) -> i64 {
        self.filter.count(fingerprint)
    }

    pub(super) fn prefetch(&self, fingerprint: u64) {
        self.filter.prefetch(fingerprint);
    }

    pub(super) fn source(&self) -> Box<dyn Source + '_> {
        Box::new(self.filter.source())
    }

    pub(super) fn entries(&self) -> u64 {
        self.filter.entries()
    }

    pub(super) fn ram_bytes(&self) -> u64 {
        self.filter.ram_bytes() as u64
    }

    pub(super) fn clear(&mut self) {
        self.filter.clear();
        (self.updates, self.has_deletes) = (0, false);
    }
}
