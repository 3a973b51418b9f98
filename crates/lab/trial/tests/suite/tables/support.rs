//! The common part of all modules: the configurations.

use nandex::bufferhash::{Config, Policy};
use nandex::testing::{Retention, TableRequest, TestTable};
use nandex::{AnyConfig, Durability, OpenOptions, Threads, VolumeOptions};
use nandex_baseline::registry::{self, Family, TableRow};
use nandex_sim::workload::SplitMix64;
use nandex_trial::table::cache_bytes;
use nandex_trial::table::{TableContract, stretch};

pub use crate::devices::DURABILITIES;

/// All policies of BufferHash, in the order of its variants.
pub const POLICIES: [Policy; 6] = [
    Policy::Fifo,
    Policy::Lru,
    Policy::Update,
    Policy::Threshold(0),
    Policy::Top(500),
    Policy::Reject,
];

/// Key and value widths.
pub const WIDTHS: [(usize, usize); 5] = [(8, 8), (20, 8), (32, 0), (16, 64), (8, 0)];

/// The kinds of SliceHash that differ in parts of a slice, buckets, front and filters; the last two have
/// fronts.
pub const SLICES: [u64; 4] = [0, 1, 2, 3];

/// The policies that SliceHash has too.
pub const SLICE_POLICIES: [Policy; 2] = [Policy::Fifo, Policy::Reject];

/// One configuration of everything.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// The structure's kind, and the variant for tests.
    pub kind: &'static str,
    pub variant: u64,
    pub durability: Durability,
    pub widths: (usize, usize),
    pub flush_threads: usize,
    pub threads: Threads,
    /// Whether there is so much space that nothing is ever evicted.
    pub roomy: bool,
    /// The number of buffers to fill.
    pub super_tables: u32,
}

impl Setup {
    /// Creates a BufferHash of a policy.
    pub fn new(policy: Policy, durability: Durability) -> Self {
        let variant = POLICIES.iter().position(|it| *it == policy).unwrap() as u64;
        Self {
            kind: "bufferhash",
            variant,
            durability,
            widths: (8, 8),
            flush_threads: 1,
            threads: Threads::Background,
            roomy: true,
            super_tables: 4,
        }
    }

    /// Creates a setup whose few hundred keys fill buffers repeatedly, and unless it is roomy a ring for four
    /// times as many.
    pub fn busy(policy: Policy, durability: Durability) -> Self {
        Self { widths: (16, 64), super_tables: 2, ..Self::new(policy, durability) }
    }

    /// Creates a variant of this kind: each durability comes with each variant in turn, the rest is mixed.
    pub fn numbered(kind: &'static str, number: usize) -> Self {
        let mut rng = SplitMix64::new(number as u64);
        let variants = row(kind).testing.variants;
        Self {
            kind,
            variant: number as u64 % variants,
            durability: DURABILITIES[(number + number / variants as usize) % 3],
            widths: WIDTHS[rng.below(5) as usize],
            flush_threads: 1 + rng.below(2) as usize,
            threads: Threads::Background,
            roomy: rng.below(2) == 0,
            super_tables: 4,
        }
    }

    /// Returns each variant of each kind of tables of the registry, with each durability.
    pub fn all() -> impl Iterator<Item = Self> {
        registry::tables().flat_map(|(row, table)| {
            let count = 3 * table.testing.variants as usize;
            (0..count).map(|number| Self::numbered(row.kind, number))
        })
    }

    /// Returns one of all kinds of tables of the registry, in turn.
    pub fn any(number: usize) -> Self {
        let kinds: Vec<_> = registry::tables().map(|(row, _)| row.kind).collect();
        Self::numbered(kinds[number % kinds.len()], number / kinds.len())
    }

    /// Returns all policies of BufferHash, and each kind of SliceHash with one of its policies.
    pub fn every(of: impl Fn(Policy) -> Self) -> Vec<Self> {
        let slices = |(policy, slices)| of(policy).sliced(slices);
        let pairs = [Policy::Fifo, Policy::Reject, Policy::Fifo, Policy::Fifo].into_iter();
        let slices = pairs.zip(SLICES).map(slices);
        POLICIES.map(&of).into_iter().chain(slices).collect()
    }

    /// Returns the setup as a SliceHash of a kind.
    pub fn sliced(self, slices: u64) -> Self {
        let policy = POLICIES[(self.variant % 6) as usize];
        let policy = SLICE_POLICIES.iter().position(|it| *it == policy);
        let policy = policy.expect("SliceHash has this policy") as u64;
        Self { kind: "slicehash", variant: 2 * slices + policy, ..self }
    }

    /// Returns the setup with everything on the calling thread.
    pub fn inline(self) -> Self {
        Self { flush_threads: 0, threads: Threads::Inline, ..self }
    }

    /// Returns the configuration of the registry, and its law.
    fn test_table(&self) -> TestTable {
        let request = TableRequest {
            variant: self.variant,
            key_bytes: self.widths.0,
            value_bytes: self.widths.1,
            partitions: self.super_tables,
            // A SliceHash that evicts does so after few keys.
            buffer_pages: if self.roomy || self.kind == "bufferhash" { 2 } else { 1 },
            keys: self.roomy.then_some(830 * u64::from(self.super_tables)),
            cache_bytes: cache_bytes(self.variant / 6 + self.variant),
            threads: self.flush_threads,
        };
        (row(self.kind).testing.config)(&request)
    }

    /// Returns the maximum number of entries of a full buffer.
    pub fn buffer_entries(&self) -> u64 {
        self.test_table().buffer_entries
    }

    /// Returns whether it keeps everything that was put, forced evictions aside.
    pub fn keeps(&self) -> bool {
        !matches!(self.test_table().retention, Retention::Newest(_) | Retention::NewestUsed(_))
    }

    /// Returns the configuration of a BufferHash.
    pub fn config(&self) -> Config {
        self.test_table().config.of::<Config>().unwrap().clone()
    }
}

impl TableContract for Setup {
    fn inline(&self) -> Self {
        Self { flush_threads: 0, threads: Threads::Inline, ..*self }
    }

    fn made(&self) -> (AnyConfig, OpenOptions) {
        let TestTable { config, options, .. } = self.test_table();
        (config, options)
    }

    fn volume(&self) -> VolumeOptions {
        let Self { durability, threads, .. } = *self;
        VolumeOptions { durability, threads, volume_id: Some(7), ..VolumeOptions::tiny() }
    }

    fn keys(&self) -> u64 {
        3000
    }

    fn retention(&self) -> Retention {
        match self.test_table().retention {
            // Many more keys are live than the ring can keep: any may have to go.
            Retention::AllUnlessForced(_) => Retention::Newest(0),
            retention => retention,
        }
    }

    fn key(&self, number: u64) -> Vec<u8> {
        stretch(number, self.widths.0)
    }

    fn value(&self, key: u64, put: u64) -> Vec<u8> {
        stretch(put << 16 | key, self.widths.1)
    }

    fn batch_max(&self) -> u64 {
        700
    }
}

fn row(kind: &str) -> &'static TableRow {
    match registry::find(kind).map(|row| &row.family) {
        Some(Family::Table(table)) => table,
        _ => panic!("{kind} is no table"),
    }
}
