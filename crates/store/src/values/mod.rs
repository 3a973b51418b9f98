//! The value log: records of any size on flash, found again by their reference.
//!
//! Records are collected in RAM and written in chunks, one after another, into segments; after a full segment comes the
//! next free one. A structure stores the references, for instance as the values of a table (ANCS'14 section 8: large
//! values are stored in a log, the index has their places).
//!
//! ```text
//!            records          commit: one chunk, then a sync
//!   append  --------> [ batch in RAM ] -----------------------+
//!                                                             v
//!   segments   +------------+------------+- - -+--------------+---------+
//!   on flash   | number 7   | number 5   | free| number 8: the head     |
//!              +------------+------------+- - -+------------------------+
//!               |page|page|page| ...    a record may cross pages, never segments
//! ```
//!
//! Invariants
//! 1. Records for which [`ValueLog::commit`] has returned are on flash for good. A caller that makes a reference
//!    durable commits first; so a durable reference leads to a whole record, or into a segment that was overwritten,
//!    which the segment's number shows.
//! 2. Each page of a segment is written once: a chunk that ends in the middle of a page leaves the rest of
//!    it empty, and the next record begins on the next page. So a torn write harms nothing acknowledged.
//! 3. Chunks are written one at a time, each synced before the next. So after a crash everything committed is before
//!    the first gap of a chunk's length.
//! 4. A segment is written only once it is free in a durable checkpoint. So is one that growth has added.
//!
//! | act | flash | memory |
//! |---|---|---|
//! | append | none | the record, until it is written |
//! | commit | its pages, in chunks, one sync each | one chunk |
//! | read | one operation, of the pages that the record touches | the record |
//! | growth | a checkpoint | 48 bytes a segment |
//! | open | a chunk of the head and of a free segment of each length; segments begun since the checkpoint | one chunk |

mod batch;
mod check;
mod clean;
mod config;
mod extents;
pub mod format;
mod grow;
mod read;
mod recover;
mod segments;
mod state;
mod stats;
mod visit;
mod write;

#[cfg(test)]
mod tests;

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use nandex_device::{PageBuf, PageId};

use crate::reads::ReadPool;
use crate::{Captured, Checkpointed, Error, Result, Shutdown, StructureId, Volume, WhenFull};

pub use check::{NewerPages, check};
pub use config::ValuesConfig;
pub use extents::SegmentGroup;
pub use format::{REF_BYTES, ValueRef};
pub use segments::LiveCounts;
pub use stats::ValuesStats;

use batch::{Batch, Start};
use config::RESERVE_SEGMENTS;
use extents::{GROWN_SEGMENT_PAGES_MAX, payload};
use format::{LiveSegment, PAYLOAD_BYTES, RECORD_HEADER_BYTES};
use grow::Growth;
use segments::Segments;

/// The name of this kind in the catalog.
pub const KIND: &str = "values";

/// The number of segments kept free ahead of the head, if the oldest is overwritten.
const AHEAD_SEGMENTS: usize = 2;

/// The reason why a record is appended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// The record is new.
    Put,
    /// The record is copied from a segment that is cleaned, and may use the segments reserved for that.
    Copy,
}

/// A value log of a volume. All calls may come from any thread; dropping it closes it.
#[derive(Debug)]
pub struct ValueLog {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    volume: Volume,
    id: StructureId,
    config: ValuesConfig,
    /// A mark in the generation of every page, above the segment's number; see [`recover`].
    mark: u64,
    state: Mutex<State>,
    /// Held while a batch is written. Taken before `state`.
    writer: Mutex<Option<PageBuf>>,
    /// Held while segments are added. Taken before `state`.
    growing: Mutex<()>,
    reads: ReadPool,
    counters: Counters,
}

#[derive(Debug)]
struct State {
    segments: Segments,
    /// The batch that records are added to.
    open: Option<Batch>,
    /// The batch that is being written.
    closing: Option<Arc<Batch>>,
    /// The number of records appended, and the number of them that are durable.
    appended: u64,
    durable: u64,
    /// The reason why no segments can be added.
    stopped: Option<String>,
}

impl State {
    fn new(segments: Segments) -> Self {
        Self { segments, open: None, closing: None, appended: 0, durable: 0, stopped: None }
    }
}

