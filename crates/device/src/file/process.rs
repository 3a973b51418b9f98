//! The id of this process, without a system call each time.
//!
//! A file must not be used by a child that has inherited it, so each operation checks. `getpid` is a system call, a
//! tenth of a microsecond that would be paid twice for each page. Instead the id is stored in a page that the kernel
//! clears in children; a process that finds zero there asks the kernel and stores its own.

use std::process;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use crate::PAGE_BYTES;

/// The id of this process.
#[inline]
pub(super) fn id() -> u32 {
    static NOTE: OnceLock<Option<&'static AtomicU32>> = OnceLock::new();
    let Some(note) = NOTE.get_or_init(note) else { return process::id() };
    match note.load(Ordering::Relaxed) {
        0 => {
            let id = process::id();
            note.store(id, Ordering::Relaxed);
            id
        }
        id => id,
    }
}

/// Returns a page of zeros that is cleared in children; `None` if the kernel cannot do that (Linux before 4.14).
fn note() -> Option<&'static AtomicU32> {
    // SAFETY: new memory is requested, at any address, so nothing in use changes.
    let place = unsafe {
        mmap_anonymous(
            std::ptr::null_mut(),
            PAGE_BYTES,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE,
        )
    }
    .ok()?;
    // SAFETY: the range is the page that was just mapped, to which there is no other reference.
    if unsafe { madvise(place, PAGE_BYTES, Advice::LinuxWipeOnFork) }.is_err() {
        // SAFETY: as above; nothing refers to the page.
        let _ = unsafe { munmap(place, PAGE_BYTES) };
        return None;
    }
    // SAFETY: the page is aligned, zero, readable and writable, and is never unmapped from here on. A
    // child has it at the same address, with zeros.
    Some(unsafe { AtomicU32::from_ptr(place.cast()) })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_number_is_the_kernels_each_time() {
        for _ in 0..3 {
            assert_eq!(super::id(), std::process::id());
        }
    }
}
