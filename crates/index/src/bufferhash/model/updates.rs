//! The cost of an update in a table whose super tables are cleaned, once it has all of its keys.
//!
//! Super tables take turns: the next one to be rewritten is the one to which the most was added. So just before that it
//! has E segments more than the L that a rewrite leaves, and the others have E (T - 1) / T, ..., E / T more. The ring
//! has space for S segments, so
//!
//! ```text
//!   T L + E (T + 1) / 2 = S          E = 2 (S - T L) / (T + 1)
//! ```
//!
//! and for each E segments that buffers fill, L + E are read and L are written again. An entry is written 1 + L / E
//! times, which is about 1 + u / (2 (1 - u)) if live entries are a share u of the ring.

use crate::bufferhash::rewrite::READ_PAGES;
use crate::model::{PAGE_BYTES, UpdateCosts, log_bytes};

/// The factor by which a rewrite sizes its segments for more keys.
const REWRITE_MARGIN: f64 = 33.0 / 32.0;
/// The largest share of a super table's keys that a buffer has: with more of them it is seldom full.
const BUFFERED_MAX: f64 = 0.95;

/// A ring whose super tables are rewritten in turns.
#[derive(Clone, Copy, Debug)]
pub(in crate::bufferhash) struct CleanedRing {
    /// The keys of the table.
    pub keys: u64,
    /// T: super tables.
    pub super_tables: u32,
    /// S: the segments in use just before a super table is rewritten.
    pub segments: u64,
    /// The maximum number of incarnations of a super table.
    pub incarnations_max: u32,
    /// The new entries of a flush.
    pub entries_per_flush: f64,
    /// The entries of a segment that a rewrite fills.
    pub entries_per_segment: u32,
    /// Pages of a segment that have entries.
    pub buffer_pages: u32,
    /// All pages of a segment.
    pub segment_pages: u32,
}

impl CleanedRing {
    /// Keys of a super table.
    fn keys_of_one(&self) -> f64 {
        self.keys as f64 / f64::from(self.super_tables)
    }

    /// Returns L: the segments that a rewrite leaves of a super table.
    fn rewritten(&self) -> f64 {
        (self.keys_of_one() * REWRITE_MARGIN / f64::from(self.entries_per_segment)).ceil()
    }

    /// Returns E: the segments added to a super table between two rewrites.
    fn flushed(&self) -> f64 {
        let (tables, left) = (f64::from(self.super_tables), self.rewritten());
        let by_space = 2.0 * (self.segments as f64 - tables * left) / (tables + 1.0);
        by_space.min(f64::from(self.incarnations_max) - left).max(1.0)
    }

    /// Returns 1 + L / E: the number of times that an entry is written.
    pub(super) fn times_written(&self) -> f64 {
        1.0 + self.rewritten() / self.flushed()
    }

    /// Returns L / (L + E): the live share of a super table when it is rewritten.
    pub(super) fn live_share(&self) -> f64 {
        self.rewritten() / (self.rewritten() + self.flushed())
    }

    /// Returns the updates for each entry that a flush adds: updates of keys that are already in the buffer replace
    /// their entries.
    fn updates_per_entry(&self) -> f64 {
        let buffered = (self.entries_per_flush / self.keys_of_one()).min(BUFFERED_MAX);
        -(1.0 - buffered).ln() / buffered
    }

    /// Returns the cost of an update, with updates spread evenly over all keys. `entry_bytes` are those of key and
    /// value.
    pub(in crate::bufferhash) fn update_costs(&self, entry_bytes: u64) -> UpdateCosts {
        let (left, flushed) = (self.rewritten(), self.flushed());
        let of_pages = |pages: u32| f64::from(pages) * PAGE_BYTES as f64;
        let updates = flushed * self.entries_per_flush * self.updates_per_entry();
        let read = (left + flushed) / updates;
        // As many pages of each incarnation at a time as there is RAM for.
        let read_pages = (READ_PAGES as f64 / (left + flushed)).floor();
        let read_pages = read_pages.clamp(1.0, f64::from(self.buffer_pages));
        UpdateCosts {
            read_bytes: read * of_pages(self.buffer_pages),
            reads: read * (f64::from(self.buffer_pages) / read_pages).ceil(),
            write_bytes: read * of_pages(self.segment_pages) + log_bytes(entry_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use nandex_device::{Counted, MemoryDevice};

    use crate::OpenOptions;
    use crate::bufferhash::{BufferHash, Config, Policy};
    use crate::model::Requirements;
    use crate::model::measured::{ERROR_MAX, Measured, Updates, volume};

    fn asked(entries: u64, key_bytes: u32, value_bytes: u32) -> Requirements {
        Requirements {
            policy: Policy::Reject,
            ..Requirements::new(entries, key_bytes, value_bytes)
        }
    }

    /// Fills a table of this configuration, and compares the cost of updates with the prediction.
    fn check(config: Config, asked: &Requirements, what: &str) {
        let costs = config.operation_costs().unwrap();
        let device = Arc::new(Counted::new(MemoryDevice::new()));
        let volume = volume(Arc::clone(&device) as _, config.log_bytes_best());
        let inline = OpenOptions::default().inline();
        let table = BufferHash::create_with(&volume, "t", config, inline).unwrap();
        let mut updates = Updates::fill(&table, asked);
        updates.put(3 * asked.entries);
        let measured = Measured::of(&device, &mut updates, 8 * asked.entries);
        let (entries, bytes) = (asked.entries, asked.entry_bytes());
        let what = format!("{what}, {entries} entries of {bytes} bytes");
        measured.check(&costs, (&what, ERROR_MAX));
    }

    #[test]
    fn updates_of_an_advised_table_cost_what_is_predicted() {
        let all = [(20_000, 8, 8), (100_000, 8, 8), (200_000, 8, 8), (100_000, 16, 16)];
        for (entries, key_bytes, value_bytes) in all {
            let asked = asked(entries, key_bytes, value_bytes);
            check(Config::advised(&asked).unwrap(), &asked, "advised");
        }
    }

    #[test]
    fn updates_cost_less_with_more_flash_and_more_with_fewer_columns() {
        let asked = asked(100_000, 8, 8);
        let config = Config::advised(&asked).unwrap();
        let written = |it: &Config| it.operation_costs().unwrap().update_write_bytes();
        let large = Config { segments: config.segments * 3 / 2, ..config.clone() };
        let few = Config { incarnations_max: 19, ..config.clone() };
        assert!(written(&large) < 0.9 * written(&config) && written(&few) > 1.2 * written(&config));
        check(large, &asked, "half as many more segments");
        check(few, &asked, "19 incarnations");
    }
}
