//! What all modules share: the configurations, and keys and values made from numbers.

use std::sync::Arc;

use nandex::bufferhash::filter::FilterShape;
use nandex::bufferhash::{Config, Policy, RuntimeOptions};
use nandex::device::Device;
use nandex::store::entries::EntryLayout;
use nandex::{
    AnyTable, BufferHash, Durability, OpenOptions, SliceHash, Threads, Volume, VolumeOptions,
    slicehash,
};
use nandex_sim::workload::SplitMix64;
use nandex_trial::table::stretch;

pub use crate::ground::{DURABILITIES, Ground};

/// All policies.
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

/// A filter's kind and words.
pub const FILTERS: [(bool, u32); 4] = [(true, 1), (true, 2), (false, 1), (false, 2)];

/// What is peculiar to a SliceHash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slices {
    /// Pages in a slice.
    pub parts: u32,
    /// Slots in a bucket of the buffers.
    pub bucket_slots: u32,
    /// Runs of the front table.
    pub front_runs: u32,
    /// Do partitions that miss often get filters?
    pub filters: bool,
}

/// SliceHashes of every sort.
pub const SLICES: [Slices; 4] = [
    Slices { parts: 1, bucket_slots: 4, front_runs: 0, filters: false },
    Slices { parts: 3, bucket_slots: 3, front_runs: 0, filters: true },
    Slices { parts: 1, bucket_slots: 2, front_runs: 6, filters: true },
    Slices { parts: 3, bucket_slots: 4, front_runs: 5, filters: false },
];

/// The policies that SliceHash has too.
pub const SLICE_POLICIES: [Policy; 2] = [Policy::Fifo, Policy::Reject];

/// One configuration of everything.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// A SliceHash of this sort; nothing for a BufferHash.
    pub slices: Option<Slices>,
    pub policy: Policy,
    pub durability: Durability,
    pub fuse: bool,
    pub words: u32,
    pub widths: (usize, usize),
    pub flush_threads: usize,
    pub threads: Threads,
    /// Is the ring so large that nothing is ever evicted?
    pub roomy: bool,
    /// How many buffers there are to fill.
    pub super_tables: u32,
}

impl Setup {
    pub fn new(policy: Policy, durability: Durability) -> Self {
        Self {
            slices: None,
            policy,
            durability,
            fuse: true,
            words: 1,
            widths: (8, 8),
            flush_threads: 1,
            threads: Threads::Background,
            roomy: true,
            super_tables: 4,
        }
    }

    /// One whose few hundred keys fill buffers again and again, and unless it is roomy a ring that holds
    /// four times as many.
    pub fn busy(policy: Policy, durability: Durability) -> Self {
        Self { widths: (16, 64), super_tables: 2, ..Self::new(policy, durability) }
    }

    /// Each 72 numbers in turn give all policies, durabilities and filters; the rest is mixed.
    pub fn numbered(number: usize) -> Self {
        let (fuse, words) = FILTERS[number / 18 % 4];
        let mut rng = SplitMix64::new(number as u64);
        Self {
            slices: None,
            policy: POLICIES[number % 6],
            durability: DURABILITIES[number / 6 % 3],
            fuse,
            words,
            widths: WIDTHS[rng.below(5) as usize],
            flush_threads: 1 + rng.below(2) as usize,
            threads: Threads::Background,
            roomy: rng.below(2) == 0,
            super_tables: 4,
        }
    }

    /// Each 24 numbers in turn give all sorts of SliceHash, policies and durabilities; the rest is mixed.
    pub fn numbered_slices(number: usize) -> Self {
        let mixed = Self::numbered(number);
        let policy = SLICE_POLICIES[number % 2];
        let durability = DURABILITIES[number / 2 % 3];
        Self { policy, durability, ..mixed }.sliced(SLICES[number / 6 % 4])
    }

    /// One of all: two of three are BufferHashes.
    pub fn any(number: usize) -> Self {
        if number % 3 == 2 { Self::numbered_slices(number / 3) } else { Self::numbered(number) }
    }

    /// All policies of BufferHash, and each sort of SliceHash with one that it has.
    pub fn every(of: impl Fn(Policy) -> Self) -> Vec<Self> {
        let slices = |(policy, slices)| of(policy).sliced(slices);
        let pairs = [Policy::Fifo, Policy::Reject, Policy::Fifo, Policy::Fifo].into_iter();
        let slices = pairs.zip(SLICES).map(slices);
        POLICIES.map(&of).into_iter().chain(slices).collect()
    }

    /// The same as a SliceHash.
    pub fn sliced(self, slices: Slices) -> Self {
        assert!(SLICE_POLICIES.contains(&self.policy), "SliceHash has no {:?}", self.policy);
        // A table that refuses has no front.
        let front_runs = if self.policy == Policy::Reject { 0 } else { slices.front_runs };
        Self { slices: Some(Slices { front_runs, ..slices }), ..self }
    }

    /// The same, with everything on the calling thread.
    pub fn inline(self) -> Self {
        Self { flush_threads: 0, threads: Threads::Inline, ..self }
    }

