//! Anchors: positions in content that the content itself determines, so that an edit moves few of them.
//!
//! A gear hash over the last 64 bytes is computed at every position. A position is an anchor if the highest bits of the
//! hash are zero, once in [`DISTANCE_BYTES`] on average, and the hash is its name. Similar content has most of its
//! anchors in common, so a changed chunk finds the chunk that it derives from.

/// The average number of bytes between two anchors.
pub(crate) const DISTANCE_BYTES: usize = 1024;

/// The number of bytes that a hash depends on: each is shifted out after 64 more.
const WINDOW_BYTES: usize = 64;

/// The bits that are zero at an anchor: the highest depend on all of the window.
const MASK: u64 = !(u64::MAX >> DISTANCE_BYTES.trailing_zeros());

/// A random number for each byte.
const GEAR: [u64; 256] = gear();

/// Generates the numbers with SplitMix64, so that they are the same in all versions.
const fn gear() -> [u64; 256] {
    let mut table = [0; 256];
    let mut state = 0x6e61_6e64_6578_7761_u64;
    let mut byte = 0;
    while byte < 256 {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        table[byte] = mixed ^ (mixed >> 31);
        byte += 1;
    }
    table
}

/// Returns the names of the anchors of `content`, in order. Of consecutive equal anchors, as in a run of equal bytes,
/// it returns one.
pub(crate) fn anchors(content: &[u8]) -> Vec<u64> {
    let mut found = Vec::with_capacity(content.len() / DISTANCE_BYTES + 1);
    let mut hash = 0_u64;
    for (index, byte) in content.iter().enumerate() {
        hash = (hash << 1).wrapping_add(GEAR[usize::from(*byte)]);
        if hash & MASK == 0 && index + 1 >= WINDOW_BYTES && found.last() != Some(&hash) {
            found.push(hash);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::noise;

    #[test]
    fn anchors_are_about_as_far_apart_as_they_should() {
        let count = anchors(&noise(4 << 20, 1)).len();
        let expected = (4 << 20) / DISTANCE_BYTES;
        assert!((expected * 9 / 10..expected * 11 / 10).contains(&count), "{count}");
    }

    #[test]
    fn an_insertion_changes_only_anchors_near_it() {
        let content = noise(256 << 10, 2);
        let mut edited = content.clone();
        edited.splice(100_000..100_000, *b"inserted");
        let (old, new) = (anchors(&content), anchors(&edited));
        let common = old.iter().filter(|anchor| new.contains(anchor)).count();
        assert!(common + 3 >= old.len(), "{common} of {}", old.len());
    }

    #[test]
    fn equal_bytes_without_end_have_one_anchor_at_most() {
        for byte in 0..=255 {
            assert!(anchors(&[byte; 10_000]).len() <= 1);
        }
    }
}
