//! The workers' side: opens files, cuts and hashes them, and passes the chunks' names on in pieces.
//!
//! A file counts as changed if its size or its modification time differ before and after reading, or if the
//! number of bytes read is not its size. The bytes read count in any case.

use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;

use rustix::fs::{Advice, Mode, OFlags};

use crate::options::Options;
use crate::sparse::SparseFile;
use crate::{FileEntry, Fingerprint, Found, Hash, SkipKind, Skipped};
use nandex_chunk::{ChunkBuffer, Holes};

/// The most chunks in a piece: a file of any size is passed on in bounded memory.
const PIECE_CHUNKS_MAX: usize = 1024;

/// The approximate bytes of chunks in a piece, so that progress and cancelling do not wait for 1,024 chunks of 8 MiB.
const PIECE_BYTES_MAX: u64 = 16 << 20;

/// The size from which on the kernel is told that a file will be read from front to back.
const ADVISE_BYTES_MIN: u64 = 1 << 20;

/// A chunk for the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk {
    pub(crate) fingerprint: Fingerprint,
    pub(crate) length: u32,
    /// The number of times that it repeats in a row: more than once only in a hole.
    pub(crate) times: u64,
    /// The number of the given path above it.
    pub(crate) tree: usize,
}

impl Chunk {
    /// The bytes of all of its repetitions.
    pub(crate) fn bytes(&self) -> u64 {
        u64::from(self.length).saturating_mul(self.times)
    }
}

/// The end of a file whose chunks are complete, or something skipped.
#[derive(Debug)]
pub(crate) enum End {
    /// A file with its number in the walk, and a problem of its reading, if any.
    File(FileEntry, Option<Skipped>),
    /// Something skipped, without chunks.
    Skipped(Skipped),
}

/// Part of a job's results, in order.
#[derive(Debug, Default)]
pub(crate) struct Piece {
    pub(crate) chunks: Vec<Chunk>,
    /// Each end with the number of this piece's chunks before it.
    pub(crate) ends: Vec<(usize, End)>,
    /// Whether this is the last piece of the job.
    pub(crate) is_last: bool,
}

/// Some neighbouring finds of the walk, and the channel of their results.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) finds: Vec<Found>,
    pub(crate) results: SyncSender<Piece>,
}

/// Two reasons to stop: the caller's request, and the indexer's end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stop<'a> {
    cancel: &'a AtomicBool,
    ended: &'a AtomicBool,
}

impl<'a> Stop<'a> {
    pub(crate) fn new(cancel: &'a AtomicBool, ended: &'a AtomicBool) -> Self {
        Self { cancel, ended }
    }

    pub(crate) fn is_set(&self) -> bool {
        self.cancel.load(Ordering::Relaxed) || self.ended.load(Ordering::Relaxed)
    }
}

/// A readable source that can report its stamp.
trait Source: Holes {
    /// Returns the current size and modification time.
    fn stamp(&self) -> io::Result<Stamp>;
}

/// A file's size and modification time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    bytes: u64,
    modified_s: i64,
    modified_ns: i64,
}

impl Source for SparseFile {
    fn stamp(&self) -> io::Result<Stamp> {
        let metadata = self.metadata()?;
        Ok(Stamp {
            bytes: metadata.len(),
            modified_s: metadata.mtime(),
            modified_ns: metadata.mtime_nsec(),
        })
    }
}

