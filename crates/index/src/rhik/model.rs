//! What a RHIK costs when it holds what is required, and its configuration for that.
//!
//! Tables split when they are `split_permille` full. They hold about the same numbers of entries, so most split at the
//! same time: over a doubling of the entries, the share of slots in use goes from nine tenths to half of that.

use super::config::{
    Config, FLUSH_THREADS, GROUP_PAGES, LAYER_PER_BUFFER, NEIGHBOURHOOD, PARTITIONS_MAX,
    SPLIT_PERMILLE,
};
use crate::Result;
use crate::any::AnyOptions;
use crate::model::text::{bytes, count, line};
use crate::model::{
    Notes, OperationCosts, PAGE_BYTES, Parameter, ParameterValue, Policy, Prediction, Requirements,
    log_bytes, too_little,
};

/// Pages of a partition's tables, at most, where the number of entries is known: 2 MiB, which a rewrite reads and
/// writes at once.
const PARTITION_PAGES: u64 = 512;
/// The most pages of a buffer.
const BUFFER_PAGES_MAX: u64 = 64;
/// Pages of all buffers at least, without a limit of RAM: 16 MiB.
const BUFFERS_MIN: u64 = 4096;
/// How much more than now all buffers may take as it grows, without a limit of RAM.
const GROWTH: u64 = 4;
/// The least RAM of a table whose groups have the usual size.
const LARGE_RAM_BYTES: u64 = 16 << 20;
/// Tables of a group where there is less.
const GROUP_PAGES_SMALL: u32 = 16;
/// The share of a buffer's slots in use when it is full.
const BUFFER_FILL: f64 = 0.93;
/// Deviations by which the fullest half of the tables differ from the mean.
const SPREAD: f64 = 1.0;

/// A table that holds that many entries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Holding {
    /// Record tables, a page each.
    pub tables: f64,
    /// The share of slots in use.
    pub occupancy: f64,
}

impl Config {
    /// The configuration for the required entries. A table that begins small may become large: only its buffers keep
    /// their size, and each rewrite becomes longer.
    ///
    /// # Errors
    /// A policy other than [`Policy::Grow`], too little RAM.
    pub fn advised(requirements: &Requirements) -> Result<Self> {
        requirements.check()?;
        requirements.check_no_extras("rhik")?;
        requirements.check_policy("rhik", "grow", requirements.policy == Policy::Grow)?;
        let plain = Self {
            key_bytes: requirements.key_bytes as usize,
            value_bytes: requirements.value_bytes as usize,
            partitions: 1,
            buffer_pages: 1,
            spare_buffers: 2,
            neighbourhood: NEIGHBOURHOOD,
            split_permille: SPLIT_PERMILLE,
            group_pages: GROUP_PAGES,
            stagger: true,
            ram_bytes_max: requirements.ram_bytes,
        };
        let layer_pages = plain.holding(requirements.entries).tables.ceil() as u64;
        let partitions_min = layer_pages.div_ceil(PARTITION_PAGES);
        let config = match requirements.ram_bytes {
            Some(most) => plain.within(most, requirements.entries, partitions_min),
            None => {
                let buffers = (GROWTH * layer_pages / LAYER_PER_BUFFER).max(BUFFERS_MIN);
                plain.with_buffers(buffers, partitions_min)
            }
        };
        let needed =
            config.ram_bytes_empty(FLUSH_THREADS) + config.directory_bytes(requirements.entries);
        match requirements.ram_bytes.filter(|most| needed > *most) {
            Some(most) => Err(too_little("RAM", most, needed)),
            None => Ok(config),
        }
    }

    /// The same with the buffers that leave an eighth of this RAM to the directory, or more if that many entries need
    /// it.
    fn within(self, ram_bytes: u64, entries: u64, partitions_min: u64) -> Self {
        let group_pages = if ram_bytes < LARGE_RAM_BYTES { GROUP_PAGES_SMALL } else { GROUP_PAGES };
        let plain = Self { group_pages, ..self };
        let fits = |buffers: u64| {
            let config = plain.with_buffers(buffers, partitions_min);
            let directory = config.directory_bytes(entries).max(ram_bytes / 8);
            config.ram_bytes_empty(FLUSH_THREADS) + directory <= ram_bytes
        };
        let mut buffers = ram_bytes / PAGE_BYTES;
        while buffers > 1 && !fits(buffers) {
            buffers -= (buffers / 16).max(1);
        }
        plain.with_buffers(buffers.max(1), partitions_min)
    }

