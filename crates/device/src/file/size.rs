//! The length of a file and its allocation: grow, sync, discard.

use std::ops::Range;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::{fs, io};

use rustix::fs::{
    FallocateFlags, StatVfs, fallocate, fdatasync, fstatvfs, fsync, ftruncate, statvfs,
};
use rustix::io::Errno;
use rustix::ioctl::{Opcode, Setter, ioctl, opcode};

use super::Allocation;
use super::handle::{Handle, Medium, offset};
use crate::{Error, PAGE_BYTES, PageId, Result};

/// Makes the file long enough, with its blocks allocated unless it is sparse, and makes the length durable.
pub(super) fn grow(handle: &Handle, page_count: u64) -> Result<()> {
    handle.check_process()?;
    handle.check_writable()?;
    let _alone = handle.growing.lock().expect("no holder of this lock panics");
    let old = handle.page_count();
    if page_count <= old {
        return Ok(());
    }
    if handle.medium == Medium::Block {
        let reason = format!("the block device has {old} pages of {PAGE_BYTES} bytes and no more");
        return Err(no_space(handle, page_count, reason));
    }
    let bytes = page_count
        .checked_mul(PAGE_BYTES as u64)
        .filter(|&bytes| i64::try_from(bytes).is_ok())
        .ok_or_else(|| no_space(handle, page_count, "no file can be that long".into()))?;
    if handle.allocation == Allocation::Whole {
        check_space(handle, page_count)?;
    }
    lengthen(handle, offset(PageId(old), 0), bytes).map_err(|errno| match errno {
        Errno::NOSPC | Errno::FBIG | Errno::DQUOT => {
            no_space(handle, page_count, io::Error::from(errno).to_string())
        }
        _ => failure("grow", PageId(old), page_count - old, errno),
    })?;
    handle.set_page_count(page_count);
    Ok(())
}

/// Returns by how many bytes the file at `path` can grow before its file system is full; `None` if that is unknown.
#[must_use]
pub fn growth_bytes(path: &Path) -> Option<u64> {
    let is_block = fs::metadata(path).is_ok_and(|found| found.file_type().is_block_device());
    if is_block { Some(0) } else { statvfs(path).ok().and_then(free_bytes) }
}

/// Returns the free space of a file system. Some in user space do not report it.
fn free_bytes(space: StatVfs) -> Option<u64> {
    (space.f_blocks > 0).then(|| space.f_bavail.saturating_mul(space.f_frsize))
}

/// Fails at once if the file system cannot hold the new length, before a long allocation that would meanwhile fill the
/// disk for all other users.
fn check_space(handle: &Handle, page_count: u64) -> Result<()> {
    let Some(free) = fstatvfs(&handle.file).ok().and_then(free_bytes) else { return Ok(()) };
    let missing = (page_count - handle.page_count()).saturating_mul(PAGE_BYTES as u64);
    if missing <= free {
        return Ok(());
    }
    let reason = format!("{missing} bytes more are needed and its file system has {free} free");
    Err(no_space(handle, page_count, reason))
}

/// Changes the length from `old` to `new` bytes, or back to `old` if that fails.
fn lengthen(handle: &Handle, old: u64, new: u64) -> rustix::io::Result<()> {
    let file = &handle.file;
    // A partial page at the end never belonged to us, and its bytes must not be visible in a new page.
    if file.metadata().is_ok_and(|found| found.len() > old) {
        again(|| ftruncate(file, old))?;
    }
    let allocate = || match handle.allocation {
        Allocation::Whole => fallocate(file, FallocateFlags::empty(), old, new - old),
        Allocation::Sparse => ftruncate(file, new),
    };
    let allocated = match again(allocate) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => again(|| ftruncate(file, new)),
        answer => answer,
    };
    allocated.and_then(|()| again(|| fsync(file))).inspect_err(|_| {
        // The first error counts; if even this fails, the next growth repeats it.
        let _ = ftruncate(file, old);
    })
}

/// Makes completed writes durable. A file that is only read has none.
pub(super) fn sync(handle: &Handle) -> Result<()> {
    handle.check_process()?;
    if handle.is_read_only() {
        return Ok(());
    }
    let pages = handle.page_count();
    again(|| fdatasync(&handle.file)).map_err(|errno| failure("sync", PageId(0), pages, errno))
}

/// Frees the blocks under these pages, if the file system or the device can.
pub(super) fn discard(handle: &Handle, pages: Range<PageId>) -> Result<()> {
    handle.check_process()?;
    handle.check_writable()?;
    let (page, count) = (pages.start, pages.end.0.saturating_sub(pages.start.0));
    if count == 0 {
        return Ok(());
    }
    let page_count = handle.page_count();
    if pages.end.0 > page_count {
        return Err(Error::OutOfRange { page, pages: count, page_count });
    }
    let (start, bytes) = (offset(page, 0), offset(PageId(count), 0));
    let answer = again(|| match handle.medium {
        Medium::File => {
            let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            fallocate(&handle.file, hole, start, bytes)
        }
        Medium::Block => discard_blocks(handle, start, bytes),
    });
    match answer {
        Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::NOTTY) => Ok(()),
        Err(errno) => Err(failure("discard", page, count, errno)),
    }
}

fn discard_blocks(handle: &Handle, start: u64, bytes: u64) -> rustix::io::Result<()> {
    const BLKDISCARD: Opcode = opcode::none(0x12, 119);
    // SAFETY: BLKDISCARD only reads a pair of u64, start and length in bytes, at its argument.
    let request = unsafe { Setter::<BLKDISCARD, [u64; 2]>::new([start, bytes]) };
    // SAFETY: the descriptor is a block device, which knows this request by this number.
    unsafe { ioctl(&handle.file, request) }
}

/// Repeats a call while it is interrupted.
fn again<T>(mut ask: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    loop {
        match ask() {
            Err(Errno::INTR) => {}
            answer => return answer,
        }
    }
}

fn failure(operation: &'static str, page: PageId, pages: u64, errno: Errno) -> Error {
    Error::Io { operation, page, pages, source: errno.into() }
}

fn no_space(handle: &Handle, page_count: u64, reason: String) -> Error {
    Error::NoSpace {
        wanted_bytes: page_count.saturating_mul(PAGE_BYTES as u64),
        place: handle.path.display().to_string(),
        reason,
    }
}

#[cfg(test)]
mod tests {
    use super::super::FileOptions;
    use super::*;

    #[test]
    fn an_allocation_that_fails_leaves_the_old_length() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        std::io::Write::write_all(&mut file, &[1; 2 * PAGE_BYTES]).unwrap();
        let (file, path) = file.into_parts();
        let options = FileOptions::default();
        let handle = Handle::new(file, path.to_path_buf(), &options, Medium::File, 2);
        let errno = lengthen(&handle, 2 * PAGE_BYTES as u64, 1 << 60).unwrap_err();
        assert!(matches!(errno, Errno::NOSPC | Errno::FBIG), "{errno}");
        assert_eq!(handle.file.metadata().unwrap().len(), 2 * PAGE_BYTES as u64);
    }
}
