//! Binomial bounds: observed counts against the probable ones.

/// The exponent of the least probability that still counts as chance: 1 in 65 million, as of six deviations.
const EXPONENT_MAX: f64 = 18.0;

/// Trials that may come out wrong, and the number that did.
#[derive(Clone, Copy, Debug)]
pub struct Odds {
    /// The number of wrong answers that come together: two if colliding keys are both looked up.
    clump: f64,
    trials: u64,
    wrong: u64,
    mean: f64,
    /// The possible deviation of the number of fingerprints, in wrong answers: the same keys have the same
    /// collisions all the time, so these deviations add up linearly.
    drift: f64,
}

impl Odds {
    /// Creates odds without trials.
    pub const fn clumped(clump: f64) -> Self {
        Self { clump, trials: 0, wrong: 0, mean: 0.0, drift: 0.0 }
    }

    /// Adds trials against a filter of `keys` different keys.
    pub fn add(&mut self, keys: f64, universe: f64, trials: u64, wrong: u64) {
        let rate = -(-keys / universe).exp_m1();
        // Of n keys, about n^2 / 2U have the fingerprint of another one.
        let spread = (keys * keys / 2.0 / universe).sqrt() / universe;
        self.trials += trials;
        self.wrong += wrong;
        self.mean += trials as f64 * rate;
        self.drift += trials as f64 * spread;
    }

    /// # Panics
    /// Panics if that cannot be chance.
    pub fn assert_bounds(&self, what: &str) {
        let (wrong, mean, drift) = (self.wrong as f64, self.mean, 6.0 * self.drift);
        // The part of the distance that the drift does not explain.
        let wrong =
            if wrong > mean { (wrong - drift).max(mean) } else { (wrong + drift).min(mean) };
        let exponent = exponent(wrong / self.clump, mean / self.clump);
        assert!(
            exponent <= EXPONENT_MAX,
            "{what}: {} of {} where {mean:.1} ± {drift:.1} come by chance",
            self.wrong,
            self.trials
        );
    }
}

/// Returns Chernoff's bound: as many or more (or fewer, below the mean) have a probability of at most e to
/// minus this.
fn exponent(count: f64, mean: f64) -> f64 {
    if count <= 0.0 {
        return mean;
    }
    if mean <= 0.0 {
        return f64::INFINITY;
    }
    count * (count / mean).ln() - count + mean
}

#[test]
fn what_is_chance_passes_and_what_is_not_does_not() {
    let judge = |wrong: u64| {
        let mut odds = Odds::clumped(1.0);
        odds.add(1000.0, 100_000.0, 100_000, wrong);
        std::panic::catch_unwind(|| odds.assert_bounds("answers")).is_ok()
    };
    // 995 are expected, with a deviation of 31, and of 2 more for the collisions that happened.
    let verdicts = [700, 850, 990, 1000, 1150, 1300].map(judge);
    assert_eq!(verdicts, [false, true, true, true, true, false]);
    assert!(exponent(6.0, 0.5) < EXPONENT_MAX && exponent(13.0, 0.5) > EXPONENT_MAX);
    assert!(exponent(0.0, 17.0) < EXPONENT_MAX && exponent(0.0, 19.0) > EXPONENT_MAX);
}