#[derive(Debug, Default)]
struct Counters {
    appended_bytes: AtomicU64,
    copied_bytes: AtomicU64,
    written_bytes: AtomicU64,
    syncs: AtomicU64,
    reads: AtomicU64,
    pages_read: AtomicU64,
    overwritten_segments: AtomicU64,
    overwritten_records: AtomicU64,
    cleaned_segments: AtomicU64,
}

impl ValueLog {
    /// Creates a value log in a volume.
    ///
    /// # Errors
    /// An invalid configuration, a name that is in use, no space, a failed write.
    pub fn create(volume: &Volume, name: &str, config: ValuesConfig) -> Result<Self> {
        config.validate()?;
        let structure = volume.create_structure(name, KIND, config.encode(), config.pages())?;
        recover::open(volume, structure)
    }

    /// Opens a value log of a volume.
    ///
    /// Reads two chunks' pages, and the segments that were begun since the last checkpoint.
    ///
    /// # Errors
    /// No value log of this name, damage, a failed read.
    pub fn open(volume: &Volume, name: &str) -> Result<Self> {
        recover::open(volume, volume.open_structure(name, KIND)?)
    }

    /// The configuration that it was created with.
    #[must_use]
    pub fn config(&self) -> &ValuesConfig {
        &self.inner.config
    }

    /// The longest record, in bytes.
    #[must_use]
    pub fn record_bytes_max(&self) -> u64 {
        self.inner.record_bytes_max(&self.inner.state())
    }

    /// The number of segments.
    #[must_use]
    pub fn segments(&self) -> u32 {
        self.inner.state().segments.extents().slots()
    }

    /// Appends a record, given in parts, and returns its place; `None` if there is no space, which
    /// [`make_space`](Self::make_space) or cleaning may change. The record is in RAM until the next
    /// [`commit`](Self::commit), and readable at once. It counts as live until [`note_dead`](Self::note_dead).
    ///
    /// Costs a lock and a copy; a commit if a segment is full.
    ///
    /// # Errors
    /// [`Error::Config`] for a record longer than [`record_bytes_max`](Self::record_bytes_max),
    /// [`Error::Poisoned`], a failed write.
    pub fn append(&self, purpose: Purpose, parts: &[&[u8]]) -> Result<Option<ValueRef>> {
        self.inner.volume.poison().check()?;
        let bytes: u64 = parts.iter().map(|part| part.len() as u64).sum();
        let whole = bytes + RECORD_HEADER_BYTES as u64;
        loop {
            let mut state = self.inner.state();
            if self.inner.head_takes(&state, purpose, whole) {
                return Ok(Some(self.inner.push(&mut state, purpose, parts)));
            }
            let most = self.inner.record_bytes_max(&state);
            if bytes > most {
                let reason = format!("{bytes} are more than a segment takes, {most}");
                return Err(Error::config("record_bytes", reason));
            }
            if state.open.is_none() && state.closing.is_none() {
                if self.inner.begin(&mut state, purpose, whole).is_none() {
                    return Ok(None);
                }
                continue;
            }
            drop(state);
            // A segment is closed before the next is begun: invariant 3.
            self.commit()?;
        }
    }

    /// Returns whether a record of `bytes` bytes fits.
    #[must_use]
    pub fn has_space(&self, bytes: u64) -> bool {
        let whole = bytes + RECORD_HEADER_BYTES as u64;
        let state = self.inner.state();
        self.inner.head_takes(&state, Purpose::Put, whole)
            || state.segments.has_free(whole, self.inner.spared(Purpose::Put))
    }

    /// Makes space for a record of this many bytes by a checkpoint, after freeing the oldest segment if the log may
    /// overwrite it, and adding segments if it grows and none is worth cleaning instead. Returns whether that gained
    /// anything. The caller must hold no lock that a checkpoint needs.
    ///
    /// # Errors
    /// As [`Volume::checkpoint`].
    pub fn make_space(&self, bytes: u64) -> Result<bool> {
        self.make_space_by(bytes, Growth::RatherClean)
    }

    /// Like [`make_space`](Self::make_space), but a log that grows does so even if a segment is worth cleaning: copies
    /// of long records can leave as much space unused as they free.
    ///
    /// # Errors
    /// As [`Volume::checkpoint`].
    pub fn make_space_at_once(&self, bytes: u64) -> Result<bool> {
        self.make_space_by(bytes, Growth::AtOnce)
    }

