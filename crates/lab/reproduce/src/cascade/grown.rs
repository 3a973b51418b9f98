//! A cascade filter that grows key by key, and its measurements.

use nandex::raw::device::PAGE_BYTES;
use nandex::{Cascade, Filter, FilterStats, Volume};
use nandex_sim::SimDevice;
use nandex_sim::workload::SplitMix64;

use super::lab::{ABSENT, Measures, now_ns};
use super::rounds::Round;
use crate::{Result, fits, vary};

/// Lookups between two parts of the inserts.
const LOOKUPS_BETWEEN: u64 = 200;
/// Lookups at the end.
pub const LOOKUPS: u64 = 2_000;
/// Lookups in one batch at the end.
pub const BATCHED: u64 = 8_000;
/// The number of times at which lookups are tried.
pub const TIMES: u64 = 24;

/// Lookups one after another, or in a batch.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Looked {
    /// The number of keys in the filter.
    pub keys: u64,
    /// The pages read for each.
    pub reads: f64,
    /// The drive's time for each, in nanoseconds.
    pub device_ns: f64,
    /// The share of positive answers.
    pub positive: f64,
}

/// The CPU time of a lookup: assumed; the drive's time of a page is ninety times as long.
pub const LOOKUP_CPU_NS: f64 = 1_000.0;

/// Returns the CPU time of a lookup, with its variation.
fn lookup_ns() -> f64 {
    vary::number(&fits::FILTER_LOOKUP, LOOKUP_CPU_NS)
}

impl Looked {
    /// Returns the lookups a second, one after another.
    pub fn single_per_s(&self) -> f64 {
        1e9 / (self.device_ns + lookup_ns())
    }

    /// Returns the lookups a second of a batch, whose processor works while the drive does.
    pub fn batched_per_s(&self) -> f64 {
        1e9 / self.device_ns.max(lookup_ns())
    }
}

/// A filter that grows.
pub struct Grown {
    filter: Cascade,
    volume: Volume,
    drive: SimDevice,
    measures: Measures,
    batch: u64,
    keys: u64,
    /// A round for each merge.
    pub rounds: Vec<Round>,
    open: Round,
    merges: u64,
    data_bytes: u64,
    /// Lookups of absent keys as it grew.
    pub looked: Vec<Looked>,
}

/// Lookups at the end.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Final {
    /// Lookups of absent keys, one after another.
    pub absent: Looked,
    /// Lookups of present keys.
    pub present: Looked,
    /// Lookups of absent keys, in a batch.
    pub batched: Looked,
}

impl Grown {
    /// Creates an empty one.
    pub fn new(measures: Measures, fan_out: Option<u32>) -> Result<Self> {
        let drive = measures.drive()?;
        let (filter, volume) = measures.cascade(fan_out, &drive)?;
        let batch = Measures::batch(filter.config().buffer_entries);
        Ok(Self {
            filter,
            volume,
            drive,
            measures,
            batch,
            keys: 0,
            rounds: Vec::new(),
            open: Round::default(),
            merges: 0,
            data_bytes: 0,
            looked: Vec::new(),
        })
    }

    /// Creates one with all keys in it; lookups are tried as it grows.
    pub fn full(measures: Measures, fan_out: Option<u32>) -> Result<Self> {
        let mut grown = Self::new(measures, fan_out)?;
        for time in 1..=TIMES {
            grown.insert_until(measures.keys * time / TIMES)?;
            let looked = grown.look_up(LOOKUPS_BETWEEN, 0)?;
            grown.looked.push(looked);
        }
        grown.close_round();
        Ok(grown)
    }

    /// Inserts keys until there are `keys`.
    pub fn insert_until(&mut self, keys: u64) -> Result<()> {
        while self.keys < keys {
            let until = keys.min(self.keys + self.batch);
            let start_ns = now_ns(&self.drive);
            let bytes: Vec<_> = (self.keys..until).map(u64::to_le_bytes).collect();
            let slices: Vec<_> = bytes.iter().map(|key| &key[..]).collect();
            self.filter.insert_many(&slices)?;
            self.open.keys += until - self.keys;
            self.keys = until;
            let stats = self.filter.stats();
            if stats.merges > self.merges {
                self.merges = stats.merges;
                self.open.merged = self.merged(&stats);
                let merge_ns = now_ns(&self.drive) - start_ns;
                let checkpoint_ns = self.checkpoint_ns()? / self.merges_per_checkpoint();
                self.open.device_ns = merge_ns.saturating_sub(checkpoint_ns);
                self.close_round();
            }
        }
        Ok(())
    }

    /// Returns the fingerprints that the last merges wrote.
    fn merged(&mut self, stats: &FilterStats) -> u64 {
        let bytes = stats.data_bytes_written - self.data_bytes;
        self.data_bytes = stats.data_bytes_written;
        if self.measures.parts == 1 {
            // A merge takes all levels above the one that it makes, so that one is the first that is not empty.
            let mut entries = stats.levels.iter().map(|level| level.entries);
            return entries.find(|entries| *entries > 0).unwrap_or(0);
        }
        // The levels of parts are summed up, so as many as the bytes have.
        let sums = stats
            .levels
            .iter()
            .fold((0, 0), |(entries, pages), level| (entries + level.entries, pages + level.pages));
        bytes * sums.0 / (sums.1 * PAGE_BYTES as u64).max(1)
    }

    /// Returns the number of merges between two checkpoints: an eighth of the parts.
    fn merges_per_checkpoint(&self) -> u64 {
        u64::from(self.measures.parts / 8).max(1)
    }

