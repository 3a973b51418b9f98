//! The amount of freed memory that the C library's allocator keeps.
//!
//! The allocator keeps more the larger the freed pieces are, and separately for each thread. A program that frees
//! buffers of some MiB in several threads may use three times the RAM that it needs, for as long as it runs.

/// The smallest piece that the kernel provides and takes back alone, in bytes: larger than the buffers of a flush. With
/// half of that, a BufferHash accepts 10 % fewer inserts.
#[cfg(target_env = "gnu")]
const PIECE_BYTES: libc::c_int = 256 << 10;

/// The number of bytes that may stay free at the end of an arena. With much less, arenas of programs that insert many
/// small things shrink and grow all the time: a map accepts 5 % fewer puts.
#[cfg(target_env = "gnu")]
const FREE_BYTES: libc::c_int = 4 << 20;

/// The number of arenas of all threads together.
#[cfg(target_env = "gnu")]
const ARENAS: libc::c_int = 2;

/// Makes the C library's allocator return freed memory to the kernel, so that the RAM that a program reports is about
/// what its process takes. A program calls it once, before it starts threads; a library leaves it to its program.
/// Pieces of 256 KiB and more then cost a system call each. Does nothing if the allocator is not that of glibc.
pub fn give_back_freed_ram() {
    #[cfg(target_env = "gnu")]
    for (what, value) in [
        (libc::M_MMAP_THRESHOLD, PIECE_BYTES),
        (libc::M_TRIM_THRESHOLD, FREE_BYTES),
        (libc::M_ARENA_MAX, ARENAS),
    ] {
        // SAFETY: it takes two numbers, and changes only where the allocator gets memory from.
        let _ = unsafe { libc::mallopt(what, value) };
    }
}

/// Returns freed memory between used pieces to the kernel, which the allocator otherwise keeps for later pieces that
/// fit. A program that allocates many small pieces next to buffers that grow calls it from time to time, such as after
/// every hundred thousand updates. Does nothing if the allocator is not that of glibc.
pub fn give_back_gaps() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes a number, and only tells the kernel which pages hold nothing.
    let _ = unsafe { libc::malloc_trim(0) };
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_allocated_before_and_after_keeps_its_bytes() {
        let before: Vec<u8> = (0..=255).cycle().take(5 << 20).collect();
        super::give_back_freed_ram();
        let after = before.clone();
        drop(before);
        super::give_back_gaps();
        assert!(after.iter().zip((0..=255).cycle()).all(|(byte, number)| *byte == number));
    }
}
