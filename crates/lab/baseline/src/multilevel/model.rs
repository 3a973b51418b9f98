//! The costs of a multi-level index with the required entries, and the configuration for them.
//!
//! Keys fill the levels from the first on. The number of keys of a page has a Poisson distribution around
//! their mean, so a level begins to spill before all of its pages are full. Pages in RAM are modelled as an
//! LRU cache (Che and others, JSAC 2002): one time for which a page stays fits the pages of all levels.

use nandex::Requirements;
use nandex::Result;
use nandex::raw::group_model::{self as model, TABLES_PER_BUFFER};
use nandex::raw::model::{OperationCosts, PAGE_BYTES, Parameter, ParameterValue, log_bytes};
use nandex::raw::{GroupConfig, GroupModel, Notes, bytes, count, line};

use super::config::Config;
use super::page_cache::PageCache;

/// Pages of the first levels of all partitions.
const FIRST_PAGES: u32 = 64;
/// The maximum pages of a partition's levels, if the number of entries is known: 4 MiB.
const PARTITION_PAGES: u64 = 1024;
/// The minimum pages of all buffers, without a limit of RAM: 4 MiB.
const BUFFERS_MIN: u64 = 1024;
/// The minimum number of partitions, if RAM is stated. A flush takes RAM for a buffer's entries and for its
/// copy, and there are spare buffers: with few large ones a small budget would have little for pages.
const PARTITIONS_MIN: u64 = 16;
/// The share of a page's slots that are in use when it spills.
const PAGE_FILL: f64 = 0.99;
/// Scales a logistic law to a normal one, so that both spill alike at the mean.
const LOGISTIC: f64 = 0.5755;

/// A level of an index with a given number of entries, over all partitions.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldLevel {
    /// Its pages, including those that are not on flash.
    pub pages: f64,
    /// Entries.
    pub entries: f64,
    /// The share of its pages that have entries: the pages that a lookup of a key in a later level reads.
    pub used: f64,
    /// The share of new keys that reach it, and of those that stay.
    pub comes: f64,
    pub stays: f64,
    /// The share of keys' pages that are in RAM.
    pub cached: f64,
}

impl GroupModel for Config {
    /// Divides the RAM, if it is stated: an eighth for buffers, and the rest for the cache of pages. Without
    /// a limit, buffers are a sixteenth of the levels, and the cache is as large as the buffers.
    fn advised(requirements: &Requirements) -> Result<Self> {
        let common = model::plain::<Self>(requirements)?;
        let plain = Self { first_pages: FIRST_PAGES, page_cache_bytes: 0, ..Self::tiny() };
        let plain = plain.with_common(common);
        let level_pages = plain.pages(requirements.entries).ceil() as u64;
        let partitions_min = level_pages.div_ceil(PARTITION_PAGES);
        let config = match requirements.ram_bytes {
            Some(most) => plain.within(most, requirements.entries, partitions_min),
            None => {
                let buffers = (level_pages / TABLES_PER_BUFFER).max(BUFFERS_MIN);
                let page_cache_bytes = buffers * PAGE_BYTES;
                Self { page_cache_bytes, ..plain.with_buffers(buffers, partitions_min) }
            }
        };
        model::within(config, requirements)
    }

    fn tables(&self, entries: u64) -> f64 {
        self.pages(entries)
    }

    fn costs_with(&self, entries: u64) -> OperationCosts {
        let levels = self.holding(entries);
        let all: f64 = levels.iter().map(|level| level.entries).sum();
        let (mut reads, mut hits) = (0.0, 0.0);
        for level in &levels {
            let read = 1.0 - level.cached;
            hits += level.entries * (reads + read);
            reads += level.used * read;
        }
        let buffered = model::buffered_entries(self, entries);
        let (mut read, mut written) = (0.0, 0.0);
        for level in &levels {
            let group = self.group_pages_of(level);
            let groups = level.pages / f64::from(self.partitions) / group;
            let touched = |share: f64| groups * (1.0 - (-buffered * share / groups).exp()) * group;
            read += touched(level.comes.max(level.used));
            written += touched(level.comes * level.stays);
        }
        let bytes = |pages: f64| pages * PAGE_BYTES as f64 / buffered;
        let entry_bytes = (self.key_bytes + self.value_bytes) as u64;
        let is_empty = entries as f64 <= buffered * f64::from(self.partitions) / 2.0;
        OperationCosts {
            reads_per_hit: if is_empty { 0.0 } else { hits / all.max(1.0) },
            reads_per_miss: reads,
            insert_read_bytes: bytes(read),
            insert_write_bytes: bytes(written) + log_bytes(entry_bytes),
            updates: None,
        }
    }

