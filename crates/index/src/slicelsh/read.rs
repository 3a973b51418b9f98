//! Lookups: a page of each table whose partition has slicetables, all at once, combined with the buffers.
//!
//! A read holds no lock. Its result is still valid, under the lock, if no buffer of the partition has left for flash
//! since before it began: a later update is in one of them. Otherwise the row is looked up again. The buffers are
//! applied to the result from flash as merges would apply them, so a merge changes no answer.

use std::ops::Deref;

use nandex_device::PageBuf;
use nandex_store::bytes::get_u64;
use nandex_store::hash::KeyHash;
use nandex_store::page::{PageKind, RawPage};
use nandex_store::reads::{LookupStep, NextStep, PageReads, ReadPlace};
use nandex_store::shadow::Block;

use super::buffer::BucketBuffer;
use super::{Inner, State};
use crate::{Error, Result};

/// The number of rows that are searched between two checks for completed reads.
const GROUP: usize = 16;

/// The location of a row's bucket in one table.
#[derive(Clone, Copy, Debug)]
struct BucketPlace {
    key: u64,
    hash: KeyHash,
    partition: usize,
    /// The partition's slicetables, if it has any.
    block: Option<Block>,
    /// The number of buffers that had left the partition before it was looked up.
    buffers_left: u64,
}

/// The ids on flash in the buckets of a row.
#[derive(Clone, Debug, Default)]
pub(super) struct Flash {
    /// The place of the bucket in each table.
    places: Vec<BucketPlace>,
    /// Ids with their tables; those of a table are together, oldest first.
    ids: Vec<(u8, u64)>,
    /// Whether a page was replaced while it was read.
    is_stale: bool,
    pub(super) reads: usize,
}

/// A lookup that reads pages.
#[derive(Debug)]
pub(crate) struct BucketProbe {
    flash: Flash,
    /// The tables to read.
    tables: Vec<u8>,
    found: Vec<usize>,
}

/// Lookups of rows.
pub(super) struct BucketLookup<'i>(pub(super) &'i Inner);

impl PageReads for BucketLookup<'_> {
    type Probe = BucketProbe;
    type Answer = Flash;
    type Error = Error;

    /// The pages of all tables are read at once.
    fn parts(&self, probe: &BucketProbe) -> u32 {
        u32::try_from(probe.tables.len()).expect("at most 64 tables")
    }

    fn place(&self, probe: &BucketProbe, part: u32) -> ReadPlace {
        let (page, block) = self.page_of(probe, part);
        let shadow = &self.0.layout.shadow;
        ReadPlace::page(shadow.page(block, page), shadow.page(block, 0))
    }

    fn look(&self, probe: &mut BucketProbe, part: u32, page: &PageBuf) -> Result<()> {
        let layout = &self.0.layout;
        let table = probe.tables[part as usize];
        let (index, block) = self.page_of(probe, part);
        let BucketPlace { key, partition, .. } = probe.flash.places[usize::from(table)];
        let label = layout.shadow.label(block, index, PageKind::Slice);
        let body = match RawPage::new(page).check(label) {
            Ok(page) => page.body(),
            Err(_) if !layout.shadow.is_current(partition as u32, block) => {
                probe.flash.is_stale = true;
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let slices = &layout.slices;
        let Some(count) = slices.count(body) else {
            let most = format!("at most {} entries", slices.capacity());
            return Err(nandex_store::Error::corrupt("slice", label.page, most, "more").into());
        };
        slices.find_all(body, count, &key.to_le_bytes(), &mut probe.found);
        let ids = probe.found.iter().map(|at| (table, get_u64(slices.value(body, *at), 0)));
        probe.flash.ids.extend(ids);
        Ok(())
    }

    fn next(&self, probe: &mut BucketProbe) -> NextStep<Self> {
        Ok(LookupStep::Answer(std::mem::take(&mut probe.flash)))
    }
}

impl BucketLookup<'_> {
    /// The page in its block that a part of a probe reads.
    fn page_of(&self, probe: &BucketProbe, part: u32) -> (u64, Block) {
        let layout = &self.0.layout;
        let table = probe.tables[part as usize];
        let place = &probe.flash.places[usize::from(table)];
        let block = place.block.expect("only tables of partitions with slicetables are read");
        (layout.placement.page(table, layout.placing.slice_of(place.hash)), block)
    }

    /// Returns the reads that a row needs, if any.
    pub(super) fn ask(&self, row: &[u64]) -> Result<LookupStep<BucketProbe, Flash>> {
        let core = self.0;
        let place = |key: &u64| {
            let hash = core.layout.placing.hash(*key);
            let partition = core.layout.placing.partition_of(hash);
            let state = core.partitions[partition].read();
            let block = core.layout.shadow.block(partition as u32);
            let buffers_left = state.buffers_left;
            Ok(BucketPlace { key: *key, hash, partition, block, buffers_left })
        };
        let places = row.iter().map(place).collect::<Result<Vec<_>>>()?;
        let mut tables = Vec::with_capacity(places.len());
        for (table, place) in (0u8..).zip(&places) {
            let is_read = place.block.is_some()
                && core.may_be_on_flash(place.partition, (table, place.hash))?;
            tables.extend(is_read.then_some(table));
        }
        let flash = Flash { places, ..Flash::default() };
        if tables.is_empty() {
            return Ok(LookupStep::Answer(flash));
        }
        Ok(LookupStep::Read(BucketProbe { flash, tables, found: Vec::new() }))
    }
}

