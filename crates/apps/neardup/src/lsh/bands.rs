//! Bucket keys of MinHash signatures, as in datasketch: a hash of each band's values.

use nandex::raw::store::hash::{HashKind, KeyHasher};

/// The hash of a band: XXH3 with the key 0, so that indexes can be merged. It is on flash.
const BAND_HASH: KeyHasher = KeyHasher::new(HashKind::Xxh3, 0);

/// The division of the numbers of a signature into bands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BandShape {
    /// The numbers of a signature, 1 or more.
    pub row_values: usize,
    /// The numbers of a band, 1 or more.
    pub band_values: usize,
    /// The bands of a signature, from its beginning on.
    pub bands: usize,
}

impl BandShape {
    /// Returns whether such signatures are possible.
    #[must_use]
    pub fn is_possible(self) -> bool {
        self.band_values > 0
            && self.bands > 0
            && self.band_values.checked_mul(self.bands).is_some_and(|it| it <= self.row_values)
    }

    /// Adds a bucket key for each band of each signature; `numbers` has them one after the other. A key does not depend
    /// on the width of the numbers.
    pub fn add_keys<N: Copy + Into<u64>>(self, numbers: &[N], keys: &mut Vec<u64>) {
        let Self { row_values, band_values, bands } = self;
        let mut bytes = vec![0; 8 * band_values];
        keys.reserve(numbers.len() / row_values.max(1) * bands);
        for row in numbers.chunks_exact(row_values.max(1)) {
            for band in row.chunks_exact(band_values.max(1)).take(bands) {
                for (bytes, value) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(band) {
                    *bytes = (*value).into().to_le_bytes();
                }
                keys.push(BAND_HASH.hash(&bytes).place);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_depends_on_the_values_of_its_band_alone_and_on_no_width() {
        let shape = BandShape { row_values: 5, band_values: 2, bands: 2 };
        let numbers = [1, 2, 3, 4, 5, 1, 2, 9, 4, 8];
        let (mut wide, mut narrow) = (Vec::new(), Vec::new());
        shape.add_keys::<u64>(&numbers.map(u64::from), &mut wide);
        shape.add_keys::<u32>(&numbers, &mut narrow);
        assert_eq!((wide.len(), &wide), (4, &narrow));
        assert!(wide[0] == wide[2] && wide[1] != wide[3] && wide[0] != wide[1]);
        let bytes: Vec<u8> = [1_u64, 2].iter().flat_map(|it| it.to_le_bytes()).collect();
        assert_eq!(wide[0], BAND_HASH.hash(&bytes).place);
    }

    #[test]
    fn bands_are_within_their_signature() {
        let shape = |row_values, band_values, bands| BandShape { row_values, band_values, bands };
        assert!(shape(128, 25, 5).is_possible());
        for impossible in
            [shape(128, 26, 5), shape(9, 0, 3), shape(9, 3, 0), shape(9, 2, usize::MAX)]
        {
            assert!(!impossible.is_possible(), "{impossible:?}");
        }
    }
}