    fn make_space_by(&self, bytes: u64, growth: Growth) -> Result<bool> {
        self.inner.free_ahead(1);
        let has_freed = self.inner.state().segments.freed_count() > 0;
        if !has_freed && !self.inner.grow(bytes + RECORD_HEADER_BYTES as u64, growth)? {
            return Ok(false);
        }
        self.inner.volume.checkpoint()?;
        Ok(true)
    }

    /// Returns the reason why the log could not grow when it last had to.
    #[must_use]
    pub fn growth_stopped(&self) -> Option<String> {
        self.inner.state().stopped.clone()
    }

    /// Makes every record appended before this call durable. Concurrent callers share writes and syncs; does nothing
    /// when everything is durable already.
    ///
    /// # Errors
    /// [`Error::Poisoned`], or the failure of the write or sync itself.
    pub fn commit(&self) -> Result<()> {
        self.inner.commit()
    }

    /// The number of bytes of records whose write has not started.
    #[must_use]
    pub fn unwritten_bytes(&self) -> usize {
        self.inner.state().open.as_ref().map_or(0, Batch::len)
    }

    /// Notes that no reference to a record exists any more.
    pub fn note_dead(&self, reference: ValueRef) {
        self.inner.state().segments.note_dead(reference);
    }

    /// The number of the segment that was begun last.
    #[must_use]
    pub fn last_segment(&self) -> u64 {
        self.inner.state().segments.last_sequence()
    }

    /// Returns whether the segment of this record still exists.
    #[must_use]
    pub fn holds(&self, reference: ValueRef) -> bool {
        self.inner.state().segments.holding(reference).is_some()
    }

    /// Returns the page in which a record begins, to name the record.
    #[must_use]
    pub fn page_of(&self, reference: ValueRef) -> PageId {
        self.inner.page(reference.slot, reference.offset / PAYLOAD_BYTES as u32)
    }

    /// The segments with records that have references, in the order in which they were begun.
    #[must_use]
    pub fn live_segments(&self) -> Vec<LiveSegment> {
        self.inner.state().segments.live()
    }

    /// Returns the figures of the log.
    #[must_use]
    pub fn stats(&self) -> ValuesStats {
        let state = self.inner.state();
        let counters = &self.inner.counters;
        let (live_bytes, garbage_bytes) =
            state.segments.live_and_garbage_bytes(PAYLOAD_BYTES as u64);
        let batches = state.open.as_ref().map_or(0, Batch::ram_bytes)
            + state.closing.as_ref().map_or(0, |batch| batch.ram_bytes());
        let chunk = self.inner.config.io_chunk_pages as usize * nandex_device::PAGE_BYTES;
        let (extents, overwritten) = (state.segments.extents(), state.segments.overwritten());
        ValuesStats {
            live_bytes,
            live_records: state.segments.live_records(),
            garbage_bytes,
            free_segments: (state.segments.free_count() + state.segments.freed_count()) as u64,
            flash_bytes: extents.pages() * nandex_device::PAGE_BYTES as u64,
            growths: extents.added().len() as u64,
            appended_bytes: counters.appended_bytes.load(Relaxed),
            copied_bytes: counters.copied_bytes.load(Relaxed),
            written_bytes: counters.written_bytes.load(Relaxed),
            syncs: counters.syncs.load(Relaxed),
            reads: counters.reads.load(Relaxed),
            pages_read: counters.pages_read.load(Relaxed),
            overwritten_segments: counters.overwritten_segments.load(Relaxed),
            overwritten_records: counters.overwritten_records.load(Relaxed),
            overwritten_segments_life: overwritten.segments,
            overwritten_records_life: overwritten.records,
            cleaned_segments: counters.cleaned_segments.load(Relaxed),
            ram_bytes: (batches
                + chunk
                + state.segments.ram_bytes()
                + self.inner.reads.own_ram_bytes()) as u64,
        }
    }
}

impl Drop for ValueLog {
    fn drop(&mut self) {
        let inner = &self.inner;
        // The error has no receiver; committed records are found again without this.
        let _ = inner.commit().and_then(|()| inner.volume.checkpoint());
        // It never has anything in the write-ahead log.
        inner.volume.deregister(inner.id, || Shutdown::Clean);
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of the value log's state panics")
    }

