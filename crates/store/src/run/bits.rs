//! Bits of a page: packed numbers, and finding the k-th zero.

use crate::bytes::get_u64;

/// The most bits of a packed number: a read of eight bytes contains it whatever bit it starts at.
pub(super) const PACKED_BITS_MAX: u32 = 56;

/// Returns the mask of `bits` low bits, fewer than 64.
#[inline]
pub(super) const fn mask(bits: u32) -> u64 {
    (1 << bits) - 1
}

/// Returns the packed number from this bit on. Eight bytes must follow from that bit's byte.
#[inline]
pub(super) fn packed(bytes: &[u8], bit: usize, mask: u64) -> u64 {
    get_u64(bytes, bit >> 3) >> (bit & 7) & mask
}

const ONES: u64 = 0x0101_0101_0101_0101;

/// Returns the place of the k-th one in a word that has more than k, counted from 0.
#[inline]
pub(super) fn select(word: u64, k: u32) -> u32 {
    // How many ones there are up to the end of each byte, in that byte.
    let pairs = word - (word >> 1 & (ONES * 0x55));
    let fours = (pairs & (ONES * 0x33)) + (pairs >> 2 & (ONES * 0x33));
    let sums = ((fours + (fours >> 4)) & (ONES * 0x0f)).wrapping_mul(ONES);
    // Bytes whose sum is at most k are wholly before it: their top bit stays set in k + 128 - sum.
    let before = (ONES * (u64::from(k) | 0x80)).wrapping_sub(sums) & (ONES * 0x80);
    let byte = ((before >> 7).wrapping_mul(ONES) >> 56) as u32;
    let earlier = if byte == 0 { 0 } else { (sums >> (8 * byte - 8)) as u32 & 0xff };
    let mut rest = word >> (8 * byte) & 0xff;
    for _ in earlier..k {
        rest &= rest - 1;
    }
    8 * byte + rest.trailing_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn select_finds_each_one_of_a_word() {
        let mut word = 0x9e37_79b9_7f4a_7c15_u64;
        let fixed = [1, u64::MAX, 1 << 63, 0x8000_0000_0000_0001, 0xff00];
        let random = std::iter::repeat_with(|| {
            word = word.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            word & word.rotate_left(17)
        });
        for word in fixed.into_iter().chain(random.take(500)) {
            let ones = (0..64).filter(|at| word >> at & 1 == 1);
            for (k, at) in ones.enumerate() {
                assert_eq!(select(word, k as u32), at, "{word:x} {k}");
            }
        }
    }

    #[test]
    fn packed_numbers_are_read_from_any_bit() {
        let bytes: Vec<u8> = (0..16_u8).map(|at| at.wrapping_mul(77) ^ 0x5a).collect();
        let whole = u128::from_le_bytes(bytes.clone().try_into().unwrap());
        for bit in 0..64 {
            for bits in 0..=PACKED_BITS_MAX {
                let expected = (whole >> bit) as u64 & mask(bits);
                assert_eq!(packed(&bytes, bit, mask(bits)), expected, "{bit} {bits}");
            }
        }
    }
}