    /// What a SliceHash of this setup is created with.
    pub fn slice_config(&self, slices: Slices) -> slicehash::Config {
        let (key_bytes, value_bytes) = self.widths;
        let policy = match self.policy {
            Policy::Reject => slicehash::Policy::Reject,
            _ => slicehash::Policy::Fifo,
        };
        let config = slicehash::Config {
            key_bytes,
            value_bytes,
            policy,
            partitions: self.super_tables,
            buffer_pages: if self.roomy { 2 } else { 1 },
            bucket_slots: slices.bucket_slots,
            slice_parts: slices.parts,
            group_slices: 2,
            front_runs: slices.front_runs,
            spare_buffers: 2 + slices.front_runs / 2,
            ..slicehash::Config::tiny()
        };
        let one = config.slice_entries();
        let slices = match one {
            // A partition has 830 keys at most, so a slice a third of what it takes.
            _ if self.roomy => (3 * 830 / one).max(3),
            // 750 keys are more than these take, and a buffer's entries much less.
            ..100 => 4,
            100..200 => 3,
            200..600 => 2,
            600.. => 1,
        };
        slicehash::Config { slices, entries_max: slices * one, ..config }
    }

    /// Entries with which a buffer is full, at most.
    pub fn buffer_entries(&self) -> u64 {
        match self.slices {
            Some(slices) => {
                let config = self.slice_config(slices);
                u64::from(config.buffer_pages) * config.layout().unwrap().slots() as u64
            }
            None => self.config().filter.entries_max().into(),
        }
    }

    /// How many of the last puts nothing is evicted of, where something is.
    pub fn window(&self) -> u64 {
        let Some(slices) = self.slices else {
            // The ring keeps more than 16 incarnations behind the newest; under a partial discard up to
            // four in five of them may hold what was put back.
            let buffers = if self.policy.is_partial() { 2 } else { 6 };
            return buffers * self.buffer_entries();
        };
        // A slice takes its share of them and of the buffer that each was in, with eight deviations.
        let config = self.slice_config(slices);
        let fits = |puts: u64| {
            let share = puts as f64 / f64::from(self.super_tables) + self.buffer_entries() as f64;
            let mean = share / f64::from(config.slices);
            let spread = if config.slices == 1 { 0.0 } else { 8.0 * mean.sqrt() };
            mean + spread <= f64::from(config.slice_entries())
        };
        (0..).find(|puts| !fits(*puts)).unwrap().saturating_sub(1)
    }

    pub fn config(&self) -> Config {
        let (key_bytes, value_bytes) = self.widths;
        let layout = EntryLayout::new(key_bytes, value_bytes).unwrap();
        let entries = u32::try_from(2 * layout.slots() * 95 / 100).unwrap();
        let filter = if self.fuse {
            FilterShape::fuse(entries, 12, self.words).unwrap()
        } else {
            FilterShape::bloom(entries, 12.0, self.words).unwrap()
        };
        let columns = 64 * self.words - 8;
        let (segments, incarnations_max) = if self.roomy {
            (4 * u64::from(columns), columns)
        } else {
            (24, 48 / self.super_tables)
        };
        Config {
            key_bytes,
            value_bytes,
            filter,
            segments,
            incarnations_max,
            policy: self.policy,
            super_tables: self.super_tables,
            ..Config::tiny()
        }
    }

    pub fn runtime(&self) -> RuntimeOptions {
        RuntimeOptions { flush_threads: self.flush_threads, ..RuntimeOptions::default() }
    }

    pub fn volume_options(&self) -> VolumeOptions {
        let Self { durability, threads, .. } = *self;
        VolumeOptions { durability, threads, volume_id: Some(7), ..VolumeOptions::tiny() }
    }

    pub fn open_options(&self) -> OpenOptions {
        let Self { durability, threads, .. } = *self;
        OpenOptions { durability, threads, ..OpenOptions::default() }
    }

    /// Creates a table of this setup in a volume.
    pub fn create_table(&self, volume: &Volume, name: &str) -> nandex::Result<AnyTable> {
        Ok(match self.slices {
            Some(slices) => {
                let (config, options) = (self.slice_config(slices), self.slice_runtime(slices));
                SliceHash::create_with(volume, name, config, options)?.into()
            }
            None => BufferHash::create_with(volume, name, self.config(), self.runtime())?.into(),
        })
    }

    /// Opens a table of this setup.
    pub fn open_table(&self, volume: &Volume, name: &str) -> nandex::Result<AnyTable> {
        Ok(match self.slices {
            Some(slices) => SliceHash::open_with(volume, name, self.slice_runtime(slices))?.into(),
            None => BufferHash::open_with(volume, name, self.runtime())?.into(),
        })
    }

    fn slice_runtime(&self, slices: Slices) -> slicehash::RuntimeOptions {
        slicehash::RuntimeOptions {
            flush_threads: self.flush_threads,
            // Not a divisor of a slicetable's pages.
            io_chunk_pages: 5,
            filter_bytes: if slices.filters { 8 << 10 } else { 0 },
            ..slicehash::RuntimeOptions::default()
        }
    }

    pub fn create(&self, device: Arc<dyn Device>) -> nandex::Result<AnyTable> {
        self.create_table(&Volume::create(device, self.volume_options())?, "t")
    }

    pub fn open(&self, device: Arc<dyn Device>) -> nandex::Result<AnyTable> {
        self.open_table(&Volume::open(device, self.open_options())?, "t")
    }

    pub fn key(&self, number: u64) -> Vec<u8> {
        stretch(number, self.widths.0)
    }

    pub fn value(&self, number: u64) -> Vec<u8> {
        stretch(number, self.widths.1)
    }
}

/// The number that a key of at least 8 bytes begins with.
pub fn number_of(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[..8].try_into().unwrap())
}
