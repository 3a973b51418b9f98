//! The costs of a RHIK with the required entries, and its configuration for them.
//!
//! Tables split when they are `split_permille` full. They hold about the same numbers of entries, so most split at the
//! same time: over a doubling of the entries, the share of slots in use goes from nine tenths to half of that.

use super::config::Config;
use super::config::{NEIGHBOURHOOD, SPLIT_PERMILLE};
use crate::Result;
use crate::groups::GroupConfig;
use crate::groups::model::{self, GroupModel, TABLES_PER_BUFFER};
use crate::model::text::{bytes, count, line};
use crate::model::{
    Notes, OperationCosts, PAGE_BYTES, Parameter, ParameterValue, Requirements, log_bytes,
};

/// The maximum number of pages of a partition's tables, if the number of entries is known: 2 MiB, which a rewrite reads
/// and writes at once.
const PARTITION_PAGES: u64 = 512;
/// The minimum number of pages of all buffers, without a RAM limit: 16 MiB.
const BUFFERS_MIN: u64 = 4096;
/// The factor by which all buffers may grow, without a RAM limit.
const GROWTH: u64 = 4;
/// The number of deviations by which the fullest half of the tables differ from the mean.
const SPREAD: f64 = 1.0;

/// The tables for a number of entries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Holding {
    /// Record tables, a page each.
    pub tables: f64,
    /// The share of slots in use.
    pub occupancy: f64,
}

impl Config {
    /// Returns the configuration for the required entries. A table that begins small may become large: only its buffers
    /// keep their size, and each rewrite takes longer.
    ///
    /// # Errors
    /// A policy other than [`Policy::Grow`](crate::Policy::Grow), too little RAM.
    pub fn advised(requirements: &Requirements) -> Result<Self> {
        let common = model::plain::<Self>(requirements)?;
        let plain = Self {
            neighbourhood: NEIGHBOURHOOD,
            split_permille: SPLIT_PERMILLE,
            ..Self::tiny().with_common(common)
        };
        let layer_pages = plain.holding(requirements.entries).tables.ceil() as u64;
        let partitions_min = layer_pages.div_ceil(PARTITION_PAGES);
        let with_buffers = |buffers| {
            plain.with_common(model::with_buffers(plain.common(), buffers, partitions_min))
        };
        let buffers = match requirements.ram_bytes {
            // An eighth of the RAM is for the directory, or more if the entries need it.
            Some(most) => model::most_buffers(most / PAGE_BYTES, |buffers| {
                let config = with_buffers(buffers);
                let directory = model::map_bytes(&config, requirements.entries).max(most / 8);
                model::ram_bytes(&config) + directory <= most
            }),
            None => (GROWTH * layer_pages / TABLES_PER_BUFFER).max(BUFFERS_MIN),
        };
        model::within(with_buffers(buffers), requirements)
    }

    /// Returns the tables for `entries` entries.
    pub(super) fn holding(&self, entries: u64) -> Holding {
        let (slots, entries) = (self.record_layout().slots() as f64, entries.max(1) as f64);
        let most = self.occupancy().split_above as f64;
        let mut tables = f64::from(self.partitions);
        // Half of the tables have split when the mean is this much below what one table keeps.
        while entries / tables + SPREAD * (entries / tables).sqrt() > most {
            tables *= 2.0;
        }
        Holding { tables, occupancy: entries / tables / slots }
    }
}

impl GroupModel for Config {
    fn advised(requirements: &Requirements) -> Result<Self> {
        Self::advised(requirements)
    }

    fn tables(&self, entries: u64) -> f64 {
        self.holding(entries).tables
    }

    fn costs_with(&self, entries: u64) -> OperationCosts {
        let rewritten = self.holding(entries).tables * PAGE_BYTES as f64;
        let buffered = model::buffered_entries(self, entries) * f64::from(self.partitions);
        let entry_bytes = (self.key_bytes + self.value_bytes) as u64;
        let is_empty = entries as f64 <= buffered / 2.0;
        let share = rewritten / buffered;
        OperationCosts {
            reads_per_hit: if is_empty { 0.0 } else { 1.0 },
            reads_per_miss: 1.0,
            insert_read_bytes: share,
            insert_write_bytes: share + log_bytes(entry_bytes),
            updates: None,
        }
    }

