//! Bloom filters on flash with a buffer of updates in RAM, the best of their kind.
//!
//! Two layouts share the machinery:
//!
//! * **paged** (BloomFlash, and the buffered Bloom filter of the HotStorage'11 deck): a hash chooses a page
//!   with all bits of a key. A key waits in the buffer as 4 bytes, a lookup reads one page.
//! * **elevator** (Canim et al. 2010, and the deck's elevator Bloom filter): bits are anywhere, each waits as
//!   4 bytes, and a lookup reads a page per probe until one is not set.
//!
//! The buffer (`pool`) is divided into **regions** of 256 KiB in the order of the file, in chunks from one
//! common pool. A thread of its own (`sweep`) cycles through the file in I/O chunks of 512 KiB, several of
//! them in flight at once: it takes the updates of an I/O chunk, reads, sets the bits, writes. So the whole
//! buffer is never flushed at one moment while inserts wait. Regions just behind the thread are empty and
//! those just before it are full, so a buffer of n updates takes 2n of them per round, four times as many as
//! two alternating buffers. The thread only starts an I/O chunk when the buffer is nearly full. All transfers
//! are direct (O_DIRECT); pages have no checksums.

mod layout;
mod lookup;
mod pool;
mod sweep;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;

use anyhow::{Context, Result, bail, ensure};
use nandex_bench::subject::{Client, Spec, Status, Subject, yes};
use nandex_device::{
    Create, Device, FileDevice, FileOptions, Op, OpKind, PAGE_BYTES, PageBuf, PageId,
};

pub use self::layout::Kind;
use self::layout::{Layout, REGION_PAGES};
use self::lookup::Lookups;
use self::pool::Pool;
use crate::bloom::hash;

/// Regions of an I/O chunk: 512 KiB.
const IO_CHUNK_REGIONS: u64 = 2;
/// Pages of an I/O chunk.
const IO_CHUNK_PAGES: usize = (IO_CHUNK_REGIONS * REGION_PAGES) as usize;
/// I/O chunks in flight at once.
const IO_CHUNKS: usize = 6;
/// The part of the buffer below which the free space makes it nearly full.
const LOW: usize = 8;

/// An open filter.
pub struct Buffered {
    shared: Arc<Shared>,
    sweeper: Option<JoinHandle<()>>,
    depth: usize,
}

/// State shared by inserts, lookups and the sweeping thread.
struct Shared {
    layout: Layout,
    device: FileDevice,
    waiting: Mutex<Waiting>,
    /// Signals that inserts may continue: there is space, or everything is on flash.
    space: Condvar,
    /// Signals that the sweeping thread may continue.
    work: Condvar,
    /// The number of keys inserted, as far as is known.
    keys: AtomicU64,
    lookup_reads: AtomicU64,
    ram_bytes: u64,
}

/// Updates that are not on flash yet.
struct Waiting {
    pool: Pool,
    /// The updates taken from the pool by region, and not written yet.
    flying: HashMap<u32, Arc<Vec<u32>>>,
    demand: Demand,
    /// Whether the sweeping thread is asleep. Only then is it worth a system call to wake it.
    sleeps: bool,
    closed: bool,
    failure: Option<String>,
}

/// A request to the sweeping thread.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Demand {
    /// Keep some of the buffer free.
    Space,
    /// Flush everything.
    Everything,
}

impl Buffered {
    /// Creates an empty filter.
    pub fn create(spec: &Spec, kind: Kind) -> Result<Self> {
        let path = path(spec, kind);
        if path.exists() {
            std::fs::remove_file(&path).with_context(|| format!("removing {}", path.display()))?;
        }
        let options = FileOptions { create: Create::New, ..FileOptions::default() };
        let device = FileDevice::open(&path, &options)?;
        let layout = Layout::new(kind, spec.entries, spec.rate, IO_CHUNK_REGIONS * REGION_PAGES);
        fill(&device, layout.pages())?;
        Self::start(spec, layout, device, 0)
    }

    /// Opens the filter that `create` made.
    pub fn open(spec: &Spec, kind: Kind) -> Result<Self> {
        let device = FileDevice::open(path(spec, kind), &FileOptions::default())?;
        let layout = Layout::new(kind, spec.entries, spec.rate, IO_CHUNK_REGIONS * REGION_PAGES);
        let (found, expected) = (device.page_count(), layout.pages());
        ensure!(found == expected, "the file has {found} pages, and {expected} were written");
        Self::start(spec, layout, device, spec.entries)
    }

    fn start(spec: &Spec, layout: Layout, device: FileDevice, keys: u64) -> Result<Self> {
        let pool = Pool::new(pool_bytes(spec, layout)?, layout.regions());
        let shared = Arc::new(Shared {
            layout,
            device,
            ram_bytes: spec.ram_bytes,
            waiting: Mutex::new(Waiting {
                pool,
                flying: HashMap::new(),
                demand: Demand::Space,
                sleeps: false,
                closed: false,
                failure: None,
            }),
            space: Condvar::new(),
            work: Condvar::new(),
            keys: keys.into(),
            lookup_reads: 0.into(),
        });
        let sweeping = Arc::clone(&shared);
        let sweeper = std::thread::Builder::new().name("sweeper".into());
        let sweeper = sweeper.spawn(move || sweep::run(&sweeping))?;
        Ok(Self { shared, sweeper: Some(sweeper), depth: spec.depth })
    }
}

