//! The generations before this one in a growing table: their answers about a key, and how this one takes over from
//! them.
//!
//! A generation that is cleaned takes over the entries of all before it, one super table after another. Its super table
//! is rewritten from its own incarnations and from the entries of each older generation with the same keys: buffers,
//! and all pages with these keys, which have the same indices if their buffers have as many pages. From then on it is
//! whole, and no older generation is searched for its keys. Older ones are only read, and dropped once every super
//! table is whole.
//!
//! ```text
//!   older, 1 super table      | a | b | c | d |    a: keys of super table 0 of the next, and of 1
//!   older, 2 super tables     | a | b |  | c | d |
//!                                 \    /
//!   this one, 2 super tables  | A |      | B |     A: newest versions of its own and of both older ones: whole
//! ```
//!
//! A super table is whole if its oldest incarnation is clean: what was rewritten last is below everything added since.
//! So the ring's map records it, and a checkpoint has it together with the segments. If a super table has no live
//! entries, a removal remains to mark it.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, RwLock};

use nandex_store::entries::Entry;
use nandex_store::hash::KeyHash;

use super::filter::{Slices, Window};
use super::flush::Scratch;
use super::table::Level;
use super::{Incarnations, Inner};
use crate::scan::{Reads, Visitor};
use crate::write::absorb::Share;
use crate::write::{Layout, WriteBuffer};
use crate::{Damage, Result};

/// The number of times that a super table is rewritten again because segments were short meanwhile.
const TRIES: usize = 3;

/// The generations before one, newest first; none if it is the first, or has taken over their entries.
#[derive(Default)]
pub(crate) struct Older {
    newest_first: RwLock<Arc<[Arc<Inner>]>>,
    /// Held while cleaning makes a super table take over, and by threads that must prevent it.
    taking_over: Mutex<()>,
    /// All super tables before this one are whole, or cannot become whole.
    next: AtomicUsize,
    /// The replacement for a super table's filters once a newer generation has taken over its entries.
    none: OnceLock<Arc<Slices>>,
}

impl fmt::Debug for Older {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.get().iter().map(|core| core.id)).finish()
    }
}

impl Older {
    pub(super) fn get(&self) -> Arc<[Arc<Inner>]> {
        let newest_first = self.newest_first.read();
        Arc::clone(&newest_first.expect("no holder of the older generations' lock panics"))
    }

    pub(super) fn set(&self, newest_first: Arc<[Arc<Inner>]>) {
        let own = self.newest_first.write();
        *own.expect("no holder of the older generations' lock panics") = newest_first;
        self.next.store(0, SeqCst);
    }

    /// Returns whether there are older generations.
    pub(super) fn is_some(&self) -> bool {
        !self.get().is_empty()
    }

    /// Prevents cleaning from making super tables take over while the result is held.
    pub(super) fn keep(&self) -> MutexGuard<'_, ()> {
        self.taking_over.lock().expect("nobody who takes over panics")
    }
}

impl Level {
    /// Returns whether it has the newest version of each of its keys, so that no older generation is searched.
    pub(super) fn is_whole(&self) -> bool {
        self.has_taken_over || self.oldest().is_some_and(|it| it.is_clean)
    }
}

impl Inner {
    /// Returns whether the super table of a key is whole.
    #[inline]
    pub(super) fn is_whole(&self, hash: KeyHash) -> bool {
        self.layout.config.cleans() && self.is_whole_at(self.partition_of(hash))
    }

    pub(super) fn is_whole_at(&self, index: usize) -> bool {
        self.partitions[index].read().level.is_whole()
    }

    /// Returns whether one of these newer generations has taken over this one's entry of a key.
    pub(super) fn is_taken_over(&self, newer: &[&Self], key: &[u8]) -> bool {
        if newer.is_empty() {
            return false;
        }
        let hash = self.hasher.hash(key);
        newer.iter().any(|core| core.is_whole(hash))
    }

    /// Returns whether a super table could not be rewritten because of a damaged page.
    pub(super) fn is_damaged(&self) -> bool {
        self.partitions.iter().any(|it| it.read().level.is_damaged)
    }

    /// Returns the share of its super tables that are whole.
    pub(super) fn whole_share(&self) -> f64 {
        if !self.layout.config.cleans() {
            return 0.0;
        }
        let whole = (0..self.partitions.len()).filter(|index| self.is_whole_at(*index));
        whole.count() as f64 / self.partitions.len() as f64
    }

