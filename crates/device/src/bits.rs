//! Counting and finding set bits of a word, in one instruction each where the processor has it.
//!
//! Programs are built for any x86-64, which promises neither instruction; both are looked for when the
//! program runs. What is found is remembered, so asking costs a load and a branch that is always taken alike.

/// Set bits of a word.
#[inline]
#[must_use]
pub fn rank(word: u64) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("popcnt") {
        let bits: u64;
        // SAFETY: the processor has the instruction, which reads one register and writes another.
        unsafe {
            std::arch::asm!("popcnt {bits}, {word}", word = in(reg) word, bits = lateout(reg) bits,
                options(pure, nomem, nostack));
        }
        return bits as u32;
    }
    word.count_ones()
}

/// The place of a set bit by its number, both from 0 at the low end; 64 where fewer are set.
///
/// ```
/// use nandex_device::select;
/// assert_eq!([0, 1, 2].map(|number| select(0b1010, number)), [1, 3, 64]);
/// ```
#[inline]
#[must_use]
pub fn select(word: u64, number: u32) -> u32 {
    if number >= 64 {
        return 64;
    }
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("bmi2") {
        let bit: u64;
        // SAFETY: the processor has the instruction, which reads two registers and writes a third.
        unsafe {
            std::arch::asm!("pdep {bit}, {one}, {word}", word = in(reg) word,
                one = in(reg) 1_u64 << number, bit = lateout(reg) bit,
                options(pure, nomem, nostack, preserves_flags));
        }
        return bit.trailing_zeros();
    }
    select_by_halves(word, number)
}

/// [`select`] with what every processor has: the bit is in the low half, or in the high half by a lesser
/// number, six times over.
fn select_by_halves(word: u64, number: u32) -> u32 {
    if number >= word.count_ones() {
        return 64;
    }
    let (mut rest, mut number, mut place) = (word, number, 0);
    for half in [32, 16, 8, 4, 2, 1] {
        let low = (rest & ((1 << half) - 1)).count_ones();
        if number >= low {
            number -= low;
            rest >>= half;
            place += half;
        }
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One bit after the other.
    fn slow_select(word: u64, number: u32) -> u32 {
        (0..64).filter(|bit| word >> bit & 1 == 1).nth(number as usize).unwrap_or(64)
    }

    #[test]
    fn bits_are_counted_and_found_as_one_by_one() {
        let mut word = 0x9e37_79b9_7f4a_7c15_u64;
        let spread = (0..200).map(|round| {
            word = word.wrapping_mul(0xd129_0b26_85a5_1c91).rotate_left(29) ^ round;
            if round % 3 == 0 { word & word >> 7 & word << 9 } else { word }
        });
        let edges = [0, 1, 1 << 63, u64::MAX, u64::MAX >> 1];
        for word in spread.chain(edges) {
            assert_eq!(u64::from(rank(word)), (0..64).map(|bit| word >> bit & 1).sum::<u64>());
            for number in 0..70 {
                let expected = slow_select(word, number);
                assert_eq!(select(word, number), expected, "{word:x} {number}");
                assert_eq!(select_by_halves(word, number), expected, "{word:x} {number}");
            }
        }
    }
}