    fn flash_bytes_per_entry(&self) -> f64 {
        PAGE_BYTES as f64 / (0.7 * self.record_layout().slots() as f64) * 1.25
    }

    fn parameters(&self) -> Vec<Parameter> {
        vec![
            ("first_pages", ParameterValue::Count(self.first_pages.into())),
            ("page_cache_bytes", ParameterValue::Count(self.page_cache_bytes)),
        ]
    }

    fn shape(&self) -> String {
        let cached = bytes(self.page_cache_bytes);
        format!("levels from {} pages on, {cached} of RAM for pages", self.first_pages)
    }

    fn notes(&self, entries: u64, notes: Notes) -> Notes {
        let levels = self.holding(entries).len().to_string();
        let buffer = bytes(u64::from(self.buffer_pages) * PAGE_BYTES);
        let first = count(u64::from(self.partitions) * u64::from(self.first_pages));
        let of_levels = format!("of {first} pages and twice as many in each further one");
        let cached = bytes(self.page_cache_bytes);
        let flushed = bytes(model::rewrite_bytes(self, entries) as u64);
        let of_buffers = format!("with a buffer of {buffer} each");
        Notes {
            shape: vec![
                line("partitions", self.partitions.to_string(), of_buffers),
                line("levels", levels, of_levels),
                line("pages in RAM", cached, "of those that lookups used last"),
                line("flush", flushed, "of a partition's levels, at most"),
            ],
            other: "pages of levels, their map, groups of a flush, log".into(),
            flash: "levels, up to a quarter more between checkpoints, and snapshots of buffers"
                .into(),
            hit: "a page of each level up to the key's; none where RAM has them".into(),
            miss: "a page of each level".into(),
            insert: "of device time, amortised: a flush over a buffer's entries".into(),
            insert_worst: "one flush: a partition's levels are read and written",
            ..notes
        }
    }
}

impl Config {
    /// Returns the configuration with an eighth of this RAM for buffers, or less if the rest is needed, and a
    /// cache of pages that leaves a sixteenth to the map, or more if `entries` entries need it.
    fn within(self, ram_bytes: u64, entries: u64, partitions_min: u64) -> Self {
        let with_buffers = |buffers| self.with_buffers(buffers, partitions_min.max(PARTITIONS_MIN));
        let taken = |config: &Self| {
            model::ram_bytes(config) + model::map_bytes(config, entries).max(ram_bytes / 16)
        };
        let fits = |buffers| taken(&with_buffers(buffers)) <= ram_bytes;
        let config = with_buffers(model::most_buffers(ram_bytes / PAGE_BYTES / 8, fits));
        Self { page_cache_bytes: ram_bytes.saturating_sub(taken(&config)), ..config }
    }

    /// Returns the configuration with `buffers` pages of buffers together, for `partitions_min` partitions if
    /// there are enough pages.
    fn with_buffers(self, buffers: u64, partitions_min: u64) -> Self {
        let common = model::with_buffers(self.common(), buffers, partitions_min);
        let first_pages = (FIRST_PAGES / common.partitions).max(1);
        Self { first_pages, ..self.with_common(common) }
    }