    /// RAM of the directory of that many entries at most, in bytes.
    fn directory_bytes(&self, entries: u64) -> u64 {
        (entries as f64 * self.directory_bytes_per_entry(FLUSH_THREADS)) as u64
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
            stagger: partitions > 1,
            ..self
        }
    }

    /// The tables of that many entries.
    pub(super) fn holding(&self, entries: u64) -> Holding {
        let (slots, entries) = (self.record_layout().slots() as f64, entries.max(1) as f64);
        let most = self.occupancy().split_above as f64;
        let mut tables = f64::from(self.partitions);
        // Half of the tables have split when the mean is this much less than what one keeps.
        while entries / tables + SPREAD * (entries / tables).sqrt() > most {
            tables *= 2.0;
        }
        Holding { tables, occupancy: entries / tables / slots }
    }

    /// Device operations when it holds that many entries.
    pub(super) fn costs_with(&self, entries: u64) -> OperationCosts {
        let rewritten = self.holding(entries).tables * PAGE_BYTES as f64;
        let buffered = self.buffered_entries(entries) * f64::from(self.partitions);
        let entry_bytes = (self.key_bytes + self.value_bytes) as u64;
        let is_empty = entries as f64 <= buffered / 2.0;
        let share = rewritten / buffered;
        OperationCosts {
            reads_per_hit: if is_empty { 0.0 } else { 1.0 },
            reads_per_miss: 1.0,
            insert_read_bytes: share,
            insert_write_bytes: share + log_bytes(entry_bytes),
        }
    }

    /// Entries that a full buffer brings when the table holds that many.
    fn buffered_entries(&self, entries: u64) -> f64 {
        let slots = self.layout().map_or(1, |layout| layout.slots());
        (slots as f64 * self.buffer_pages_with(entries) as f64 * BUFFER_FILL).max(1.0)
    }

    /// Pages of a buffer when the table holds that many entries.
    fn buffer_pages_with(&self, entries: u64) -> usize {
        self.buffer_pages_for(self.holding(entries).tables as u64)
    }

    /// RAM when the table holds that many entries, in bytes: buffers, and everything else.
    fn ram_bytes_with(&self, entries: u64) -> (u64, u64) {
        // Tables that are a little more than was expected make buffers a page larger.
        let pages = (self.buffer_pages_with(entries) as u32 + 1).min(self.buffer_pages);
        let then = Self { buffer_pages: pages, ..*self };
        let other = self.ram_bytes_empty(FLUSH_THREADS) - self.buffer_bytes();
        (then.buffer_bytes(), other + self.directory_bytes(entries))
    }

    /// Bytes that a rewrite reads, and writes, at that many entries.
    fn rewrite_bytes(&self, entries: u64) -> f64 {
        self.holding(entries).tables / f64::from(self.partitions) * PAGE_BYTES as f64
    }
}

/// The configuration and costs of a RHIK when it holds the required entries; see [`Config::advised`].
///
/// # Errors
/// As [`Config::advised`]; a limit that cannot be kept.
pub(super) fn advise(requirements: &Requirements) -> Result<Prediction> {
    let config = Config::advised(requirements)?;
    let entries = requirements.entries;
    let holding = config.holding(entries);
    let shape = config.shape()?;
    let layer_bytes = holding.tables as u64 * PAGE_BYTES;
    let spare_bytes = layer_bytes / 4 + config.rewrite_bytes(entries) as u64;
    let flash_bytes = layer_bytes + spare_bytes + crate::write::snapshot_pages(&shape) * PAGE_BYTES;
    requirements.check_flash(flash_bytes)?;
    let costs = config.costs_with(entries);
    requirements.check_miss_reads(costs.reads_per_miss)?;
    let device = &requirements.device.costs;
    let rewritten = config.rewrite_bytes(entries);
    let insert_worst_ns = device.read.ns(rewritten) + device.insert_worst_ns(rewritten);
    requirements.check_insert_worst(insert_worst_ns)?;
    requirements.check_load(&costs)?;
    let rewrite_ns = device.read.ns(rewritten) + device.flush_ns(rewritten);
    let (buffer_bytes, other_bytes) = config.ram_bytes_with(entries);
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
        insert_amortised_ns: rewrite_ns / config.buffered_entries(entries),
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
        ("neighbourhood", number(config.neighbourhood)),
        ("split_permille", number(config.split_permille)),
        ("group_pages", number(config.group_pages)),
    ]
}