    /// Returns whether an older generation may hold the newest version of this key.
    ///
    /// # Errors
    /// A lost page that may have the key.
    pub(super) fn may_be_in_older(&self, hash: KeyHash, key: &[u8]) -> Result<bool> {
        let mut newer_is_whole = self.is_whole(hash);
        for core in self.layout.older.get().iter() {
            if newer_is_whole {
                return Ok(false);
            }
            // Before it is searched: it did not have the entries that it takes over meanwhile.
            newer_is_whole = core.is_whole(hash);
            if core.may_hold(hash, key)? {
                return Ok(true);
            }
        }
        // Entries that were taken over meanwhile, older ones may have had.
        Ok(!newer_is_whole && self.is_whole(hash))
    }

    /// Returns the first super table that is not whole and can become whole, if there are older generations. Takes no
    /// super table's lock.
    pub(super) fn next_to_take_over(&self) -> Option<usize> {
        let next = self.layout.older.next.load(SeqCst);
        (next < self.partitions.len() && self.layout.older.is_some()).then_some(next)
    }

    /// Makes older generations release the RAM of entries that this one has taken over, in the super tables that have
    /// keys of this one. The caller holds no super table's state.
    pub(super) fn release_older(&self, index: usize) -> Result<()> {
        let older = self.layout.older.get();
        if older.is_empty() {
            return Ok(());
        }
        let is_done = |index: &usize| {
            let level = &self.partitions[*index].read().level;
            level.is_whole() || level.is_damaged
        };
        let first = self.layout.older.next.load(SeqCst);
        let next = first + (first..self.partitions.len()).take_while(is_done).count();
        self.layout.older.next.fetch_max(next, SeqCst);
        let mut released = 0;
        for core in older.iter() {
            for old in core.share_of(index, self.partitions.len()) {
                let mut own = self.share_of(old, core.partitions.len());
                if own.all(|index| self.is_whole_at(index)) {
                    released += core.release(old)?;
                }
            }
        }
        self.layout.columns.allow(released / self.layout.config.column_bytes().max(1));
        Ok(())
    }

    /// Calls [`release_older`](Self::release_older) for all super tables that are whole.
    pub(super) fn release_all_older(&self) -> Result<()> {
        let mut whole = (0..self.partitions.len()).filter(|index| self.is_whole_at(*index));
        whole.try_for_each(|index| self.release_older(index))
    }

    /// Releases the filters of a super table that a newer generation has taken over, unless a buffer of it is still to
    /// be flushed. Returns the RAM that this frees, in bytes.
    fn release(&self, index: usize) -> Result<u64> {
        let table = &self.partitions[index];
        let _lock = table.maintain();
        let mut state = table.write();
        let is_retired = state.frozen.is_empty()
            && state.active_mut().len() <= self.layout.config.carry_over_usual();
        if !is_retired || state.level.window.is_empty() {
            return Ok(0);
        }
        let config = &self.layout.config;
        let none = || Arc::new(Slices::with_columns(&config.filter, 1));
        let none = Arc::clone(self.layout.older.none.get_or_init(none));
        let window = Window::new(config.incarnations_max as usize, none.columns())?;
        let released = state.level.slices.ram_bytes() as u64;
        state.level.release(none, window);
        Ok(released)
    }

    /// Returns the approximate number of keys that a super table will have once it is whole.
    pub(super) fn keys_expected(&self, index: usize, level: &Level) -> u64 {
        let own = level.keys.max(0).cast_unsigned();
        if level.is_whole() || !self.layout.older.is_some() {
            return own;
        }
        let older = self.layout.older.get();
        let mut unclaimed = 1.0;
        let mut keys = 0.0;
        for core in older.iter() {
            let (count, own_count) = (core.partitions.len(), self.partitions.len());
            let of = core.share_of(index, own_count);
            let of_one = |at: usize| core.partitions[at].read().level.keys as f64;
            let part = (count as f64 / own_count as f64).min(1.0);
            keys += unclaimed * part * of.map(of_one).sum::<f64>();
            unclaimed *= 1.0 - core.whole_share();
        }
        own + keys.max(0.0) as u64
    }

    /// Returns the super tables that have keys of one of a generation with `count` of them.
    pub(super) fn share_of(&self, index: usize, count: usize) -> Range<usize> {
        let share = Share::nth(index, count.trailing_zeros()).expect("a super table is a share");
        share.partitions_of(self.partitions.len())
    }

    /// Makes every super table take over the entries of older generations with its keys, until `stops` returns true.
    /// Returns whether all are whole. A page that cannot be read is reported by the first call, and the super tables
    /// with its keys stay as they are. Reads all older generations, and a coarser one once for each super table; writes
    /// the live entries.
    ///
    /// # Errors
    /// A failed read or write.
    pub(super) fn take_over_all(&self, stops: &dyn Fn() -> bool) -> Result<bool> {
        let mut lent = self.scratches.lend();
        let scratch = match &mut lent.scratch {
            Some(scratch) => scratch,
            place => place.insert(Incarnations::new_scratch(self)?),
        };
        let mut all = Ok(true);
        for index in 0..self.partitions.len() {
            let taken = if stops() { Ok(false) } else { self.take_over(index, scratch) };
            // The first page that cannot be read is reported, and the others continue.
            all = match (all, taken) {
                (Ok(all), Ok(is_whole)) => Ok(all && is_whole),
                (Err(first), _) => Err(first),
                (_, Err(error)) => Err(error),
            };
            self.volume.poison().check()?;
        }
        all
    }

