//! The generation of a place that is written repeatedly: a sequence number that only grows, in 48 bits, under
//! the low 16 bits of the epoch that issued it.
//!
//! A crash forgets the numbers issued since the last checkpoint, so they are issued again. The epoch distinguishes such
//! a number from its first use.

const SEQUENCE_BITS: u32 = 48;
const SEQUENCE_MASK: u64 = (1 << SEQUENCE_BITS) - 1;

/// The greatest sequence number accepted from flash. No volume ever issues so large a number, and counting on from it
/// does not overflow.
pub(crate) const SEQUENCE_MAX: u64 = SEQUENCE_MASK / 2;

/// Combines a number and the epoch that issued it.
#[must_use]
pub const fn generation(sequence: u64, epoch: u16) -> u64 {
    sequence & SEQUENCE_MASK | (epoch as u64) << SEQUENCE_BITS
}

/// The number in a generation.
#[must_use]
pub const fn sequence(generation: u64) -> u64 {
    generation & SEQUENCE_MASK
}

/// The epoch in a generation.
#[must_use]
pub const fn epoch(generation: u64) -> u16 {
    (generation >> SEQUENCE_BITS) as u16
}

/// The part of a volume's epoch that a generation carries.
#[must_use]
pub const fn low(epoch: u64) -> u16 {
    (epoch & 0xffff) as u16
}