fn notes(config: &Config, entries: u64) -> Notes {
    let holding = config.holding(entries);
    let buffer = bytes(config.buffer_pages_with(entries) as u64 * PAGE_BYTES);
    let most = bytes(u64::from(config.buffer_pages) * PAGE_BYTES);
    let rewritten = bytes(config.rewrite_bytes(entries) as u64);
    let limit = config
        .ram_bytes_max
        .map_or("no limit".to_owned(), |most| format!("at most {}", bytes(most)));
    Notes {
        shape: vec![
            line(
                "partitions",
                config.partitions.to_string(),
                format!("with a buffer of {buffer} each, which grows to {most}"),
            ),
            line(
                "tables",
                count(holding.tables as u64),
                format!("of one page, {:.0} % of their slots in use", 100.0 * holding.occupancy),
            ),
            line(
                "directory",
                bytes(config.directory_bytes(entries)),
                "at most: it doubles as tables split",
            ),
            line("rewrite", rewritten, "of a partition's tables, by a full buffer"),
        ],
        ram: format!("when it holds the required entries; {limit}"),
        buffers: "of all partitions, with the spare ones".into(),
        filters: "none: signatures and keys are in the tables".into(),
        other: "directory, groups of a rewrite, log".into(),
        per_entry: "all RAM over the required entries",
        flash: "tables, up to a quarter more between checkpoints, and snapshots of buffers".into(),
        hit: "one page; none where a buffer answers".into(),
        miss: "one page".into(),
        insert: "of device time, amortised: a rewrite over a buffer's entries".into(),
        insert_worst: "one flush: a partition's tables are read and written",
        written: Vec::new(),
    }
}

impl Config {
    /// As [`costs_with`](Self::costs_with), for the entries of tables that are 16 times the buffers.
    pub(super) fn usual_costs(&self) -> Result<OperationCosts> {
        self.validate()?;
        let pages = LAYER_PER_BUFFER * u64::from(self.partitions) * u64::from(self.buffer_pages);
        Ok(self.costs_with((pages as f64 * 0.65 * self.record_layout().slots() as f64) as u64))
    }

    /// Bytes of flash for each entry that it grows by, as the mean over a doubling.
    pub(super) fn flash_bytes_per_entry(&self) -> f64 {
        let filled = 0.72 * self.occupancy().split_above as f64;
        PAGE_BYTES as f64 / filled * 1.25
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use nandex_device::MemoryDevice;

    use super::*;
    use crate::rhik::{Rhik, RuntimeOptions};
    use crate::{Durability, Table, Threads, Volume, VolumeOptions};

    /// What a table of that many entries has on flash, and what it writes for each of a tenth more.
    fn counted(config: Config, entries: u64) -> (f64, f64) {
        let options = VolumeOptions {
            durability: Durability::Never,
            threads: Threads::Inline,
            ..VolumeOptions::tiny()
        };
        let volume = Volume::create(Arc::new(MemoryDevice::new()), options).unwrap();
        let options = RuntimeOptions { flush_threads: 0, ..RuntimeOptions::default() };
        let table = Rhik::create_with(&volume, "t", config, options).unwrap();
        let insert = |number| table.insert_u64(number, number).unwrap();
        (0..entries).for_each(insert);
        let (tables, before) = (table.rhik_stats().tables, table.stats().data_bytes_written);
        (entries..entries * 6 / 5).for_each(insert);
        let written = table.stats().data_bytes_written - before;
        (tables as f64, written as f64 / (entries / 5) as f64)
    }

    #[test]
    fn tables_and_writes_are_what_is_predicted() {
        let config = Config { partitions: 4, buffer_pages: 4, ..Config::tiny() };
        for entries in [25_000, 40_000, 60_000, 90_000] {
            let (tables, written) = counted(config, entries);
            let predicted = config.holding(entries).tables;
            let ratio = tables / predicted;
            assert!((0.65..1.5).contains(&ratio), "{entries}: {tables} tables of {predicted}");
            let predicted = config.costs_with(entries * 11 / 10).insert_read_bytes;
            let ratio = written / predicted;
            assert!((0.65..1.5).contains(&ratio), "{entries}: {written} bytes of {predicted}");
        }
    }

    #[test]
    fn advice_keeps_the_ram_that_is_stated_and_gives_most_of_it_to_buffers() {
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
            assert!(config.buffer_bytes() >= ram_bytes / 4, "{config:?} in {ram_bytes}");
            assert!(config.entries_max(FLUSH_THREADS) >= entries, "{config:?}");
        }
        let tight = Requirements { policy: Policy::Grow, ..Requirements::new(1_000, 8, 8) };
        let error = advise(&tight.ram(100 << 10)).unwrap_err().to_string();
        assert!(error.starts_with("RAM: 102400 bytes"), "{error}");
    }

    #[test]
    fn a_table_of_64_million_entries_rewrites_two_mib_at_a_time_in_a_sixteenth_of_its_tables_ram() {
        let asked = Requirements { policy: Policy::Grow, ..Requirements::new(64_000_000, 8, 8) };
        let prediction = advise(&asked).unwrap();
        let config: &Config = prediction.config.of().unwrap();
        assert!(config.rewrite_bytes(64_000_000) <= (2 << 20) as f64, "{config:?}");
        let ratio = prediction.flash_bytes as f64 / prediction.buffer_bytes as f64;
        assert!((14.0..28.0).contains(&ratio), "{ratio}");
        assert_eq!((prediction.costs.reads_per_hit, prediction.costs.reads_per_miss), (1.0, 1.0));
    }
}