    fn flash_bytes_per_entry(&self) -> f64 {
        let filled = 0.72 * self.occupancy().split_above as f64;
        PAGE_BYTES as f64 / filled * 1.25
    }

    fn buffer_pages_for(&self, tables: u64) -> usize {
        self.buffer_pages_at(tables)
    }

    fn parameters(&self) -> Vec<Parameter> {
        vec![
            ("neighbourhood", ParameterValue::Count(self.neighbourhood.into())),
            ("split_permille", ParameterValue::Count(self.split_permille.into())),
        ]
    }

    fn shape(&self) -> String {
        let most = self.occupancy().split_above;
        format!("tables of one page that split above {most} entries")
    }

    fn notes(&self, entries: u64, notes: Notes) -> Notes {
        let holding = self.holding(entries);
        let buffer = bytes(model::buffer_pages(self, entries) as u64 * PAGE_BYTES);
        let most = bytes(u64::from(self.buffer_pages) * PAGE_BYTES);
        let rewritten = bytes(model::rewrite_bytes(self, entries) as u64);
        let of_tables =
            format!("of one page, {:.0} % of their slots in use", 100.0 * holding.occupancy);
        let directory = bytes(model::map_bytes(self, entries));
        let of_buffers = format!("with a buffer of {buffer} each, which grows to {most}");
        Notes {
            shape: vec![
                line("partitions", self.partitions.to_string(), of_buffers),
                line("tables", count(holding.tables as u64), of_tables),
                line("directory", directory, "at most: it doubles as tables split"),
                line("rewrite", rewritten, "of a partition's tables, by a full buffer"),
            ],
            filters: "none: signatures and keys are in the tables".into(),
            other: "directory, groups of a rewrite, log".into(),
            flash: "tables, up to a quarter more between checkpoints, and snapshots of buffers"
                .into(),
            hit: "one page; none where a buffer answers".into(),
            miss: "one page".into(),
            insert: "of device time, amortised: a rewrite over a buffer's entries".into(),
            insert_worst: "one flush: a partition's tables are read and written",
            ..notes
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::OpenOptions;
    use std::sync::Arc;

    use nandex_device::MemoryDevice;

    use super::*;
    use crate::groups::model::advise;
    use crate::model::Policy;
    use crate::options::FLUSH_THREADS;
    use crate::rhik::Rhik;
    use crate::{Durability, Table, Threads, Volume, VolumeOptions};

    /// Returns the flash of a table with `entries` entries, and what it writes for each of a tenth more.
    fn counted(config: Config, entries: u64) -> (f64, f64) {
        let options = VolumeOptions {
            durability: Durability::Never,
            threads: Threads::Inline,
            ..VolumeOptions::tiny()
        };
        let volume = Volume::create(Arc::new(MemoryDevice::new()), options).unwrap();
        let options = OpenOptions::default().inline();
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
            let prediction = advise::<Config>(&asked).unwrap();
            let config: &Config = prediction.config.of().unwrap();
            assert!(prediction.ram_bytes() <= ram_bytes, "{entries} in {ram_bytes}");
            assert!(config.ram().buffer_bytes() >= ram_bytes / 4, "{config:?} in {ram_bytes}");
            assert!(config.ram().entries_max(FLUSH_THREADS) >= entries, "{config:?}");
        }
        let tight = Requirements { policy: Policy::Grow, ..Requirements::new(1_000, 8, 8) };
        let error = advise::<Config>(&tight.ram(100 << 10)).unwrap_err().to_string();
        assert!(error.starts_with("RAM: 102400 bytes"), "{error}");
    }

    #[test]
    fn a_table_of_64_million_entries_rewrites_two_mib_at_a_time_in_a_sixteenth_of_its_tables_ram() {
        let asked = Requirements { policy: Policy::Grow, ..Requirements::new(64_000_000, 8, 8) };
        let prediction = advise::<Config>(&asked).unwrap();
        let config: &Config = prediction.config.of().unwrap();
        assert!(model::rewrite_bytes(config, 64_000_000) <= (2 << 20) as f64, "{config:?}");
        let ratio = prediction.flash_bytes as f64 / prediction.buffer_bytes as f64;
        assert!((14.0..28.0).contains(&ratio), "{ratio}");
        assert_eq!((prediction.costs.reads_per_hit, prediction.costs.reads_per_miss), (1.0, 1.0));
    }
}