    /// Returns the number of free segments that this purpose may not use.
    fn spared(&self, purpose: Purpose) -> usize {
        match purpose {
            Purpose::Put if !self.config.when_full.evicts() => RESERVE_SEGMENTS,
            Purpose::Put | Purpose::Copy => 0,
        }
    }

    fn record_bytes_max(&self, state: &State) -> u64 {
        let longest = state.segments.extents().longest_pages();
        let pages = match self.config.when_full {
            WhenFull::Grow => longest.max(GROWN_SEGMENT_PAGES_MAX),
            WhenFull::EvictOldest | WhenFull::Refuse => longest,
        };
        payload(pages) - RECORD_HEADER_BYTES as u64
    }

    /// Returns whether a record fits the head, and may go there. While fewer segments are free than the reserve of
    /// cleaning, after a crash during cleaning, only copies may use the rest of the head.
    fn head_takes(&self, state: &State, purpose: Purpose, whole_bytes: u64) -> bool {
        let has_reserve = state.segments.free_longest() >= self.spared(purpose);
        has_reserve && whole_bytes <= self.head_rest(state)
    }

    /// Returns the number of bytes that still fit the head.
    fn head_rest(&self, state: &State) -> u64 {
        let Some(head) = state.segments.head() else { return 0 };
        let used = match (&state.open, &state.closing) {
            (Some(batch), _) => batch.start.page as usize * PAYLOAD_BYTES + batch.len(),
            (None, Some(batch)) => batch.end_page() as usize * PAYLOAD_BYTES,
            (None, None) => head.pages as usize * PAYLOAD_BYTES,
        };
        state.segments.extents().segment_bytes(head.slot).saturating_sub(used as u64)
    }

    fn push(&self, state: &mut State, purpose: Purpose, parts: &[&[u8]]) -> ValueRef {
        let head = state.segments.head().expect("the caller has seen that the record fits it");
        let page = state.closing.as_ref().map_or(head.pages, |closing| closing.end_page());
        let start = Start { slot: head.slot, sequence: head.sequence, page };
        let reference = state.open.get_or_insert_with(|| Batch::new(start)).push(parts);
        state.segments.note_live(reference);
        state.appended += 1;
        self.counters.appended_bytes.fetch_add(reference.whole_bytes(), Relaxed);
        if purpose == Purpose::Copy {
            self.counters.copied_bytes.fetch_add(reference.whole_bytes(), Relaxed);
        }
        reference
    }

    /// Begins the next segment, and requests a checkpoint, which limits the pages that recovery has to read and frees
    /// the segments that were given back.
    fn begin(&self, state: &mut State, purpose: Purpose, whole: u64) -> Option<LiveSegment> {
        let begun = state.segments.begin(whole, self.spared(purpose))?;
        self.volume.request_checkpoint();
        Some(begun)
    }

    /// If the oldest segment may be overwritten, frees segments until `count` are free after the next
    /// checkpoint.
    fn free_ahead(&self, count: usize) {
        if !self.config.when_full.evicts() {
            return;
        }
        let mut state = self.state();
        while state.segments.free_count() + state.segments.freed_count() < count {
            let Some(oldest) = state.segments.oldest() else { return };
            state.segments.overwrite(oldest);
            self.counters.overwritten_segments.fetch_add(1, Relaxed);
            self.counters.overwritten_records.fetch_add(oldest.live_records.into(), Relaxed);
        }
    }
}

impl Checkpointed for Inner {
    fn prepare(&self) -> Result<()> {
        self.free_ahead(AHEAD_SEGMENTS);
        self.grow_ahead();
        Ok(())
    }

    fn capture(&self) -> Captured {
        let mut bytes = Vec::new();
        let mut state = self.state();
        state.segments.capture().encode(&mut bytes);
        let grows = self.config.when_full == WhenFull::Grow;
        let extents = grows.then(|| state.segments.extents().list());
        Captured { state: bytes, tail: self.volume.log().next_lsn(), extents }
    }

    fn committed(&self) {
        self.state().segments.committed();
    }

    fn flush_before(&self, _before: crate::Lsn) -> Result<()> {
        Ok(())
    }

    fn run_deferred(&self) -> Result<()> {
        Ok(())
    }
}

/// Returns the log as checkpoints refer to it.
fn weak(inner: &Arc<Inner>) -> Weak<dyn Checkpointed> {
    Arc::downgrade(&(Arc::clone(inner) as Arc<dyn Checkpointed>))
}
