//! Every form of lookup finds what following the pages by hand finds, and failures lose no buffers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use nandex_device::{
    Counted, Device, Geometry, Mapping, MemoryDevice, PAGE_BYTES, PageBuf, PageId,
};

use super::*;
use crate::bytes::{get_u64, put_u64};
use crate::schedule::Channels;

/// The number of pages of the device, and of those with which a chain may begin.
const PAGES: u64 = 80;
const KEYS: u64 = 64;

/// The page number that ends a chain.
const END: u64 = u64::MAX;

/// Chains of pages, each with the number of the next. `parts` neighbours are read at a time; the first of them
/// continues the chain.
struct Chains {
    parts: u32,
    /// A page that fails its check.
    bad: u64,
}

/// Follows a chain, and adds up its pages.
struct Walk {
    at: u64,
    next: u64,
    sum: u64,
}

#[derive(Debug)]
enum Failure {
    Device,
    BadPage,
}

impl From<nandex_device::Error> for Failure {
    fn from(_: nandex_device::Error) -> Self {
        Self::Device
    }
}

impl PageReads for Chains {
    type Probe = Walk;
    type Answer = u64;
    type Error = Failure;

    fn parts(&self, _walk: &Walk) -> u32 {
        self.parts
    }

    fn place(&self, walk: &Walk, part: u32) -> ReadPlace {
        ReadPlace::page(PageId(walk.at + u64::from(part)), PageId(0))
    }

    fn look(&self, walk: &mut Walk, part: u32, page: &PageBuf) -> Result<(), Failure> {
        if walk.at + u64::from(part) == self.bad {
            return Err(Failure::BadPage);
        }
        walk.sum += walk.at + u64::from(part);
        if part == 0 {
            walk.next = get_u64(page, 0);
        }
        Ok(())
    }

    fn next(&self, walk: &mut Walk) -> NextStep<Self> {
        let Walk { next, sum, .. } = *walk;
        if next == END {
            return Ok(LookupStep::Answer(sum));
        }
        *walk = begin(next, sum);
        Ok(LookupStep::Read(()))
    }
}

fn begin(at: u64, sum: u64) -> Walk {
    Walk { at, next: END, sum }
}

/// Returns a pool over chains of pages p, p / 2, p / 4, ... 1.
fn pool(channels: u32, depth: usize) -> ReadPool {
    ReadPool::new(Arc::new(device()), channels_of(channels), depth)
}

fn device() -> MemoryDevice {
    let device = MemoryDevice::new();
    device.grow(PAGES).unwrap();
    for page in 0..PAGES {
        let mut buf = PageBuf::zeroed(1);
        put_u64(&mut buf, 0, first_word(page));
        device.write(PageId(page), buf).unwrap();
    }
    device
}

/// Returns the number of the next page in a chain, with which a page begins.
fn first_word(page: u64) -> u64 {
    if page < 2 { END } else { page / 2 }
}

fn channels_of(channels: u32) -> Channels {
    let geometry = Geometry {
        channels: Some(channels),
        chunk_bytes: Some(4096),
        mapping: Some(Mapping::Lba),
        ..Geometry::opaque()
    };
    Channels::of(&geometry)
}

/// Returns the sum of a chain, and the number of its reads.
fn by_hand(parts: u32, mut at: u64) -> (u64, usize) {
    let (mut sum, mut reads) = (0, 0);
    loop {
        sum += (0..u64::from(parts)).map(|part| at + part).sum::<u64>();
        reads += parts as usize;
        if at < 2 {
            return (sum, reads);
        }
        at /= 2;
    }
}

fn batch(pool: &ReadPool, chains: &Chains) -> Result<Vec<(u64, usize)>, Failure> {
    let keys: Vec<u64> = (0..KEYS).collect();
    let mut found = vec![(0, 0); keys.len()];
    pool.pipeline(chains).batch(
        &keys,
        16,
        |key| *key,
        |_, at| {
            Ok(if *at == 5 { LookupStep::Answer(500) } else { LookupStep::Read(begin(*at, 0)) })
        },
        |index, sum, reads| found[index] = (sum, reads),
    )?;
    Ok(found)
}

