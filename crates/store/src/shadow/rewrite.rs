//! The read-modify-write of a block: large reads, changes, large writes (ANCS'14, DP2 and DP4), with a
//! bounded number of chunks in flight.
//!
//! ```text
//!   old block   | 0 | 1 | 2 | 3 | 4 |          chunk 3 is read
//!                             |                chunk 2 is verified, changed, sealed
//!   draft       | 0 | 1 | 2 | 3 | 4 |          chunk 1 is written
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use nandex_device::{Completion, Device, Op, OpKind, PageBuf, Queue};

use super::{Block, Draft, Shadow};
use crate::mutants::{Barrier, is_on};
use crate::page::{PAGE_HEADER_BYTES, PageKind, RawPage, seal};
use crate::{Error, IoChunks, Poison, Result};

/// The I/O of a rewrite.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RewriteCosts {
    /// Pages read from the old version.
    pub pages_read: u64,
    /// Pages written to the draft.
    pub pages_written: u64,
}

/// A callback that changes the body of a page in place: it receives the page's number in the block, from 0 up, and the
/// 4064 bytes of the old version, or zeros.
pub type Change<'c> = dyn FnMut(u64, &mut [u8]) -> Result<()> + 'c;

/// Rewrites one block after another with the same memory.
pub struct Rewriter {
    queue: Box<dyn Queue>,
    poison: Arc<Poison>,
    chunks: IoChunks,
    /// Buffers that are not in use.
    idle: Vec<PageBuf>,
}

/// A rewrite in progress.
struct Run<'r> {
    shadow: &'r Shadow,
    old: Option<(&'r Shadow, Block)>,
    draft: Block,
    kind: PageKind,
    /// The next chunk to be read, and the next to be changed.
    next_read: u64,
    next_change: u64,
    /// Chunks that were read early, by number.
    read: BTreeMap<u64, PageBuf>,
    costs: RewriteCosts,
}

/// A rewrite that ends, even by a panic, waits for its I/O in flight: the device could otherwise still write
/// to a block that another rewrite was given meanwhile.
struct Ending<'r>(&'r mut Rewriter);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        if is_on(Barrier::RewriteEndsItsWrites) {
            self.0.drain();
        }
    }
}

impl Rewriter {
    /// Opens a queue of the device that holds the blocks. Holds no buffers before the first rewrite.
    ///
    /// # Errors
    /// [`Error::Config`] for chunks of no pages or zero chunks; as [`Device::queue`].
    pub fn new(device: &dyn Device, poison: Arc<Poison>, chunks: IoChunks) -> Result<Self> {
        chunks.validate()?;
        let queue = device.queue(chunks.chunks)?;
        Ok(Self { queue, poison, chunks, idle: Vec::new() })
    }

    /// Writes a draft: passes each page of the old version, or of zeros if there is none, to `change`, in ascending
    /// order, and writes the result, sealed as `kind`. All writes have completed when it returns, successfully or not;
    /// [`Shadow::publish`] comes next.
    ///
    /// The old version may be a block of another shadow with blocks of the same length, which the draft then takes
    /// over. Reads each page of the old version once and writes each page of the draft once, in chunks.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if an old page fails verification; a read's failure; what `change` returns; a write's
    /// failure, which poisons the volume. The draft is then useless.
    pub fn rewrite(
        &mut self,
        shadow: &Shadow,
        old: Option<(&Shadow, Block)>,
        draft: &Draft,
        kind: PageKind,
        change: &mut Change<'_>,
    ) -> Result<RewriteCosts> {
        self.poison.check()?;
        let (draft, read) = (draft.block(), BTreeMap::new());
        let costs = RewriteCosts::default();
        let mut run = Run { shadow, old, draft, kind, next_read: 0, next_change: 0, read, costs };
        let ending = Ending(self);
        ending.0.run(&mut run, change)?;
        ending.0.idle.extend(run.read.into_values());
        Ok(run.costs)
    }

    /// The RAM that it uses between two rewrites, in bytes; no more while it runs.
    #[must_use]
    pub fn ram_bytes(&self) -> usize {
        self.idle.iter().map(|buf| buf.len()).sum()
    }

    fn run(&mut self, run: &mut Run<'_>, change: &mut Change<'_>) -> Result<()> {
        let count = u64::from(run.shadow.shape().block_pages).div_ceil(self.chunk_pages());
        loop {
            // I/O that has ended meanwhile frees buffers for reads.
            self.take_back(run, 0)?;
            self.read_ahead(run, count)?;
            if let Some(mut buf) = run.read.remove(&run.next_change) {
                self.change(run, &mut buf, change)?;
                self.write(run, buf)?;
            } else if self.queue.in_flight() > 0 {
                self.take_back(run, 1)?;
            } else {
                return Ok(());
            }
        }
    }

