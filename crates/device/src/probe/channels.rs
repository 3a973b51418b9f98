//! Experiment two: after how many chunks does the first channel come again?
//!
//! Two chunks that lie `d` apart are read at once, for every `d`. Where they share something they are
//! slow, so latency over distance repeats with the number of channels. What is shared may be more or
//! less (a bus, a die, a plane), and then periods are nested: with 8 buses of 4 planes every eighth
//! distance is slow and every 32nd slowest. The number of channels is the longest period whose
//! multiples are slower than what is left.

use super::sampler::Sampler;
use super::weigh::{Sums, median, relative, score, verdict};
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
    /// Median latency at each distance in chunks, from 1.
    pub by_distance: Vec<u64>,
}

/// A nest of periods, each a multiple of the one before; zeros where there are fewer than three.
type Nest = [usize; 3];

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
        let mut is_dry = false;
        for index in &order {
            match sampler.fresh_pair((*index as u64 + 1) * chunk_pages) {
                Some(pair) => samples[*index].push(sampler.pair_ns(pair)?),
                None => is_dry = true,
            }
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

/// The period that explains the medians over the distances best, if one does better than none.
pub(super) fn fit(samples: &[Vec<u64>]) -> Interleave {
    let by_distance: Vec<u64> = samples.iter().map(|it| median(&mut it.clone())).collect();
    let measured = by_distance.iter().take_while(|it| **it > 0).count();
    let by_distance = by_distance[..measured].to_vec();
    let values = relative(by_distance.iter().copied());
    let total = Sums::of(values.iter().copied());
    if measured < 8 {
        return Interleave { channels: None, confidence: 0.0, groups: Vec::new(), by_distance };
    }
    let mut scored = vec![(None, score(total.count, total.rest(), 1, 0.5))];
    let mut nests: Vec<(Nest, f64)> = Vec::new();
    let firsts = measured / 2 - 1;
    for first in 2..=measured / 2 {
        for nest in nests_of(first, measured / 2) {
            let prior = 0.5 / (firsts * 32) as f64;
            if let Some((channels, score)) = weigh(&values, &nest, prior) {
                scored.push((Some(channels), score));
                nests.push((nest, score));
            }
        }
    }
    let (channels, confidence) = verdict(&scored);
    let groups = channels.map_or_else(Vec::new, |channels| groups(&nests, channels, &values));
    Interleave { channels, confidence, groups, by_distance }
}

/// All nests that begin with that period and end within the limit.
fn nests_of(first: usize, limit: usize) -> Vec<Nest> {
    let multiples = |of: usize| (2..=limit / of).map(move |factor| factor * of);
    let mut nests = vec![[first, 0, 0]];
    for second in multiples(first) {
        nests.push([first, second, 0]);
        nests.extend(multiples(second).map(|third| [first, second, third]));
    }
    nests
}

/// How many channels a nest stands for, and how well it explains the values. The first period must be
/// slower than the rest; a later one that is faster than what it lies in (a plane that overlaps its
/// own operations, say) explains, but is no channel.
fn weigh(values: &[f64], nest: &Nest, prior: f64) -> Option<(u64, f64)> {
    let mut classes = [Sums::default(); 4];
    for (index, value) in values.iter().enumerate() {
        let fits = |period: &&usize| **period > 0 && (index + 1).is_multiple_of(**period);
        classes[nest.iter().take_while(fits).count()].add(*value);
    }
    let depth = nest.iter().filter(|period| **period > 0).count();
    let used = &classes[..=depth];
    if used.iter().any(|class| class.count < 0.5) || used[1].mean() <= used[0].mean() {
        return None;
    }
    let slowest = (1..=depth).rev().find(|level| {
        let below = used[..*level].iter().map(Sums::mean).fold(0.0, f64::max);
        used[*level].mean() > below
    })?;
    let rest = used.iter().map(Sums::rest).sum();
    Some((nest[slowest - 1] as u64, score(values.len() as f64, rest, depth + 1, prior)))
}

/// The shorter periods of the nest that explains the values best.
fn groups(nests: &[(Nest, f64)], channels: u64, values: &[f64]) -> Vec<u64> {
    let fitting = nests.iter().filter(|it| weigh(values, &it.0, 1.0).is_some_and(|w| w.0 == channels));
    let best = fitting.max_by(|a, b| a.1.total_cmp(&b.1));
    let periods = best.iter().flat_map(|it| it.0).map(|period| period as u64);
    periods.filter(|period| (1..channels).contains(period)).collect()
}
