//! Bloom filters on flash, as small models that really run: bits on pages of the simulated drive.
//!
//! | kind | a key's bits | RAM | an insert |
//! |---|---|---|---|
//! | plain | anywhere | pages that were touched last | k pages brought in, and as many written back |
//! | one page | on one page | the same | one page brought in and written back |
//! | buffered | on one page | a queue of bits, 5 bytes each | a share of a sweep over pages |
//! | page-blocked | on one page | a queue of keys, 8 bytes each | a share of a sweep in I/O chunks |
//!
//! A sweep applies waiting updates in the order of their pages: either each page with updates is read and
//! written on its own, or the whole filter is, in chunks.
//!
//! "One page" is the two-step hash of Canim et al. (2010), "buffered" has their queue of bits in addition.
//! The last one resembles BloomFlash (2011), and is the strongest possible: none of its I/O is random.

mod cached;
mod queued;
mod sweep;

use nandex::device::Device;
use nandex::raw::device::{PAGE_BYTES, PageBuf, PageId};
use nandex_sim::SimDevice;
use nandex_sim::workload::SplitMix64;

use super::grown::{BATCHED, Final, LOOKUPS, Looked};
use super::lab::{ABSENT, CHUNK_PAGES, Measures, now_ns};
use super::rounds::{Costs, Round};
use crate::{Result, fits};
use cached::Cache;
use queued::Queue;

/// The bits of the filter for each key, at which eight hash functions have the cascade filter's rate of false
/// positives; it accounts for pages that are fuller by chance.
const BITS_PER_KEY: f64 = 11.6;
/// The number of hash functions, k.
pub const HASHES: usize = 8;
/// Bits of a page.
const PAGE_BITS: u64 = PAGE_BYTES as u64 * 8;

/// The layout and buffering of a filter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Bits anywhere, pages in a cache.
    Plain,
    /// Bits on one page, pages in a cache.
    OnePage,
    /// Bits on one page, and a queue of bits.
    Buffered,
    /// Bits on one page, and a queue of keys.
    PageBlocked,
}

impl Kind {
    /// All kinds, from the simplest to the strongest.
    pub const ALL: [Self; 4] = [Self::Plain, Self::OnePage, Self::Buffered, Self::PageBlocked];

    /// Returns its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain Bloom filter, cached pages",
            Self::OnePage => "Bloom filter with one page for each key, cached pages",
            Self::Buffered => "buffered Bloom filter, queued bits",
            Self::PageBlocked => "page-blocked buffered Bloom filter",
        }
    }

    /// Returns the CPU cost of its keys.
    pub fn costs(self) -> Costs {
        match self {
            Self::Plain | Self::OnePage => Costs::cached(),
            Self::Buffered => Costs::bits(),
            Self::PageBlocked => Costs::pages(),
        }
    }

    /// Returns the name of the assumed constant that decides most of that cost.
    pub const fn processor(self) -> &'static str {
        match self {
            Self::Plain | Self::OnePage => fits::CACHED_INSERT.name,
            Self::Buffered => fits::BITS_SWEEP.name,
            Self::PageBlocked => fits::PAGES_SWEEP.name,
        }
    }
}

/// The places of a key's bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    kind: Kind,
    pages: u64,
    seed: u64,
}

impl Shape {
    /// Returns a number that identifies a key. Those of one page are together, pages in ascending order.
    fn name_of(self, key: u64) -> u64 {
        SplitMix64::stream(self.seed, key).next_u64()
    }

    /// Returns page and bit of each of its hash functions.
    fn places(self, name: u64) -> [(u64, u64); HASHES] {
        let mut rng = SplitMix64::new(name);
        let mut draws = [rng.next_u64(), rng.next_u64()].into_iter().cycle();
        let mut places = [(self.page_of(name), 0); HASHES];
        for (index, place) in places.iter_mut().enumerate() {
            if self.kind == Kind::Plain {
                let bit = high(rng.next_u64(), self.pages * PAGE_BITS);
                *place = (bit / PAGE_BITS, bit % PAGE_BITS);
            } else {
                // Four numbers of 15 bits in each 64.
                let draw = draws.next().expect("it cycles");
                place.1 = draw >> (15 * (index / 2)) & (PAGE_BITS - 1);
            }
        }
        places
    }