/// Returns the rest of the budget for the buffer, after I/O chunks in flight and their updates, pages of
/// lookups and a word per region.
fn pool_bytes(spec: &Spec, layout: Layout) -> Result<usize> {
    let regions = layout.regions();
    let io_chunks = (IO_CHUNKS * IO_CHUNK_PAGES * PAGE_BYTES) as u64;
    let lookups = (spec.threads * spec.depth * PAGE_BYTES) as u64;
    let left = spec.ram_bytes.saturating_sub(io_chunks + lookups + 4 * regions);
    // An I/O chunk takes twice the mean of its regions' updates.
    let flying = 2.0 * (IO_CHUNKS as u64 * IO_CHUNK_REGIONS) as f64 / regions as f64;
    let pool = left as f64 / (1.0 + flying.min(1.0));
    ensure!(pool >= 65_536.0, "--ram {}: I/O chunks alone take {io_chunks} bytes", spec.ram_bytes);
    Ok(pool as usize)
}

fn path(spec: &Spec, kind: Kind) -> PathBuf {
    spec.dir.join(format!("{}.bloom", kind.name()))
}

/// Writes `pages` pages of zeros, so that reads reach the drive.
fn fill(device: &FileDevice, pages: u64) -> Result<()> {
    device.grow(pages)?;
    let mut queue = device.queue(IO_CHUNKS)?;
    let mut spare: Vec<_> = (0..IO_CHUNKS).map(|_| PageBuf::zeroed(IO_CHUNK_PAGES)).collect();
    let mut done = Vec::new();
    for page in (0..pages).step_by(IO_CHUNK_PAGES) {
        if spare.is_empty() {
            queue.wait(1, &mut done)?;
        }
        for completion in done.drain(..) {
            completion.result?;
            spare.push(completion.buf);
        }
        let buf = spare.pop().context("a write gave no buffer back")?;
        queue.push(Op { token: 0, kind: OpKind::Write, page: PageId(page), buf })?;
    }
    queue.wait(IO_CHUNKS, &mut done)?;
    done.drain(..).try_for_each(|completion| completion.result)?;
    Ok(device.sync()?)
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().expect("no holder of this lock panics")
    }

    fn wait<'a>(&self, on: &Condvar, held: MutexGuard<'a, Waiting>) -> MutexGuard<'a, Waiting> {
        on.wait(held).expect("no holder of this lock panics")
    }

    fn wake(&self, waiting: &mut Waiting) {
        if std::mem::take(&mut waiting.sleeps) {
            self.work.notify_one();
        }
    }

    fn insert(&self, pairs: &[(u64, u64)]) -> Result<()> {
        let mut waiting = self.lock();
        for &(key, _) in pairs {
            let hash = hash(key);
            for probe in 0..self.layout.places() {
                let place = self.layout.place(hash, probe);
                while !waiting.pool.push(place.region, place.entry) {
                    self.wake(&mut waiting);
                    waiting = self.wait(&self.space, waiting);
                    waiting.check()?;
                }
            }
        }
        if waiting.pool.is_low() {
            self.wake(&mut waiting);
        }
        drop(waiting);
        self.keys.fetch_add(pairs.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        let mut waiting = self.lock();
        while !waiting.is_empty() {
            waiting.demand = Demand::Everything;
            self.wake(&mut waiting);
            waiting = self.wait(&self.space, waiting);
            waiting.check()?;
        }
        waiting.demand = Demand::Space;
        drop(waiting);
        Ok(self.device.sync()?)
    }
}

impl Waiting {
    fn is_empty(&self) -> bool {
        self.pool.is_empty() && self.flying.is_empty()
    }

    fn holds(&self, place: layout::Place) -> bool {
        let flying = self.flying.get(&place.region);
        flying.is_some_and(|entries| entries.contains(&place.entry))
            || self.pool.contains(place.region, place.entry)
    }

    fn check(&self) -> Result<()> {
        match &self.failure {
            Some(failure) => bail!("the buffer cannot be written: {failure}"),
            None => Ok(()),
        }
    }
}

impl Drop for Buffered {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.work.notify_all();
        if let Some(sweeper) = self.sweeper.take() {
            // It returns its failures through the lock; a panic has printed its own message.
            let _ = sweeper.join();
        }
    }
}

impl Subject for Buffered {
    fn client(&self) -> Result<Box<dyn Client + '_>> {
        Ok(Box::new(BufferedClient {
            shared: &self.shared,
            lookups: Lookups::new(&self.shared, self.depth)?,
        }))
    }

    fn sync(&self) -> Result<()> {
        self.shared.sync()
    }

    fn settle(&self) -> Result<()> {
        self.shared.sync()
    }

    fn status(&self) -> Status {
        let shared = &self.shared;
        let keys = shared.keys.load(Ordering::Relaxed);
        Status {
            entries: Some(keys),
            ram_bytes: Some(shared.ram_bytes),
            flash_bytes: shared.layout.pages() * PAGE_BYTES as u64,
            rate: shared.layout.rate(keys),
            lookup_reads: Some(shared.lookup_reads.load(Ordering::Relaxed)),
            levels: Some(1),
            ..Status::default()
        }
    }
}

struct BufferedClient<'a> {
    shared: &'a Shared,
    lookups: Lookups<'a>,
}

impl Client for BufferedClient<'_> {
    fn insert(&mut self, key: u64, value: u64) -> Result<()> {
        self.shared.insert(&[(key, value)])
    }

    fn insert_many(&mut self, pairs: &[(u64, u64)]) -> Result<()> {
        self.shared.insert(pairs)
    }

    fn get(&mut self, key: u64) -> Result<Option<u64>> {
        Ok(yes(self.lookups.one(key)?))
    }

    fn get_many(&mut self, keys: &[u64], found: &mut Vec<Option<u64>>) -> Result<()> {
        self.lookups.many(keys, found)
    }
}
