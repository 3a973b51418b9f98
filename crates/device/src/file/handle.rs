//! The state that all engines of one file share: the descriptor, the checks, and the plain blocking transfer.

use std::fs::File;
use std::path::PathBuf;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FlockOperation, flock};
use rustix::io::{pread, pwrite};

use super::progress::{Progress, TransferStep};
use super::{Access, Allocation, FileOptions, process};
use crate::{Error, Op, OpKind, PAGE_BYTES, PageId, Result};

/// The type of file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Medium {
    File,
    Block,
}

/// An open, locked file. Its last owner releases the lock and closes it.
#[derive(Debug)]
pub(super) struct Handle {
    pub file: File,
    pub path: PathBuf,
    pub medium: Medium,
    pub allocation: Allocation,
    /// Held while the length changes.
    pub growing: Mutex<()>,
    access: Access,
    opener: u32,
    page_count: AtomicU64,
}

impl Handle {
    pub(super) fn new(
        file: File,
        path: PathBuf,
        options: &FileOptions,
        medium: Medium,
        page_count: u64,
    ) -> Self {
        let FileOptions { access, allocation, .. } = *options;
        let page_count = AtomicU64::new(page_count);
        let (opener, growing) = (process::id(), Mutex::new(()));
        Self { file, path, medium, allocation, growing, access, opener, page_count }
    }

    pub(super) fn page_count(&self) -> u64 {
        self.page_count.load(Ordering::Acquire)
    }

    /// Allows operations up to this length, once the file has it.
    pub(super) fn set_page_count(&self, page_count: u64) {
        self.page_count.store(page_count, Ordering::Release);
    }

    /// Returns whether this is a child of the process that opened the file.
    pub(super) fn is_inherited(&self) -> bool {
        self.opener != process::id()
    }

    pub(super) fn check_process(&self) -> Result<()> {
        let user = process::id();
        if user == self.opener {
            return Ok(());
        }
        Err(Error::Forked { opener: self.opener, user })
    }

    pub(super) fn is_read_only(&self) -> bool {
        self.access != Access::ReadWrite
    }

    pub(super) fn check_writable(&self) -> Result<()> {
        if self.is_read_only() {
            return Err(Error::ReadOnly { path: self.path.clone() });
        }
        Ok(())
    }

    /// Checks whether the operation may be started.
    pub(super) fn check(&self, op: &Op) -> Result<()> {
        self.check_process()?;
        if op.kind == OpKind::Write {
            self.check_writable()?;
        }
        op.check(self.page_count())
    }

    /// Performs a checked operation and waits for it: usually one system call.
    pub(super) fn transfer(&self, op: &mut Op) -> Result<()> {
        let mut progress = Progress::default();
        let total = op.buf.len();
        loop {
            let offset = offset(op.page, progress.bytes);
            let answer = match op.kind {
                OpKind::Read => pread(&self.file, &mut op.buf[progress.bytes..], offset),
                OpKind::Write => pwrite(&self.file, &op.buf[progress.bytes..], offset),
            };
            match progress.advance(op.kind, total, answer.map_err(Into::into)) {
                TransferStep::Finished => return Ok(()),
                TransferStep::Again => {}
                TransferStep::Failed(source) => return Err(op.failure(source)),
            }
        }
    }
}

impl Drop for Handle {
    /// Releases the lock explicitly. Closing alone would leave it to the children that were forked meanwhile, because
    /// they share it; and a child must not release its parent's lock.
    fn drop(&mut self) {
        if !self.is_inherited() {
            // The descriptor is closed next, so a failure here changes nothing more.
            let _ = flock(&self.file, FlockOperation::Unlock);
        }
    }
}

/// Returns the byte offset of page `page` plus `bytes` in the file. The page was checked against the length of the
/// file, which fits in 63 bits.
pub(super) fn offset(page: PageId, bytes: usize) -> u64 {
    page.0 * PAGE_BYTES as u64 + bytes as u64
}
