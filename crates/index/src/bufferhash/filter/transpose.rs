//! The transpose of a 64 x 64 bit matrix, which turns 64 packed columns into 64 rows at once.

/// Swaps rows and columns: bit `c` of word `r` becomes bit `r` of word `c`. Six rounds of 32 swaps.
pub(super) fn transpose(matrix: &mut [u64; 64]) {
    let mut width = 32;
    let mut mask = 0x0000_0000_FFFF_FFFF_u64;
    while width != 0 {
        swap_blocks(matrix, width, mask);
        width >>= 1;
        mask ^= mask << width;
    }
}

/// Swaps the off-diagonal blocks of every square of `2 * width`.
fn swap_blocks(matrix: &mut [u64; 64], width: usize, mask: u64) {
    for square in matrix.chunks_exact_mut(2 * width) {
        let (top, bottom) = square.split_at_mut(width);
        for (upper, lower) in top.iter_mut().zip(bottom) {
            let swapped = ((*upper >> width) ^ *lower) & mask;
            *lower ^= swapped;
            *upper ^= swapped << width;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transposing_moves_bit_c_of_word_r_to_bit_r_of_word_c() {
        let mut matrix: [u64; 64] = std::array::from_fn(|row| {
            super::super::hash::mix(u64::try_from(row).unwrap() ^ 0x5EED)
        });
        let before = matrix;
        transpose(&mut matrix);
        for (row, word) in before.iter().enumerate() {
            for (column, turned) in matrix.iter().enumerate() {
                assert_eq!((word >> column) & 1, (turned >> row) & 1, "row {row}, column {column}");
            }
        }
    }
}