#[test]
fn all_faces_find_what_following_a_chain_by_hand_finds() {
    for (channels, depth, parts) in [(1, 1, 1), (1, 4, 1), (4, 2, 1), (4, 8, 3), (1, 2, 5)] {
        let (pool, chains) = (pool(channels, depth), Chains { parts, bad: END });
        let expected: Vec<_> = (0..KEYS).map(|key| by_hand(parts, key)).collect();

        let single = |key| pool.look_up(&chains, begin(key, 0)).unwrap();
        assert_eq!((0..KEYS).map(single).collect::<Vec<_>>(), expected);

        let mut in_batch = expected.clone();
        in_batch[5] = (500, 0);
        assert_eq!(batch(&pool, &chains).unwrap(), in_batch);

        let mut stream = pool.pipeline(&chains);
        let mut streamed = vec![(0, 0); expected.len()];
        for key in 0..KEYS {
            stream.start(key, begin(key, 0)).unwrap();
        }
        while stream.pending() + stream.ready() > 0 {
            stream.wait().unwrap();
            while let Some(Answered { token, answer, reads }) = stream.pop() {
                streamed[token as usize] = (answer, reads);
            }
        }
        assert_eq!(streamed, expected);
    }
}

#[test]
fn a_lookup_that_fails_has_no_answer_and_the_others_go_on() {
    for parts in [1, 3] {
        let (pool, chains) = (pool(4, 4), Chains { parts, bad: 40 });
        let mut stream = pool.pipeline(&chains);
        let mut failed = 0;
        for key in 0..KEYS {
            failed += usize::from(stream.start(key, begin(key, 0)).is_err());
        }
        while stream.pending() > 0 {
            failed += usize::from(stream.wait().is_err());
        }
        let meets_bad = |key: u64| {
            let mut chain = std::iter::successors(Some(key), |at| (*at > 1).then_some(at / 2));
            chain.any(|at| (at..at + u64::from(parts)).contains(&40))
        };
        let whole = (0..KEYS).filter(|key| !meets_bad(*key)).count();
        assert!(failed > 0 && failed <= KEYS as usize - whole, "{failed}");
        assert_eq!(stream.ready(), whole);
    }
}

#[test]
fn a_batch_that_fails_gives_its_queue_and_all_page_buffers_back() {
    let pool = pool(4, 8);
    batch(&pool, &Chains { parts: 1, bad: END }).unwrap();
    let ram_bytes = pool.ram_bytes();
    // Reads that have ended are processed while others are in flight.
    assert!((8..=16).contains(&(ram_bytes / PAGE_BYTES)), "{ram_bytes}");
    let failure = batch(&pool, &Chains { parts: 1, bad: 33 }).unwrap_err();
    assert!(matches!(failure, Failure::BadPage));
    assert_eq!(pool.ram_bytes(), ram_bytes);
    batch(&pool, &Chains { parts: 1, bad: END }).unwrap();
    assert_eq!(pool.ram_bytes(), ram_bytes);
}

#[test]
fn a_dropped_stream_waits_for_its_reads() {
    let (pool, chains) = (pool(1, 8), Chains { parts: 1, bad: END });
    let mut stream = pool.pipeline(&chains);
    (8..16).for_each(|key| stream.start(key, begin(key, 0)).unwrap());
    assert!(stream.pending() > 0);
    drop(stream);
    assert_eq!(pool.ram_bytes(), 8 * PAGE_BYTES);
}

