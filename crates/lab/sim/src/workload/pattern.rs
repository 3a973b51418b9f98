//! The distributions of requests over the places of a workload's range.

use super::error::WorkloadError;
use super::prng::{SplitMix64, mix};
use super::zipf::Zipf;

/// A distribution of places. A place is as long as a request.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Pattern {
    /// One after another from a place on, and again from the first after the last.
    Sequential {
        /// The place to begin with.
        from: u64,
    },
    /// Each place with the same probability.
    Uniform,
    /// The place of rank r has a probability proportional to r^-exponent.
    Zipf {
        /// The exponent, above 0 and at most 20; YCSB uses 0.99.
        exponent: f64,
        /// Whether popular places are neighbours.
        spread: Spread,
    },
    /// Some places are hot, equally so, and the others are cold, equally so.
    HotCold {
        /// The number of hot places in a million.
        hot_places_ppm: u32,
        /// The number of requests in a million that go to hot places.
        hot_requests_ppm: u32,
        /// Whether hot places are neighbours.
        spread: Spread,
    },
}

/// The placement of popular places in a skewed pattern.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spread {
    /// The most popular first, at the beginning of the range.
    Together,
    /// Anywhere, by a permutation that the seed determines.
    Scattered,
}

/// A pattern over a number of places.
#[derive(Clone, Debug)]
pub(super) struct Picker {
    places: u64,
    law: Law,
    scatter: Option<Scatter>,
}

#[derive(Clone, Debug)]
enum Law {
    Sequential { next: u64 },
    Uniform,
    Zipf(Zipf),
    HotCold { hot: u64, hot_requests_ppm: u32 },
}

impl Picker {
    /// Creates a picker among `places`, at least 1.
    pub(super) fn new(pattern: Pattern, places: u64, seed: u64) -> Result<Self, WorkloadError> {
        let scatter = |spread| (spread == Spread::Scattered).then(|| Scatter::new(places, seed));
        let (law, scatter) = match pattern {
            Pattern::Sequential { from } => (Law::Sequential { next: first(from, places)? }, None),
            Pattern::Uniform => (Law::Uniform, None),
            Pattern::Zipf { exponent, spread } => {
                (Law::Zipf(Zipf::new(places, usable(exponent)?)), scatter(spread))
            }
            Pattern::HotCold { hot_places_ppm, hot_requests_ppm, spread } => {
                ppm("hot_requests_ppm", hot_requests_ppm)?;
                let hot = hot_places(places, hot_places_ppm)?;
                (Law::HotCold { hot, hot_requests_ppm }, scatter(spread))
            }
        };
        Ok(Self { places, law, scatter })
    }

    pub(super) fn pick(&mut self, rng: &mut SplitMix64) -> u64 {
        let rank = match &mut self.law {
            Law::Sequential { next } => {
                let place = *next;
                *next = (place + 1) % self.places;
                place
            }
            Law::Uniform => rng.below(self.places),
            Law::Zipf(law) => law.draw(rng),
            Law::HotCold { hot, hot_requests_ppm } => {
                if rng.chance(*hot_requests_ppm) {
                    rng.below(*hot)
                } else {
                    *hot + rng.below(self.places - *hot)
                }
            }
        };
        self.scatter.as_ref().map_or(rank, |scatter| scatter.place(rank))
    }
}

fn first(from: u64, places: u64) -> Result<u64, WorkloadError> {
    if from < places {
        return Ok(from);
    }
    Err(WorkloadError::Field {
        field: "first place",
        found: from.to_string(),
        expected: format!("less than the {places} places of its range"),
        remedy: "begin within the range, or make the range longer",
    })
}

fn usable(exponent: f64) -> Result<f64, WorkloadError> {
    if exponent > 0.0 && exponent <= 20.0 {
        return Ok(exponent);
    }
    Err(WorkloadError::Field {
        field: "Zipf exponent",
        found: exponent.to_string(),
        expected: "above 0 and at most 20".into(),
        remedy: "take the uniform pattern where no place is to be more popular than another",
    })
}