    /// Returns the page of a key whose bits are all on one page.
    fn page_of(self, name: u64) -> u64 {
        high(name, self.pages)
    }
}

const fn high(a: u64, b: u64) -> u64 {
    ((a as u128 * b as u128) >> 64) as u64
}

fn set(page: &mut [u8], bit: u64) {
    page[(bit / 8) as usize] |= 1 << (bit % 8);
}

fn has(page: &[u8], bit: u64) -> bool {
    page[(bit / 8) as usize] >> (bit % 8) & 1 == 1
}

/// A Bloom filter on a simulated drive, with all its keys in it.
pub struct Bloom {
    shape: Shape,
    drive: SimDevice,
    measures: Measures,
    keys: u64,
    cache: Cache,
    queue: Queue,
    reads: u64,
}

impl Bloom {
    /// Creates a filter of the keys from 0 on, in the steady state in which the deck measured its own.
    pub fn full(kind: Kind, measures: Measures) -> Result<Self> {
        let pages = (measures.keys as f64 * BITS_PER_KEY / PAGE_BITS as f64).ceil() as u64;
        let shape = Shape { kind, pages, seed: measures.scale.seed() };
        let drive = measures.drive()?;
        let frames = (measures.ram_bytes / PAGE_BYTES as u64).max(1) as usize;
        let queue = Queue::new(kind, measures.ram_bytes);
        let cache = Cache::new(frames, measures.scale.seed());
        let keys = measures.keys;
        let mut bloom = Self { shape, drive, measures, keys, cache, queue, reads: 0 };
        bloom.load()?;
        bloom.warm_up(frames)?;
        Ok(bloom)
    }

    /// Returns its layout and buffering.
    pub fn kind(&self) -> Kind {
        self.shape.kind
    }

    /// Returns the pages of the filter.
    pub fn pages(&self) -> u64 {
        self.shape.pages
    }

    fn load(&mut self) -> Result<()> {
        let mut image = PageBuf::zeroed(self.shape.pages as usize);
        for key in 0..self.keys {
            for (page, bit) in self.shape.places(self.shape.name_of(key)) {
                set(image.page_mut(page as usize), bit);
            }
        }
        self.drive.grow(self.shape.pages)?;
        for first in (0..self.shape.pages).step_by(CHUNK_PAGES as usize) {
            let pages = (self.shape.pages - first).min(CHUNK_PAGES.into()) as usize;
            let mut chunk = PageBuf::zeroed(pages);
            (0..pages).for_each(|page| {
                chunk.page_mut(page).copy_from_slice(image.page(first as usize + page));
            });
            self.drive.write(PageId(first), chunk)?;
        }
        Ok(self.drive.sync()?)
    }

    /// Fills the cache with changed pages.
    fn warm_up(&mut self, frames: usize) -> Result<()> {
        let pages_each = match self.shape.kind {
            Kind::Plain => HASHES,
            Kind::OnePage => 1,
            Kind::Buffered | Kind::PageBlocked => return Ok(()),
        };
        let end = self.keys + (2 * frames / pages_each) as u64;
        while self.keys < end {
            self.insert_cached()?;
        }
        Ok(())
    }

    fn insert_cached(&mut self) -> Result<()> {
        let places = self.shape.places(self.shape.name_of(self.keys));
        for (page, bit) in places {
            let (bytes, _) = self.cache.page(&self.drive, page, cached::Use::Change)?;
            set(bytes, bit);
        }
        self.keys += 1;
        Ok(())
    }

    /// Inserts more: a number of full queues, or a limited number of keys.
    pub fn insert(&mut self, rounds: u64) -> Result<Vec<Round>> {
        match self.shape.kind {
            Kind::Plain | Kind::OnePage => (0..rounds).map(|_| self.cached_round()).collect(),
            Kind::Buffered | Kind::PageBlocked => {
                (0..rounds).map(|_| self.queued_round()).collect()
            }
        }
    }

    /// Performs a hundred inserts; the last changes stay in the cache, like those before them.
    fn cached_round(&mut self) -> Result<Round> {
        let keys = 100;
        let start_ns = now_ns(&self.drive);
        for _ in 0..keys {
            self.insert_cached()?;
        }
        Ok(Round { keys, merged: 0, device_ns: now_ns(&self.drive) - start_ns })
    }