    /// Returns the levels of an index with `entries` entries.
    pub(super) fn holding(&self, entries: u64) -> Vec<HeldLevel> {
        let space = PAGE_FILL * self.record_layout().slots() as f64;
        let mut pages = f64::from(self.partitions) * f64::from(self.first_pages);
        let (mut mean, mut comes) = (entries as f64 / pages, 1.0);
        let mut levels = Vec::new();
        while levels.is_empty() || (mean * pages >= 1.0 && levels.len() < 32) {
            let scatter = mean.sqrt().max(1e-9);
            // The distance of the mean beyond a page's space, and the number of keys that a page passes on.
            let over = (mean - space) / scatter / LOGISTIC;
            let spilled = LOGISTIC * scatter * (over.max(0.0) + (-over.abs()).exp().ln_1p());
            let stays = 1.0 / (1.0 + over.exp());
            let (own, used) = (mean - spilled, 1.0 - (-mean).exp());
            levels.push(HeldLevel { pages, entries: own * pages, used, comes, stays, cached: 0.0 });
            (mean, comes, pages) = (spilled / 2.0, comes * (1.0 - stays), pages * 2.0);
        }
        self.note_cached(&mut levels);
        levels
    }

    /// Computes the share of each level's pages that are in RAM, if all keys are looked up equally often.
    fn note_cached(&self, levels: &mut [HeldLevel]) {
        let cache = PageCache::new(self.page_cache_bytes).pages_max() as f64;
        let all: f64 = levels.iter().map(|level| level.entries).sum();
        let mut below = all;
        let mut rates = Vec::new();
        for level in levels.iter() {
            // Lookups of keys in this level and later ones pass through; each page with entries is read
            // equally often.
            rates.push((level.pages * level.used, below / all.max(1.0) / level.pages));
            below -= level.entries;
        }
        let kept = |time: f64| -> f64 {
            rates.iter().map(|(pages, rate)| pages * (1.0 - (-rate * time).exp())).sum()
        };
        let (mut least, mut most) = (0.0, 1e15);
        for _ in 0..100 {
            let time = (least + most) / 2.0;
            if kept(time) > cache { most = time } else { least = time }
        }
        for (level, (_, rate)) in levels.iter_mut().zip(&rates) {
            level.cached = 1.0 - (-rate * least).exp();
        }
    }

    /// Returns the pages on flash of an index with `entries` entries.
    pub(super) fn pages(&self, entries: u64) -> f64 {
        let group = |level: &HeldLevel| self.group_pages_of(level);
        let there = |level: &HeldLevel| 1.0 - (1.0 - level.used).powf(group(level));
        self.holding(entries).iter().map(|level| level.pages * there(level)).sum()
    }

