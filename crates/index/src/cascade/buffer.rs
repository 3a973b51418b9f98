//! The write buffer: a quotient filter, the deck's Q0.
//!
//! It begins with half of its size and takes the other half when that is full. Parts whose buffers were just
//! merged thus leave their RAM to the others. Growing is one pass over the content. More and smaller steps
//! would save more RAM, but all inserts would go into filters that are nearly full, which are slower.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

use nandex_store::run::{Entry, Source};

use super::format::FingerprintCodec;
use super::snapshot::RunSnapshots;
use crate::Result;
use crate::quotient::{QuotientFilter, Shape};
use crate::write::WriteBuffer;

/// The sizes that a buffer grows through, and the total RAM and entries of a filter's buffers.
#[derive(Debug)]
pub(crate) struct BufferSizes {
    /// The smallest first, and the RAM of each in bytes.
    shapes: Vec<Shape>,
    bytes: Vec<u64>,
    taken_bytes: AtomicU64,
    bytes_max: u64,
    /// May buffers grow past the limit, as they did before a crash?
    is_recovering: AtomicBool,
    /// Entries in all buffers.
    entries: AtomicU64,
}

impl BufferSizes {
    /// For buffers of these shapes, which may take `bytes_max` bytes together once the filter has recovered.
    pub(super) fn new(shapes: Vec<Shape>, bytes_max: u64) -> Self {
        assert!(!shapes.is_empty(), "a buffer has a size");
        Self {
            bytes: bytes_of(&shapes),
            shapes,
            taken_bytes: AtomicU64::new(0),
            bytes_max,
            is_recovering: AtomicBool::new(true),
            entries: AtomicU64::new(0),
        }
    }

    /// Entries in all buffers.
    pub(super) fn entries(&self) -> u64 {
        self.entries.load(Relaxed)
    }

    /// Ends recovery; the limit holds from now on.
    pub(super) fn recovered(&self) {
        self.is_recovering.store(false, Relaxed);
    }

    /// Takes bytes unless that exceeds the limit.
    fn take(&self, bytes: u64) -> bool {
        if self.is_recovering.load(Relaxed) {
            self.taken_bytes.fetch_add(bytes, Relaxed);
            return true;
        }
        let more = |taken: u64| (taken + bytes <= self.bytes_max).then_some(taken + bytes);
        self.taken_bytes.fetch_update(Relaxed, Relaxed, more).is_ok()
    }

    fn note_entries(&self, before: u64, now: u64) {
        if before != now {
            // Every amount that is subtracted was added before, so the sum is right after each step.
            self.entries.fetch_add(now.wrapping_sub(before), Relaxed);
        }
    }
}

/// Approximate RAM of buffers of these shapes, never less than that of the shape before: very small ones have
/// wide slots.
pub(super) fn bytes_of(shapes: &[Shape]) -> Vec<u64> {
    let mut most = 0;
    let grown = |shape| {
        most = most.max(QuotientFilter::bytes_of(shape) as u64);
        most
    };
    shapes.iter().map(grown).collect()
}

/// Fingerprints in RAM.
#[derive(Debug)]
pub(crate) struct QuotientBuffer {
    sizes: Arc<BufferSizes>,
    /// Which of the sizes it has.
    size: usize,
    filter: QuotientFilter,
    entries_max: u64,
    /// Deletes it has taken.
    pub deletes: u64,
    /// May there be tombstones in it?
    pub has_tombstones: bool,
}

impl QuotientBuffer {
    pub(super) fn new(sizes: &Arc<BufferSizes>) -> Self {
        let (sizes, filter) = (Arc::clone(sizes), QuotientFilter::new(sizes.shapes[0]));
        // Every buffer has its first size, whatever the limit.
        sizes.taken_bytes.fetch_add(sizes.bytes[0], Relaxed);
        let (entries_max, deletes) = (u64::MAX, 0);
        Self { sizes, size: 0, filter, entries_max, deletes, has_tombstones: false }
    }

    /// Takes the next size, unless it has the last one or RAM is short.
    fn grow(&mut self) -> Result<bool> {
        let Some(next) = self.sizes.shapes.get(self.size + 1) else { return Ok(false) };
        if !self.sizes.take(self.sizes.bytes[self.size + 1] - self.sizes.bytes[self.size]) {
            return Ok(false);
        }
        self.filter = QuotientFilter::from_source(*next, &mut self.filter.source())?;
        self.size += 1;
        Ok(true)
    }

