//! Pages in a regular file or on a raw block device.
//!
//! Opening (`open`) creates, locks and probes; `handle` has what all engines share: the descriptor, its checks, and
//! plain blocking transfers; `uring` and `threads` are the queues; `size` grows and discards. The engine is chosen
//! once, when the device is opened, and the reason is kept.

mod engine;
mod handle;
mod open;
mod owner;
mod process;
mod progress;
mod size;
#[cfg(test)]
mod tests;
mod threads;
mod uring;

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

pub use self::size::growth_bytes;

use self::engine::{ChosenEngine, Kernel};
use self::handle::Handle;
use self::threads::Pool;
use self::uring::UringQueue;
use crate::{Device, EngineReport, Error, Geometry, Op, OpKind, PageBuf, PageId, Queue, Result};

/// The rights of the opener, which determine the lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Access {
    /// Read and write, as the only opener.
    #[default]
    ReadWrite,
    /// Read, together with any number of other readers.
    ReadOnly,
    /// Read without a lock, while another process may write: what is read may change, and be torn. For copies that are
    /// verified afterwards.
    ReadUnlocked,
}

/// The engine for the operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum EngineChoice {
    /// The best that runs here: io_uring, or else threads, or else buffered.
    #[default]
    Auto,
    /// io_uring with O_DIRECT, or an error.
    Uring,
    /// `pread` and `pwrite` with O_DIRECT on up to 32 threads, or an error.
    Threads,
    /// The same threads through the page cache.
    Buffered,
}

/// Whether the file must exist already.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Create {
    /// It must not exist; it is created, empty.
    New,
    /// It must exist.
    #[default]
    Open,
    /// It is created if it does not exist. Read-only openers never create one.
    OpenOrCreate,
}

/// The space that a file takes from its file system when it grows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Allocation {
    /// All blocks of its length at once: a full file system is an error of the growth, never of a write.
    #[default]
    Whole,
    /// A block when it is first written: the file takes the space of its content, and a write may find no space.
    Sparse,
}

/// The options of opening a [`FileDevice`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FileOptions {
    /// The access rights. Read-write by default.
    pub access: Access,
    /// The engine. Chosen by probing by default.
    pub engine: EngineChoice,
    /// Whether to create the file. Opens an existing file by default.
    pub create: Create,
    /// The user's knowledge about the flash under the file, from a [probe](crate::probe) or its vendor; opaque by
    /// default. It is not stored in the file.
    pub geometry: Option<Geometry>,
    /// The space that growth takes. All blocks at once by default. Applies to this opening.
    pub allocation: Allocation,
}

/// A regular file or a raw block device as an array of pages.
///
/// It is locked (`flock`) against every other handle, in this process too, unless both only read. The lock is released
/// when the device and all its queues are dropped. A handle that a child process has inherited through a fork returns
/// [`Error::Forked`].
#[derive(Debug)]
pub struct FileDevice {
    handle: Arc<Handle>,
    chosen: ChosenEngine,
    geometry: Geometry,
    pool: Arc<Pool>,
    /// The reason why a queue runs on threads although the engine is io_uring.
    downgrade: OnceLock<String>,
    start: Instant,
}

impl FileDevice {
    /// Opens, locks and probes. A partial page at the end of a file is ignored.
    ///
    /// # Errors
    /// [`Error::Open`], also for a file that does not exist unless [`FileOptions::create`] creates it;
    /// [`Error::Locked`]; [`Error::Engine`] if a forced engine cannot run; [`Error::ReadOnly`] for a new file that may
    /// not be written; [`Error::Geometry`] for an impossible one.
    pub fn open(path: impl AsRef<Path>, options: &FileOptions) -> Result<Self> {
        Self::open_on(path.as_ref(), options, Kernel::real())
    }

    /// Returns whether it is a regular file without a single byte. A file of a few bytes has no page either, but is not
    /// empty.
    ///
    /// # Errors
    /// [`Error::Open`] when the kernel does not report it.
    pub fn is_empty_file(&self) -> Result<bool> {
        let found = self.handle.file.metadata();
        let found =
            found.map_err(|source| Error::Open { path: self.handle.path.clone(), source })?;
        Ok(found.is_file() && found.len() == 0)
    }

    fn open_on(path: &Path, options: &FileOptions, kernel: Kernel) -> Result<Self> {
        let geometry = options.geometry.unwrap_or(Geometry::opaque());
        geometry.check()?;
        let (handle, chosen) = open::open(path, options, kernel)?;
        let handle = Arc::new(handle);
        let pool = Arc::new(Pool::new(Arc::clone(&handle)));
        let (downgrade, start) = (OnceLock::new(), Instant::now());
        Ok(Self { handle, chosen, geometry, pool, downgrade, start })
    }

    /// Checks and does one operation and waits for it, on the caller's own thread.
    fn run(&self, mut op: Op) -> Result<PageBuf> {
        self.handle.check(&op)?;
        self.handle.transfer(&mut op)?;
        Ok(op.buf)
    }
}

impl Device for FileDevice {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn page_count(&self) -> u64 {
        self.handle.page_count()
    }

    fn grow(&self, page_count: u64) -> Result<()> {
        size::grow(&self.handle, page_count)
    }

    fn queue(&self, depth: usize) -> Result<Box<dyn Queue>> {
        self.handle.check_process()?;
        let Some(ring) = self.chosen.ring else { return Ok(Box::new(self.pool.queue(depth))) };
        match UringQueue::new(&self.handle, ring, depth) {
            Ok(queue) => Ok(Box::new(queue)),
            Err(refusal) if self.chosen.is_forced => {
                let reason = format!("a ring of depth {depth} was refused: {refusal}");
                Err(Error::Engine { engine: "uring", reason })
            }
            Err(refusal) => {
                self.downgrade.get_or_init(|| {
                    format!("a ring of depth {depth} was refused ({refusal}), threads stood in")
                });
                Ok(Box::new(self.pool.queue(depth)))
            }
        }
    }

    fn sync(&self) -> Result<()> {
        size::sync(&self.handle)
    }

    fn discard(&self, pages: Range<PageId>) -> Result<()> {
        size::discard(&self.handle, pages)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn engine(&self) -> EngineReport {
        let mut report = self.chosen.report();
        if let Some(downgrade) = self.downgrade.get() {
            report.reason = format!("{}; {downgrade}", report.reason);
        }
        report
    }

    fn read(&self, page: PageId, buf: PageBuf) -> Result<PageBuf> {
        self.run(Op { token: 0, kind: OpKind::Read, page, buf })
    }

    fn write(&self, page: PageId, buf: PageBuf) -> Result<PageBuf> {
        self.run(Op { token: 0, kind: OpKind::Write, page, buf })
    }
}
