//! Absorbing entries of other tables: all entries of a partition are merged into its slicetable in one pass.
//!
//! Through buffers, the slicetable would be rewritten for a few entries at a time. Here it is rewritten once for all of
//! them.

use std::sync::atomic::Ordering::SeqCst;

use nandex_store::hash::KeyHash;
use nandex_store::ring::SegmentId;

use super::flush::{Scratch, Sources};
use super::{Inner, Slicetables};
use crate::Result;
use crate::write::absorb::{BulkLayout, Chosen, Placed, Worker};

impl BulkLayout for Slicetables {
    /// The entry's position by slices, and whether it goes to a buffer.
    const PUT_BYTES: u64 = (size_of::<(u32, u32)>() + size_of::<Placed>()) as u64;

    type Bulk = ();

    fn bulk_bytes(_core: &Inner) -> u64 {
        0
    }

    /// Slices are in the order of these bits.
    fn row(hash: KeyHash) -> u32 {
        (hash.filter >> 32) as u32
    }

    /// Rewrites the slicetable, if that is worth it: half of a buffer would soon be rewritten anyway.
    fn put_chosen(index: usize, chosen: &Chosen<'_>, worker: &mut Worker<'_, Self>) -> Result<()> {
        let core = worker.core;
        assert!(core.layout.older.is_none(), "a growing table absorbs nothing");
        let is_worth_it = chosen.len() >= core.layout.shape.entries_max as usize / 2;
        if !is_worth_it {
            return core.put_each(index, chosen.entries());
        }
        core.volume.poison().check()?;
        core.rewrite_with(index, chosen, worker.memory()?.0)
    }
}

impl Inner {
    /// Merges chosen entries into the slicetable of their partition, together with the older runs. Entries whose keys
    /// are in buffers, and entries for which there is no space, go to buffers.
    fn rewrite_with(&self, index: usize, chosen: &Chosen<'_>, scratch: &mut Scratch) -> Result<()> {
        let lock = self.partitions[index].maintain();
        let (hidden, direct) = self.split_buffered(index, chosen)?;
        let direct = chosen.with(&direct);
        let runs: Vec<SegmentId> =
            self.partitions[index].read().level.runs.iter().map(|run| run.id).collect();
        let pages = runs.iter().map(|id| self.read_run(*id)).collect::<Result<Vec<_>>>()?;
        let layout = self.entry_layout();
        let sources = Sources { runs: &pages, buffer: None, chosen: Some(direct), layout };
        let rewritten = self.write_merged(index, self.base(None, index), &sources, scratch);
        let refused = rewritten.and_then(|mut merged| {
            let refused = std::mem::take(&mut merged.refused);
            self.settle(index, &runs, None, merged).map(|()| refused)
        });
        let refused = refused.inspect_err(|error| self.volume.poison().set(error))?;
        self.uncache(direct.entries().map(|entry| entry.key));
        self.moved.store(true, SeqCst);
        scratch.end_bulk(self.layout.shape.entries_max as usize);
        drop(lock);
        self.put_each(index, chosen.with(&hidden).entries().chain(refused))
    }
}
