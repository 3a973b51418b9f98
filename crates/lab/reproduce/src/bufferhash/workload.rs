//! The paper's synthetic workloads (7.2): random keys from a range whose length determines the success rate
//! of lookups.

use nandex::{BufferHash, Table};
use nandex_sim::workload::SplitMix64;

use super::lab::Setup;
use crate::{Counts, Result, Taped};

/// The operations on a table.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Workload {
    /// The share of lookups that find their key, 0 to below 1, in a table that evicts in FIFO order.
    pub success_rate: f64,
    /// The kinds of operations.
    pub mix: Mix,
    /// The fill of the table before the measurement.
    pub filled: Fullness,
}

/// The fill of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fullness {
    /// It has just begun to evict.
    Once,
    /// It has forgotten its beginning.
    Twice,
}

impl Fullness {
    /// Returns the number of inserts for this fill.
    const fn inserts(self, capacity: u64) -> u64 {
        match self {
            Self::Once => capacity + capacity / 8,
            Self::Twice => 2 * capacity,
        }
    }
}

/// The kinds of operations.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Mix {
    /// Every key is first looked up and then inserted.
    LookupThenInsert,
    /// Some operations look a key up; the others insert one.
    Fraction {
        /// The number of lookups in a million operations.
        lookup_ppm: u32,
    },
}

/// A filled table and the run that was measured.
#[derive(Debug)]
pub struct Measured {
    /// The table and its tape.
    pub taped: Taped<BufferHash>,
    /// The first operation of the tape that counts; earlier ones filled the table.
    pub from: usize,
    /// Lookups since then.
    pub counts: Counts,
    /// Buffers flushed since then.
    pub flushes: u64,
}

/// The keys: at random, or each only once.
struct Keys {
    rng: SplitMix64,
    range: Option<u64>,
    next: u64,
}

impl Keys {
    /// Creates keys. A FIFO table of N entries has a key of R with the probability 1 - (1 - 1/R)^N, so the
    /// rate p takes a range of N / -ln(1 - p).
    fn new(setup: &Setup, workload: &Workload) -> Self {
        let range = setup.remembered() as f64 / -(1.0 - workload.success_rate).ln();
        let range = (workload.success_rate > 0.0).then_some(range.max(1.0) as u64);
        Self { rng: SplitMix64::stream(setup.scale.seed(), 1), range, next: 0 }
    }

    fn draw(&mut self) -> u64 {
        self.next += 1;
        self.range.map_or(self.next, |range| self.rng.below(range))
    }
}

impl Workload {
    /// Returns a workload in which each key is first looked up and then inserted.
    pub const fn lookup_then_insert(success_rate: f64) -> Self {
        Self { success_rate, mix: Mix::LookupThenInsert, filled: Fullness::Twice }
    }

    /// Returns a workload in which `lookup_ppm` of a million operations look a key up and the others insert
    /// one; 40 % are found.
    pub const fn fraction(lookup_ppm: u32) -> Self {
        let mix = Mix::Fraction { lookup_ppm };
        Self { success_rate: 0.4, mix, filled: Fullness::Twice }
    }

    /// Fills a table and then does `operations`.
    pub fn run(&self, setup: &Setup, operations: u64) -> Result<Measured> {
        let mut taped = setup.open()?;
        let mut keys = Keys::new(setup, self);
        for _ in 0..self.filled.inserts(setup.capacity()) {
            let key = keys.draw();
            taped.insert(key, key)?;
        }
        let (from, counts) = (taped.tape().len(), taped.counts());
        let flushes = taped.table.stats().flushes;
        let mut rng = SplitMix64::stream(setup.scale.seed(), 2);
        while taped.tape().len() < from + operations as usize {
            self.step(&mut taped, &mut keys, &mut rng)?;
        }
        let counts = taped.counts().since(counts);
        let flushes = taped.table.stats().flushes - flushes;
        Ok(Measured { taped, from, counts, flushes })
    }

    fn step(
        &self,
        taped: &mut Taped<BufferHash>,
        keys: &mut Keys,
        rng: &mut SplitMix64,
    ) -> Result<()> {
        let key = keys.draw();
        match self.mix {
            Mix::LookupThenInsert => {
                taped.lookup(key)?;
                taped.insert(key, key)
            }
            Mix::Fraction { lookup_ppm } if rng.chance(lookup_ppm) => taped.lookup(key).map(|_| ()),
            Mix::Fraction { .. } => taped.insert(key, key),
        }
    }
}
