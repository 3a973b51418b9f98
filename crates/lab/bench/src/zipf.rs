//! A Zipf law over many entries, drawn in some ten nanoseconds, so that the draw does not dominate a
//! benchmark.
//!
//! Ranks are put into cells: each of the first ones in its own, the others in cells whose length is a 64th of
//! their distance, within which the law hardly falls. A cell is drawn by its weight (Walker's alias method),
//! a rank of it uniformly, and a rank is accepted with the law's relative decrease since the begin of the
//! cell, which is nearly always and nearly always known without a power.

use crate::keys::Rng;

/// Ranks with a cell of their own.
const SINGLE: u64 = 1024;

/// The number of preceding ranks for each rank of a later cell.
const RANKS_PER_LENGTH: u64 = 64;

/// A law over ranks from 1 on. Ranks are scattered over the indices, so the hot entries are not the oldest.
#[derive(Clone, Debug)]
pub struct Zipf {
    entries: u64,
    theta: f64,
    /// The factor that scatters a rank: a prime, modulo the entries.
    scatter: u64,
    cells: Vec<Cell>,
}

/// A cell of consecutive ranks.
#[derive(Clone, Debug)]
struct Cell {
    /// The first rank, and the number of ranks.
    first: u64,
    ranks: u64,
    /// The law at the last rank, relative to the first.
    fall: f64,
    /// The limit, of 2^64, below which this cell is drawn, else the other one.
    own: u64,
    other: u32,
}

impl Cell {
    fn new(first: u64, ranks: u64, theta: f64) -> Self {
        let fall = ((first + ranks - 1) as f64 / first as f64).powf(-theta);
        Self { first, ranks, fall, own: u64::MAX, other: 0 }
    }
}