#[test]
fn a_read_that_the_device_refuses_fails_its_lookup() {
    let (pool, chains) = (pool(1, 4), Chains { parts: 2, bad: END });
    assert!(matches!(pool.look_up(&chains, begin(PAGES - 1, 0)), Err(Failure::Device)));
    let mut stream = pool.pipeline(&chains);
    assert!(matches!(stream.start(0, begin(PAGES, 0)), Err(Failure::Device)));
    // The other part of the first one fails with this call.
    let _ = stream.start(1, begin(3, 0));
    while stream.pending() > 0 {
        let _ = stream.wait();
    }
    assert_eq!(stream.pop().map(|answered| answered.answer), Some(by_hand(2, 3).0));
}

#[test]
fn a_single_lookup_needs_one_buffer_and_no_queue() {
    let (pool, chains) = (pool(4, 8), Chains { parts: 1, bad: END });
    assert!((0..KEYS).all(|key| pool.look_up(&chains, begin(key, 0)).is_ok()));
    assert_eq!(pool.ram_bytes(), PAGE_BYTES);
}

/// Lookups of one page each, which note how many reads were started and not processed when a page is.
struct Noting {
    device: Arc<Counted<MemoryDevice>>,
    looked_at: AtomicU64,
    most: AtomicU64,
}

impl PageReads for Noting {
    type Probe = u64;
    type Answer = ();
    type Error = Failure;

    fn parts(&self, _page: &u64) -> u32 {
        1
    }

    fn place(&self, page: &u64, _part: u32) -> ReadPlace {
        ReadPlace::page(PageId(*page), PageId(0))
    }

    fn look(&self, _: &mut u64, _part: u32, _page: &PageBuf) -> Result<(), Failure> {
        let started = self.device.snapshot().reads;
        let looked_at = self.looked_at.fetch_add(1, Relaxed);
        self.most.fetch_max(started - looked_at, Relaxed);
        Ok(())
    }

    fn next(&self, _: &mut u64) -> NextStep<Self> {
        Ok(LookupStep::Answer(()))
    }
}

#[test]
fn reads_are_started_before_the_pages_of_those_that_have_ended_are_looked_at() {
    for channels in [1, 4] {
        let device = Arc::new(Counted::new(device()));
        let pool = ReadPool::new(Arc::clone(&device) as _, channels_of(channels), 8);
        let noting = Noting { device, looked_at: 0.into(), most: 0.into() };
        let before = noting.device.snapshot().reads;
        noting.looked_at.store(before, Relaxed);
        let keys: Vec<u64> = (0..KEYS).collect();
        let ask = |key: &u64, _: &()| Ok(LookupStep::Read(*key));
        pool.pipeline(&noting).batch(&keys, 16, |_| (), ask, |_, (), _| ()).unwrap();
        let most = noting.most.into_inner();
        assert!((9..=16).contains(&most), "{most} with {channels} channels and a depth of 8");
    }
}

/// Lookups of one page each or of two neighbouring ones, by their first page; an answer is the beginning of the pages.
struct Pairs {
    bad: u64,
}

/// A lookup of pages: the first one, their number, and their content.
struct Pair {
    first: u64,
    pages: u32,
    found: Vec<u64>,
}

impl PageReads for Pairs {
    type Probe = Pair;
    type Answer = Vec<u64>;
    type Error = Failure;

    const SORTS_BATCHES: bool = true;

    fn place(&self, pair: &Pair, _part: u32) -> ReadPlace {
        let Pair { first, pages, .. } = *pair;
        ReadPlace { page: PageId(first), pages, write: SequentialWrite::at(PageId(0)) }
    }

    fn look(&self, pair: &mut Pair, _part: u32, pages: &PageBuf) -> Result<(), Failure> {
        assert_eq!(pages.pages(), pair.pages as usize, "its own pages and no others");
        if (pair.first..pair.first + u64::from(pair.pages)).contains(&self.bad) {
            return Err(Failure::BadPage);
        }
        pair.found.extend((0..pages.pages()).map(|page| get_u64(pages.page(page), 0)));
        Ok(())
    }

    fn next(&self, pair: &mut Pair) -> NextStep<Self> {
        Ok(LookupStep::Answer(std::mem::take(&mut pair.found)))
    }
}

