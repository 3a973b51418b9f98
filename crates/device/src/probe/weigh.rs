//! The comparison of explanations of timings.
//!
//! An explanation sorts the samples into classes and assigns each class one latency. The sum of squared deviations from
//! the means of the classes remains unexplained. Explanations are compared by the Bayesian information criterion, so
//! that one with more classes must earn them, and every one shares its prior with its rivals: among thousands some fit
//! noise by luck. The confidence in an answer is the posterior of all explanations that give it.

/// The part of a latency below which deviations count as noise even if a device has none.
const NOISE_FLOOR: f64 = 0.005;
/// The highest confidence: the model of the noise is not better.
const CONFIDENCE_MAX: f64 = 0.9999;

/// The part of a latency by which classes must differ; classes that differ by less count as one.
const CONTRAST_MIN: f64 = 0.02;
/// The prior of a pattern with another pattern inside, relative to a plain one.
pub(super) const NESTED_PRIOR: f64 = 0.01;

/// Count, sum and sum of squares of some samples.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Sums {
    pub count: f64,
    pub sum: f64,
    pub squares: f64,
}

impl Sums {
    pub fn add(&mut self, value: f64) {
        self.add_weighted(value, 1.0);
    }

    /// Adds a mean that counts as `samples` samples.
    pub fn add_weighted(&mut self, value: f64, count: f64) {
        self.join(&Self { count, sum: value * count, squares: value * value * count });
    }

    pub fn join(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.squares += other.squares;
    }

    pub fn without(&self, other: &Self) -> Self {
        Self {
            count: self.count - other.count,
            sum: self.sum - other.sum,
            squares: self.squares - other.squares,
        }
    }

    pub fn of(values: impl Iterator<Item = f64>) -> Self {
        values.fold(Self::default(), |mut sums, value| {
            sums.add(value);
            sums
        })
    }

    /// Returns whether this class is clearly slower than the other.
    pub fn is_above(&self, other: &Self) -> bool {
        self.mean() > other.mean() + CONTRAST_MIN
    }

    /// Returns whether this class is clearly slower or faster than the other.
    pub fn differs(&self, other: &Self) -> bool {
        self.is_above(other) || other.is_above(self)
    }

    pub fn mean(&self) -> f64 {
        self.sum / self.count
    }

    /// Returns what the mean leaves unexplained.
    pub fn rest(&self) -> f64 {
        if self.count < 0.5 { 0.0 } else { (self.squares - self.sum * self.mean()).max(0.0) }
    }
}

/// Returns the log likelihood of `samples` relative latencies under these classes.
pub(super) fn score(samples: f64, rest: f64, classes: usize, prior: f64) -> f64 {
    let variance = (rest / samples).max(NOISE_FLOOR * NOISE_FLOOR);
    -samples / 2.0 * variance.ln() - classes as f64 / 2.0 * samples.ln() + prior.ln()
}

/// An explanation of means whose errors are known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Explained {
    /// Squared deviations over squared errors.
    pub rest: f64,
    pub classes: usize,
    pub prior: f64,
}

/// Scores explanations of the means. If even the best leaves more than the errors allow, the errors are scaled up.
pub(super) fn scores(explained: &[Explained], means: f64) -> Vec<f64> {
    let least = explained.iter().map(|it| it.rest).fold(f64::INFINITY, f64::min);
    let excess = (least / means).max(1.0);
    let score = |it: &Explained| {
        -it.rest / excess / 2.0 - it.classes as f64 / 2.0 * means.ln() + it.prior.ln()
    };
    explained.iter().map(score).collect()
}

/// Returns the mean of some values, and its weight: one over its squared error. `usual` is the variance that is usual
/// among such values; a few values alone do not show it.
pub(super) fn typical(values: &[f64], usual: f64) -> (f64, f64) {
    const USUAL_COUNTS: f64 = 4.0;
    let sums = Sums::of(values.iter().copied());
    let variance = (sums.rest() + USUAL_COUNTS * usual) / (sums.count - 1.0 + USUAL_COUNTS);
    (sums.mean(), 1.0 / (variance / sums.count + NOISE_FLOOR * NOISE_FLOOR))
}

/// Returns the answer with the highest posterior of those scored, and that posterior.
///
/// Scores of equal answers are joined. The slice must not be empty.
pub(super) fn verdict<T: Copy + PartialEq>(scored: &[(T, f64)]) -> (T, f64) {
    let top = scored.iter().map(|it| it.1).fold(f64::NEG_INFINITY, f64::max);
    let mut joined: Vec<(T, f64)> = Vec::new();
    for (answer, score) in scored {
        let weight = (score - top).exp();
        match joined.iter_mut().find(|it| it.0 == *answer) {
            Some(known) => known.1 += weight,
            None => joined.push((*answer, weight)),
        }
    }
    let total: f64 = joined.iter().map(|it| it.1).sum();
    let best = joined.iter().max_by(|a, b| a.1.total_cmp(&b.1)).expect("something was scored");
    (best.0, (best.1 / total).min(CONFIDENCE_MAX))
}

/// Returns the middle value; of an even number of values the mean of the two in the middle.
pub(super) fn median(values: &mut [u64]) -> u64 {
    values.sort_unstable();
    match values.len() {
        0 => 0,
        count if count % 2 == 1 => values[count / 2],
        count => values[count / 2 - 1].midpoint(values[count / 2]),
    }
}

/// Returns the mean of the middle half: nearly as precise as the mean if noise is mild, and nearly as robust to
/// outliers as the median; 0 for no values.
pub(super) fn middle(values: &[u64]) -> u64 {
    let mut values = values.to_vec();
    values.sort_unstable();
    let cut = values.len() / 4;
    let half = &values[cut..values.len() - cut];
    half.iter().sum::<u64>() / half.len().max(1) as u64
}

/// Returns the logarithms of latencies over their median: noise grows with the latency it disturbs, its logarithm does
/// not. Outliers are clamped: a pair that shares everything takes at most twice as long as one that shares nothing.
pub(super) fn relative(values: impl Iterator<Item = u64> + Clone) -> Vec<f64> {
    let middle = median(&mut values.clone().collect::<Vec<_>>()).max(1) as f64;
    values.map(|value| (value as f64 / middle).clamp(0.4, 2.5).ln()).collect()
}
