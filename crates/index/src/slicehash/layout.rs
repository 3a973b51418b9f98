//! The places of slice pages in a slicetable.
//!
//! With one part a slice is a page, and slices follow one another. With several, slices form groups: the first parts of
//! a group's slices, then their second parts, and so on. Over an array whose stripe is a group, each part of a slice is
//! on its own device, and sequential I/O is still long.
//!
//! ```text
//!   one part:      | 0 | 1 | 2 | 3 | ...
//!   two parts,     | 0a | 1a | 2a | 0b | 1b | 2b | 3a | 4a | 5a | 3b | 4b | 5b | ...
//!   groups of 3:   |  device 0    |  device 1    |  device 0    |  device 1    |
//! ```

use nandex_store::hash::KeyHash;

use super::Config;

/// The layout of slices in pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Slicing {
    /// Slices in a slicetable.
    pub slices: u32,
    /// Pages in a slice.
    pub parts: u32,
    /// Slices in a group; 1 if a slice has one part.
    group: u32,
}

impl Slicing {
    pub(super) fn new(config: &Config) -> Self {
        let group = if config.slice_parts == 1 { 1 } else { config.group_slices };
        Self { slices: config.slices, parts: config.slice_parts, group }
    }

    /// Returns the slice of a key, from bits that neither the partition nor the buffer uses.
    #[inline]
    pub(super) fn slice_of_key(&self, hash: KeyHash) -> u32 {
        (((hash.filter >> 32) * u64::from(self.slices)) >> 32) as u32
    }

    /// The page of a part of a slice, counted from the slicetable's first.
    #[inline]
    pub(super) fn page(&self, slice: u32, part: u32) -> u64 {
        let (group, parts) = (u64::from(self.group), u64::from(self.parts));
        let (round, member) = (u64::from(slice) / group, u64::from(slice) % group);
        round * group * parts + u64::from(part) * group + member
    }

    /// Returns the slice and part of a page; `None` for padding pages.
    pub(super) fn slice_of(&self, page: u64) -> Option<(u32, u32)> {
        let (group, parts) = (u64::from(self.group), u64::from(self.parts));
        let (round, rest) = (page / (group * parts), page % (group * parts));
        let slice = round * group + rest % group;
        let part = u32::try_from(rest / group).expect("fewer than the parts");
        (slice < u64::from(self.slices)).then_some((slice as u32, part))
    }

    /// The index of a slice in its group.
    pub(super) fn member(&self, slice: u32) -> usize {
        (slice % self.group) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_lead_back_to_their_slices() {
        for (slices, parts, group) in [(12, 1, 1), (7, 2, 3), (9, 3, 3), (5, 3, 4)] {
            let slicing = Slicing { slices, parts, group };
            let mut pages = Vec::new();
            for slice in 0..slices {
                for part in 0..parts {
                    let page = slicing.page(slice, part);
                    assert_eq!(slicing.slice_of(page), Some((slice, part)));
                    pages.push(page);
                }
            }
            pages.sort_unstable();
            pages.dedup();
            assert_eq!(pages.len() as u32, slices * parts, "each page is one slice's");
        }
    }

    #[test]
    fn parts_of_a_slice_are_a_stripe_apart_and_in_rising_order() {
        let slicing = Slicing { slices: 6, parts: 2, group: 3 };
        let pages: Vec<u64> = (0..6).map(|slice| slicing.page(slice, 0)).collect();
        assert_eq!(pages, [0, 1, 2, 6, 7, 8]);
        assert_eq!(slicing.page(4, 1), slicing.page(4, 0) + 3);
    }
}
