//! Experiment three: whether a chunk's channel follows its address or the order of writing.
//!
//! The chunks of the area are written again in a random order. Then two kinds of pairs are read: pairs whose addresses
//! are `d` chunks apart, and pairs that are `d` apart in the order of writing. The period of the channels is visible in
//! one of the two.

use super::chunk::Grid;
use super::sampler::Sampler;
use super::weigh::{Sums, middle, relative, score, verdict};
use crate::{Mapping, Result};

/// The least and the most rounds over all distances.
const ROUNDS: (usize, usize) = (3, 32);
/// The least number of distances, in the order in which pairs are compared.
const DISTANCES_MIN: u64 = 16;
/// A posterior this high ends the experiment early.
const ENOUGH: f64 = 0.9995;

/// The result of pairs of rewritten chunks.
#[derive(Clone, Debug)]
pub(super) struct Rewritten {
    /// The mapping, if the period is visible in one of the two.
    pub mapping: Option<Mapping>,
    /// The posterior of the mapping, or of neither.
    pub confidence: f64,
    /// Typical latency at each distance of addresses, from 1.
    pub by_address: Vec<u64>,
    /// Typical latency at each distance in the order of writing, from 1.
    pub by_order: Vec<u64>,
}

/// Latencies at each distance, for the two ways to count it.
#[derive(Clone, Debug)]
struct Samples([Vec<Vec<u64>>; 2]);

/// Rewrites the area and reads pairs until the mapping is clear, or every page was read.
///
/// It tests the shortest period of the pattern: chunks that share anything are a multiple of it apart.
pub(super) fn measure(sampler: &mut Sampler<'_>, grid: Grid, period: u64) -> Result<Rewritten> {
    let chunks = (sampler.area_pages() - grid.phase) / grid.pages;
    let mut order: Vec<u64> = (0..chunks).map(|chunk| grid.phase + chunk * grid.pages).collect();
    let by_address = order.clone();
    sampler.rng.shuffle(&mut order);
    sampler.rewrite(&order, grid.pages)?;

    let distances = (2 * period).max(DISTANCES_MIN).min(chunks / 2) as usize;
    let mut samples = Samples([vec![Vec::new(); distances], vec![Vec::new(); distances]]);
    let mut turns: Vec<(usize, usize)> =
        (0..distances).flat_map(|index| [(0, index), (1, index)]).collect();
    for round in 1..=ROUNDS.1 {
        sampler.rng.shuffle(&mut turns);
        let mut is_dry = true;
        for (way, index) in &turns {
            let starts = if *way == 0 { &by_address } else { &order };
            match fresh(sampler, starts, *index + 1, grid.pages) {
                Some(pair) => samples.0[*way][*index].push(sampler.pair_ns(pair)?),
                None => continue,
            }
            is_dry = false;
        }
        let (mapping, confidence) = fit(&samples, period);
        let is_clear = round >= ROUNDS.0 && confidence > ENOUGH && mapping.is_some();
        if is_dry || is_clear || round == ROUNDS.1 {
            let medians =
                |way: usize| samples.0[way].iter().map(|it| middle(it)).collect::<Vec<_>>();
            let (by_address, by_order) = (medians(0), medians(1));
            return Ok(Rewritten { mapping, confidence, by_address, by_order });
        }
    }
    unreachable!("the last round returns")
}

/// Returns two unread pages at the same place of chunks with this distance in the list.
fn fresh(sampler: &mut Sampler<'_>, starts: &[u64], apart: usize, pages: u64) -> Option<[u64; 2]> {
    let space = starts.len() - apart;
    for _ in 0..64 {
        let index = sampler.rng.below(space as u64) as usize;
        let offset = sampler.rng.below(pages);
        let pair = [starts[index] + offset, starts[index + apart] + offset];
        if !pair.iter().any(|page| sampler.is_read(*page)) {
            return Some(pair);
        }
    }
    None
}

fn fit(samples: &Samples, period: u64) -> (Option<Mapping>, f64) {
    let all = samples.0.iter().flatten().flatten().copied();
    let mut values = relative(all).into_iter();
    let mut classes = [[Sums::default(); 2]; 2];
    for (way, by_distance) in samples.0.iter().enumerate() {
        for (index, list) in by_distance.iter().enumerate() {
            let is_multiple = (index as u64 + 1).is_multiple_of(period);
            let sums = Sums::of(values.by_ref().take(list.len()));
            classes[way][usize::from(is_multiple)].join(&sums);
        }
    }
    let whole = classes.map(|[other, multiple]| {
        let mut both = other;
        both.join(&multiple);
        both
    });
    let count = whole[0].count + whole[1].count;
    let flat = whole.map(|sums| sums.rest());
    let mut scored = vec![(None, score(count, flat[0] + flat[1], 2, 1.0))];
    for (way, mapping) in [(0, Mapping::Lba), (1, Mapping::WriteOrder)] {
        let [other, multiple] = classes[way];
        if multiple.count < 1.5 || other.count < 1.5 || !multiple.is_above(&other) {
            continue;
        }
        let rest = other.rest() + multiple.rest() + flat[1 - way];
        scored.push((Some(mapping), score(count, rest, 3, 1.0)));
    }
    verdict(&scored)
}
