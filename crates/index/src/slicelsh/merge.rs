//! The merge: applies new entries to the slices of all tables of a partition, page after page.
//!
//! A slice holds all entries of its buckets, so the merge sees them all. Removals are applied first, so a bucket that
//! never had more ids than it may keep loses none, in whatever order its ids came and went. Then new entries are added
//! at the young end. A bucket that has its maximum number of ids drops new ones; a full page evicts its oldest entries,
//! or, if nothing may be evicted, refuses new ones, which stay in RAM.

use std::iter::Peekable;

use nandex_device::PageId;
use nandex_store::bytes::get_u64;
use nandex_store::slice::SliceLayout;

use super::keys::Pair;
use super::placement::Placement;

/// An entry to merge, and its page in the block.
#[derive(Clone, Copy, Debug)]
pub(super) struct IncomingPair {
    pub page: u64,
    pub pair: Pair,
    pub removes: bool,
}

/// The result of a merge.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct MergeOutcome {
    /// Entries in the slicetables.
    pub entries: u64,
    /// Entries that full slices have evicted.
    pub evicted: u64,
    /// Entries that full buckets have dropped.
    pub dropped: u64,
}

/// The rules for entries for which there is no space.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub bucket_ids_max: usize,
    /// Whether full slices may evict entries.
    pub evicts: bool,
}

/// A merge of the slicetables of a partition in progress.
pub(super) struct PairMerge<I: Iterator<Item = IncomingPair>> {
    layout: SliceLayout,
    placement: Placement,
    rules: Rules,
    /// The entries for pages that are not merged yet, by page; those of a page by age.
    incoming: Peekable<I>,
    /// The entries of the current page.
    current: Vec<IncomingPair>,
    outcome: MergeOutcome,
    refused: Vec<Pair>,
    found: Vec<usize>,
}

impl<I: Iterator<Item = IncomingPair>> PairMerge<I> {
    pub(super) fn new(
        layout: SliceLayout,
        placement: Placement,
        rules: Rules,
        incoming: I,
    ) -> Self {
        Self {
            layout,
            placement,
            rules,
            incoming: incoming.peekable(),
            current: Vec::new(),
            outcome: MergeOutcome::default(),
            refused: Vec::new(),
            found: Vec::new(),
        }
    }

    /// Merges into a page of the block; pages come in ascending order, from the first.
    ///
    /// # Errors
    /// A page that claims more than it can hold.
    pub(super) fn page(
        &mut self,
        (index, place): (u64, PageId),
        body: &mut [u8],
    ) -> nandex_store::Result<()> {
        if self.placement.slice_of(index).is_none() {
            return Ok(());
        }
        if self.layout.count(body).is_none() {
            let most = format!("at most {} entries", self.layout.capacity());
            return Err(nandex_store::Error::corrupt("slice", place, most, "more"));
        }
        let mut current = std::mem::take(&mut self.current);
        current.clear();
        while let Some(next) = self.incoming.next_if(|next| next.page == index) {
            current.push(next);
        }
        self.remove(&current, body);
        for IncomingPair { pair, .. } in current.iter().filter(|it| !it.removes) {
            self.add(*pair, body);
        }
        self.current = current;
        self.outcome.entries += self.count(body) as u64;
        Ok(())
    }

    /// Returns the result of the merge, and the entries that were refused.
    ///
    /// # Panics
    /// If pages with new entries were skipped.
    pub(super) fn finish(mut self) -> (MergeOutcome, Vec<Pair>) {
        let left = self.incoming.next();
        assert!(left.is_none(), "{left:?} found no page");
        (self.outcome, self.refused)
    }

    fn count(&self, body: &[u8]) -> usize {
        self.layout.count(body).expect("it was looked at")
    }

    /// Returns the index of a pair among those of its bucket, and leaves these in `found`.
    fn find(&mut self, pair: Pair, body: &[u8]) -> Option<usize> {
        let count = self.count(body);
        self.layout.find_all(body, count, &pair.key.to_le_bytes(), &mut self.found);
        let is_it = |at: &&usize| get_u64(self.layout.value(body, **at), 0) == pair.id;
        self.found.iter().find(is_it).copied()
    }

    /// Applies the removals.
    fn remove(&mut self, current: &[IncomingPair], body: &mut [u8]) {
        let mut gaps = Vec::new();
        for IncomingPair { pair, .. } in current.iter().filter(|it| it.removes) {
            gaps.extend(self.find(*pair, body));
        }
        gaps.sort_unstable();
        self.layout.remove(body, &gaps);
    }

