//! What a multi-level index costs when it holds what is required, and its configuration for that.
//!
//! Keys fill the levels from the first on. The keys of a page scatter around their mean as a Poisson law says, so a
//! level begins to spill before all of its pages are full. Pages in RAM are modelled as those of a cache that keeps
//! what was used last (Che and others, JSAC 2002): one time for which a page stays suits the pages of all levels.

use super::config::{Config, FLUSH_THREADS, GROUP_PAGES, LEVELS_PER_BUFFER, PARTITIONS_MAX};
use super::page_cache::PageCache;
use crate::Result;
use crate::any::AnyOptions;
use crate::model::text::{bytes, count, line};
use crate::model::{
    Notes, OperationCosts, PAGE_BYTES, Parameter, ParameterValue, Policy, Prediction, Requirements,
    log_bytes, too_little,
};

/// Pages of the first levels of all partitions.
const FIRST_PAGES: u32 = 64;
/// Pages of a partition's levels, at most, where the number of entries is known: 4 MiB.
const PARTITION_PAGES: u64 = 1024;
/// The most pages of a buffer.
const BUFFER_PAGES_MAX: u64 = 64;
/// Pages of all buffers at least, without a limit of RAM: 4 MiB.
const BUFFERS_MIN: u64 = 1024;
/// The least RAM of a table whose groups have the usual size.
const LARGE_RAM_BYTES: u64 = 16 << 20;
/// Pages of a group where there is less.
const GROUP_PAGES_SMALL: u32 = 16;
/// Partitions at least, where RAM is stated. A flush takes RAM for a buffer's entries and for its copy, and there are
/// spare buffers: with few large ones a small budget would have little for pages.
const PARTITIONS_MIN: u64 = 16;
/// The share of a buffer's slots in use when it is full.
const BUFFER_FILL: f64 = 0.93;
/// The share of a page's slots in use when it spills.
const PAGE_FILL: f64 = 0.99;
/// Scales a logistic law to a normal one, so that both spill alike at the mean.
const LOGISTIC: f64 = 0.5755;

/// A level of an index that holds some entries, over all partitions.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldLevel {
    /// Its pages, with those that are not on flash.
    pub pages: f64,
    /// Entries.
    pub entries: f64,
    /// The share of its pages that have entries: of those that a lookup of a key in a later level reads.
    pub used: f64,
    /// The share of new keys that come to it, and of those that stay.
    pub comes: f64,
    pub stays: f64,
    /// The share of keys' pages that lookups find in RAM.
    pub cached: f64,
}

impl Config {
    /// The configuration for the required entries: of the RAM that is stated, an eighth for buffers, and the rest for
    /// the cache of pages. Without a limit, buffers are a sixteenth of the levels, and the cache as large as they.
    ///
    /// # Errors
    /// A policy other than [`Policy::Grow`], too little RAM.
    pub fn advised(requirements: &Requirements) -> Result<Self> {
        requirements.check()?;
        requirements.check_no_extras("multilevel")?;
        requirements.check_policy("multilevel", "grow", requirements.policy == Policy::Grow)?;
        let plain = Self {
            key_bytes: requirements.key_bytes as usize,
            value_bytes: requirements.value_bytes as usize,
            partitions: 1,
            buffer_pages: 1,
            spare_buffers: 2,
            first_pages: FIRST_PAGES,
            group_pages: GROUP_PAGES,
            stagger: true,
            page_cache_bytes: 0,
            ram_bytes_max: requirements.ram_bytes,
        };
        let level_pages = plain.pages(requirements.entries).ceil() as u64;
        let partitions_min = level_pages.div_ceil(PARTITION_PAGES);
        let config = match requirements.ram_bytes {
            Some(most) => plain.within(most, requirements.entries, partitions_min),
            None => {
                let buffers = (level_pages / LEVELS_PER_BUFFER).max(BUFFERS_MIN);
                let page_cache_bytes = buffers * PAGE_BYTES;
                Self { page_cache_bytes, ..plain.with_buffers(buffers, partitions_min) }
            }
        };
        let needed = config.ram_bytes_empty(FLUSH_THREADS) + config.map_bytes(requirements.entries);
        match requirements.ram_bytes.filter(|most| needed > *most) {
            Some(most) => Err(too_little("RAM", most, needed)),
            None => Ok(config),
        }
    }

    /// The same with an eighth of this RAM for buffers, or less where the rest is needed, and a cache of pages that
    /// leaves a sixteenth to the map, or more if that many entries need it.
    fn within(self, ram_bytes: u64, entries: u64, partitions_min: u64) -> Self {
        let group_pages = if ram_bytes < LARGE_RAM_BYTES { GROUP_PAGES_SMALL } else { GROUP_PAGES };
        let plain = Self { group_pages, ..self };
        let partitions_min = partitions_min.max(PARTITIONS_MIN);
        let taken = |config: &Self| {
            config.ram_bytes_empty(FLUSH_THREADS) + config.map_bytes(entries).max(ram_bytes / 16)
        };
        let mut buffers = (ram_bytes / PAGE_BYTES / 8).max(1);
        while buffers > 1 && taken(&plain.with_buffers(buffers, partitions_min)) > ram_bytes {
            buffers -= (buffers / 16).max(1);
        }
        let config = plain.with_buffers(buffers, partitions_min);
        Self { page_cache_bytes: ram_bytes.saturating_sub(taken(&config)), ..config }
    }

