//! Compaction: copies a structure's contents into a new one of the size that they need, which takes its place.
//!
//! A table that grows, or a map, is copied in hash order into a new one sized for its number of entries. When the copy
//! is durable, it takes the name and the place of the old one in one checkpoint. A crash before that leaves the old
//! one, and the next opening removes the copy. A filter merges its levels into one.

use nandex_store::Volume;

use super::{Database, TableOrMap};
use crate::any::AnyFilter;
use crate::large::table_name;
use crate::registry::{self, Family};
use crate::write::absorb::Watch;
use crate::{AnyTable, Error, LargeTable, OpenOptions, Result};

/// The pairs copied at a time, and their most bytes, unless one pair has more.
const BATCH: (usize, usize) = (1024, 1 << 20);

/// The result of a compaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Compacted {
    /// The entries of a table, or the keys of a map; 0 for others.
    pub entries: u64,
    /// The bytes of its pages before.
    pub flash_bytes_before: u64,
    /// The bytes of its pages now.
    pub flash_bytes: u64,
}

impl Database {
    /// Compacts a structure into the least space, and returns the rest to the database: the space of keys that were
    /// removed or replaced, and space that it has grown into. Afterwards a lookup in a table that grows searches one
    /// part. A structure of fixed size, or one that evicts, stays as it is.
    ///
    /// The structure must not be open. A table or map that grows is copied, so it takes its new space and RAM in
    /// addition to the old until the end; if the copy is interrupted, the structure stays as it was. `watch` receives
    /// the share that is done, and may cancel the compaction.
    ///
    /// Costs two reads of all pages and a write of all entries; for a map, also a read of each record in random order.
    /// If nothing can be freed, costs one read of all pages, which counts the entries.
    ///
    /// # Errors
    /// No structure of that name; one that is open, or of a kind that this build does not have; too little RAM or
    /// space for both; damage, a failed read or write; [`Error::Stopped`].
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("all.nandex");
    /// let db = nandex::open(&path)?;
    /// let map = db.map("urls").create_or_open()?;
    /// for number in 0..1000u32 {
    ///     map.put(&number.to_le_bytes(), &[7; 100])?;
    /// }
    /// for number in 10..1000u32 {
    ///     map.remove(&number.to_le_bytes())?;
    /// }
    /// map.close()?;
    /// let compacted = db.compact("urls", &|_share| std::ops::ControlFlow::Continue(()))?;
    /// assert_eq!(compacted.entries, 10);
    /// assert!(compacted.flash_bytes <= compacted.flash_bytes_before);
    /// # Ok::<(), nandex::Error>(())
    /// ```
    pub fn compact(&self, name: &str, watch: &Watch<'_>) -> Result<Compacted> {
        let volume = &self.volume;
        let before = self.pages_bytes(name);
        let kind = registry::kind_in(volume, name)?;
        let mut entries = 0;
        match registry::find(&kind).map(|row| &row.family) {
            Some(Family::Table(_) | Family::Part) => entries = self.rebuild(name, watch)?,
            Some(Family::Filter(_)) => {
                let options = OpenOptions::suited_to(volume);
                let filter = AnyFilter::open(volume, name, &options)?;
                filter.compact()?;
                filter.close()?;
            }
            Some(Family::Neighbors(_)) => {}
            Some(Family::Generation) | None => {
                let reason = format!("{name:?} is of the kind {kind:?}, which is not compacted");
                return Err(Error::Config { field: "kind", reason });
            }
        }
        // Freed pages are reusable once no checkpoint refers to them.
        volume.checkpoint()?;
        let flash_bytes = self.pages_bytes(name);
        Ok(Compacted { entries, flash_bytes_before: before, flash_bytes })
    }

    /// Returns whether compaction may shrink the structure of that name.
    #[must_use]
    pub fn is_compacted(&self, name: &str) -> bool {
        let kind = registry::kind_in(&self.volume, name).ok();
        let family = kind.as_deref().and_then(registry::find).map(|row| &row.family);
        match family {
            Some(Family::Table(_) | Family::Filter(_)) => true,
            Some(Family::Part) => TableOrMap::is_map(&self.volume, name),
            _ => false,
        }
    }

    /// Copies a table or map that grows, and returns the number of its entries.
    fn rebuild(&self, name: &str, watch: &Watch<'_>) -> Result<u64> {
        let volume = &self.volume;
        let options = OpenOptions {
            ram_pool: Some(std::sync::Arc::clone(&self.ram)),
            ..OpenOptions::suited_to(volume)
        };
        let old = TableOrMap::open(volume, name, &options)?;
        // The table's own count is an estimate, and a copy that is too small grows.
        let entries = old.index().iter().try_fold(0, |count, entry| entry.map(|_| count + 1))?;
        if old.compaction_bytes() == 0 {
            old.close()?;
            return Ok(entries);
        }
        let is_map = matches!(old, TableOrMap::Map(_));
        let owners = [name, &table_name(name)];
        let replacement = volume.replace(&owners[..if is_map { 2 } else { 1 }])?;
        let of_new = OpenOptions { entries: Some(with_space(entries)), ..options };
        let new = make_like(volume, &old, &replacement.name(), &of_new)?;
        let copied = copy(&old, &new, entries, watch)?;
        new.close()?;
        old.close()?;
        // Its RAM limit is the one it was created with, not that of this opening.
        replacement.finish(&owners[usize::from(is_map)..][..1])?;
        Ok(copied)
    }
}

/// Returns the number of entries to size a table for that has `entries`: with less space it would prepare to grow.
pub(super) fn with_space(entries: u64) -> u64 {
    entries.saturating_add(entries / 6)
}

/// Creates an empty table or map of the same configuration.
fn make_like(
    volume: &Volume,
    old: &TableOrMap,
    name: &str,
    options: &OpenOptions,
) -> Result<TableOrMap> {
    let config = old.index().config();
    match old {
        TableOrMap::Table(_) => {
            Ok(TableOrMap::Table(AnyTable::create_with(volume, name, &config, options)?))
        }
        TableOrMap::Map(map) => {
            let index = AnyTable::create_with(volume, &table_name(name), &config, options)?;
            Ok(TableOrMap::Map(LargeTable::create(volume, name, index, map.compacted_values())?))
        }
    }
}

/// Copies every pair of `old` into `new`, and returns how many there were.
fn copy(old: &TableOrMap, new: &TableOrMap, entries: u64, watch: &Watch<'_>) -> Result<u64> {
    let mut batch = Vec::with_capacity(BATCH.0);
    let (mut bytes, mut copied) = (0, 0);
    let mut put = |batch: &mut Vec<(Vec<u8>, Vec<u8>)>| {
        let pairs: Vec<_> = batch.iter().map(|(key, value)| (&key[..], &value[..])).collect();
        new.put_many(&pairs)?;
        copied += pairs.len() as u64;
        batch.clear();
        let share = copied as f64 / entries.max(copied).max(1) as f64;
        if watch(share).is_break() { Err(Error::Stopped) } else { Ok(()) }
    };
    old.for_each(|key, value| {
        batch.push((key.to_vec(), value.to_vec()));
        bytes += key.len() + value.len();
        if batch.len() < BATCH.0 && bytes < BATCH.1 {
            return Ok(());
        }
        bytes = 0;
        put(&mut batch)
    })?;
    if !batch.is_empty() {
        put(&mut batch)?;
    }
    Ok(copied)
}
