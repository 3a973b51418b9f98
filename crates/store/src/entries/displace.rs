//! Displacements in a page: when both buckets of a key are full, entries move to their other buckets until a slot is
//! free.
//!
//! The search is breadth first, so the path is a shortest one, and it visits each bucket once. It finds a path if there
//! is one: whether a key fits depends only on the keys of the page, not on their order.

use nandex_device::prefetch;

use super::{BUCKET_SLOTS, Buckets, EntryLayout};
use crate::hash::KeyHasher;

/// The most buckets a page can have: two slots each, entries of 8 bytes.
pub(super) const BUCKETS_MAX: usize = 239;

impl EntryLayout {
    /// Finds the shortest path of displacements to an empty slot and moves entries along it.
    #[cold]
    pub(super) fn displace(
        &self,
        page: &mut [u8],
        to: Buckets,
        hasher: &KeyHasher,
    ) -> Option<usize> {
        // The search of a page without an empty slot would visit all its buckets.
        if (0..self.buckets).all(|bucket| self.empty_bits(page, bucket) == 0) {
            return None;
        }
        let mut search = Search::new(to);
        let mut next = 0;
        while next < search.len {
            let bucket = usize::from(search.steps[next].bucket);
            for slot in bucket * BUCKET_SLOTS..bucket * BUCKET_SLOTS + self.bucket_slots {
                let other = self.other_bucket(page, slot, bucket, hasher)?;
                if let Some(empty) = self.empty_slot(page, other) {
                    return Some(self.shift(page, &search, next, slot, empty));
                }
                search.visit(other, next, slot);
                prefetch(&page[self.slot_at(other * BUCKET_SLOTS)]);
            }
            next += 1;
        }
        None
    }

    fn other_bucket(
        &self,
        page: &[u8],
        slot: usize,
        bucket: usize,
        hasher: &KeyHasher,
    ) -> Option<usize> {
        let entry = self.entry(page, slot)?;
        let Buckets(first, second) = self.buckets_of(hasher.hash(entry.key));
        Some(if first == bucket { second } else { first })
    }

    /// Moves the entry of `slot` to `empty`, then its predecessor on the path to `slot`, and so on.
    fn shift(
        &self,
        page: &mut [u8],
        search: &Search,
        step: usize,
        slot: usize,
        empty: usize,
    ) -> usize {
        let (mut step, mut slot, mut empty) = (step, slot, empty);
        loop {
            self.relocate(page, slot, empty);
            let Some((parent, parent_slot)) = search.parent(step) else { return slot };
            (step, empty, slot) = (parent, slot, parent_slot);
        }
    }

    fn relocate(&self, page: &mut [u8], source: usize, target: usize) {
        let bits = Self::state_bits(page, source);
        let at = self.slot_at(source);
        page.copy_within(at..at + self.entry_bytes(), self.slot_at(target));
        Self::set_state(page, target, bits);
        Self::set_state(page, source, 0);
    }
}

/// One bucket reached by the search, and how.
#[derive(Clone, Copy, Default)]
struct Step {
    bucket: u8,
    parent: u8,
    slot: u16,
}

/// The breadth-first search for a displacement path: every bucket is visited once.
struct Search {
    steps: [Step; BUCKETS_MAX],
    len: usize,
    visited: [u64; BUCKETS_MAX.div_ceil(64)],
}

impl Search {
    fn new(to: Buckets) -> Self {
        let mut search = Self { steps: [Step::default(); BUCKETS_MAX], len: 0, visited: [0; 4] };
        search.visit(to.0, usize::from(Self::ROOT), 0);
        search.visit(to.1, usize::from(Self::ROOT), 0);
        search
    }

    const ROOT: u8 = u8::MAX;

    fn visit(&mut self, bucket: usize, parent: usize, slot: usize) {
        let (word, bit) = (&mut self.visited[bucket / 64], 1 << (bucket % 64));
        if *word & bit == 0 {
            *word |= bit;
            let narrow = "a page has at most 239 buckets";
            self.steps[self.len] = Step {
                bucket: u8::try_from(bucket).expect(narrow),
                parent: u8::try_from(parent).expect(narrow),
                slot: u16::try_from(slot).expect(narrow),
            };
            self.len += 1;
        }
    }

    fn parent(&self, step: usize) -> Option<(usize, usize)> {
        let Step { parent, slot, .. } = self.steps[step];
        (parent != Self::ROOT).then_some((usize::from(parent), usize::from(slot)))
    }
}
