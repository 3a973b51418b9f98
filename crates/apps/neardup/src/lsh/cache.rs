//! The most recently used blocks, in a stated RAM.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::block::Block;

/// RAM of a block in addition to its content: the block itself, its places in the map and the queue, the allocator's
/// part.
const BLOCK_BYTES: u64 = 256;

/// Blocks, in a stated RAM. A block that was used since it came stays when others are evicted.
#[derive(Debug)]
pub(super) struct BlockCache {
    ram_bytes_max: u64,
    cached: Mutex<Cached>,
}

#[derive(Default, Debug)]
struct Cached {
    blocks: HashMap<u64, CachedBlock>,
    /// The blocks, the first to come at the front.
    queue: VecDeque<u64>,
    ram_bytes: u64,
    /// The number of changes of blocks.
    changes: u64,
}

#[derive(Debug)]
struct CachedBlock {
    block: Arc<Block>,
    was_asked: bool,
}

/// The content of the cache at a moment.
#[derive(Default)]
pub(super) struct Known {
    /// Each block, if it was cached.
    pub(super) blocks: Vec<Option<Arc<Block>>>,
    changes: u64,
}

impl BlockCache {
    pub(super) fn new(ram_bytes_max: u64) -> Self {
        Self { ram_bytes_max, cached: Mutex::default() }
    }

    /// Returns the cached blocks of these numbers.
    pub(super) fn get_many(&self, blocks: &[u64]) -> Known {
        let mut cached = self.lock();
        let find = |block: &u64| {
            let found = cached.blocks.get_mut(block)?;
            found.was_asked = true;
            Some(Arc::clone(&found.block))
        };
        let blocks = blocks.iter().map(find).collect();
        Known { blocks, changes: cached.changes }
    }

    /// Stores blocks that were read, unless one has changed since `known`.
    pub(super) fn note_read(&self, known: &Known, read: impl Iterator<Item = (u64, Arc<Block>)>) {
        let mut cached = self.lock();
        if cached.changes == known.changes {
            read.for_each(|(number, block)| cached.put(number, block, self.ram_bytes_max));
        }
    }

    /// Stores blocks that were written.
    pub(super) fn note_written(&self, written: impl Iterator<Item = (u64, Block)>) {
        let mut cached = self.lock();
        cached.changes += 1;
        let most = self.ram_bytes_max;
        written.for_each(|(number, block)| cached.put(number, Arc::new(block), most));
    }

    pub(super) fn ram_bytes(&self) -> u64 {
        self.lock().ram_bytes
    }

    fn lock(&self) -> MutexGuard<'_, Cached> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cached {
    fn put(&mut self, number: u64, block: Arc<Block>, ram_bytes_max: u64) {
        self.ram_bytes += ram_bytes_of(&block);
        let entry = CachedBlock { block, was_asked: false };
        match self.blocks.insert(number, entry) {
            Some(before) => self.ram_bytes -= ram_bytes_of(&before.block),
            None => self.queue.push_back(number),
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
                    self.ram_bytes -= gone.map_or(0, |entry| ram_bytes_of(&entry.block));
                }
            }
        }
    }
}

fn ram_bytes_of(block: &Block) -> u64 {
    BLOCK_BYTES + block.ram_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lsh::block::Entry;

    fn named(name: &str) -> Block {
        let mut block = Block::new(1);
        block.push(0, Entry { earlier: None, keys: &[7], name: name.as_bytes() });
        block
    }

    #[test]
    fn blocks_stay_within_the_ram_and_those_that_are_asked_for_stay_longest() {
        let cache = BlockCache::new(10_000);
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
        let cache = BlockCache::new(10_000);
        let known = cache.get_many(&[7]);
        cache.note_written([(7, named("new"))].into_iter());
        cache.note_read(&known, [(7, Arc::new(named("old")))].into_iter());
        assert_eq!(cache.get_many(&[7]).blocks[0].as_deref(), Some(&named("new")));
        let known = cache.get_many(&[8]);
        cache.note_read(&known, [(8, Arc::new(named("read")))].into_iter());
        assert_eq!(cache.get_many(&[8]).blocks[0].as_deref(), Some(&named("read")));
    }
}
