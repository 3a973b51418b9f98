//! Experiment two: after how many chunks does the first channel come again?
//!
//! Two chunks that lie `d` apart are read at once, for every `d`. Where they share something they are
//! slow, so latency over distance repeats with the number of channels. What is shared may be more or
//! less (a bus, a die, a plane), and then periods are nested: with 8 buses of 4 planes every eighth
//! distance is slow and every 32nd slowest. The number of channels is the longest period whose
//! multiples are slower than what is left.

use super::sampler::Sampler;
use super::weigh::{NESTED_PRIOR, Sums, middle, relative, score, verdict};
use crate::Result;

/// Rounds over all distances at least, before the result is looked at.
const ROUNDS_MIN: usize = 3;
/// Rounds that show nothing before the experiment gives up.
const ROUNDS_IN_VAIN: usize = 8;
/// Rounds at most.
const ROUNDS_MAX: usize = 32;
/// This much posterior ends the experiment early.
const ENOUGH: f64 = 0.9995;

/// What pairs of chunks say.
#[derive(Clone, Debug)]
pub(super) struct Interleave {
    /// The number of channels, if a period shows.
    pub channels: Option<u64>,
    /// The posterior of that number, or of there being none.
    pub confidence: f64,
    /// Shorter periods inside, from the shortest: buses, where channels share them.
    pub groups: Vec<u64>,
    /// Typical latency at each distance in chunks, from 1.
    pub by_distance: Vec<u64>,
}

/// A nest of periods, each a multiple of the one before; zeros where there are fewer than three.
type Nest = [usize; 3];
/// The relative latency of a distance, and its weight.
type Typical = (f64, f64);

/// Reads pairs of chunks until a period is clear, or no page is left unread.
pub(super) fn measure(
    sampler: &mut Sampler<'_>,
    chunk_pages: u64,
    channels_max: u64,
) -> Result<Interleave> {
    let room = sampler.area_pages() / 2 / chunk_pages;
    let distances = room.min(2 * channels_max + 2) as usize;
    let mut samples: Vec<Vec<u64>> = vec![Vec::new(); distances];
    let mut order: Vec<usize> = (0..distances).collect();
    for round in 1..=ROUNDS_MAX {
        // In another order each time, so that a device that grows slower does not look like a period.
        sampler.dice.shuffle(&mut order);
        let mut is_dry = true;
        for index in &order {
            match sampler.fresh_pair((*index as u64 + 1) * chunk_pages) {
                Some(pair) => samples[*index].push(sampler.pair_ns(pair)?),
                None => continue,
            }
            is_dry = false;
        }
        let found = fit(&samples);
        let is_clear = round >= ROUNDS_MIN && found.confidence > ENOUGH;
        let is_vain = round >= ROUNDS_IN_VAIN && found.channels.is_none();
        if is_dry || is_vain || (is_clear && found.channels.is_some()) {
            return Ok(found);
        }
    }
    Ok(fit(&samples))
}

/// The period that explains the typical latencies over the distances best, if one does better than none.
pub(super) fn fit(samples: &[Vec<u64>]) -> Interleave {
    let by_distance: Vec<u64> = samples.iter().map(|it| middle(it)).collect();
    let counts = samples.iter().map(|it| it.len() as f64);
    let mean_count = counts.clone().sum::<f64>() / samples.len().max(1) as f64;
    // Distances of which there are more samples are known better.
    let values = relative(by_distance.iter().copied()).into_iter();
    let values: Vec<Typical> = values.zip(counts.map(|count| count / mean_count)).collect();
    let distances = values.len();
    if distances < 8 || mean_count == 0.0 {
        return Interleave { channels: None, confidence: 0.0, groups: Vec::new(), by_distance };
    }
    let [total, ..] = classes(&values, &[0; 3]);
    let mut scored = vec![(None, score(distances as f64, total.rest(), 1, 0.5))];
    let mut nests: Vec<(Nest, u64, f64)> = Vec::new();
    let limit = distances / 2;
    for first in 2..=limit {
        for (nest, share) in nests_of(first, limit) {
            let prior = 0.5 / (limit - 1) as f64 * share;
            if let Some((channels, score)) = weigh(&values, &nest, prior) {
                scored.push((Some(channels), score));
                nests.push((nest, channels, score));
            }
        }
    }
    let (channels, confidence) = verdict(&scored);
    let groups = channels.map_or_else(Vec::new, |channels| groups(&nests, channels));
    Interleave { channels, confidence, groups, by_distance }
}

/// All nests that begin with that period and end within the limit, and their shares of its prior.
fn nests_of(first: usize, limit: usize) -> Vec<(Nest, f64)> {
    let multiples = |of: usize| (2..=limit / of).map(move |factor| factor * of);
    let share = |of: usize| NESTED_PRIOR / (limit / of).max(1) as f64;
    let mut nests = vec![([first, 0, 0], 1.0)];
    for second in multiples(first) {
        nests.push(([first, second, 0], share(first)));
        let thirds = multiples(second).map(|third| [first, second, third]);
        nests.extend(thirds.map(|nest| (nest, share(first) * share(second))));
    }
    nests
}

/// The distances by how many of the nest's periods they are multiples of.
fn classes(values: &[Typical], nest: &Nest) -> [Sums; 4] {
    let mut classes = [Sums::default(); 4];
    for (index, (value, weight)) in values.iter().enumerate() {
        let fits = |period: &&usize| **period > 0 && (index + 1).is_multiple_of(**period);
        classes[nest.iter().take_while(fits).count()].add_weighted(*value, *weight);
    }
    classes
}

/// How many channels a nest stands for, and how well it explains the values. The first period must be
/// slower than the rest; a later one that is faster than what it lies in (a plane that overlaps its
/// own operations, say) explains, but is no channel.
fn weigh(values: &[Typical], nest: &Nest, prior: f64) -> Option<(u64, f64)> {
    let classes = classes(values, nest);
    let depth = nest.iter().filter(|period| **period > 0).count();
    let used = &classes[..=depth];
    if used.iter().any(|class| class.count <= 0.0) || !used[1].is_above(&used[0]) {
        return None;
    }
    let is_slowest =
        |level: &usize| used[..*level].iter().all(|below| used[*level].is_above(below));
    let slowest = (1..=depth).rev().find(is_slowest)?;
    let rest = used.iter().map(Sums::rest).sum();
    Some((nest[slowest - 1] as u64, score(values.len() as f64, rest, depth + 1, prior)))
}

/// The shorter periods of the nest that explains the values best.
fn groups(nests: &[(Nest, u64, f64)], channels: u64) -> Vec<u64> {
    let fitting = nests.iter().filter(|it| it.1 == channels);
    let best = fitting.max_by(|a, b| a.2.total_cmp(&b.2));
    let periods = best.iter().flat_map(|it| it.0).map(|period| period as u64);
    periods.filter(|period| (1..channels).contains(period)).collect()
}
