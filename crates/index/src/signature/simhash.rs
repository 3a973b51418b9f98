//! SimHash: each bit tells which side has more of the weight of a document's features. Documents that share most of
//! their weight differ in few bits.

use super::numbers::SplitMix;

/// Returns the bits for features with these hashes and weights, `bits` of them. If both sides have the same weight, the
/// bit is 0.
pub(super) fn signature(features: &[(u64, u32)], bits: u32) -> u128 {
    let mut sums = [0_i64; 128];
    for &(hash, weight) in features {
        // A second word for features of 64 bits.
        let second = if bits > 64 { SplitMix(hash).next() } else { 0 };
        let words = u128::from(second) << 64 | u128::from(hash);
        for (bit, sum) in sums.iter_mut().enumerate().take(bits as usize) {
            let weight = i64::from(weight);
            *sum = sum.saturating_add(if words >> bit & 1 == 1 { weight } else { -weight });
        }
    }
    let set = |(bit, sum): (usize, &i64)| u128::from(*sum > 0) << bit;
    sums.iter().enumerate().map(set).fold(0, |all, bit| all | bit)
}

/// Returns the parts of a signature, of nearly the same length, as (number, bits).
///
/// Two signatures that differ in fewer bits than there are parts are equal in one of them, since the differences cannot
/// reach all parts.
pub(super) fn parts(signature: u128, bits: u32, count: u32) -> impl Iterator<Item = (u32, u128)> {
    (0..count).map(move |number| {
        let (start, end) = (number * bits / count, (number + 1) * bits / count);
        let mask = u128::MAX >> (128 - (end - start));
        (number, signature >> start & mask)
    })
}
