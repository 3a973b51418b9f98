//! Experiment one: the place where the next channel begins.
//!
//! Two neighbouring pages are read at once. In one chunk they share a channel and wait for each other; over a
//! boundary they do not. Boundaries repeat with the size of the chunk, so each pair votes for the sizes and
//! phases that have a boundary there. Inside a chunk, boundaries of flash pages may be visible as well, as a
//! weaker change of either sign; the coarsest fast boundaries enclose the chunk.

use super::sampler::Sampler;
use super::weigh::{NESTED_PRIOR, Sums, relative, score, verdict};
use crate::Result;

/// The number of pairs between two checks of the result.
const ROUND_PAIRS: usize = 256;
/// The least number of pairs.
const PAIRS_MIN: usize = 512;
/// A posterior this high ends the experiment early.
const ENOUGH: f64 = 0.9995;

/// A grid of chunks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Grid {
    /// The number of pages in a chunk.
    pub pages: u64,
    /// The first page of the first whole chunk of the area.
    pub phase: u64,
}

/// The result of the pairs of neighbours.
#[derive(Clone, Debug)]
pub(super) struct Neighbours {
    /// The grid, if boundaries are visible, with its likeliest phase.
    pub grid: Option<Grid>,
    /// The posterior of its size, or of no grid.
    pub confidence: f64,
    /// The first page and the latency of each pair.
    pub samples: Vec<(u64, u64)>,
}

/// Reads neighbours until it is clear how boundaries repeat, or two fifths of the area are read.
pub(super) fn measure(sampler: &mut Sampler<'_>, pages_max: u64) -> Result<Neighbours> {
    let pairs_max = (sampler.area_pages() / 5) as usize;
    let mut samples = Vec::new();
    loop {
        for _ in 0..ROUND_PAIRS {
            let Some(pair) = sampler.fresh_pair(1) else { break };
            samples.push((pair[0], sampler.pair_ns(pair)?));
        }
        let (grid, confidence) = fit(&samples, pages_max);
        // If nothing is visible, the pages are better spent on the next experiment.
        let pairs_max = if grid.is_some() { pairs_max } else { pairs_max / 2 };
        let is_over = samples.len() + ROUND_PAIRS > pairs_max;
        if is_over || (samples.len() >= PAIRS_MIN && confidence > ENOUGH) {
            return Ok(Neighbours { grid, confidence, samples });
        }
    }
}

/// Returns the grid that best explains the pairs, if one is better than none.
pub(super) fn fit(samples: &[(u64, u64)], pages_max: u64) -> (Option<Grid>, f64) {
    let values = relative(samples.iter().map(|it| it.1));
    let total = Sums::of(values.iter().copied());
    let mut scored = vec![(None, score(total.count, total.rest(), 1, 0.5))];
    let mut phases = Vec::new();
    for pages in 2..=pages_max {
        // By the number of pages between the boundary and the second page of the pair.
        let mut residues = vec![Sums::default(); pages as usize];
        for ((first, _), value) in samples.iter().zip(&values) {
            residues[((first + 1) % pages) as usize].add(*value);
        }
        let prior = 0.5 / (pages_max - 1) as f64;
        let found = best_phase(&total, &residues, prior, &mut scored);
        phases.push((pages, found));
    }
    let (pages, confidence) = verdict(&scored);
    let grid = pages.and_then(|pages| {
        let phase = phases.iter().find(|it| it.0 == pages)?.1?;
        Some(Grid { pages, phase })
    });
    (grid, confidence)
}

/// Scores one chunk size with each phase, with and without boundaries inside; returns the best phase.
fn best_phase(
    total: &Sums,
    residues: &[Sums],
    prior: f64,
    scored: &mut Vec<(Option<u64>, f64)>,
) -> Option<u64> {
    let pages = residues.len();
    let insides: Vec<usize> = (2..pages).filter(|inside| pages.is_multiple_of(*inside)).collect();
    let prior = prior / pages as f64;
    let nested_prior = prior * NESTED_PRIOR / insides.len().max(1) as f64;
    let mut best: Option<(u64, f64)> = None;
    for phase in 0..pages {
        let edge = residues[phase];
        let inner = total.without(&edge);
        if edge.count < 2.5 || inner.count < 2.5 || !inner.is_above(&edge) {
            continue;
        }
        let plain = score(total.count, edge.rest() + inner.rest(), 2, prior);
        scored.push((Some(pages as u64), plain));
        let mut top = plain;
        for inside in &insides {
            let mut middle = Sums::default();
            let places = (phase % inside..pages).step_by(*inside).filter(|place| *place != phase);
            places.for_each(|place| middle.join(&residues[place]));
            let inner = inner.without(&middle);
            if middle.count < 2.5 || inner.count < 2.5 || !middle.is_above(&edge) {
                continue;
            }
            let rest = edge.rest() + middle.rest() + inner.rest();
            let nested = score(total.count, rest, 3, nested_prior);
            scored.push((Some(pages as u64), nested));
            top = top.max(nested);
        }
        if best.is_none_or(|it| top > it.1) {
            best = Some((phase as u64, top));
        }
    }
    best.map(|it| it.0)
}
