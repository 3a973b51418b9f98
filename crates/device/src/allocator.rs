//! How the C library's allocator keeps what a program has freed.
//!
//! It keeps more the larger the pieces are that a program frees, and for each thread apart. A program that frees
//! buffers of some MiB in several threads may hold three times the RAM that it uses, for as long as it runs.

/// The smallest piece that the kernel gives and takes back alone, in bytes: more than the buffers of a flush have. With
/// half of that, a BufferHash takes 10 % fewer inserts.
#[cfg(target_env = "gnu")]
const PIECE_BYTES: libc::c_int = 256 << 10;

/// What may stay free at the end of an arena. With much less, arenas of programs that put many small things shrink and
/// grow all the time: a map takes 5 % fewer puts.
#[cfg(target_env = "gnu")]
const FREE_BYTES: libc::c_int = 4 << 20;

/// Arenas of all threads together.
#[cfg(target_env = "gnu")]
const ARENAS: libc::c_int = 2;

/// Has the allocator of the C library give back what is freed, so that RAM that a program states is about what its
/// process takes. A program calls it once, before it starts threads; a library leaves it to its program. Pieces of
/// 256 KiB and more then cost a system call each. Nothing happens where the allocator is not that of glibc.
pub fn give_back_freed_ram() {
    #[cfg(target_env = "gnu")]
    for (what, value) in [
        (libc::M_MMAP_THRESHOLD, PIECE_BYTES),
        (libc::M_TRIM_THRESHOLD, FREE_BYTES),
        (libc::M_ARENA_MAX, ARENAS),
    ] {
        // SAFETY: it takes two numbers, and changes only where the allocator takes memory from.
        let _ = unsafe { libc::mallopt(what, value) };
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_allocated_before_and_after_keeps_its_bytes() {
        let before: Vec<u8> = (0..=255).cycle().take(5 << 20).collect();
        super::give_back_freed_ram();
        let after = before.clone();
        drop(before);
        assert!(after.iter().zip((0..=255).cycle()).all(|(byte, number)| *byte == number));
    }
}