impl Flash {
    /// Returns the same after this number of reads.
    pub(super) fn with_reads(self, reads: usize) -> Self {
        Self { reads, ..self }
    }

    /// Returns the row that was looked up.
    pub(super) fn row(&self) -> Vec<u64> {
        self.places.iter().map(|place| place.key).collect()
    }

    /// Returns the ids of a table, oldest first.
    fn ids_of(&self, table: u8) -> impl Iterator<Item = u64> + '_ {
        self.ids.iter().filter(move |(of, _)| *of == table).map(|(_, id)| *id)
    }
}

impl Inner {
    /// Returns the ids on flash for each of these rows. The reads overlap.
    pub(super) fn look_up(&self, rows: &[&[u64]]) -> Result<Vec<Flash>> {
        let mut found = vec![Flash::default(); rows.len()];
        self.look_up_each(rows, |index, flash| found[index] = flash)?;
        Ok(found)
    }

    /// Passes on the ids on flash for each of these rows, by its number, while others are read.
    fn look_up_each(&self, rows: &[&[u64]], mut take: impl FnMut(usize, Flash)) -> Result<()> {
        let lookup = BucketLookup(self);
        let ask = |row: &&[u64], (): &()| lookup.ask(row);
        self.lookups.reads.pipeline(&lookup).batch(
            rows,
            GROUP,
            |row| self.prefetch_filter(row),
            ask,
            |index, flash, reads| take(index, flash.with_reads(reads)),
        )
    }

    /// Returns the candidates of each row.
    pub(super) fn candidates_of(&self, keys: &[u64]) -> Result<Vec<Vec<u64>>> {
        let tables = self.layout.config.tables as usize;
        self.check_keys(keys.len().div_ceil(tables), keys)?;
        let rows: Vec<_> = keys.chunks(tables).collect();
        let mut all: Vec<_> = rows.iter().map(|_| Ok(None)).collect();
        self.look_up_each(&rows, |index, flash| all[index] = self.candidates_now(&flash))?;
        let rows = rows.iter().zip(all);
        rows.map(|(row, found)| match found? {
            Some(candidates) => Ok(candidates),
            None => self.candidates_since(row, self.look_up(&[row])?.remove(0)),
        })
        .collect()
    }

    /// Returns the candidates of a row, given its ids on flash; `None` if it must be looked up again.
    pub(super) fn candidates_now(&self, flash: &Flash) -> Result<Option<Vec<u64>>> {
        let state = |partition: usize| self.partitions[partition].read();
        let candidates = self.merge_candidates(flash, state)?;
        candidates.iter().for_each(|candidates| self.count_lookup(candidates, flash.reads));
        Ok(candidates)
    }

    /// Returns the candidates of a row, given its ids on flash, after looking it up again if necessary.
    fn candidates_since(&self, row: &[u64], mut flash: Flash) -> Result<Vec<u64>> {
        loop {
            if let Some(candidates) = self.candidates_now(&flash)? {
                return Ok(candidates);
            }
            flash = self.look_up(&[row])?.remove(0);
        }
    }

    /// Returns the candidates of a row, ascending, from its ids on flash and the current buffers of its partitions.
    /// `None` if a buffer has left for flash since, and the row must be looked up again.
    pub(super) fn merge_candidates<S: Deref<Target = State>>(
        &self,
        flash: &Flash,
        state_of: impl Fn(usize) -> S,
    ) -> Result<Option<Vec<u64>>> {
        if flash.is_stale {
            return Ok(None);
        }
        let mut candidates = Vec::new();
        for (table, place) in (0u8..).zip(&flash.places) {
            let state = state_of(place.partition);
            if state.buffers_left != place.buffers_left {
                return Ok(None);
            }
            let first = candidates.len();
            candidates.extend(flash.ids_of(table));
            for buffer in state.buffers()?.rev() {
                self.apply_buffer(buffer, (table, place), &mut candidates, first);
            }
        }
        candidates.sort_unstable();
        candidates.dedup();
        Ok(Some(candidates))
    }

    /// Applies a buffer's entries for a bucket to its ids, which are those from `first` on, as a merge would.
    fn apply_buffer(
        &self,
        buffer: &BucketBuffer,
        (table, place): (u8, &BucketPlace),
        ids: &mut Vec<u64>,
        first: usize,
    ) {
        let mut entries: Vec<_> = buffer.bucket((table, place.key), place.hash).collect();
        if entries.is_empty() {
            return;
        }
        entries.reverse();
        for (id, _) in entries.iter().filter(|(_, is_removed)| *is_removed) {
            if let Some(at) = ids[first..].iter().position(|other| other == id) {
                ids.remove(first + at);
            }
        }
        let most = first + self.layout.config.bucket_ids_max as usize;
        for (id, _) in entries.iter().filter(|(_, is_removed)| !*is_removed) {
            if ids.len() < most && !ids[first..].contains(id) {
                ids.push(*id);
            }
        }
    }
}