impl Zipf {
    /// Creates a law over `entries` (at least 1) with exponent `theta` (above 0).
    #[must_use]
    pub fn new(entries: u64, theta: f64) -> Self {
        let (mut cells, mut first) = (Vec::new(), 1);
        while first <= entries {
            let ranks = if first <= SINGLE { 1 } else { first / RANKS_PER_LENGTH };
            let ranks = ranks.min(entries - first + 1);
            cells.push(Cell::new(first, ranks, theta));
            first += ranks;
        }
        share_out(&mut cells, theta);
        Self { entries, theta, scatter: 0xFFFF_FFFF_FFFF_FFC5 % entries, cells }
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Returns the index of an entry.
    #[inline]
    pub fn pick(&self, rng: &mut Rng) -> u64 {
        let rank = self.rank(rng) - 1;
        if self.entries <= 1 << 32 {
            return rank * self.scatter % self.entries;
        }
        let scattered = u128::from(rank) * u128::from(self.scatter) % u128::from(self.entries);
        u64::try_from(scattered).expect("a remainder is below its 64-bit divisor")
    }

    #[inline]
    fn rank(&self, rng: &mut Rng) -> u64 {
        loop {
            let (number, fraction) = split(rng.next(), self.cells.len() as u64);
            let mut cell = &self.cells[number as usize];
            if fraction >= cell.own {
                cell = &self.cells[cell.other as usize];
            }
            if cell.ranks == 1 {
                return cell.first;
            }
            let (offset, fraction) = split(rng.next(), cell.ranks);
            let (rank, fraction) = (cell.first + offset, fraction as f64 / 2f64.powi(64));
            if fraction < cell.fall || fraction < self.relative(rank, cell.first) {
                return rank;
            }
        }
    }

    #[cold]
    fn relative(&self, rank: u64, first: u64) -> f64 {
        (rank as f64 / first as f64).powf(-self.theta)
    }
}

/// Splits a random word into a number below `end` and a fraction of 2^64 within it.
#[inline]
fn split(word: u64, end: u64) -> (u64, u64) {
    let product = u128::from(word) * u128::from(end);
    ((product >> 64) as u64, product as u64)
}

/// Gives each cell its share by Vose's method: a cell below the mean gets the difference from one above it.
fn share_out(cells: &mut [Cell], theta: f64) {
    let weight = |cell: &Cell| cell.ranks as f64 * (cell.first as f64).powf(-theta);
    let mean = cells.iter().map(weight).sum::<f64>() / cells.len() as f64;
    let mut shares: Vec<f64> = cells.iter().map(|cell| weight(cell) / mean).collect();
    let (mut small, mut large): (Vec<usize>, Vec<usize>) =
        (0..cells.len()).partition(|number| shares[*number] < 1.0);
    while let (Some(&giver), Some(taker)) = (large.last(), small.pop()) {
        cells[taker].own = (shares[taker] * 2f64.powi(64)) as u64;
        cells[taker].other = u32::try_from(giver).expect("a few thousand cells");
        shares[giver] -= 1.0 - shares[taker];
        if shares[giver] < 1.0 {
            small.extend(large.pop());
        }
    }
    // The remaining cells have a share of 1, except for rounding, and every cell begins as its own.
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws, and the bound that a binomial law stays within: six standard deviations.
    const DRAWS: u32 = 400_000;

    fn assert_share(count: u32, share: f64, what: &str) {
        let expected = share * f64::from(DRAWS);
        let bound = 6.0 * (expected * (1.0 - share)).sqrt() + 1.0;
        assert!((f64::from(count) - expected).abs() < bound, "{what}: {count}, not {expected}");
    }

    #[test]
    fn each_rank_has_its_share_and_stays_in_range() {
        for theta in [0.5, 0.99, 1.0, 1.3] {
            let law = Zipf::new(100, theta);
            let mut rng = Rng::new(5, 0, 0);
            let mut counts = [0u32; 101];
            for _ in 0..DRAWS {
                counts[usize::try_from(law.rank(&mut rng)).unwrap()] += 1;
                assert!(law.pick(&mut rng) < 100);
            }
            let total: f64 = (1..=100).map(|rank| f64::from(rank).powf(-theta)).sum();
            for rank in 1..=100u32 {
                let share = f64::from(rank).powf(-theta) / total;
                assert_share(counts[rank as usize], share, &format!("theta {theta} rank {rank}"));
            }
        }
    }

    #[test]
    fn cells_of_many_ranks_have_their_share_and_so_has_each_part_of_them() {
        for theta in [0.6, 0.99, 1.2, 4.0] {
            let entries = 200_000u32;
            let law = Zipf::new(entries.into(), theta);
            let mut rng = Rng::new(9, 0, 0);
            // The ends of bins that cut through cells.
            let ends = [1u32, 5, 100, 1024, 1031, 1300, 1303, 5000, 5040, 60_000, 60_500, entries];
            let mut counts = [0u32; 12];
            for _ in 0..DRAWS {
                let rank = u32::try_from(law.rank(&mut rng)).unwrap();
                counts[ends.partition_point(|end| *end < rank)] += 1;
            }
            let weight = |from: u32, to: u32| -> f64 {
                (from + 1..=to).map(|rank| f64::from(rank).powf(-theta)).sum()
            };
            let total = weight(0, entries);
            let starts = [0].into_iter().chain(ends);
            for ((start, end), count) in starts.zip(ends).zip(counts) {
                let share = weight(start, end) / total;
                assert_share(count, share, &format!("theta {theta}, ranks {start} to {end}"));
            }
        }
    }

    #[test]
    fn indices_are_ranks_scattered_without_meeting() {
        let law = Zipf::new(3000, 1.0);
        let mut indices: Vec<_> = (0..3000).map(|rank| rank * law.scatter % 3000).collect();
        indices.sort_unstable();
        assert!(indices.iter().copied().eq(0..3000));
        assert_eq!(Zipf::new(1, 0.99).pick(&mut Rng::new(1, 0, 0)), 0);
        let wide = Zipf::new(1 << 40, 0.99);
        assert!(wide.pick(&mut Rng::new(1, 0, 0)) < 1 << 40);
    }
}