    /// Adds an entry, unless it is present.
    fn add(&mut self, pair: Pair, body: &mut [u8]) {
        if self.find(pair, body).is_some() {
            return;
        }
        if self.found.len() >= self.rules.bucket_ids_max {
            self.outcome.dropped += 1;
            return;
        }
        if self.count(body) == self.layout.capacity() {
            if !self.rules.evicts {
                self.refused.push(pair);
                return;
            }
            self.layout.remove_oldest(body, 1);
            self.outcome.evicted += 1;
        }
        self.layout.push(body, &pair.key.to_le_bytes(), &pair.id.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use nandex_store::page::PAGE_BODY_BYTES;

    use super::*;
    use crate::slicelsh::Config;

    /// The slicetables of a partition in plain memory, merged into repeatedly. A bucket's slice is its key modulo the
    /// slices.
    struct Block {
        placement: Placement,
        rules: Rules,
        slices: u64,
        pages: Vec<Vec<u8>>,
    }

    impl Block {
        fn new((channels, chunk_pages): (u32, u32), rules: Rules) -> Self {
            let placement = Placement::new(2, 3, (channels, chunk_pages));
            let pages = vec![vec![0; PAGE_BODY_BYTES]; placement.block_pages() as usize];
            Self { placement, rules, slices: 3, pages }
        }

        fn merge(&mut self, updates: &[(u8, u64, u64, bool)]) -> (MergeOutcome, Vec<Pair>) {
            let incoming = updates.iter().map(|&(table, key, id, removes)| {
                let page = self.placement.page(table, (key % self.slices) as u32);
                IncomingPair { page, pair: Pair { table, key, id }, removes }
            });
            let mut incoming: Vec<_> = incoming.collect();
            incoming.sort_by_key(|incoming| incoming.page);
            let layout = Config::slice_layout();
            let mut merge =
                PairMerge::new(layout, self.placement, self.rules, incoming.into_iter());
            for (index, body) in (0..).zip(&mut self.pages) {
                merge.page((index, PageId(index)), body).unwrap();
            }
            merge.finish()
        }

        /// Returns the ids of each bucket, oldest first.
        fn read(&self) -> BTreeMap<(u8, u64), Vec<u64>> {
            let layout = Config::slice_layout();
            let mut found: BTreeMap<_, Vec<u64>> = BTreeMap::new();
            for (index, body) in (0..).zip(&self.pages) {
                for at in 0..layout.count(body).unwrap() {
                    let (table, slice) = self.placement.slice_of(index).unwrap();
                    let key = get_u64(layout.key(body, at), 0);
                    assert_eq!(key % self.slices, u64::from(slice));
                    found.entry((table, key)).or_default().push(get_u64(layout.value(body, at), 0));
                }
            }
            found
        }
    }

    const KEEPS: Rules = Rules { bucket_ids_max: 3, evicts: true };

    #[test]
    fn merges_agree_with_buckets_that_keep_their_oldest() {
        for placed in [(1, 1), (4, 2), (2, 1)] {
            let mut block = Block::new(placed, KEEPS);
            let mut oracle: BTreeMap<(u8, u64), Vec<u64>> = BTreeMap::new();
            let mut dropped = 0;
            for round in 0..60u64 {
                let updates: Vec<_> = (0..20)
                    .map(|nth| {
                        let mix = round * 31 + nth * nth * 7;
                        ((mix % 2) as u8, mix / 2 % 17, round * 20 + nth, false)
                    })
                    .collect();
                for &(table, key, id, _) in &updates {
                    let bucket = oracle.entry((table, key)).or_default();
                    if bucket.len() < 3 { bucket.push(id) } else { dropped += 1 }
                }
                dropped -= block.merge(&updates).0.dropped;
                assert_eq!(dropped, 0);
                // One id of each third bucket goes.
                let gone: Vec<_> = oracle
                    .iter_mut()
                    .step_by(3)
                    .filter_map(|(&(table, key), ids)| Some((table, key, ids.pop()?, true)))
                    .collect();
                let (outcome, refused) = block.merge(&gone);
                oracle.retain(|_, ids| !ids.is_empty());
                assert_eq!((block.read(), refused), (oracle.clone(), vec![]));
                let entries: usize = oracle.values().map(Vec::len).sum();
                assert_eq!((outcome.entries, outcome.evicted), (entries as u64, 0));
            }
        }
    }

    #[test]
    fn removals_come_first_so_a_bucket_that_was_never_too_full_loses_nothing() {
        let mut block = Block::new((1, 1), KEEPS);
        block.merge(&[(0, 3, 1, false), (0, 3, 2, false), (0, 3, 3, false)]);
        // 4 came only after 1 was removed, but an older update of 4 keeps its position in the buffer.
        let (outcome, _) = block.merge(&[(0, 3, 4, false), (0, 3, 1, true), (0, 3, 2, false)]);
        assert_eq!((outcome.dropped, block.read()[&(0, 3)].clone()), (0, vec![2, 3, 4]));
    }

    #[test]
    fn a_full_slice_evicts_its_oldest_or_refuses() {
        let fill: Vec<_> = (0..253).map(|nth| (0, 3 * nth, nth, false)).collect();
        let more = [(0, 3 * 300, 300, false), (0, 3 * 5, 5, false), (0, 0, 0, true)];
        let mut block = Block::new((1, 1), KEEPS);
        assert_eq!(block.merge(&fill).0, MergeOutcome { entries: 253, ..MergeOutcome::default() });
        assert_eq!(block.merge(&more).0, MergeOutcome { entries: 253, ..MergeOutcome::default() });
        let (outcome, _) = block.merge(&[(0, 3 * 301, 301, false)]);
        assert_eq!((outcome.evicted, block.read().contains_key(&(0, 3))), (1, false));
        let mut block = Block::new((1, 1), Rules { evicts: false, ..KEEPS });
        block.merge(&fill);
        let (outcome, refused) = block.merge(&more[..2]);
        assert_eq!(outcome, MergeOutcome { entries: 253, ..MergeOutcome::default() });
        assert_eq!(refused, [Pair { table: 0, key: 900, id: 300 }]);
    }

    #[test]
    fn a_page_that_says_more_than_it_holds_is_damage() {
        let mut block = Block::new((1, 1), KEEPS);
        block.pages[2][0] = 255;
        let layout = Config::slice_layout();
        let mut merge = PairMerge::new(layout, block.placement, KEEPS, std::iter::empty());
        let error = merge.page((2, PageId(77)), &mut block.pages[2]).unwrap_err();
        assert!(error.to_string().contains("page 77"), "{error}");
    }
}
