//! Experiment two: the number of chunks after which the first channel repeats.
//!
//! Two chunks with the distance `d` are read at once, for every `d`. If they share something they are slow,
//! so latency over distance repeats with the number of channels. They may share more or less (a bus, a die, a
//! plane), and then periods are nested: with 8 buses of 4 planes every eighth distance is slow, and every
//! 32nd slow in another way. The number of channels is the period of the whole pattern, 32; the 8 is a group.

use super::sampler::Sampler;
use super::weigh::{Explained, NESTED_PRIOR, Sums, middle, relative, scores, typical, verdict};
use crate::Result;

/// The least number of distances: fewer prove nothing.
const DISTANCES_MIN: usize = 8;
/// The rounds over all distances after which the result is checked.
const LOOKS: [usize; 6] = [4, 6, 8, 12, 16, 24];
/// The least rounds if some distances have several latencies: two chunks may share a die or only a bus,
/// depending on their place in a round of pages.
const ROUNDS_MIXED: usize = 16;
/// Rounds without a result before the experiment stops.
const USELESS_ROUNDS_MAX: usize = 8;
/// The most rounds.
const ROUNDS_MAX: usize = 32;
/// A posterior this high ends the experiment early.
const ENOUGH: f64 = 0.9995;

/// The factor by which an arbitrary repeating pattern is less likely than a nest.
const FREE_PRIOR: f64 = 0.1;

/// The result of pairs of chunks.
#[derive(Clone, Debug)]
pub(super) struct Interleave {
    /// The number of channels, if a period shows.
    pub channels: Option<u64>,
    /// The posterior of that number, or of no period.
    pub confidence: f64,
    /// Shorter periods inside, from the shortest: buses, if channels share them.
    pub groups: Vec<u64>,
    /// Typical latency at each distance in chunks, from 1.
    pub by_distance: Vec<u64>,
}

/// The relative latency of a distance, and its weight.
type Typical = (f64, f64);

/// The dependency of latency on distance: all distances that are not multiples of the first period are alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Pattern {
    /// Multiples of the period are slower.
    Plain(usize),
    /// Multiples of the second are different again.
    Nest2(usize, usize),
    /// Multiples of the third too.
    Nest3(usize, usize, usize),
    /// Multiples of the first period differ in any way, but repeat with the second.
    Free(usize, usize),
}

impl Pattern {
    /// Returns the period of the whole, and the shorter ones from the shortest; zeros if there are fewer.
    fn periods(self) -> (usize, [usize; 2]) {
        match self {
            Self::Plain(period) => (period, [0, 0]),
            Self::Nest2(first, period) | Self::Free(first, period) => (period, [first, 0]),
            Self::Nest3(first, second, period) => (period, [first, second]),
        }
    }

    fn classes(self) -> usize {
        match self {
            Self::Plain(_) => 2,
            Self::Nest2(..) => 3,
            Self::Nest3(..) => 4,
            Self::Free(first, period) => 2 + period / first / 2,
        }
    }

    /// Returns the class of a distance; 0 is that of chunks that share nothing.
    fn class(self, distance: usize) -> usize {
        let is_multiple = |of: usize| usize::from(distance.is_multiple_of(of));
        match self {
            Self::Plain(period) => is_multiple(period),
            Self::Nest2(first, second) => is_multiple(first) + is_multiple(second),
            Self::Nest3(first, second, third) => {
                is_multiple(first) + is_multiple(second) + is_multiple(third)
            }
            Self::Free(first, _) if !distance.is_multiple_of(first) => 0,
            // Before and after a whole period the class is the same.
            Self::Free(first, period) => {
                let (turn, turns) = (distance / first % (period / first), period / first);
                1 + turn.min(turns - turn)
            }
        }
    }
}

/// Reads pairs of chunks until a period is clear, or every page was read.
pub(super) fn measure(
    sampler: &mut Sampler<'_>,
    chunk_pages: u64,
    channels_max: u64,
) -> Result<Interleave> {
    let space = sampler.area_pages() / 2 / chunk_pages;
    let distances = space.min(2 * channels_max + 2) as usize;
    let mut samples: Vec<Vec<u64>> = vec![Vec::new(); distances];
    let mut order: Vec<usize> = (0..distances).collect();
    for round in 1..=ROUNDS_MAX {
        // In a different order each time, so that a device that gets slower does not look like a period.
        sampler.rng.shuffle(&mut order);
        let mut is_dry = true;
        for index in &order {
            match sampler.fresh_pair((*index as u64 + 1) * chunk_pages) {
                Some(pair) => samples[*index].push(sampler.pair_ns(pair)?),
                None => continue,
            }
            is_dry = false;
        }
        let is_early = round < ROUNDS_MIXED && is_mixed(&samples);
        if !is_dry && (is_early || !LOOKS.contains(&round)) {
            continue;
        }
        let found = fit(&samples);
        let is_useless = round >= USELESS_ROUNDS_MAX && found.channels.is_none();
        if is_dry || is_useless || (found.confidence > ENOUGH && found.channels.is_some()) {
            return Ok(found);
        }
    }
    Ok(fit(&samples))
}

