//! The choice of the engine for a file's I/O, found by asking the kernel once.
//!
//! Direct I/O is requested first, because without it neither io_uring nor many threads are worthwhile; then a small
//! ring is created and dropped.

use std::fs::File;
use std::io;

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::{Errno, pread};

use super::uring::{self, RingMode};
use super::{EngineChoice, FileOptions};
use crate::{EngineReport, Error, PAGE_BYTES, PageBuf, Result};

/// The questions to the kernel, so that a test can replace the answers.
#[derive(Clone, Copy)]
pub(super) struct Kernel {
    /// Turns O_DIRECT on and tries it.
    pub direct: fn(&File) -> io::Result<()>,
    /// Creates a ring, and returns the flags with which that worked.
    pub ring: fn() -> io::Result<RingMode>,
}

impl Kernel {
    pub(super) fn real() -> Self {
        Self { direct: set_direct, ring: uring::probe }
    }
}

/// The engine of one device.
#[derive(Clone, Debug)]
pub(super) struct ChosenEngine {
    name: &'static str,
    reason: String,
    /// Whether the caller forced this engine, so that no other may replace it.
    pub is_forced: bool,
    /// The mode of rings, when the engine is io_uring.
    pub ring: Option<RingMode>,
}

impl ChosenEngine {
    pub(super) fn report(&self) -> EngineReport {
        EngineReport { name: self.name.into(), reason: self.reason.clone() }
    }

    fn forced(name: &'static str, ring: Option<RingMode>) -> Self {
        Self { name, reason: "forced".into(), is_forced: true, ring }
    }

    fn found(name: &'static str, reason: String, ring: Option<RingMode>) -> Self {
        Self { name, reason, is_forced: false, ring }
    }
}

/// Chooses the engine and puts the file into the mode that it needs.
pub(super) fn choose(file: &File, options: &FileOptions, kernel: Kernel) -> Result<ChosenEngine> {
    let direct = || (kernel.direct)(file).inspect_err(|_| unset_direct(file));
    match options.engine {
        EngineChoice::Auto => Ok(probe(direct(), kernel.ring)),
        EngineChoice::Buffered => {
            unset_direct(file);
            Ok(ChosenEngine::forced("buffered", None))
        }
        EngineChoice::Threads => {
            direct().map_err(|source| refused("threads", "O_DIRECT", &source))?;
            Ok(ChosenEngine::forced("threads", None))
        }
        EngineChoice::Uring => {
            direct().map_err(|source| refused("uring", "O_DIRECT", &source))?;
            let ring = (kernel.ring)().map_err(|source| refused("uring", "io_uring", &source))?;
            Ok(ChosenEngine::forced("uring", Some(ring)))
        }
    }
}

fn probe(direct: io::Result<()>, ring: fn() -> io::Result<RingMode>) -> ChosenEngine {
    if let Err(source) = direct {
        return ChosenEngine::found("buffered", format!("O_DIRECT refused: {source}"), None);
    }
    match ring() {
        Ok(ring) => ChosenEngine::found("uring", format!("io_uring accepted, {ring}"), Some(ring)),
        Err(source) => ChosenEngine::found("threads", format!("io_uring refused: {source}"), None),
    }
}

fn refused(engine: &'static str, what: &str, source: &io::Error) -> Error {
    Error::Engine { engine, reason: format!("{what} refused: {source}") }
}

/// Turns O_DIRECT on, and tries it by a read: some file systems refuse only then. The flag is set after
/// opening because a file system that refuses it in `open` may have created the file already.
fn set_direct(file: &File) -> io::Result<()> {
    fcntl_setfl(file, OFlags::DIRECT)?;
    let mut buf = PageBuf::zeroed(1);
    match pread(file, &mut buf[..PAGE_BYTES], 0) {
        // Only a rejection of the alignment or of the mode counts; a bad sector does not.
        Err(errno @ (Errno::INVAL | Errno::OPNOTSUPP)) => Err(errno.into()),
        _ => Ok(()),
    }
}

/// Turns O_DIRECT off. Also clears O_NONBLOCK, which was only for the opening. Clearing flags cannot fail on a regular
/// file or a block device.
fn unset_direct(file: &File) {
    let _ = fcntl_setfl(file, OFlags::empty());
}