    /// Starts reads as long as there are buffers; missing old pages become zeros at once.
    fn read_ahead(&mut self, run: &mut Run<'_>, count: u64) -> Result<()> {
        let held = |rewriter: &Self, run: &Run<'_>| rewriter.queue.in_flight() + run.read.len();
        while run.next_read < count && held(self, run) < self.chunks.chunks {
            let chunk = run.next_read;
            run.next_read += 1;
            let mut buf = self.buffer(self.pages_of(run, chunk), held(self, run));
            let Some((shadow, old)) = run.old else {
                buf.fill(0);
                run.read.insert(chunk, buf);
                continue;
            };
            run.costs.pages_read += buf.pages() as u64;
            let page = shadow.page(old, self.first_page(chunk));
            self.queue.push(Op { token: chunk, kind: OpKind::Read, page, buf })?;
        }
        Ok(())
    }

    /// Verifies, changes and seals the pages of the next chunk.
    fn change(&self, run: &Run<'_>, buf: &mut PageBuf, change: &mut Change<'_>) -> Result<()> {
        let first = self.first_page(run.next_change);
        for at in 0..buf.pages() {
            let (page, index) = (buf.page_mut(at), first + at as u64);
            if let Some((shadow, old)) = run.old.filter(|_| is_on(Barrier::RewriteProvesPages)) {
                RawPage::new(page).check(shadow.label(old, index, run.kind))?;
            }
            change(index, &mut page[PAGE_HEADER_BYTES..])?;
            seal(page, run.shadow.label(run.draft, index, run.kind));
        }
        Ok(())
    }

    fn write(&mut self, run: &mut Run<'_>, buf: PageBuf) -> Result<()> {
        let chunk = run.next_change;
        run.next_change += 1;
        run.costs.pages_written += buf.pages() as u64;
        let page = run.shadow.page(run.draft, self.first_page(chunk));
        let op = Op { token: chunk, kind: OpKind::Write, page, buf };
        self.poison.guard(self.queue.push(op))
    }

    fn take_back(&mut self, run: &mut Run<'_>, count_min: usize) -> Result<()> {
        let mut done = Vec::new();
        self.poison.guard(self.queue.wait(count_min, &mut done))?;
        let mut result = Ok(());
        for Completion { token, kind, buf, result: ended, .. } in done {
            match kind {
                OpKind::Write => {
                    self.idle.push(buf);
                    result = result.and(self.poison.guard(ended));
                }
                OpKind::Read => {
                    run.read.insert(token, buf);
                    result = result.and(ended.map_err(Error::from));
                }
            }
        }
        result
    }

    /// Waits for all I/O in flight that is no longer wanted.
    fn drain(&mut self) {
        let mut done = Vec::new();
        while self.queue.in_flight() > 0 {
            // The first failure was reported; a broken queue returns nothing.
            if self.queue.wait(usize::MAX, &mut done).is_err() {
                self.poison.set(&"a queue of the device broke in the middle of a rewrite");
                break;
            }
        }
        self.idle.extend(done.into_iter().map(|completion| completion.buf));
    }

    /// Returns a buffer of this length, when `held` others are in use. The last chunk of a block may be shorter than
    /// the others, so there is one buffer more than chunks: otherwise each rewrite would free a long one and allocate
    /// it again.
    fn buffer(&mut self, pages: usize, held: usize) -> PageBuf {
        if let Some(index) = self.idle.iter().position(|buf| buf.pages() == pages) {
            return self.idle.swap_remove(index);
        }
        self.idle.truncate(self.chunks.chunks.saturating_sub(held));
        PageBuf::zeroed(pages)
    }

    fn chunk_pages(&self) -> u64 {
        self.chunks.chunk_pages as u64
    }

    fn first_page(&self, chunk: u64) -> u64 {
        chunk * self.chunk_pages()
    }

    fn pages_of(&self, run: &Run<'_>, chunk: u64) -> usize {
        let left = u64::from(run.shadow.shape().block_pages) - self.first_page(chunk);
        left.min(self.chunk_pages()) as usize
    }
}

impl std::fmt::Debug for Rewriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rewriter").field("chunks", &self.chunks).finish_non_exhaustive()
    }
}
