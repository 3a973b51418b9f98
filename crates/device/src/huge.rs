//! A hint to the kernel that a large piece of memory is read at random.

use rustix::mm::{Advice, madvise};

use crate::PAGE_BYTES;

/// The size of a huge page on x86-64 and of a common one elsewhere; smaller pieces are left alone.
const HUGE_BYTES: usize = 2 << 20;

/// Asks the kernel to back this memory with huge pages, so that random reads of it miss the
/// processor's address cache less often. Call it before the memory is first written.
///
/// It changes only time, no byte. If the kernel cannot do it (it is switched off, or the memory is too small or already
/// in use) nothing happens.
pub fn prefer_huge_pages<T>(memory: &[T]) {
    let bytes = size_of_val(memory);
    if bytes < HUGE_BYTES {
        return;
    }
    let address = memory.as_ptr() as usize;
    let start = address.next_multiple_of(PAGE_BYTES);
    let end = (address + bytes) / PAGE_BYTES * PAGE_BYTES;
    let place = memory.as_ptr().wrapping_byte_add(start - address).cast_mut();
    // A kernel that cannot do it changes nothing.
    // SAFETY: the range is whole pages inside memory that we hold a reference to, and this advice
    // changes how it is backed, never what it holds.
    let _ = unsafe { madvise(place.cast(), end - start, Advice::LinuxHugepage) };
}

#[cfg(test)]
mod tests {
    #[test]
    fn advised_memory_keeps_its_bytes() {
        let memory: Vec<u64> = (0..1 << 20).collect();
        super::prefer_huge_pages(&memory);
        super::prefer_huge_pages(&memory[1..3]);
        assert!(memory.iter().zip(0..).all(|(word, number)| *word == number));
    }
}