    /// Returns the pages of each group of a level.
    fn group_pages_of(&self, level: &HeldLevel) -> f64 {
        f64::from(self.group_pages).min(level.pages / f64::from(self.partitions))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use nandex::Policy;
    use nandex::raw::FLUSH_THREADS;
    use nandex::raw::group_model::{GROUP_PAGES, advise};
    use nandex::{Durability, Table, Threads, Volume, VolumeOptions};
    use nandex_device::{Counted, MemoryDevice};

    use super::*;
    use crate::multilevel::Multilevel;
    use nandex::OpenOptions;

    const WIDE: Config = Config { partitions: 2, buffer_pages: 4, ..Config::tiny() };

    /// Measures the reads of a lookup of each kind, and the bytes of an insert, as the device counts them.
    fn counted(config: Config, entries: u64) -> OperationCosts {
        let device = Arc::new(Counted::new(MemoryDevice::new()));
        let options = VolumeOptions {
            durability: Durability::Never,
            threads: Threads::Inline,
            ..VolumeOptions::tiny()
        };
        let volume = Volume::create(Arc::clone(&device) as _, options).unwrap();
        let options = OpenOptions::default().inline();
        let table = Multilevel::create_with(&volume, "t", config, options).unwrap();
        let insert = |number| table.insert_u64(number, number).unwrap();
        (0..entries * 9 / 10).for_each(insert);
        let (before, written) = (device.snapshot(), table.stats().data_bytes_written);
        (entries * 9 / 10..entries * 11 / 10).for_each(insert);
        let read = device.snapshot() - before;
        let written = table.stats().data_bytes_written - written;
        // In an order that no level has, and once before to fill the cache.
        let look_up = |first: u64, count: u64| {
            let all = || (0..count).map(|nth| first + nth.wrapping_mul(0x9E37_79B1) % count);
            let look = |number| assert_eq!(table.get_u64(number).unwrap().is_some(), first == 0);
            all().for_each(look);
            let before = device.snapshot();
            all().for_each(look);
            (device.snapshot() - before).pages_read as f64 / count as f64
        };
        let each = |bytes: u64| bytes as f64 / (entries / 5) as f64;
        OperationCosts {
            reads_per_hit: look_up(0, entries * 11 / 10),
            reads_per_miss: look_up(1 << 40, entries),
            insert_read_bytes: each(read.pages_read * PAGE_BYTES),
            insert_write_bytes: each(written),
            updates: None,
        }
    }

    fn is_near(counted: f64, predicted: f64, what: &str) {
        let ratio = counted / predicted;
        assert!((0.65..1.5).contains(&ratio), "{what}: {counted} of {predicted}");
    }

    #[test]
    fn reads_and_writes_are_what_is_predicted_with_and_without_pages_in_ram() {
        for (entries, page_cache_bytes) in
            [(20_000, 0), (45_000, 0), (90_000, 0), (45_000, 200 << 10), (90_000, 300 << 10)]
        {
            let config = Config { page_cache_bytes, ..WIDE };
            let counted = counted(config, entries);
            let predicted = config.costs_with(entries);
            let named = |what: &str| format!("{entries} in {page_cache_bytes}: {what}");
            is_near(counted.reads_per_hit, predicted.reads_per_hit, &named("hit"));
            is_near(counted.insert_read_bytes, predicted.insert_read_bytes, &named("read"));
            let log = log_bytes(16);
            is_near(
                counted.insert_write_bytes,
                predicted.insert_write_bytes - log,
                &named("write"),
            );
            if page_cache_bytes == 0 {
                is_near(counted.reads_per_miss, predicted.reads_per_miss, &named("miss"));
            }
        }
    }

    /// Tests the claim of RHIK's paper: all in DRAM at first, and 3 to 7 reads once the index exceeds it.
    #[test]
    fn an_index_that_exceeds_its_dram_reads_three_to_seven_pages() {
        let config = Config {
            first_pages: 16,
            page_cache_bytes: 10 << 20,
            group_pages: GROUP_PAGES,
            ..Config::tiny()
        };
        let reads = |entries| config.costs_with(entries).reads_per_hit;
        assert!(reads(400_000) < 0.05, "{}", reads(400_000));
        for (entries, least, most) in [(8_000_000, 3.0, 5.0), (20_000_000, 5.0, 7.0)] {
            assert!((least..most).contains(&reads(entries)), "{entries}: {}", reads(entries));
        }
    }

    #[test]
    fn advice_keeps_the_ram_that_is_stated_and_gives_most_of_it_to_pages_where_it_is_large() {
        for (entries, ram_bytes) in
            [(1_000, 4 << 20), (1_000, 64 << 20), (64_000_000, 100 << 20), (1 << 30, 2 << 30)]
        {
            let asked = Requirements {
                policy: Policy::Grow,
                ..Requirements::new(entries, 8, 8).ram(ram_bytes)
            };
            let prediction = advise::<Config>(&asked).unwrap();
            let config: &Config = prediction.config.of().unwrap();
            assert!(prediction.ram_bytes() <= ram_bytes, "{entries} in {ram_bytes}");
            let least = if ram_bytes < 64 << 20 { ram_bytes / 4 } else { ram_bytes / 2 };
            assert!(config.page_cache_bytes >= least, "{config:?} in {ram_bytes}");
            assert!(config.ram().entries_max(FLUSH_THREADS) >= entries, "{config:?}");
        }
        let tight = Requirements { policy: Policy::Grow, ..Requirements::new(1_000, 8, 8) };
        let error = advise::<Config>(&tight.ram(100 << 10)).unwrap_err().to_string();
        assert!(error.starts_with("RAM: 102400 bytes"), "{error}");
    }
}