/// Returns the period that best explains the typical latencies over the distances, if one is better than none.
pub(super) fn fit(samples: &[Vec<u64>]) -> Interleave {
    let by_distance: Vec<u64> = samples.iter().map(|it| middle(it)).collect();
    if samples.len() < DISTANCES_MIN || samples.iter().any(Vec::is_empty) {
        return Interleave { channels: None, confidence: 0.0, groups: Vec::new(), by_distance };
    }
    let values = typicals(samples);
    let total = values.iter().fold(Sums::default(), |mut total, (value, weight)| {
        total.add_weighted(*value, *weight);
        total
    });
    let mut patterns = vec![None];
    let mut explained = vec![Explained { rest: total.rest(), classes: 1, prior: 0.5 }];
    let limit = values.len() / 2;
    for first in 2..=limit {
        for (pattern, share) in patterns_of(first, limit) {
            if let Some((rest, classes)) = explain(&values, pattern) {
                let prior = 0.5 / (limit - 1) as f64 * share;
                patterns.push(Some(pattern));
                explained.push(Explained { rest, classes, prior });
            }
        }
    }
    let scored: Vec<(Option<Pattern>, f64)> =
        patterns.into_iter().zip(scores(&explained, values.len() as f64)).collect();
    let period = |pattern: Pattern| pattern.periods().0 as u64;
    let answers: Vec<_> = scored.iter().map(|it| (it.0.map(period), it.1)).collect();
    let (channels, confidence) = verdict(&answers);
    let fitting = scored.iter().filter(|it| it.0.map(period) == channels);
    let best = fitting.max_by(|a, b| a.1.total_cmp(&b.1)).and_then(|it| it.0);
    let groups = best.map_or([0; 2], |pattern| pattern.periods().1);
    let groups = groups.iter().filter(|period| **period > 0).map(|period| *period as u64);
    Interleave { channels, confidence, groups: groups.collect(), by_distance }
}

/// Returns the mean latency of each distance, and its precision.
fn typicals(samples: &[Vec<u64>]) -> Vec<Typical> {
    let values = by_distance(samples);
    let spread: f64 = values.iter().map(|it| Sums::of(it.iter().copied()).rest()).sum();
    let freedom: usize = values.iter().map(|it| it.len() - 1).sum();
    let usual = spread / freedom.max(1) as f64;
    values.iter().map(|it| typical(it, usual)).collect()
}

fn by_distance(samples: &[Vec<u64>]) -> Vec<Vec<f64>> {
    let mut values = relative(samples.iter().flatten().copied()).into_iter();
    samples.iter().map(|it| values.by_ref().take(it.len()).collect()).collect()
}

/// Returns whether latencies at some distances differ much more than at most distances.
fn is_mixed(samples: &[Vec<u64>]) -> bool {
    let spread = |it: &Vec<f64>| Sums::of(it.iter().copied()).rest() / it.len().max(1) as f64;
    let mut spreads: Vec<f64> = by_distance(samples).iter().map(spread).collect();
    spreads.sort_unstable_by(f64::total_cmp);
    let mean = spreads.iter().sum::<f64>() / spreads.len().max(1) as f64;
    spreads.get(spreads.len() / 2).is_some_and(|middle| mean > 2.0 * middle + 1e-4)
}

/// Returns all patterns with this first period and no period longer than the limit, with their shares of its prior.
fn patterns_of(first: usize, limit: usize) -> Vec<(Pattern, f64)> {
    let multiples = |of: usize| (2..=limit / of).map(move |factor| factor * of);
    let share = |of: usize| NESTED_PRIOR / (limit / of).max(1) as f64;
    let mut patterns = vec![(Pattern::Plain(first), 1.0)];
    for second in multiples(first) {
        patterns.push((Pattern::Nest2(first, second), share(first)));
        if second > 2 * first {
            patterns.push((Pattern::Free(first, second), share(first) * FREE_PRIOR));
        }
        let thirds = multiples(second).map(|third| Pattern::Nest3(first, second, third));
        patterns.extend(thirds.map(|pattern| (pattern, share(first) * share(second))));
    }
    patterns
}

/// Returns what a pattern leaves unexplained, and its classes; `None` if it does not apply: chunks that share something
/// must be slower than those that share nothing.
fn explain(values: &[Typical], pattern: Pattern) -> Option<(f64, usize)> {
    let mut classes = vec![Sums::default(); pattern.classes()];
    for (index, (value, weight)) in values.iter().enumerate() {
        classes[pattern.class(index + 1)].add_weighted(*value, *weight);
    }
    if classes.iter().any(|class| class.count <= 0.0) {
        return None;
    }
    let mut shared = Sums::default();
    classes[1..].iter().for_each(|class| shared.join(class));
    if !shared.is_above(&classes[0]) || !is_least(pattern, &classes) {
        return None;
    }
    let rest = classes.iter().map(Sums::rest).sum();
    Some((rest, classes.len()))
}

/// Returns whether no shorter period is enough. The longest must make a difference.
fn is_least(pattern: Pattern, classes: &[Sums]) -> bool {
    match pattern {
        Pattern::Plain(_) => true,
        Pattern::Nest2(..) | Pattern::Nest3(..) => {
            classes[classes.len() - 1].differs(&classes[classes.len() - 2])
        }
        Pattern::Free(first, period) => {
            let turns = period / first;
            let of = |turn: usize| &classes[pattern.class((turn % turns + turns) * first)];
            let repeats =
                |shorter: &usize| (0..turns).all(|turn| !of(turn).differs(of(turn + shorter)));
            !(1..turns).filter(|shorter| turns.is_multiple_of(*shorter)).any(|it| repeats(&it))
        }
    }
}
