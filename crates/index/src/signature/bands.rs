//! Bands of a MinHash signature, and the best number of bands for a threshold.

use super::PERMUTATIONS_MAX;
use crate::{Error, Result};

/// The division of a signature: a document has a bucket key for each band, and two documents that are equal in one
/// whole band are candidates. With a Jaccard similarity of `s` that happens with the probability `1 - (1 -
/// s^rows)^count`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bands {
    /// The number of bands, which are tables.
    pub count: u32,
    /// The values of the signature in each band.
    pub rows: u32,
}

/// The weights of errors: the area between the probability of being a candidate and the threshold's step, on either
/// side.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ErrorWeights {
    /// Candidates below the threshold.
    pub false_positives: f64,
    /// Pairs above the threshold that are not candidates.
    pub false_negatives: f64,
}

impl Default for ErrorWeights {
    /// Returns equal weights.
    fn default() -> Self {
        Self { false_positives: 0.5, false_negatives: 0.5 }
    }
}

impl Bands {
    /// Returns the bands for a threshold of Jaccard similarity that datasketch's `MinHashLSH` chooses: those with the
    /// least weighted error among all that `permutations` have values for. Takes some ms for 128 permutations.
    ///
    /// # Errors
    /// [`Error::Config`]: a threshold or weights that are not from 0 to 1, weights that do not add up to 1, no
    /// permutations or more than 1024.
    pub fn optimal(threshold: f64, permutations: u32, weights: ErrorWeights) -> Result<Self> {
        check(threshold, permutations, weights)?;
        let below = Quadrature::new(permutations, 0.0, threshold);
        let above = Quadrature::new(permutations, threshold, 1.0);
        let mut best = (f64::INFINITY, Self { count: 1, rows: 1 });
        for count in 1..=permutations {
            for rows in 1..=permutations / count {
                let bands = Self { count, rows };
                let false_positives = below.integral(|s| bands.probability(s));
                let false_negatives = above.integral(|s| 1.0 - bands.probability(s));
                let error = false_positives * weights.false_positives
                    + false_negatives * weights.false_negatives;
                if error < best.0 {
                    best = (error, bands);
                }
            }
        }
        Ok(best.1)
    }

    /// Returns the probability that two documents with this Jaccard similarity are candidates of one another.
    #[must_use]
    pub fn probability(self, similarity: f64) -> f64 {
        let power = |base: f64, exponent: u32| base.powi(exponent.try_into().unwrap_or(i32::MAX));
        1.0 - power(1.0 - power(similarity, self.rows), self.count)
    }
}

fn check(threshold: f64, permutations: u32, weights: ErrorWeights) -> Result<()> {
    let refuse = |field, reason| Err(Error::Config { field, reason });
    if !(0.0..=1.0).contains(&threshold) {
        return refuse("threshold", format!("{threshold}; give a similarity from 0 to 1"));
    }
    if permutations == 0 || permutations > PERMUTATIONS_MAX {
        let reason = format!("{permutations}; give 1 to {}", PERMUTATIONS_MAX);
        return refuse("permutations", reason);
    }
    let ErrorWeights { false_positives, false_negatives } = weights;
    let are_shares = [false_positives, false_negatives].iter().all(|it| (0.0..=1.0).contains(it));
    if !are_shares || (false_positives + false_negatives - 1.0).abs() > 1e-9 {
        let reason = format!(
            "{false_positives} and {false_negatives}; give two from 0 to 1 that are 1 together"
        );
        return refuse("weights", reason);
    }
    Ok(())
}

/// The points and weights of Gauss-Legendre quadrature on an interval. The probability of candidates is a polynomial
/// whose degree is at most the number of permutations, for which these are exact except for rounding.
struct Quadrature(Vec<(f64, f64)>);

impl Quadrature {
    fn new(degree: u32, start: f64, end: f64) -> Self {
        let points = degree / 2 + 1;
        let half = (end - start) / 2.0;
        let moved = |(x, weight): (f64, f64)| (start + half * (1.0 + x), half * weight);
        Self((0..points).map(|point| moved(legendre(point, points))).collect())
    }

    fn integral(&self, value: impl Fn(f64) -> f64) -> f64 {
        self.0.iter().map(|(x, weight)| weight * value(*x)).sum()
    }
}

/// Returns a zero of a Legendre polynomial and its weight, by Newton's method from a close guess.
fn legendre(point: u32, points: u32) -> (f64, f64) {
    let count = f64::from(points);
    let mut x = (std::f64::consts::PI * (f64::from(point) + 0.75) / (count + 0.5)).cos();
    let mut slope = 1.0;
    for _ in 0..8 {
        let (mut last, mut value) = (1.0, x);
        for degree in 2..=points {
            let degree = f64::from(degree);
            let next = ((2.0 * degree - 1.0) * x * value - (degree - 1.0) * last) / degree;
            (last, value) = (value, next);
        }
        slope = count * (x * value - last) / (x * x - 1.0);
        x -= value / slope;
    }
    (x, 2.0 / ((1.0 - x * x) * slope * slope))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quadrature_is_exact_for_polynomials() {
        let quadrature = Quadrature::new(9, 0.25, 1.0);
        let found = quadrature.integral(|x| x.powi(9));
        let expected = (1.0 - 0.25_f64.powi(10)) / 10.0;
        assert!((found - expected).abs() < 1e-14, "{found} {expected}");
        let one = Quadrature::new(1, 0.0, 2.0).integral(|x| x);
        assert!((one - 2.0).abs() < 1e-14, "{one}");
    }

    #[test]
    fn thresholds_and_weights_out_of_range_are_refused_by_name() {
        let even = ErrorWeights::default();
        let refusal = |found: Result<Bands>| found.unwrap_err().to_string();
        assert!(refusal(Bands::optimal(1.5, 128, even)).starts_with("threshold: 1.5; give"));
        assert!(refusal(Bands::optimal(f64::NAN, 128, even)).starts_with("threshold: NaN"));
        assert!(refusal(Bands::optimal(0.5, 0, even)).starts_with("permutations: 0; give 1"));
        let uneven = ErrorWeights { false_positives: 0.9, false_negatives: 0.9 };
        assert!(refusal(Bands::optimal(0.5, 128, uneven)).starts_with("weights: 0.9 and 0.9"));
    }

    #[test]
    fn a_band_of_one_row_is_sure_at_1_and_never_at_0() {
        let bands = Bands { count: 9, rows: 13 };
        assert!(bands.probability(0.0) == 0.0 && bands.probability(1.0) == 1.0);
        assert!(bands.probability(0.8) > bands.probability(0.7));
    }
}
