//! Names of documents: many in two allocations, and those of blocks that were asked for last, in a stated RAM.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::block::rank;

/// RAM of a block's names in addition to what they are made of: places in the map and the queue, the allocator's part.
const BLOCK_BYTES: u64 = 192;

/// Names, in an order.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(super) struct NameList {
    ends: Vec<u32>,
    bytes: Vec<u8>,
}

impl NameList {
    /// Adds a name behind the others.
    pub(super) fn push(&mut self, name: &[u8]) {
        self.bytes.extend_from_slice(name);
        self.ends.push(self.bytes.len() as u32);
    }

    /// The name at an index.
    pub(super) fn get(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        &self.bytes[start..self.ends[index] as usize]
    }

    /// Bytes of all names.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn clear(&mut self) {
        self.ends.clear();
        self.bytes.clear();
    }
}

/// The names of the documents of a block that are there.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(super) struct BlockNames {
    pub(super) present: u64,
    pub(super) names: NameList,
    /// Has one of them an earlier document of the same name?
    pub(super) may_repeat: bool,
}

impl BlockNames {
    /// Where the name of the document at a place is.
    pub(super) fn index_of(&self, place: u32) -> Option<usize> {
        rank(self.present, place)
    }

    fn ram_bytes(&self) -> u64 {
        BLOCK_BYTES + 4 * self.names.ends.capacity() as u64 + self.names.bytes.capacity() as u64
    }
}

/// Names of blocks, in a stated RAM. One that was asked for since it came stays when others go.
#[derive(Debug)]
pub(super) struct NameCache {
    ram_bytes_max: u64,
    cached: Mutex<Cached>,
}

#[derive(Default, Debug)]
struct Cached {
    blocks: HashMap<u64, CachedBlock>,
    /// The blocks, those that came first at the front.
    queue: VecDeque<u64>,
    ram_bytes: u64,
    /// How often a block has changed.
    changes: u64,
}

#[derive(Debug)]
struct CachedBlock {
    names: Arc<BlockNames>,
    was_asked: bool,
}

/// What the cache knew at a moment.
pub(super) struct Known {
    /// The names of each block, if they were there.
    pub(super) blocks: Vec<Option<Arc<BlockNames>>>,
    changes: u64,
}

impl NameCache {
    pub(super) fn new(ram_bytes_max: u64) -> Self {
        Self { ram_bytes_max, cached: Mutex::default() }
    }

    /// The names of these blocks.
    pub(super) fn get_many(&self, blocks: &[u64]) -> Known {
        let mut cached = self.lock();
        let find = |block: &u64| {
            let found = cached.blocks.get_mut(block)?;
            found.was_asked = true;
            Some(Arc::clone(&found.names))
        };
        let blocks = blocks.iter().map(find).collect();
        Known { blocks, changes: cached.changes }
    }

    /// Keeps what was read of blocks, unless one has changed since `known`.
    pub(super) fn note_read(
        &self,
        known: &Known,
        read: impl Iterator<Item = (u64, Arc<BlockNames>)>,
    ) {
        let mut cached = self.lock();
        if cached.changes == known.changes {
            read.for_each(|(block, names)| cached.put(block, names, self.ram_bytes_max));
        }
    }

    /// Keeps what was written to blocks.
    pub(super) fn note_written(&self, written: impl Iterator<Item = (u64, BlockNames)>) {
        let mut cached = self.lock();
        cached.changes += 1;
        written.for_each(|(block, names)| cached.put(block, Arc::new(names), self.ram_bytes_max));
    }

    pub(super) fn ram_bytes(&self) -> u64 {
        self.lock().ram_bytes
    }

    fn lock(&self) -> MutexGuard<'_, Cached> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cached {
    fn put(&mut self, block: u64, names: Arc<BlockNames>, ram_bytes_max: u64) {
        self.ram_bytes += names.ram_bytes();
        let entry = CachedBlock { names, was_asked: false };
        match self.blocks.insert(block, entry) {
            Some(before) => self.ram_bytes -= before.names.ram_bytes(),
            None => self.queue.push_back(block),
        }
        while self.ram_bytes > ram_bytes_max {
            let Some(oldest) = self.queue.pop_front() else { return };
            match self.blocks.get_mut(&oldest) {
                Some(entry) if entry.was_asked => {
                    entry.was_asked = false;
                    self.queue.push_back(oldest);
                }
                _ => {
                    let gone = self.blocks.remove(&oldest);
                    self.ram_bytes -= gone.map_or(0, |entry| entry.names.ram_bytes());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> BlockNames {
        let mut block = BlockNames { present: 1, ..BlockNames::default() };
        block.names.push(name.as_bytes());
        block
    }

    #[test]
    fn names_stay_within_the_ram_and_those_that_are_asked_for_stay_longest() {
        let cache = NameCache::new(10_000);
        for block in 0..1000 {
            cache.note_written([(block, named(&block.to_string()))].into_iter());
            assert_eq!(cache.get_many(&[0]).blocks[0].as_deref(), Some(&named("0")), "{block}");
            assert!(cache.ram_bytes() <= 10_000);
        }
        let found = cache.get_many(&[1, 500, 999]).blocks;
        assert_eq!((&found[0], &found[1]), (&None, &None));
        assert_eq!(found[2].as_deref(), Some(&named("999")));
    }

    #[test]
    fn what_was_read_before_a_change_is_not_kept() {
        let cache = NameCache::new(10_000);
        let known = cache.get_many(&[7]);
        cache.note_written([(7, named("new"))].into_iter());
        cache.note_read(&known, [(7, Arc::new(named("old")))].into_iter());
        assert_eq!(cache.get_many(&[7]).blocks[0].as_deref(), Some(&named("new")));
        let known = cache.get_many(&[8]);
        cache.note_read(&known, [(8, Arc::new(named("read")))].into_iter());
        assert_eq!(cache.get_many(&[8]).blocks[0].as_deref(), Some(&named("read")));
    }

    #[test]
    fn a_list_has_its_names_in_order() {
        let mut list = NameList::default();
        ["a", "", "bc"].iter().for_each(|name| list.push(name.as_bytes()));
        let all: Vec<_> = (0..list.ends.len()).map(|index| list.get(index)).collect();
        assert_eq!((all, list.bytes()), (vec![&b"a"[..], b"", b"bc"], 3));
    }
}
