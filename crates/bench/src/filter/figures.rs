//! What a run of a filter came to: rates, costs, ratios to the device's limits, and the rate of false
//! positives with its bounds.

use serde::{Deserialize, Serialize};

use super::limits::FilterLimits;
use super::subject::State;
use crate::drive::Tally;
use crate::figures::ratio;
use crate::process::DiskBytes;

/// What one run measured; the keys of the JSON are the names of these fields.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct FilterFigures {
    /// Length of the timed part.
    pub seconds: f64,
    /// Waiting for buffers and merges after it; not part of any rate.
    pub settle_seconds: f64,
    /// Operations done.
    pub operations: u64,
    /// Lookups answered with yes.
    pub positives: u64,
    /// Operations per second, of any kind.
    pub operations_per_s: f64,
    /// Inserts, deletes or increments per second.
    pub changes_per_s: Option<f64>,
    /// Lookups per second.
    pub lookups_per_s: Option<f64>,
    /// The device's random 4 KiB reads per second at the same lanes and depth: mean of just before and
    /// just after the run.
    pub device_reads_per_s: Option<f64>,
    /// The same at depth 1.
    pub device_reads_depth_1_per_s: Option<f64>,
    /// The same at depth 32.
    pub device_reads_depth_32_per_s: Option<f64>,
    /// The device's sequential reads, likewise.
    pub device_read_bytes_per_s: Option<f64>,
    /// The device's sequential writes, likewise.
    pub device_write_bytes_per_s: Option<f64>,
    /// Lookups per second over `device_reads_per_s`.
    pub lookups_to_device: Option<f64>,
    /// Part of the run, settling included, that the device would need at its sequential limits for the
    /// bytes that were moved: near 1 where the device is what limits.
    pub device_share: Option<f64>,
    /// Pages read per lookup, as the filter counts them.
    pub reads_per_lookup: Option<f64>,
    /// Bytes the kernel read from disks, in units of 4 KiB per lookup.
    pub disk_reads_per_lookup: Option<f64>,
    /// Bytes the kernel read from disks per change, settling included.
    pub disk_bytes_read_per_change: Option<f64>,
    /// Bytes the kernel wrote to disks per change, settling included.
    pub disk_bytes_written_per_change: Option<f64>,
    /// RAM the filter says it holds.
    pub ram_bytes: u64,
    /// Flash it occupies.
    pub flash_bytes: u64,
    /// Flash over the RAM it was given.
    pub flash_over_ram: Option<f64>,
    /// Bits of flash, or of RAM where there is no flash, per key.
    pub bits_per_key: Option<f64>,
    /// Levels on flash that lookups ask.
    pub levels: Option<u64>,
    /// The rate of false positives that the filter says it has.
    pub rate_stated: f64,
    /// False positives over lookups of absent keys, where nothing else was looked up.
    pub rate_measured: Option<f64>,
    /// The least rate that these lookups leave likely (95 %).
    pub rate_low: Option<f64>,
    /// The greatest.
    pub rate_high: Option<f64>,
    /// Counts above the true ones, over those that were checked.
    pub counts_above: Option<f64>,
    /// CPU time of all threads per operation, in microseconds.
    pub cpu_us_per_op: f64,
    /// Resident memory of the whole process.
    pub rss_bytes: Option<u64>,
    /// Bytes allocated from the Rust heap since before the filter was made, and not freed.
    pub allocated_bytes: Option<u64>,
}

/// Rates and the cost in CPU time of what `tally` counts.
pub(super) fn rates(tally: &Tally, cpu_ns: u64) -> FilterFigures {
    let per_s = |count: u64| count as f64 / tally.seconds.max(1e-9);
    let operations = tally.operations();
    FilterFigures {
        seconds: tally.seconds,
        operations,
        positives: tally.hits,
        operations_per_s: per_s(operations),
        changes_per_s: (tally.inserts > 0).then(|| per_s(tally.inserts)),
        lookups_per_s: (tally.lookups > 0).then(|| per_s(tally.lookups)),
        cpu_us_per_op: cpu_ns as f64 / 1000.0 / operations.max(1) as f64,
        ..FilterFigures::default()
    }
}

impl FilterFigures {
    /// How the filter was before and after, over the budget it was given.
    pub(super) fn space(&mut self, now: State, before: State, ram_budget: u64, keys: u64) {
        self.ram_bytes = now.ram_bytes;
        self.flash_bytes = now.flash_bytes;
        self.levels = now.levels;
        self.rate_stated = now.rate;
        let on_flash = now.flash_bytes > 0;
        self.flash_over_ram = ratio(now.flash_bytes as f64, ram_budget as f64).filter(|_| on_flash);
        let bytes = if on_flash { now.flash_bytes } else { now.ram_bytes };
        self.bits_per_key = ratio(bytes as f64 * 8.0, keys as f64).filter(|_| bytes > 0);
        let reads = now.lookup_reads.zip(before.lookup_reads).map(|(now, before)| now - before);
        let lookups = self.lookups_per_s.map(|_| self.operations as f64);
        let per_lookup = reads.zip(lookups).and_then(|(reads, all)| ratio(reads as f64, all));
        self.reads_per_lookup = per_lookup.filter(|_| self.changes_per_s.is_none());
    }