/// Checks a probability in millionths.
pub(super) fn ppm(field: &'static str, value: u32) -> Result<u32, WorkloadError> {
    if value <= 1_000_000 {
        return Ok(value);
    }
    Err(WorkloadError::Field {
        field,
        found: value.to_string(),
        expected: "at most 1000000".into(),
        remedy: "it counts millionths: 900000 is 90 %",
    })
}

/// Returns the number of hot places: at least one is hot, and at least one is not.
fn hot_places(places: u64, hot_places_ppm: u32) -> Result<u64, WorkloadError> {
    let share = u128::from(ppm("hot_places_ppm", hot_places_ppm)?);
    let hot = u64::try_from(u128::from(places) * share / 1_000_000).unwrap_or(places);
    if hot > 0 && hot < places {
        return Ok(hot);
    }
    Err(WorkloadError::Field {
        field: "hot_places_ppm",
        found: format!("{hot_places_ppm}, which makes {hot} of {places} places hot"),
        expected: "at least one hot place and one cold".into(),
        remedy: "change it, or take the uniform pattern",
    })
}

/// A permutation of the places: a Feistel network on the next even number of bits, applied until the result
/// is within the range, which takes fewer than four rounds on average.
#[derive(Clone, Debug)]
struct Scatter {
    places: u64,
    half_bits: u32,
    keys: [u64; 4],
}

impl Scatter {
    fn new(places: u64, seed: u64) -> Self {
        let bits = u64::BITS - places.saturating_sub(1).leading_zeros();
        let mut rng = SplitMix64::stream(seed, 0x5CA7);
        let keys = std::array::from_fn(|_| rng.next_u64());
        Self { places, half_bits: bits.div_ceil(2).max(1), keys }
    }

    fn place(&self, rank: u64) -> u64 {
        let mut place = self.shuffle(rank);
        while place >= self.places {
            place = self.shuffle(place);
        }
        place
    }

    fn shuffle(&self, value: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let (mut left, mut right) = (value >> self.half_bits, value & mask);
        for key in self.keys {
            (left, right) = (right, left ^ (mix(right ^ key) & mask));
        }
        left << self.half_bits | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scattering_is_a_permutation() {
        for places in [1, 2, 3, 100, 1000, 4096, 5000] {
            let scatter = Scatter::new(places, 11);
            let mut hit = vec![false; usize::try_from(places).unwrap()];
            (0..places).for_each(|rank| hit[usize::try_from(scatter.place(rank)).unwrap()] = true);
            assert!(hit.iter().all(|&hit| hit), "{places}");
        }
    }

    #[test]
    fn sequential_requests_go_round() {
        let mut picker = Picker::new(Pattern::Sequential { from: 3 }, 5, 0).unwrap();
        let mut rng = SplitMix64::new(0);
        let picked: Vec<u64> = (0..7).map(|_| picker.pick(&mut rng)).collect();
        assert_eq!(picked, [3, 4, 0, 1, 2, 3, 4]);
    }

    #[test]
    fn hot_places_get_their_share_of_the_requests() {
        let pattern = Pattern::HotCold {
            hot_places_ppm: 100_000,
            hot_requests_ppm: 900_000,
            spread: Spread::Together,
        };
        let mut picker = Picker::new(pattern, 1000, 0).unwrap();
        let mut rng = SplitMix64::new(5);
        let hot = (0..100_000).filter(|_| picker.pick(&mut rng) < 100).count();
        // Six standard deviations of a binomial with p = 0.9 are 570.
        assert!(hot.abs_diff(90_000) < 570, "{hot}");
    }

    #[test]
    fn a_pattern_beyond_its_limits_is_refused_with_the_remedy() {
        let all_hot = Pattern::HotCold {
            hot_places_ppm: 1_000_000,
            hot_requests_ppm: 1,
            spread: Spread::Together,
        };
        let flat = Pattern::Zipf { exponent: 0.0, spread: Spread::Together };
        let late = Pattern::Sequential { from: 10 };
        for (pattern, says) in [(all_hot, "one cold"), (flat, "uniform"), (late, "10 places")] {
            let refusal = Picker::new(pattern, 10, 0).unwrap_err().to_string();
            assert!(refusal.contains(says), "{refusal}");
        }
    }
}