    /// Makes a super table whole. Returns whether it is: one with a damaged page cannot become whole, which is reported
    /// once.
    fn take_over(&self, index: usize, scratch: &mut Scratch) -> Result<bool> {
        for _ in 0..TRIES {
            if self.is_whole_at(index) {
                return Ok(true);
            }
            let needed = self.segments_needed(index, &self.partitions[index].read().level);
            if self.partitions[index].read().level.is_damaged
                || !self.await_segments_for(self.layout.rings.of(index), needed)?
            {
                return Ok(false);
            }
            self.rewrite_unfrozen(index, scratch)?;
        }
        Ok(self.is_whole_at(index))
    }

    /// Rewrites a super table once its frozen buffers are on flash; none is frozen until then. The caller holds no
    /// lock.
    fn rewrite_unfrozen(&self, index: usize, scratch: &mut Scratch) -> Result<()> {
        let table = &self.partitions[index];
        let (lock, flushed) = loop {
            table.write().level.is_cleaned = true;
            if !table.read().frozen.is_empty() {
                match self.continue_flushes() {
                    Ok(()) => continue,
                    failed => break (table.maintain(), failed),
                }
            }
            let lock = table.maintain();
            // Cleaning in the background, which has ended, may have allowed a buffer to be frozen again.
            let mut state = table.write();
            if state.frozen.is_empty() {
                state.level.is_cleaned = true;
                break (lock, Ok(()));
            }
        };
        let rewritten = flushed.and_then(|()| self.rewrite(index, scratch));
        // Before the lock is released: cleaning in the background may begin at once, and no buffer may be frozen
        // meanwhile.
        table.write().level.is_cleaned = false;
        drop(lock);
        self.pool.notify();
        rewritten
    }

    /// Passes on this generation's entries with the keys in some pages of a super table of a newer one, given its
    /// number and the number of all, and the pages of its buffer: buffers, and incarnations from the newest on.
    pub(super) fn visit_share(
        &self,
        (index, count): (usize, usize),
        pages: (&Range<usize>, usize),
        visitor: &mut dyn Visitor,
    ) -> Result<()> {
        self.share_of(index, count).try_for_each(|index| {
            let cleans = self.layout.config.cleans();
            let _lock = cleans.then(|| self.partitions[index].maintain());
            self.visit_keys_of(index, pages, visitor)
        })
    }

    /// Records in the cache that the entries of its buffers have moved.
    pub(super) fn leave_buffers(&self) {
        let Some(cache) = self.lookups.cache.get() else { return };
        for table in &self.partitions {
            table.read().all_buffers().for_each(|buffer| buffer.leave(cache, self.hasher));
        }
    }

    /// Stops using older generations, which this one has taken over.
    pub(super) fn forget_older(&self) {
        self.layout.older.set(Arc::default());
    }

    /// Removes everything from RAM that a lookup could find, since its pages will be reused. A read that a lookup has
    /// begun finds that its incarnation is gone.
    pub(super) fn abandon(&self) -> Result<()> {
        let config = &self.layout.config;
        for table in &self.partitions {
            let empty = Level::new(config.incarnations_max, self.layout.filter.shape(), 1)?;
            table.write().level.put_rewritten(empty);
        }
        self.counters.flushed_entries.store(0, Relaxed);
        Ok(())
    }
}

/// Receives the versions that older generations have of the keys of a super table.
pub(super) struct OlderVersions<'v> {
    /// Receives one version; its key is of this super table.
    pub push: &'v mut dyn FnMut(KeyHash, Entry<'_>) -> Result<()>,
    pub core: &'v Inner,
    pub index: usize,
    /// The generations in between: if one of them is whole, nothing older counts.
    pub newer: &'v [Arc<Inner>],
}

impl Visitor for OlderVersions<'_> {
    fn entry(&mut self, entry: Entry<'_>) -> Result<()> {
        let hash = self.core.hasher.hash(entry.key);
        let is_own = self.core.partition_of(hash) == self.index;
        if !is_own || self.newer.iter().any(|core| core.is_whole(hash)) {
            return Ok(());
        }
        (self.push)(hash, entry)
    }

    fn damage(&mut self, damage: Damage) -> Result<()> {
        Err(damage.error)
    }

    fn reads(&self) -> Reads {
        Reads::Ahead
    }
}
