//! Hashes for Euclidean distances: a vector's projections on random lines, cut into cells of one width. Near vectors
//! are usually in the same cells; the adjacent cells are worth searching too, nearest first (multi-probe, VLDB'07,
//! section 4.4).

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::numbers::SplitMix;

/// The lines of a family.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    /// The directions, one after another, each divided by the width of a cell.
    directions: Vec<f32>,
    /// The start of the cells of each line: 0 to 1 cells from the origin.
    offsets: Vec<f32>,
    dimensions: usize,
}

impl Lines {
    pub(super) fn new((dimensions, lines): (usize, usize), width: f32, seed: u64) -> Self {
        let mut numbers = SplitMix(seed);
        let width = f64::from(width);
        let offsets = (0..lines).map(|_| numbers.unit() as f32).collect();
        let directions =
            (0..lines * dimensions).map(|_| (numbers.normal() / width) as f32).collect();
        Self { directions, offsets, dimensions }
    }

    /// Returns the position of a vector on each line, in cells.
    pub(super) fn places(&self, vector: &[f32]) -> Vec<f32> {
        let lines = self.directions.chunks_exact(self.dimensions);
        let place = |(line, offset): (&[f32], &f32)| {
            let product: f64 =
                line.iter().zip(vector).map(|(a, x)| f64::from(*a) * f64::from(*x)).sum();
            (product + f64::from(*offset)) as f32
        };
        lines.zip(&self.offsets).map(place).collect()
    }
}

/// Estimates the distance of two vectors from their positions on each line.
pub(super) fn distance(left: &[f32], right: &[f32], width: f32) -> f64 {
    let square = |(a, b): (&f32, &f32)| (f64::from(*a) - f64::from(*b)).powi(2);
    let sum: f64 = left.iter().zip(right).map(square).sum();
    (sum / left.len().max(1) as f64).sqrt() * f64::from(width)
}

/// Returns the cells of one table's positions.
pub(super) fn cells(places: &[f32]) -> Vec<i32> {
    places.iter().map(|place| place.floor() as i32).collect()
}

/// A step to the adjacent cell on one line, and its squared length.
#[derive(Clone, Copy, Debug)]
struct Step {
    line: usize,
    up: bool,
    cost: f64,
}

/// A combination of steps by their ranks, which ascend.
#[derive(PartialEq, Debug)]
struct Steps {
    cost: f64,
    ranks: Vec<usize>,
}

impl Eq for Steps {}

impl PartialOrd for Steps {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Steps {
    /// The cheapest is the greatest, since a heap returns the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.cost.total_cmp(&self.cost).then_with(|| other.ranks.cmp(&self.ranks))
    }
}

/// Returns the cells around those of one table, nearest first, at most `count`.
pub(super) fn probes(places: &[f32], count: usize) -> Vec<Vec<i32>> {
    let home = cells(places);
    let steps = ranked_steps(places);
    let of =
        |ranks: Vec<usize>| Steps { cost: ranks.iter().map(|rank| steps[*rank].cost).sum(), ranks };
    let mut waiting = BinaryHeap::from([of(vec![0])]);
    let mut found = Vec::new();
    while found.len() < count {
        let Some(Steps { ranks, .. }) = waiting.pop() else { break };
        let last = ranks.last().copied().unwrap_or_default();
        if last + 1 < steps.len() {
            let mut moved = ranks.clone();
            moved.pop();
            moved.push(last + 1);
            let longer = ranks.iter().copied().chain([last + 1]).collect();
            waiting.extend([of(moved), of(longer)]);
        }
        let chosen: Vec<Step> = ranks.iter().map(|rank| steps[*rank]).collect();
        found.extend(stepped(&home, &chosen));
    }
    found
}

/// Returns all single steps, nearest first.
fn ranked_steps(places: &[f32]) -> Vec<Step> {
    let both = |(line, place): (usize, &f32)| {
        let below = f64::from(*place) - f64::from(*place).floor();
        [Step { line, up: false, cost: below * below }, {
            let above = 1.0 - below;
            Step { line, up: true, cost: above * above }
        }]
    };
    let mut steps: Vec<Step> = places.iter().enumerate().flat_map(both).collect();
    steps.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    steps
}

/// Returns the cells after these steps; `None` if two go opposite ways on one line.
fn stepped(home: &[i32], steps: &[Step]) -> Option<Vec<i32>> {
    let mut cells = home.to_vec();
    for (number, step) in steps.iter().enumerate() {
        if steps[..number].iter().any(|other| other.line == step.line) {
            return None;
        }
        let cell = &mut cells[step.line];
        *cell = cell.saturating_add(if step.up { 1 } else { -1 });
    }
    Some(cells)
}