    /// Applies updates up to the first that does not fit the largest size it may have.
    fn apply_growing(&mut self, updates: &[Entry]) -> Result<usize> {
        let mut done = 0;
        loop {
            let space = self.entries_max.saturating_sub(self.filter.entries());
            let rest = &updates[done..];
            let some = &rest[..rest.len().min(usize::try_from(space).unwrap_or(usize::MAX))];
            let count = self.filter.add_entries(some)?;
            done += count;
            if rest.is_empty() || space == 0 || count < some.len() && !self.grow()? {
                return Ok(done);
            }
        }
    }

    /// Adds the content of a snapshot.
    ///
    /// # Errors
    /// A failed read, damage.
    pub(super) fn load(&mut self, snapshot: &mut dyn Source) -> Result<()> {
        let deletes = self.deletes;
        let mut batch = Vec::new();
        while snapshot.next_batch(&mut batch)? {
            let taken = self.apply(&batch)?;
            assert_eq!(taken, batch.len(), "a snapshot fits the buffer that it was made of");
            batch.clear();
        }
        self.deletes = deletes;
        Ok(())
    }

    pub(super) fn count(&self, fingerprint: u64) -> i64 {
        self.filter.count(fingerprint)
    }

    pub(super) fn prefetch(&self, fingerprint: u64) {
        self.filter.prefetch(fingerprint);
    }

    pub(super) fn filter(&self) -> &QuotientFilter {
        &self.filter
    }

    /// Its content in ascending order.
    pub(super) fn source(&self) -> Box<dyn Source + '_> {
        Box::new(self.filter.source())
    }

    /// Different fingerprints in it; one with a large count may take several entries. Reads the whole buffer.
    pub(super) fn fingerprints(&self) -> u64 {
        let (mut count, mut source, mut batch) = (0, self.filter.source(), Vec::new());
        while source.next_batch(&mut batch).expect("RAM is read without errors") {
            count += batch.len() as u64;
            batch.clear();
        }
        count
    }

    /// Its content in ascending order, copied.
    pub(super) fn sorted(&self) -> Vec<Entry> {
        let mut entries = Vec::with_capacity(usize::try_from(self.entries()).unwrap_or(0));
        let mut source = self.filter.source();
        while source.next_batch(&mut entries).expect("RAM is read without errors") {}
        entries
    }
}

/// A buffer may be freed by someone who still held it when it was flushed.
impl Drop for QuotientBuffer {
    fn drop(&mut self) {
        self.sizes.note_entries(self.filter.entries(), 0);
        self.sizes.taken_bytes.fetch_sub(self.sizes.bytes[self.size], Relaxed);
    }
}

impl WriteBuffer for QuotientBuffer {
    type Update<'u> = Entry;
    type Codec = FingerprintCodec;
    type Snapshots = RunSnapshots;

    const ADDS_UP: bool = true;

    fn apply(&mut self, updates: &[Entry]) -> Result<usize> {
        let before = self.filter.entries();
        let applied = self.apply_growing(updates);
        self.sizes.note_entries(before, self.filter.entries());
        let count = applied?;
        let deletes = updates[..count].iter().filter(|entry| entry.count < 0).count() as u64;
        self.deletes += deletes;
        self.has_tombstones |= deletes > 0;
        Ok(count)
    }

    fn entries(&self) -> u64 {
        self.filter.entries()
    }

    fn limit(&mut self, entries_max: u64) {
        self.entries_max = entries_max;
    }

    fn clear(&mut self) {
        self.sizes.note_entries(self.filter.entries(), 0);
        if self.size == 0 {
            self.filter.clear();
        } else {
            self.filter = QuotientFilter::new(self.sizes.shapes[0]);
            let more = self.sizes.bytes[self.size] - self.sizes.bytes[0];
            self.sizes.taken_bytes.fetch_sub(more, Relaxed);
            self.size = 0;
        }
        (self.entries_max, self.deletes, self.has_tombstones) = (u64::MAX, 0, false);
    }

    fn ram_bytes(&self) -> u64 {
        self.filter.ram_bytes() as u64
    }
}