    /// What the kernel moved.
    pub(super) fn disk(&mut self, moved: Option<DiskBytes>, tally: &Tally) {
        let Some(moved) = moved else { return };
        if tally.inserts > 0 {
            let changes = tally.inserts as f64;
            self.disk_bytes_read_per_change = ratio(moved.read as f64, changes);
            self.disk_bytes_written_per_change = ratio(moved.written as f64, changes);
        } else {
            let pages = moved.read as f64 / nandex_device::PAGE_BYTES as f64;
            self.disk_reads_per_lookup = ratio(pages, tally.lookups as f64);
        }
    }

    /// The false positives among lookups of absent keys.
    pub(super) fn false_positives(&mut self, tally: &Tally) {
        let (low, high) = interval(tally.hits, tally.lookups);
        self.rate_measured = ratio(tally.hits as f64, tally.lookups as f64);
        (self.rate_low, self.rate_high) = (Some(low), Some(high));
    }

    /// Sets the run beside the device's limits around it.
    pub(super) fn compare(&mut self, before: Option<FilterLimits>, after: Option<FilterLimits>) {
        let Some((before, after)) = before.zip(after) else { return };
        let limits = FilterLimits::between(before, after);
        self.device_reads_per_s = Some(limits.reads_per_s);
        self.device_reads_depth_1_per_s = Some(limits.reads_depth_1_per_s);
        self.device_reads_depth_32_per_s = Some(limits.reads_depth_32_per_s);
        self.device_read_bytes_per_s = Some(limits.read_bytes_per_s);
        self.device_write_bytes_per_s = Some(limits.write_bytes_per_s);
        self.lookups_to_device =
            self.lookups_per_s.and_then(|lookups| ratio(lookups, limits.reads_per_s));
        let moved = self.disk_bytes_read_per_change.zip(self.disk_bytes_written_per_change);
        self.device_share = moved.and_then(|(read, written)| {
            let seconds = read / limits.read_bytes_per_s + written / limits.write_bytes_per_s;
            let changes = self.changes_per_s? * self.seconds;
            ratio(seconds * changes, self.seconds + self.settle_seconds)
        });
    }
}

/// Wilson's interval of 95 % for a rate of which `hits` of `draws` were seen.
#[must_use]
pub fn interval(hits: u64, draws: u64) -> (f64, f64) {
    const Z: f64 = 1.959_964;
    if draws == 0 {
        return (0.0, 1.0);
    }
    let (draws, rate) = (draws as f64, hits as f64 / draws as f64);
    let middle = rate + Z * Z / (2.0 * draws);
    let reach = Z * (rate * (1.0 - rate) / draws + Z * Z / (4.0 * draws * draws)).sqrt();
    let whole = 1.0 + Z * Z / draws;
    (((middle - reach) / whole).max(0.0), ((middle + reach) / whole).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_holds_the_rate_and_narrows_with_draws() {
        // Worked by hand: 39 of 10,000.
        let (low, high) = interval(39, 10_000);
        assert!((low - 0.002_855).abs() < 1e-5 && (high - 0.005_326).abs() < 1e-5, "{low} {high}");
        let (low, high) = interval(39_000, 10_000_000);
        assert!(0.00386 < low && low < 0.0039 && 0.0039 < high && high < 0.00394, "{low} {high}");
        assert_eq!(interval(0, 0), (0.0, 1.0));
        let (none, some) = interval(0, 1000);
        assert!(none < 1e-12 && some > 0.003 && some < 0.004, "{none} {some}");
    }

    #[test]
    fn a_run_that_only_moves_bytes_at_the_devices_rate_has_a_share_of_one() {
        let limits = FilterLimits {
            reads_per_s: 1.0,
            reads_depth_1_per_s: 1.0,
            reads_depth_32_per_s: 1.0,
            read_bytes_per_s: 200.0,
            write_bytes_per_s: 100.0,
        };
        let tally = Tally { inserts: 10, seconds: 1.5, ..Tally::default() };
        let mut figures = rates(&tally, 0);
        figures.disk(Some(DiskBytes { read: 100, written: 100 }), &tally);
        figures.compare(Some(limits), Some(limits));
        assert!((figures.device_share.unwrap() - 1.0).abs() < 1e-9, "{figures:?}");
    }
}
