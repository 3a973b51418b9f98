//! The curve of a family: the probability that two documents are candidates, by how near they are.

use super::Family;

/// Steps of an integral over the cells of a line; the error is below 1e-9.
const STEPS: u32 = 256;

/// The number of standard deviations beyond which the normal distribution is negligible.
const DEVIATIONS_MAX: f64 = 8.0;

impl Family {
    /// Returns the probability that two documents share a bucket, predicted from the family's parameters.
    ///
    /// `at` is the nearness of the documents in the family's measure: a Jaccard similarity for MinHash, the number of
    /// differing bits for SimHash, a Euclidean distance for p-stable hashes. A SimHash's bits are assumed to differ
    /// anywhere with the same probability. For p-stable hashes this applies to lookups without probes; those with
    /// probes find more.
    #[must_use]
    pub fn candidate_probability(&self, at: f64) -> f64 {
        match *self {
            Self::MinHash { bands, .. } => bands.probability(at.clamp(0.0, 1.0)),
            Self::SimHash { bits, .. } => {
                let differ = at.round().clamp(0.0, bits.count().into()) as usize;
                shares_part(bits.count(), self.tables(), differ)
            }
            Self::PStable { tables, projections, width, .. } => {
                let power = |base: f64, exponent: u32| base.powi(exponent.cast_signed());
                let cells = power(shares_cell(at / f64::from(width)), projections);
                1.0 - power(1.0 - cells, tables)
            }
        }
    }
}

/// Returns the probability that one of `parts` of a signature has none of the differing bits.
///
/// It counts the ways in which all parts have one, with `ways[n]` for n bits of the parts so far.
fn shares_part(bits: u32, parts: u32, differ: usize) -> f64 {
    let mut ways = vec![0.0; bits as usize + 1];
    ways[0] = 1.0;
    let mut seen = 0;
    for part in 0..parts {
        let length = ((part + 1) * bits / parts - part * bits / parts) as usize;
        let choices = choices(length);
        let mut next = vec![0.0; ways.len()];
        for (before, count) in ways.iter().enumerate().take(seen + 1) {
            for (more, of_part) in choices.iter().enumerate().skip(1) {
                next[before + more] += count * of_part;
            }
        }
        (ways, seen) = (next, seen + length);
    }
    (1.0 - ways[differ] / choices(bits as usize)[differ]).max(0.0)
}

/// Returns the number of ways to choose 0, 1, 2, ... of `count`.
fn choices(count: usize) -> Vec<f64> {
    let mut row = vec![1.0];
    for number in 0..count {
        row.push(row[number] * (count - number) as f64 / (number + 1) as f64);
    }
    row
}

/// Returns the probability that two vectors are in one cell of a line, by their distance in cells: their positions
/// differ by a normally distributed number, and a difference of `d` cells, less than one, leaves them together with the
/// probability `1 - d` (Datar and others, SCG'04, section 3.2). The integral uses Simpson's rule.
fn shares_cell(cells: f64) -> f64 {
    if cells <= 0.0 {
        return 1.0;
    }
    if !cells.is_finite() {
        return 0.0;
    }
    let end = (1.0 / cells).min(DEVIATIONS_MAX);
    let density = |x: f64| (-x * x / 2.0).exp() * (2.0 / std::f64::consts::PI).sqrt();
    let value = |x: f64| density(x) * (1.0 - x * cells);
    let step = end / f64::from(STEPS);
    let weighted = |number: u32| {
        let weight = match number {
            0 | STEPS => 1.0,
            odd if odd % 2 == 1 => 4.0,
            _ => 2.0,
        };
        weight * value(f64::from(number) * step)
    };
    (0..=STEPS).map(weighted).sum::<f64>() * step / 3.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::signature::{Bands, Scheme, SimHashBits};

    #[test]
    fn a_simhash_finds_all_within_its_distance_and_then_fewer_with_each_bit() {
        for bits in [SimHashBits::Bits64, SimHashBits::Bits128] {
            let family = Family::SimHash { bits, distance: 3 };
            let at = |bits: u32| family.candidate_probability(f64::from(bits));
            assert!((0..=3).all(|bits| at(bits) == 1.0));
            let falling: Vec<f64> = (3..=bits.count()).map(at).collect();
            assert!(falling.windows(2).all(|it| it[0] >= it[1] - 1e-12), "{falling:?}");
            assert!(at(bits.count()) < 1e-12);
        }
        // Four differing bits, one in each part of 16: 16^4 of C(64, 4) ways.
        let family = Family::SimHash { bits: SimHashBits::Bits64, distance: 3 };
        let expected = 1.0 - 65_536.0 / 635_376.0;
        assert!((family.candidate_probability(4.0) - expected).abs() < 1e-12);
    }

    #[test]
    fn vectors_share_cells_as_the_formula_says() {
        // 1 - 2 N(-1) - 2 / (sqrt(2 pi)) (1 - exp(-1/2)), with N(-1) = 0.158655253931.
        let expected = 1.0 - 2.0 * 0.158_655_253_931 - 0.797_884_560_803 * 0.393_469_340_287;
        assert!((shares_cell(1.0) - expected).abs() < 1e-9, "{} {expected}", shares_cell(1.0));
        let (dimensions, tables, projections, width, seed) = (2, 10, 8, 4.0, 1);
        let family = Family::PStable { dimensions, tables, projections, width, seed };
        assert!(family.candidate_probability(0.0) == 1.0);
        let found: Vec<f64> = (0..20).map(|it| family.candidate_probability(it.into())).collect();
        assert!(found.windows(2).all(|it| it[0] > it[1]), "{found:?}");
        assert!(found[1] > 0.8 && found[19] < 0.01, "{found:?}");
    }

    #[test]
    fn vectors_that_were_drawn_are_candidates_about_as_often_as_predicted() {
        let (dimensions, tables, projections, width, seed) = (16, 4, 3, 4.0, 7);
        let family = Family::PStable { dimensions, tables, projections, width, seed };
        let sketcher = family.sketcher().unwrap();
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 40) as f32 / (1 << 24) as f32 - 0.5
        };
        let keys_of = |vector: &[f32]| {
            let mut keys = Vec::new();
            let signature = sketcher.of_vector(vector).unwrap();
            sketcher.bucket_keys(&signature, &mut keys).unwrap();
            keys
        };
        let (mut shared, rounds, distance) = (0.0, 3000, 2.5);
        for _ in 0..rounds {
            let left: Vec<f32> = (0..16).map(|_| 100.0 * next()).collect();
            let step: Vec<f32> = (0..16).map(|_| next()).collect();
            let length = step.iter().map(|it| it * it).sum::<f32>().sqrt();
            let moved = left.iter().zip(&step).map(|(a, b)| a + b * distance / length);
            let (left, right) = (keys_of(&left), keys_of(&moved.collect::<Vec<f32>>()));
            shared += f64::from(u8::from(left.iter().zip(right).any(|(a, b)| *a == b)));
        }
        let (found, expected) = (shared / f64::from(rounds), family.candidate_probability(2.5));
        // The lines are the same in all rounds, and there are twelve.
        assert!((found - expected).abs() < 0.15, "{found}, predicted {expected}");
    }

    #[test]
    fn a_minhash_has_the_curve_of_its_bands() {
        let bands = Bands { count: 9, rows: 13 };
        let family = Family::MinHash { permutations: 128, bands, scheme: Scheme::Fast, seed: 1 };
        // A power of a constant may be rounded differently.
        let difference = family.candidate_probability(0.8) - bands.probability(0.8);
        assert!(difference.abs() < 1e-12, "{difference}");
    }
}