fn pair(key: &u64) -> Pair {
    let scattered = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    Pair {
        first: scattered % (PAGES - 2),
        pages: 1 + u32::from(scattered.is_multiple_of(3)),
        found: vec![],
    }
}

/// Returns a device of these pages, and the pool of a queue of `depth` over it.
fn counted(depth: usize) -> (Arc<Counted<MemoryDevice>>, ReadPool) {
    let device = Arc::new(Counted::new(device()));
    (Arc::clone(&device), ReadPool::new(device, channels_of(1), depth))
}

#[test]
fn a_large_batch_reads_each_page_once_and_pages_next_to_each_other_together() {
    let keys: Vec<u64> = (0..1000).collect();
    let expected: Vec<Vec<u64>> = keys
        .iter()
        .map(pair)
        .map(|it| (it.first..it.first + u64::from(it.pages)).map(first_word).collect())
        .collect();
    let (device, pool) = counted(8);
    let mut found = vec![Vec::new(); keys.len()];
    let mut reads = 0;
    let ask = |key: &u64, (): &()| Ok(LookupStep::Read(pair(key)));
    let take = |index: usize, answer, count| {
        found[index] = answer;
        reads += count;
    };
    pool.pipeline(Pairs { bad: END }).batch(&keys, 16, |_| (), ask, take).unwrap();
    assert_eq!(found, expected);
    let counts = device.snapshot();
    // The first lookups fill the queue; all 80 pages are five runs of sixteen, and some that end early.
    assert!(counts.reads <= 8 + 8, "{counts:?}");
    assert_eq!(reads as u64, counts.reads, "a shared read is counted once");
    assert!(pool.ram_bytes() <= 10 * PAGE_BYTES, "{}", pool.ram_bytes());
}

#[test]
fn of_lookups_that_share_a_read_only_those_of_a_bad_page_fail() {
    let keys: Vec<u64> = (8..1000).collect();
    let bad = 33;
    let meets = |key: &u64| {
        let Pair { first, pages, .. } = pair(key);
        (first..first + u64::from(pages)).contains(&bad)
    };
    let (_, pool) = counted(8);
    let mut pipeline = pool.pipeline(Pairs { bad });
    let mut held: Vec<_> = keys
        .iter()
        .map(|key| {
            let probe = pair(key);
            (pipeline.user().place(&probe, 0), *key, probe)
        })
        .collect();
    let mut failed = usize::from(pipeline.start_sorted(&mut held).is_err());
    while pipeline.pending() > 0 {
        failed += usize::from(pipeline.wait().is_err());
    }
    let answered: Vec<u64> = std::iter::from_fn(|| pipeline.pop()).map(|it| it.token).collect();
    let expected = keys.iter().filter(|key| !meets(key)).count();
    assert!(failed > 0 && expected < keys.len());
    assert_eq!(answered.len(), expected);
    assert!(answered.iter().all(|key| !meets(key)));
}

#[test]
fn of_a_read_that_the_device_refuses_each_lookup_is_tried_by_itself() {
    let (_, pool) = counted(4);
    let mut pipeline = pool.pipeline(Pairs { bad: END });
    // The last two pages of the device, and one past them.
    let mut held: Vec<_> = (PAGES - 2..PAGES + 1)
        .map(|first| {
            let probe = Pair { first, pages: 1, found: vec![] };
            (pipeline.user().place(&probe, 0), first, probe)
        })
        .collect();
    let mut failed = usize::from(pipeline.start_sorted(&mut held).is_err());
    while pipeline.pending() > 0 {
        failed += usize::from(pipeline.wait().is_err());
    }
    let mut answered: Vec<u64> = std::iter::from_fn(|| pipeline.pop()).map(|it| it.token).collect();
    answered.sort_unstable();
    assert_eq!((failed, answered), (1, vec![PAGES - 2, PAGES - 1]));
}
