//! Fields of up to 64 bits in a list of words, and moving many of them at once.
//!
//! A list has one more word than its fields take, so that a field is read from two words without a check for the end.

/// Returns the words of a list with `bits` bits.
pub(super) const fn words(bits: usize) -> usize {
    bits.div_ceil(64) + 1
}

/// Returns the field of `width` bits, 1 to 64, from bit `at` on.
#[inline(always)]
pub(super) fn get(words: &[u64], at: usize, width: u32) -> u64 {
    let (word, shift) = (at / 64, at % 64);
    let low = words[word] >> shift;
    // No bits of the next word if the field begins at bit 0.
    let high = (words[word + 1] << 1) << (63 - shift);
    (low | high) & (u64::MAX >> (64 - width))
}

/// Writes a field of `width` bits, 1 to 64. The value must fit.
#[inline(always)]
pub(super) fn set(words: &mut [u64], at: usize, width: u32, value: u64) {
    let mask = u64::MAX >> (64 - width);
    let (word, shift) = (at / 64, at % 64);
    words[word] = words[word] & !(mask << shift) | value << shift;
    // The bits that did not fit; usually none.
    let rest = 63 - shift;
    words[word + 1] = words[word + 1] & !((mask >> 1) >> rest) | (value >> 1) >> rest;
}

/// Moves the `count` bits before bit `from` up, to those before bit `to`. The ranges may overlap.
#[inline]
pub(super) fn move_up(words: &mut [u64], from: usize, to: usize, count: usize) {
    debug_assert!(from < to && count <= from, "bits move up");
    if to - from >= OVERWRITTEN_MAX && from - count >= OVERWRITTEN_MAX {
        move_up_and_below(words, from, to, count);
    } else {
        move_up_exactly(words, from, to, count);
    }
}

/// The number of words that are moved at once: all are read before one is written, so that the processor can use wide
/// registers.
const WIDE: usize = 4;

/// The maximum number of bits below their new position that [`move_up_and_below`] overwrites.
const OVERWRITTEN_MAX: usize = (WIDE + 1) * 64;

/// Moves bits as [`move_up`] does, and overwrites up to [`OVERWRITTEN_MAX`] bits below the new position: it moves whole
/// words, and never checks how many bits are left.
#[inline(always)]
fn move_up_and_below(words: &mut [u64], from: usize, to: usize, count: usize) {
    // The bits of the highest word below the end; those above it stay.
    let (mut to, top) = (to / 64, to % 64);
    let stays = u64::MAX << top;
    let moved = get(words, from - top, 64);
    words[to] = words[to] & stays | moved & !stays;
    let (mut from, shift) = ((from - top) / 64, (from - top) % 64);
    let mut left = count.saturating_sub(top).div_ceil(64);
    while left > 0 {
        let mut wide = [0; WIDE + 1];
        wide.copy_from_slice(&words[from - WIDE..=from]);
        let mut moved = [0; WIDE];
        for (at, word) in moved.iter_mut().enumerate() {
            *word = wide[at] >> shift | (wide[at + 1] << 1) << (63 - shift);
        }
        words[to - WIDE..to].copy_from_slice(&moved);
        (from, to) = (from - WIDE, to - WIDE);
        left = left.saturating_sub(WIDE);
    }
}

/// Moves bits as [`move_up`] does, and overwrites no bits below the new position.
fn move_up_exactly(words: &mut [u64], from: usize, to: usize, count: usize) {
    let (mut from, mut to, mut left) = (from, to, count);
    while left > 0 {
        let some = left.min(64);
        (from, to, left) = (from - some, to - some, left - some);
        let field = get(words, from, some as u32);
        set(words, to, some as u32, field);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(words: &[u64], from: usize, count: usize) -> Vec<bool> {
        (from..from + count).map(|at| words[at / 64] >> (at % 64) & 1 == 1).collect()
    }

    #[test]
    fn fields_are_read_back_and_their_neighbours_stay() {
        for width in 1..=64 {
            for at in 0..130 {
                let mut list = vec![0x5555_1234_9abc_def0; words(194)];
                let before = (bits(&list, 0, at), bits(&list, at + width as usize, 60));
                let value = 0xfedc_ba98_7654_3210 & (u64::MAX >> (64 - width));
                set(&mut list, at, width, value);
                assert_eq!(get(&list, at, width), value, "{at} {width}");
                let after = (bits(&list, 0, at), bits(&list, at + width as usize, 60));
                assert_eq!(after, before, "{at} {width}");
            }
        }
    }

    #[test]
    fn bits_move_up_by_any_distance_and_nothing_below_their_old_place_changes() {
        let mut seed = 1u64;
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
            (seed >> 33) as usize % below
        };
        for _ in 0..2000 {
            let (first, distance, count) = (random(900), 1 + random(900), random(900));
            let (from, to) = (first + count, first + distance + count);
            let mut list: Vec<_> = (0..words(to + 64))
                .map(|word| (word as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
                .collect();
            let old = list.clone();
            move_up(&mut list, from, to, count);
            assert_eq!(bits(&list, to - count, count), bits(&old, first, count));
            assert_eq!(bits(&list, 0, first), bits(&old, 0, first));
            assert_eq!(bits(&list, to, 64), bits(&old, to, 64));
        }
    }
}