    fn queued_round(&mut self) -> Result<Round> {
        let keys = self.queue.keys_max;
        for _ in 0..keys {
            self.queue.push(self.shape, self.keys);
            self.keys += 1;
        }
        let start_ns = now_ns(&self.drive);
        self.queue.flush(self.shape, &self.drive)?;
        Ok(Round { keys, merged: keys, device_ns: now_ns(&self.drive) - start_ns })
    }

    /// Measures lookups when all keys are in.
    pub fn last_lookups(&mut self) -> Result<Final> {
        let mut rng = SplitMix64::stream(self.measures.scale.seed(), 400);
        let absent: Vec<u64> = (0..LOOKUPS).map(|_| ABSENT + rng.below(ABSENT)).collect();
        let present: Vec<u64> = (0..LOOKUPS).map(|_| rng.below(self.keys)).collect();
        let batched: Vec<u64> = (0..BATCHED).map(|_| ABSENT + rng.below(ABSENT)).collect();
        Ok(Final {
            absent: self.look_up_all(&absent)?,
            present: self.look_up_all(&present)?,
            batched: self.look_up_batched(&batched)?,
        })
    }

    fn look_up_all(&mut self, keys: &[u64]) -> Result<Looked> {
        let (start_ns, reads) = (now_ns(&self.drive), self.reads);
        let mut yes = 0;
        for key in keys {
            yes += u64::from(self.contains(*key)?);
        }
        Ok(self.looked(keys.len(), (start_ns, reads), yes))
    }

    fn contains(&mut self, key: u64) -> Result<bool> {
        for (page, bit) in self.shape.places(self.shape.name_of(key)) {
            let (bytes, was_read) = self.cache.page(&self.drive, page, cached::Use::Look)?;
            let is_set = has(bytes, bit);
            self.reads += u64::from(was_read);
            if !is_set {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Looks up batches of pages of one key each, 32 reads in flight: for a plain filter, those of its first
    /// bit.
    fn look_up_batched(&mut self, keys: &[u64]) -> Result<Looked> {
        let (start_ns, reads) = (now_ns(&self.drive), self.reads);
        let places = keys.iter().map(|key| self.shape.places(self.shape.name_of(*key)));
        let mut waiting: Vec<([(u64, u64); HASHES], usize)> = places.map(|it| (it, 0)).collect();
        waiting.reverse();
        let yes = sweep::look_up(&self.drive, &mut waiting, &mut self.reads)?;
        Ok(self.looked(keys.len(), (start_ns, reads), yes))
    }

    fn looked(&self, count: usize, (start_ns, reads): (u64, u64), yes: u64) -> Looked {
        let each = |sum: u64| sum as f64 / count.max(1) as f64;
        Looked {
            keys: self.keys,
            reads: each(self.reads - reads),
            device_ns: each(now_ns(&self.drive) - start_ns),
            positive: each(yes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scale;

    #[test]
    fn every_kind_finds_all_its_keys_and_errs_as_often_as_it_was_made_to() {
        let scale = Scale::new(Scale::MOST, 1).unwrap();
        let measures = Measures::new(scale, 60_000, 16).unwrap();
        for kind in Kind::ALL {
            let mut bloom = Bloom::full(kind, measures).unwrap();
            let rounds = bloom.insert(2).unwrap();
            assert!(rounds.iter().all(|round| round.device_ns > 0), "{kind:?}: {rounds:?}");
            let new: Vec<u64> =
                (0..bloom.keys).step_by(7).chain(bloom.keys - 50..bloom.keys).collect();
            assert_eq!(bloom.look_up_all(&new).unwrap().positive, 1.0, "{kind:?}");
            let last = bloom.last_lookups().unwrap();
            assert_eq!(last.present.positive, 1.0, "{kind:?}");
            for looked in [last.absent, last.batched] {
                assert!(looked.positive < 0.03, "{kind:?}: {looked:?}");
            }
        }
    }

    #[test]
    fn absent_keys_are_found_once_in_256() {
        let scale = Scale::new(Scale::MOST, 3).unwrap();
        let measures = Measures::new(scale, 200_000, 16).unwrap();
        let mut bloom = Bloom::full(Kind::PageBlocked, measures).unwrap();
        let absent: Vec<u64> = (ABSENT..ABSENT + 100_000).collect();
        let rate = bloom.look_up_batched(&absent).unwrap().positive;
        assert!((0.003..0.0045).contains(&rate), "{rate}");
    }
}