    /// RAM of the map for that many entries at most, in bytes.
    fn map_bytes(&self, entries: u64) -> u64 {
        (entries as f64 * self.map_bytes_per_entry(FLUSH_THREADS)) as u64
    }

    /// The same with buffers of that many pages together, for that many partitions if there are enough pages.
    fn with_buffers(self, buffers: u64, partitions_min: u64) -> Self {
        let wanted = partitions_min.max(buffers.div_ceil(BUFFER_PAGES_MAX)).next_power_of_two();
        let most = 1 << buffers.max(1).ilog2();
        let partitions = wanted.min(most).min(PARTITIONS_MAX.into()) as u32;
        Self {
            partitions,
            buffer_pages: (buffers / u64::from(partitions)).clamp(1, BUFFER_PAGES_MAX) as u32,
            spare_buffers: (partitions / 64).clamp(2, 8),
            first_pages: (FIRST_PAGES / partitions).max(1),
            stagger: partitions > 1,
            ..self
        }
    }

    /// The levels of an index that holds that many entries.
    pub(super) fn holding(&self, entries: u64) -> Vec<HeldLevel> {
        let space = PAGE_FILL * self.record_layout().slots() as f64;
        let mut pages = f64::from(self.partitions) * f64::from(self.first_pages);
        let (mut mean, mut comes) = (entries as f64 / pages, 1.0);
        let mut levels = Vec::new();
        while levels.is_empty() || (mean * pages >= 1.0 && levels.len() < 32) {
            let scatter = mean.sqrt().max(1e-9);
            // How far the mean is beyond a page's space, and how much a page passes on.
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

    /// Says of each level which share of its pages is in RAM, if all keys are looked up alike.
    fn note_cached(&self, levels: &mut [HeldLevel]) {
        let cache = PageCache::new(self.page_cache_bytes).pages_max() as f64;
        let all: f64 = levels.iter().map(|level| level.entries).sum();
        let mut below = all;
        let mut rates = Vec::new();
        for level in levels.iter() {
            // Lookups of keys in this level and later ones come by; each page with entries is read as often.
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

    /// Pages on flash of an index that holds that many entries.
    pub(super) fn pages(&self, entries: u64) -> f64 {
        let group = |level: &HeldLevel| self.group_pages_of(level);
        let there = |level: &HeldLevel| 1.0 - (1.0 - level.used).powf(group(level));
        self.holding(entries).iter().map(|level| level.pages * there(level)).sum()
    }

    /// Pages of each group of a level.
    fn group_pages_of(&self, level: &HeldLevel) -> f64 {
        f64::from(self.group_pages).min(level.pages / f64::from(self.partitions))
    }

    /// Device operations when it holds that many entries.
    pub(super) fn costs_with(&self, entries: u64) -> OperationCosts {
        let levels = self.holding(entries);
        let all: f64 = levels.iter().map(|level| level.entries).sum();
        let (mut reads, mut hits) = (0.0, 0.0);
        for level in &levels {
            let read = 1.0 - level.cached;
            hits += level.entries * (reads + read);
            reads += level.used * read;
        }
        let buffered = self.buffered_entries();
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
        }
    }

    /// Entries that a full buffer brings.
    fn buffered_entries(&self) -> f64 {
        let slots = self.layout().map_or(1, |layout| layout.slots());
        (slots as f64 * f64::from(self.buffer_pages) * BUFFER_FILL).max(1.0)
    }

    /// Bytes that a flush reads, and writes, at most, at that many entries: all of its partition's levels.
    fn flush_bytes(&self, entries: u64) -> f64 {
        self.pages(entries) / f64::from(self.partitions) * PAGE_BYTES as f64
    }

    /// As [`costs_with`](Self::costs_with), for levels that are 16 times the buffers.
    pub(super) fn usual_costs(&self) -> Result<OperationCosts> {
        self.validate()?;
        let pages = LEVELS_PER_BUFFER * u64::from(self.partitions) * u64::from(self.buffer_pages);
        Ok(self.costs_with((pages as f64 * 0.65 * self.record_layout().slots() as f64) as u64))
    }

    /// Bytes of flash for each entry that it grows by, as the mean over a doubling.
    pub(super) fn flash_bytes_per_entry(&self) -> f64 {
        PAGE_BYTES as f64 / (0.7 * self.record_layout().slots() as f64) * 1.25
    }
}

/// The configuration and costs of a multi-level index when it holds the required entries; see [`Config::advised`].
///
/// # Errors
/// As [`Config::advised`]; a limit that cannot be kept.
pub(super) fn advise(requirements: &Requirements) -> Result<Prediction> {
    let config = Config::advised(requirements)?;
    let entries = requirements.entries;
    let shape = config.shape()?;
    let level_bytes = config.pages(entries) as u64 * PAGE_BYTES;
    let flushed = config.flush_bytes(entries);
    let spare_bytes = level_bytes / 4 + flushed as u64;
    let flash_bytes = level_bytes + spare_bytes + crate::write::snapshot_pages(&shape) * PAGE_BYTES;
    requirements.check_flash(flash_bytes)?;
    let costs = config.costs_with(entries);
    requirements.check_miss_reads(costs.reads_per_miss)?;
    let device = &requirements.device.costs;
    let insert_worst_ns = device.read.ns(flushed) + device.insert_worst_ns(flushed);
    requirements.check_insert_worst(insert_worst_ns)?;
    requirements.check_load(&costs)?;
    let flush_ns = device.read.ns(flushed) + device.flush_ns(flushed);
    let buffer_bytes = config.buffer_bytes();
    let other_bytes =
        config.ram_bytes_empty(FLUSH_THREADS) - buffer_bytes + config.map_bytes(entries);
    Ok(Prediction {
        options: AnyOptions::default(),
        requirements: requirements.clone(),
        costs,
        entries_capacity: config.entries_max(FLUSH_THREADS).min(1 << 48),
        buffer_bytes,
        filter_bytes: 0,
        optional_filter_bytes: 0,
        other_bytes,
        flash_bytes,
        insert_amortised_ns: flush_ns / config.buffered_entries(),
        insert_worst_ns,
        compromise: None,
        parameters: parameters(&config),
        notes: notes(&config, entries),
        config: config.into(),
    })
}

pub(super) fn parameters(config: &Config) -> Vec<Parameter> {
    let number = |number: u32| ParameterValue::Count(number.into());
    vec![
        ("partitions", number(config.partitions)),
        ("pages_per_buffer", number(config.buffer_pages)),
        ("first_pages", number(config.first_pages)),
        ("group_pages", number(config.group_pages)),
        ("page_cache_bytes", ParameterValue::Count(config.page_cache_bytes)),
    ]
}

fn notes(config: &Config, entries: u64) -> Notes {
    let levels = config.holding(entries);
    let buffer = bytes(u64::from(config.buffer_pages) * PAGE_BYTES);
    let limit = config
        .ram_bytes_max
        .map_or("no limit".to_owned(), |most| format!("at most {}", bytes(most)));
    let first = u64::from(config.partitions) * u64::from(config.first_pages);
    Notes {
        shape: vec![
            line(
                "partitions",
                config.partitions.to_string(),
                format!("with a buffer of {buffer} each"),
            ),
            line(
                "levels",
                levels.len().to_string(),
                format!("of {} pages and twice as many in each further one", count(first)),
            ),
            line("pages in RAM", bytes(config.page_cache_bytes), "of those that lookups used last"),
            line(
                "flush",
                bytes(config.flush_bytes(entries) as u64),
                "of a partition's levels, at most",
            ),
        ],
        ram: format!("when it holds the required entries; {limit}"),
        buffers: "of all partitions, with the spare ones".into(),
        filters: "none: signatures and keys are in the pages".into(),
        other: "pages of levels, their map, groups of a flush, log".into(),
        per_entry: "all RAM over the required entries",
        flash: "levels, up to a quarter more between checkpoints, and snapshots of buffers".into(),
        hit: "a page of each level up to the key's; none where RAM has them".into(),
        miss: "a page of each level".into(),
        insert: "of device time, amortised: a flush over a buffer's entries".into(),
        insert_worst: "one flush: a partition's levels are read and written",
        written: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use nandex_device::{Counted, MemoryDevice};

    use super::*;
    use crate::multilevel::{Multilevel, RuntimeOptions};
    use crate::{Durability, Table, Threads, Volume, VolumeOptions};

    const WIDE: Config = Config { partitions: 2, buffer_pages: 4, ..Config::tiny() };

    /// Reads of a lookup of each sort, and bytes of an insert, as the device counts them.
    fn counted(config: Config, entries: u64) -> OperationCosts {
        let device = Arc::new(Counted::new(MemoryDevice::new()));
        let options = VolumeOptions {
            durability: Durability::Never,
            threads: Threads::Inline,
            ..VolumeOptions::tiny()
        };
        let volume = Volume::create(Arc::clone(&device) as _, options).unwrap();
        let options = RuntimeOptions { flush_threads: 0, ..RuntimeOptions::default() };
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

    /// What RHIK's paper says: all in DRAM at first, and 3 to 7 reads once the index exceeds it.
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
            let prediction = advise(&asked).unwrap();
            let config: &Config = prediction.config.of().unwrap();
            assert!(prediction.ram_bytes() <= ram_bytes, "{entries} in {ram_bytes}");
            let least = if ram_bytes < 64 << 20 { ram_bytes / 4 } else { ram_bytes / 2 };
            assert!(config.page_cache_bytes >= least, "{config:?} in {ram_bytes}");
            assert!(config.entries_max(FLUSH_THREADS) >= entries, "{config:?}");
        }
        let tight = Requirements { policy: Policy::Grow, ..Requirements::new(1_000, 8, 8) };
        let error = advise(&tight.ram(100 << 10)).unwrap_err().to_string();
        assert!(error.starts_with("RAM: 102400 bytes"), "{error}");
    }
}
