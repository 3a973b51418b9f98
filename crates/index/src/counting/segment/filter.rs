//! The small filter of a staged segment: a Bloom filter whose bits of one key are in one cache line.

use super::super::keys::reduce;

/// Words of a cache line.
const LINE: usize = 8;

/// Bits of RAM for each key.
const KEY_BITS: u64 = 10;

/// Bits that a key sets.
const PROBES: u32 = 6;

/// A filter for the places in a staged segment. About one in 80 of the other places passes it.
#[derive(Debug)]
pub(crate) struct SegmentFilter {
    lines: Vec<[u64; LINE]>,
}

impl SegmentFilter {
    /// Creates an empty filter for `keys` keys.
    pub(in crate::counting) fn new(keys: u64) -> Self {
        let lines = (keys * KEY_BITS).div_ceil(64 * LINE as u64).max(1);
        Self {
            lines: vec![[0; LINE]; usize::try_from(lines).expect("a segment is smaller than RAM")],
        }
    }

    pub(in crate::counting) fn ram_bytes(&self) -> u64 {
        (self.lines.len() * LINE * 8) as u64
    }

    /// Returns the RAM of a filter for `keys` keys, in bytes.
    pub(in crate::counting) fn bytes_for(keys: u64) -> u64 {
        (keys * KEY_BITS).div_ceil(8)
    }

    #[inline]
    pub(in crate::counting) fn insert(&mut self, place: u64) {
        let (line, mut bits) = self.positions(place);
        for _ in 0..PROBES {
            self.lines[line][(bits >> 6 & 7) as usize] |= 1 << (bits & 63);
            bits >>= 9;
        }
    }

    #[inline]
    pub(in crate::counting) fn may_have(&self, place: u64) -> bool {
        let (line, mut bits) = self.positions(place);
        (0..PROBES).all(|_| {
            let is_set = self.lines[line][(bits >> 6 & 7) as usize] >> (bits & 63) & 1 == 1;
            bits >>= 9;
            is_set
        })
    }

    /// Returns the line of a place, and the numbers of its bits, nine bits each. The place's high bits choose the line;
    /// all bits are mixed for the numbers.
    #[inline]
    fn positions(&self, place: u64) -> (usize, u64) {
        let line = reduce(place, self.lines.len() as u64) as usize;
        (line, nandex_store::hash::mix(place))
    }
}

#[cfg(test)]
mod tests {
    use nandex_store::hash::mix;

    use super::*;

    #[test]
    fn it_has_what_was_inserted_and_little_else() {
        let keys = 20_000;
        let mut filter = SegmentFilter::new(keys);
        (0..keys).for_each(|key| filter.insert(mix(key)));
        assert!((0..keys).all(|key| filter.may_have(mix(key))));
        let wrong = (keys..11 * keys).filter(|key| filter.may_have(mix(*key))).count();
        let rate = wrong as f64 / (10 * keys) as f64;
        assert!((0.005..0.02).contains(&rate), "{rate}");
        assert!(filter.ram_bytes() < SegmentFilter::bytes_for(keys) + 64);
    }
}
