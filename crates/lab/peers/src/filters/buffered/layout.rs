//! The places of a key's bits, and the four bytes of a waiting update.

use crate::bloom::{PAGE_BITS, Paged, Plain};

/// Pages of a region: their numbers fit the 6 bits that an update has for them.
pub const REGION_PAGES: u64 = 64;

/// The kind of layout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// All bits of a key in one page.
    Paged,
    /// Bits anywhere.
    Elevator,
}

impl Kind {
    /// Returns its name, which is also that of its file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Paged => "paged",
            Self::Elevator => "elevator",
        }
    }
}

/// A layout with its sizes.
#[derive(Clone, Copy, Debug)]
pub enum Layout {
    /// An update is `page within region (6 bits) . hash within page (26)`.
    Paged(Paged),
    /// An update is `page within region (6 bits) . bit within page (15)`.
    Elevator(Plain),
}

/// An update of the filter: a region, and the change in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The region.
    pub region: u32,
    /// The page within it, and the bits to set there.
    pub entry: u32,
}

/// The number of bits of an elevator update that select the bit of a page.
const BIT_BITS: u32 = PAGE_BITS.ilog2();

impl Layout {
    /// Returns the smallest filter of `keys` keys with a rate of false positives of at most `rate`, in
    /// multiples of `unit` pages.
    pub fn new(kind: Kind, keys: u64, rate: f64, unit: u64) -> Self {
        match kind {
            Kind::Paged => Self::Paged(Paged::for_rate(keys, rate, unit)),
            Kind::Elevator => {
                let plain = Plain::for_rate(keys, rate);
                let bits = plain.bits.next_multiple_of(unit * PAGE_BITS);
                Self::Elevator(Plain { bits, ..plain })
            }
        }
    }

    /// Returns its size.
    pub const fn pages(self) -> u64 {
        match self {
            Self::Paged(filter) => filter.pages,
            Self::Elevator(filter) => filter.bits / PAGE_BITS,
        }
    }

    /// Returns its size in regions.
    pub const fn regions(self) -> u64 {
        self.pages().div_ceil(REGION_PAGES)
    }

    /// Returns the updates per key, which is also the maximum number of pages that a lookup reads.
    pub const fn places(self) -> u32 {
        match self {
            Self::Paged(_) => 1,
            Self::Elevator(filter) => filter.probes,
        }
    }

    /// Returns update `number` of the key of a hash.
    #[inline]
    pub fn place(self, hash: u64, number: u32) -> Place {
        let (page, inner, bits) = match self {
            Self::Paged(filter) => {
                let (page, inner) = filter.place(hash);
                (page, inner, Paged::INNER_BITS)
            }
            Self::Elevator(filter) => {
                let bit = filter.bit(hash, number);
                (bit / PAGE_BITS, (bit % PAGE_BITS) as u32, BIT_BITS)
            }
        };
        let (region, page) = ((page / REGION_PAGES) as u32, (page % REGION_PAGES) as u32);
        Place { region, entry: page << bits | inner }
    }

    /// Returns the page of an update within its region.
    #[inline]
    pub const fn page_of(self, entry: u32) -> usize {
        match self {
            Self::Paged(_) => (entry >> Paged::INNER_BITS) as usize,
            Self::Elevator(_) => (entry >> BIT_BITS) as usize,
        }
    }

    /// Applies an update to its page.
    #[inline]
    pub fn set(self, entry: u32, page: &mut [u8]) {
        let mut set = |bit: usize| {
            page[bit / 8] |= 1 << (bit % 8);
            true
        };
        match self {
            Self::Paged(filter) => {
                filter.bits(inner(entry), set);
            }
            Self::Elevator(_) => {
                set(bit(entry));
            }
        }
    }

    /// Returns whether an update like this was applied to this page.
    #[inline]
    pub fn is_set(self, entry: u32, page: &[u8]) -> bool {
        let is_set = |bit: usize| page[bit / 8] >> (bit % 8) & 1 == 1;
        match self {
            Self::Paged(filter) => filter.bits(inner(entry), is_set),
            Self::Elevator(_) => is_set(bit(entry)),
        }
    }

    /// Returns the rate of false positives with `keys` keys in it.
    pub fn rate(self, keys: u64) -> f64 {
        match self {
            Self::Paged(_) | Self::Elevator(_) if keys == 0 => 0.0,
            Self::Paged(filter) => filter.rate(keys),
            Self::Elevator(filter) => filter.rate(keys),
        }
    }
}

const fn inner(entry: u32) -> u32 {
    entry & ((1 << Paged::INNER_BITS) - 1)
}

const fn bit(entry: u32) -> usize {
    entry as usize & (PAGE_BITS as usize - 1)
}