/// One worker's tools, used for all its jobs.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    buffer: ChunkBuffer,
    hash: Hash,
    stop: Stop<'a>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(options: &Options, stop: Stop<'a>) -> Self {
        Self { buffer: ChunkBuffer::new(&options.chunking), hash: options.hash, stop }
    }

    /// Runs a job to its end, or breaks off when the run stops or the results have no receiver.
    pub(crate) fn work(&mut self, job: Job) -> ControlFlow<()> {
        let mut outbox = Outbox::new(job.results);
        for find in job.finds {
            let end = match find {
                Found::Skipped(skipped) => End::Skipped(skipped),
                Found::File(entry) => {
                    outbox.tree = entry.tree;
                    let remark = self.read(&entry, &mut outbox)?;
                    End::File(entry, remark)
                }
            };
            outbox.piece.ends.push((outbox.piece.chunks.len(), end));
        }
        outbox.piece.is_last = true;
        outbox.send()
    }

    /// Reads one file; returns a problem, if any.
    fn read(&mut self, entry: &FileEntry, outbox: &mut Outbox) -> ControlFlow<(), Option<Skipped>> {
        if self.stop.is_set() {
            return ControlFlow::Break(());
        }
        if entry.bytes == 0 {
            // There is nothing to cut, and files that only pretend to be empty are not read.
            return ControlFlow::Continue(None);
        }
        match open(&entry.path) {
            Ok(mut file) => self.read_source(&entry.path, &mut file, outbox),
            Err(error) => {
                ControlFlow::Continue(Some(Skipped::unreadable(&entry.path, "open it", &error)))
            }
        }
    }

    fn read_source(
        &mut self,
        path: &Path,
        source: &mut impl Source,
        outbox: &mut Outbox,
    ) -> ControlFlow<(), Option<Skipped>> {
        let mut bytes = 0;
        let remark = match self.read_between_stamps(source, outbox, &mut bytes) {
            Ok(ControlFlow::Break(())) => return ControlFlow::Break(()),
            Ok(ControlFlow::Continue(true)) => None,
            Ok(ControlFlow::Continue(false)) => {
                let reason =
                    format!("it changed while it was read; the {bytes} bytes read are counted");
                Some(Skipped::new(path, SkipKind::Changed, reason))
            }
            Err(error) => {
                let act = format!("read it further than {bytes} bytes, which are counted");
                Some(Skipped::unreadable(path, &act, &error))
            }
        };
        ControlFlow::Continue(remark)
    }

    /// Cuts and hashes a source; returns whether it stayed unchanged, and counts the bytes read.
    fn read_between_stamps(
        &mut self,
        source: &mut impl Source,
        outbox: &mut Outbox,
        bytes: &mut u64,
    ) -> io::Result<ControlFlow<(), bool>> {
        let before = source.stamp()?;
        let (hash, stop, tree) = (self.hash, self.stop, outbox.tree);
        let flow = self.buffer.for_each_run(source, |chunk, times| {
            if stop.is_set() {
                return ControlFlow::Break(());
            }
            let length = u32::try_from(chunk.len()).expect("a chunk has at most 8 MiB");
            let chunk = Chunk { fingerprint: hash.fingerprint(chunk), length, times, tree };
            *bytes += chunk.bytes();
            outbox.push(chunk)
        })?;
        if flow.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        let stayed = source.stamp()? == before && *bytes == before.bytes;
        Ok(ControlFlow::Continue(stayed))
    }
}

/// Opens a file for reading, if it still is one: a name may have another meaning since the walk.
///
/// A link fails, and a pipe that took the file's place does not block.
fn open(path: &Path) -> io::Result<SparseFile> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is no longer a regular file"));
    }
    if metadata.len() >= ADVISE_BYTES_MIN {
        // This is a hint: if it fails, reading is only slower.
        let _ = rustix::fs::fadvise(&file, 0, None, Advice::Sequential);
    }
    Ok(SparseFile::new(file, &metadata))
}

/// A piece being filled.
struct Outbox {
    results: SyncSender<Piece>,
    piece: Piece,
    bytes: u64,
    /// The tree of the file that is being read.
    tree: usize,
}

impl Outbox {
    fn new(results: SyncSender<Piece>) -> Self {
        Self { results, piece: Piece::default(), bytes: 0, tree: 0 }
    }

    fn push(&mut self, chunk: Chunk) -> ControlFlow<()> {
        self.piece.chunks.push(chunk);
        self.bytes = self.bytes.saturating_add(chunk.bytes());
        if self.piece.chunks.len() < PIECE_CHUNKS_MAX && self.bytes < PIECE_BYTES_MAX {
            return ControlFlow::Continue(());
        }
        self.send()
    }

    fn send(&mut self) -> ControlFlow<()> {
        self.bytes = 0;
        match self.results.send(std::mem::take(&mut self.piece)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }
}

#[cfg(test)]
mod tests;