    /// Returns the time of a checkpoint without changes, which is the same with small runs as with large
    /// ones, so that it matters here and not at the deck's size.
    fn checkpoint_ns(&self) -> Result<u64> {
        let start_ns = now_ns(&self.drive);
        self.volume.checkpoint()?;
        Ok(now_ns(&self.drive) - start_ns)
    }

    fn close_round(&mut self) {
        let round = std::mem::take(&mut self.open);
        if round.keys > 0 {
            self.rounds.push(round);
        }
    }

    /// Returns the number of full buffers that were merged.
    pub fn buffers(&self) -> u64 {
        self.merges
    }

    /// Returns the number of times that a key was written, on average over all that were merged.
    pub fn writes_per_key(&self) -> f64 {
        let merged = || self.rounds.iter().filter(|round| round.merged > 0);
        let keys: u64 = merged().map(|round| round.keys).sum();
        merged().map(|round| round.merged).sum::<u64>() as f64 / keys.max(1) as f64
    }

    /// Returns the bytes that merges wrote for each key.
    pub fn bytes_per_key(&self) -> f64 {
        self.filter.stats().data_bytes_written as f64 / self.keys.max(1) as f64
    }

    /// Returns the lookups of absent keys as it grew, on average over time.
    pub fn mean_looked(&self) -> Looked {
        let count = self.looked.len().max(1) as f64;
        let mean = |of: fn(&Looked) -> f64| self.looked.iter().map(of).sum::<f64>() / count;
        Looked {
            keys: self.keys,
            reads: mean(|it| it.reads),
            device_ns: mean(|it| it.device_ns),
            positive: mean(|it| it.positive),
        }
    }

    /// Measures lookups when all keys are in.
    pub fn last_lookups(&mut self) -> Result<Final> {
        Ok(Final {
            absent: self.look_up(LOOKUPS, 1)?,
            present: self.look_up_present(LOOKUPS)?,
            batched: self.look_up_batched(BATCHED)?,
        })
    }

    /// Looks up `count` absent keys, one after another.
    pub fn look_up(&mut self, count: u64, stream: u64) -> Result<Looked> {
        let mut rng = SplitMix64::stream(self.measures.scale.seed(), 100 + stream);
        let keys: Vec<u64> = (0..count).map(|_| ABSENT + rng.below(ABSENT)).collect();
        self.look_up_all(&keys)
    }

    fn look_up_present(&mut self, count: u64) -> Result<Looked> {
        let mut rng = SplitMix64::stream(self.measures.scale.seed(), 200);
        let keys: Vec<u64> = (0..count).map(|_| rng.below(self.keys)).collect();
        self.look_up_all(&keys)
    }

    fn look_up_all(&mut self, keys: &[u64]) -> Result<Looked> {
        self.measure(keys.len() as u64, |filter| {
            keys.iter()
                .try_fold(0, |yes, key| Ok(yes + u64::from(filter.contains(&key.to_le_bytes())?)))
        })
    }

    fn look_up_batched(&mut self, count: u64) -> Result<Looked> {
        let mut rng = SplitMix64::stream(self.measures.scale.seed(), 300);
        let keys: Vec<_> = (0..count).map(|_| (ABSENT + rng.below(ABSENT)).to_le_bytes()).collect();
        let slices: Vec<_> = keys.iter().map(|key| &key[..]).collect();
        self.measure(count, |filter| {
            Ok(filter.contains_many(&slices)?.into_iter().map(u64::from).sum())
        })
    }

    fn measure(&self, count: u64, look_up: impl FnOnce(&Cascade) -> Result<u64>) -> Result<Looked> {
        let reads = || self.filter.stats().lookup_reads;
        let (reads_before, start_ns) = (reads(), now_ns(&self.drive));
        let yes = look_up(&self.filter)?;
        let each = |sum: u64| sum as f64 / count.max(1) as f64;
        Ok(Looked {
            keys: self.keys,
            reads: each(reads() - reads_before),
            device_ns: each(now_ns(&self.drive) - start_ns),
            positive: each(yes),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scale;
    use crate::cascade::bloom::{Bloom, Kind};

    fn measures(seed: u64) -> Measures {
        Measures::new(Scale::new(Scale::MOST, seed).unwrap(), 60_000, 16).unwrap()
    }

    #[test]
    fn every_key_is_found_and_rounds_have_them_all() {
        let mut grown = Grown::full(measures(1), Some(8)).unwrap();
        let keys: Vec<u64> = (0..60_000).step_by(11).collect();
        assert_eq!(grown.look_up_all(&keys).unwrap().positive, 1.0);
        assert!(grown.last_lookups().unwrap().absent.positive < 0.03);
        assert_eq!(grown.rounds.iter().map(|round| round.keys).sum::<u64>(), 60_000);
        let merged = grown.rounds.iter().filter(|round| round.merged > 0).count();
        assert_eq!(merged as u64, grown.buffers());
        assert!(grown.rounds.iter().all(|round| round.merged == 0 || round.device_ns > 0));
    }

    #[test]
    fn the_same_seed_gives_the_same_rounds_and_lookups() {
        let run = |seed| {
            let mut grown = Grown::full(measures(seed), Some(2)).unwrap();
            let mut blooms = Kind::ALL.map(|kind| Bloom::full(kind, measures(seed)).unwrap());
            let answers = grown.last_lookups().unwrap();
            let taken = blooms.each_mut().map(|bloom| bloom.insert(2).unwrap());
            let found = blooms.each_mut().map(|bloom| bloom.last_lookups().unwrap());
            (grown.rounds, grown.looked, answers, taken, found)
        };
        let first = run(1);
        assert_eq!(first, run(1));
        assert_ne!(first, run(2));
    }
}
