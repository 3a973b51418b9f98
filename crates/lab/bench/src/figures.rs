//! The figures of a run: rates, costs per operation, ratios to the device's limits.

use nandex::TableStats;
use nandex_device::PAGE_BYTES;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::counted::Counted;
use crate::limit::Limits;
use crate::process::DiskBytes;
use crate::space::Space;
use crate::subject::Status;
use crate::worker::Counters;
use crate::workload::Kind;

/// The figures of one run by their names, which are keys of the JSON; null if one does not apply or is
/// unknown. Tables and filters each have their own figures.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Figures(Map<String, Value>);

/// The figures of every run.
const OF_ALL: [&str; 19] = [
    // Length of the timed part.
    "seconds",
    // Waiting for work in the background after it; not part of any rate.
    "settle_seconds",
    // Operations done, and per second.
    "operations",
    "operations_per_s",
    "lookups_per_s",
    // The device's random 4 KiB reads per second at the same threads and depth, and its sequential writes: means
    // of just before and just after the run. Reads are the larger of those through our engine and those by fio.
    "device_reads_per_s",
    "device_write_bytes_per_s",
    "engine_reads_per_s",
    "fio_reads_per_s",
    // Processor time of a read by fio.
    "fio_cpu_us_per_read",
    // Bytes the kernel read from disks, in units of 4 KiB per lookup; all engines, through the page cache.
    "disk_reads_per_lookup",
    // CPU time of all threads per operation, settling included, in microseconds.
    "cpu_us_per_op",
    // Resident memory of the whole process.
    "rss_bytes",
    // Bytes allocated from the Rust heap since before the engine was made, and not freed. The harness's latency
    // histograms are in it, 130 KiB per thread and kind; allocations of C and C++ engines are not.
    "allocated_bytes",
    // Bytes that the engine's files take of the disk after the run, logs included, and the same per live key.
    "file_bytes",
    "file_bytes_per_entry",
    // The rounds of changes of `--settle` before the runs, and the bytes per live key before and after them.
    "settled_rounds",
    "file_bytes_per_entry_fresh",
    "file_bytes_per_entry_settled",
];

/// The figures of tables alone.
const OF_TABLES: [&str; 15] = [
    // Lookups that found their key.
    "hits",
    // Inserts and overwrites per second.
    "inserts_per_s",
    // With lookups: lookups per second over `device_reads_per_s`. Otherwise: bytes written per second over
    // `device_write_bytes_per_s`.
    "ratio_to_device",
    // Pages read per lookup that found its key and per one that did not, as the index counts them.
    "reads_per_hit",
    "reads_per_miss",
    // RAM the engine reports, and the same per entry.
    "ram_bytes",
    "ram_bytes_per_entry",
    // Flash that the engine says it occupies, and the same per live key.
    "flash_bytes",
    "flash_bytes_per_entry",
    // Bytes written per byte of the caller's entries: the index's own count (data and log) if it has one,
    // else the kernel's.
    "write_amplification",
    // Bytes written per insert: the index's to its pages and to its log, and the kernel's to disks.
    "data_bytes_per_entry",
    "log_bytes_per_entry",
    "disk_bytes_per_entry",
    // Entries over capacity of the buffers that were flushed.
    "flush_fill",
    // Entries dropped by the eviction policy.
    "evicted",
];

/// The figures of filters alone.
const OF_FILTERS: [&str; 30] = [
    // Lookups answered with yes.
    "positives",
    // Inserts, deletes or increments per second.
    "changes_per_s",
    // Random reads of the device by one thread at depth 1 and 32, and its sequential reads.
    "device_reads_depth_1_per_s",
    "device_reads_depth_32_per_s",
    "device_read_bytes_per_s",
    // Lookups per second over `device_reads_per_s`.
    "lookups_to_device",
    // The maximum pages that a lookup reads, if it is a parameter, such as the hash functions of a
    // SliceBloom; and lookups per second over those that the device's reads allow: `device_reads_per_s` over
    // these pages.
    "lookup_reads_max",
    "lookups_to_limit",
    // Pages that lookups read per second, as the engine counts them, over `device_reads_per_s`.
    "reads_to_device",
    // The part of the run, settling included, that the device would need at its sequential limits for the
    // moved bytes: near 1 if the device is the bottleneck.
    "device_share",
    // Pages read per lookup, as the filter counts them.
    "reads_per_lookup",
    // Bytes the kernel read from and wrote to disks per change, settling included.
    "disk_bytes_read_per_change",
    "disk_bytes_written_per_change",
    // RAM the filter reports, flash it occupies, and that over its RAM budget.
    "ram_bytes",
    "flash_bytes",
    "flash_over_ram",
    // Bits of flash, or of RAM without flash, per key; and bits of RAM.
    "bits_per_key",
    "ram_bits_per_key",
    // Levels on flash that lookups read.
    "levels",
    // The rate of false positives that the filter reports.
    "rate_stated",
    // False positives over lookups of absent keys, if nothing else was looked up, and the interval of likely
    // rates (95 %).
    "rate_measured",
    "rate_low",
    "rate_high",
    // Counts above the true ones, over those that were checked.
    "counts_above",
    // Different keys that are in it, and for each of them RAM and flash that it reports. Only of a stream of additions
    // and of lookups in a loaded counter or filter.
    "distinct_keys",
    "ram_bytes_per_key",
    "flash_bytes_per_key",
    // Bytes that it counts as written per change, to its data and to its log, settling included.
    "data_bytes_per_change",
    "log_bytes_per_change",
    // Of additions: processor time of drawing the keys, which is in `cpu_us_per_op` and in the rate, in microseconds
    // for each.
    "draw_cpu_us_per_op",
];

/// The figures of indexes of neighbours alone. A change is an insert of a document.
const OF_NEIGHBORS: [&str; 19] = [
    // Lookups that found their own document; for absent documents, lookups with candidates.
    "hits",
    // Documents inserted per second.
    "inserts_per_s",
    // Candidates of a lookup, including the document itself.
    "candidates_per_lookup",
    // As for filters: a lookup reads at most one page of each table.
    "lookups_to_device",
    "lookup_reads_max",
    "lookups_to_limit",
    "reads_to_device",
    "reads_per_lookup",
    // Stored documents.
    "documents",
    // RAM that the index reports, the same per document, and flash it occupies over that.
    "ram_bytes",
    "ram_bytes_per_document",
    "flash_bytes",
    "flash_over_own_ram",
    // Bytes that it counts as written per change, to its data and to its log, settling included; and those that the
    // kernel wrote to disks.
    "data_bytes_per_change",
    "log_bytes_per_change",
    "disk_bytes_written_per_change",
    // Entries over capacity of the buffers that were flushed, in all.
    "flush_fill",
    // Ids that full buckets have dropped, and that a full index has evicted, in the run.
    "dropped",
    "evicted",
];

/// The data of a run that has ended.
pub(crate) struct Run<'a> {
    /// The kind of the engine.
    pub(crate) kind: Kind,
    /// The counters of the operations.
    pub(crate) counters: &'a Counters,
    /// The engine's status before.
    pub(crate) before: &'a Status,
    /// The engine's status now.
    pub(crate) after: &'a Status,
    /// Entries in it now.
    pub(crate) entries: u64,
    /// The bytes of a key and its value, for a table.
    pub(crate) entry_bytes: u64,
    /// The RAM it was given.
    pub(crate) ram_budget: u64,
    /// Waiting for work in the background.
    pub(crate) settle_seconds: f64,
    /// CPU time of all threads.
    pub(crate) cpu_ns: u64,
    /// Bytes the kernel moved.
    pub(crate) disk: Option<DiskBytes>,
}

impl Figures {
    /// Creates all figures of an engine of this kind, empty.
    #[must_use]
    pub fn of(kind: Kind) -> Self {
        let own: &[&str] = match kind {
            Kind::Table => &OF_TABLES,
            Kind::Filter => &OF_FILTERS,
            Kind::Neighbors => &OF_NEIGHBORS,
        };
        let names = OF_ALL.iter().chain(own);
        Self(names.map(|&name| (name.to_owned(), Value::Null)).collect())
    }

    /// Returns the names.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.0.keys()
    }

    /// Returns a figure as a number, if there is one.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name)?.as_f64()
    }

    /// Sets a figure, if an engine of this kind has it.
    pub(crate) fn set(&mut self, name: &str, figure: impl Into<Value>) {
        if let Some(place) = self.0.get_mut(name) {
            *place = figure.into();
        }
    }

    /// Computes all figures except those of memory, false positives and the device.
    pub(crate) fn of_run(run: &Run<'_>) -> Self {
        let mut figures = Self::of(run.kind);
        figures.rates(run);
        figures.space(run);
        figures.read_costs(run);
        figures.write_costs(run);
        figures.neighbors(run);
        figures
    }

    fn rates(&mut self, run: &Run<'_>) {
        let Counters { changes, lookups, hits, seconds, .. } = *run.counters;
        let operations = run.counters.operations();
        let per_s = |count: u64| count as f64 / seconds.max(1e-9);
        let changes_per_s = (changes > 0).then(|| per_s(changes));
        self.set("seconds", seconds);
        self.set("settle_seconds", run.settle_seconds);
        self.set("operations", operations);
        self.set("hits", hits);
        self.set("positives", hits);
        self.set("operations_per_s", per_s(operations));
        self.set("inserts_per_s", changes_per_s);
        self.set("changes_per_s", changes_per_s);
        self.set("lookups_per_s", (lookups > 0).then(|| per_s(lookups)));
        self.set("cpu_us_per_op", run.cpu_ns as f64 / 1000.0 / operations.max(1) as f64);
    }

    fn space(&mut self, run: &Run<'_>) {
        let (after, entries) = (run.after, run.entries as f64);
        let ram = after.ram_bytes.map(|bytes| bytes as f64);
        self.set("ram_bytes", after.ram_bytes);
        let per_entry = ram.and_then(|bytes| ratio(bytes, entries));
        self.set("ram_bytes_per_entry", per_entry);
        self.set("ram_bytes_per_document", per_entry);
        self.set("ram_bits_per_key", per_entry.map(|bytes| bytes * 8.0));
        self.set("documents", entries);
        let is_known = run.kind != Kind::Table || after.flash_bytes > 0;
        self.set("flash_bytes", is_known.then_some(after.flash_bytes));
        self.set("levels", after.levels);
        self.set("rate_stated", after.rate);
        let flash = (after.flash_bytes > 0).then_some(after.flash_bytes as f64);
        self.set("flash_over_ram", flash.and_then(|bytes| ratio(bytes, run.ram_budget as f64)));
        self.set("flash_over_own_ram", flash.zip(ram).and_then(|(flash, ram)| ratio(flash, ram)));
        let bytes = flash.or(ram).filter(|&bytes| bytes > 0.0);
        self.set("bits_per_key", bytes.and_then(|bytes| ratio(bytes * 8.0, entries)));
    }

    /// Sets the engine's space on the disk after the run.
    pub(crate) fn space_on_disk(&mut self, space: &Space) {
        self.set("file_bytes", space.file_bytes);
        self.set("file_bytes_per_entry", space.file_bytes_per_entry);
        self.set("flash_bytes_per_entry", space.flash_bytes_per_entry);
    }

    /// Sets the page reads per lookup, by the kernel's count and by the engine's own.
    fn read_costs(&mut self, run: &Run<'_>) {
        let lookups = run.counters.lookups as f64;
        let only_reads = run.counters.changes == 0;
        if let Some(disk) = run.disk.filter(|_| only_reads || run.kind == Kind::Table) {
            let pages = disk.read as f64 / PAGE_BYTES as f64;
            self.set("disk_reads_per_lookup", ratio(pages, lookups));
        }
        if let Some((now, before)) = run.after.lookup_reads.zip(run.before.lookup_reads) {
            self.set("reads_per_lookup", ratio((now - before) as f64, lookups));
        }
        self.set("lookup_reads_max", run.after.lookup_reads_max);
        if let Some(delta) = run.delta() {
            self.set("reads_per_hit", ratio(delta.hit_reads as f64, delta.hits as f64));
            self.set("reads_per_miss", ratio(delta.miss_reads as f64, delta.misses as f64));
        }
    }

    /// Sets the bytes written per change, by the same counts.
    fn write_costs(&mut self, run: &Run<'_>) {
        let changes = run.counters.changes as f64;
        if run.counters.changes == 0 {
            return;
        }
        let written = run.disk.and_then(|disk| ratio(disk.written as f64, changes));
        self.set("disk_bytes_per_entry", written);
        self.set("disk_bytes_written_per_change", written);
        let read = run.disk.and_then(|disk| ratio(disk.read as f64, changes));
        self.set("disk_bytes_read_per_change", read);
        if let Some((now, before)) = run.after.written.zip(run.before.written) {
            let per_change = |now: u64, before: u64| ratio((now - before) as f64, changes);
            self.set("data_bytes_per_change", per_change(now.data, before.data));
            self.set("log_bytes_per_change", per_change(now.log, before.log));
        }
        let mut per_entry = written;
        if let Some(delta) = run.delta() {
            let (data, log) = (delta.data_bytes_written, delta.log_bytes_written);
            self.set("data_bytes_per_entry", ratio(data as f64, changes));
            self.set("log_bytes_per_entry", ratio(log as f64, changes));
            self.set("flush_fill", (delta.flushes > 0).then_some(delta.flush_fill));
            self.set("evicted", delta.evicted);
            per_entry = ratio((data + log) as f64, changes);
        }
        self.set("write_amplification", per_entry.map(|bytes| bytes / run.entry_bytes as f64));
    }

    /// Sets the figures that only indexes of neighbours count.
    fn neighbors(&mut self, run: &Run<'_>) {
        let stats = run.after.neighbors.as_ref().zip(run.before.neighbors.as_ref());
        let Some((now, before)) = stats else { return };
        let lookups = now.hits + now.misses - before.hits - before.misses;
        let candidates = now.candidates - before.candidates;
        self.set("candidates_per_lookup", ratio(candidates as f64, lookups as f64));
        self.set("flush_fill", (now.flushes > 0).then_some(now.flush_fill));
        self.set("dropped", now.dropped - before.dropped);
        self.set("evicted", now.evicted - before.evicted);
    }

    /// Sets the false positives among lookups of absent keys.
    pub(crate) fn false_positives(&mut self, counters: &Counters) {
        let (low, high) = interval(counters.hits, counters.lookups);
        self.set("rate_measured", ratio(counters.hits as f64, counters.lookups as f64));
        self.set("rate_low", low);
        self.set("rate_high", high);
    }

    /// Sets the space for each of the different keys in the engine.
    pub(crate) fn per_key(&mut self, distinct_keys: u64) {
        let of_each =
            |bytes: Option<f64>| bytes.and_then(|bytes| ratio(bytes, distinct_keys as f64));
        let (ram, flash) = (of_each(self.get("ram_bytes")), of_each(self.get("flash_bytes")));
        self.set("distinct_keys", distinct_keys);
        self.set("ram_bytes_per_key", ram);
        self.set("flash_bytes_per_key", flash);
    }

    /// Sets the results of drawing the stream of additions again.
    pub(crate) fn counted(&mut self, counted: Counted, operations: u64) {
        self.set("counts_above", counted.above);
        self.per_key(counted.distinct_keys);
        let draw = ratio(counted.draw_cpu_ns as f64 / 1000.0, operations as f64);
        self.set("draw_cpu_us_per_op", draw);
    }

    /// Compares the run with the device's limits before and after it; entries of tables have `entry_bytes`.
    pub(crate) fn compare(&mut self, before: &Limits, after: &Limits, entry_bytes: u64) {
        Limits::between(before, after).for_each(|(name, limit)| self.set(name, limit));
        let lookups_to_device = self.over("lookups_per_s", "device_reads_per_s");
        self.set("lookups_to_device", lookups_to_device);
        let times = |name: &str| Some(lookups_to_device? * self.get(name)?);
        let (of_limit, of_reads) = (times("lookup_reads_max"), times("reads_per_lookup"));
        self.set("lookups_to_limit", of_limit);
        self.set("reads_to_device", of_reads);
        let bytes_per_s = self.get("write_amplification").and_then(|amplification| {
            Some(self.get("operations_per_s")? * amplification * entry_bytes as f64)
        });
        let writes = self.get("device_write_bytes_per_s");
        let written = bytes_per_s.zip(writes).and_then(|(bytes, limit)| ratio(bytes, limit));
        let only_writes = self.get("lookups_per_s").is_none();
        self.set("ratio_to_device", if only_writes { written } else { lookups_to_device });
        let device_share = self.device_share();
        self.set("device_share", device_share);
    }

    fn device_share(&self) -> Option<f64> {
        let read = self.over("disk_bytes_read_per_change", "device_read_bytes_per_s")?;
        let written = self.over("disk_bytes_written_per_change", "device_write_bytes_per_s")?;
        let changes = self.get("changes_per_s")? * self.get("seconds")?;
        ratio((read + written) * changes, self.get("seconds")? + self.get("settle_seconds")?)
    }

    fn over(&self, part: &str, whole: &str) -> Option<f64> {
        ratio(self.get(part)?, self.get(whole)?)
    }
}

impl Run<'_> {
    /// Returns a table's own figures of this run: counters since its begin, others as they are now.
    pub(crate) fn delta(&self) -> Option<TableStats> {
        let (mut delta, before) = (self.after.table.clone()?, self.before.table.as_ref()?);
        delta.hits -= before.hits;
        delta.misses -= before.misses;
        delta.hit_reads -= before.hit_reads;
        delta.miss_reads -= before.miss_reads;
        delta.flushes -= before.flushes;
        delta.data_bytes_written -= before.data_bytes_written;
        delta.log_bytes_written -= before.log_bytes_written;
        delta.evicted -= before.evicted;
        let buckets = delta.reads_histogram.iter_mut().zip(before.reads_histogram);
        buckets.for_each(|(bucket, earlier)| *bucket -= earlier);
        Some(delta)
    }
}

/// Returns the quotient, if `whole` is not 0.
pub(crate) fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// Returns Wilson's interval of 95 % for a rate with `hits` in `draws`.
fn interval(hits: u64, draws: u64) -> (f64, f64) {
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
        let limits = Limits(vec![
            ("device_reads_per_s", 1.0),
            ("device_read_bytes_per_s", 200.0),
            ("device_write_bytes_per_s", 100.0),
        ]);
        let status = Status::default();
        let mut run = Run {
            kind: Kind::Filter,
            counters: &Counters { changes: 10, seconds: 1.5, ..Counters::default() },
            before: &status,
            after: &status,
            entries: 10,
            entry_bytes: 108,
            ram_budget: 1,
            settle_seconds: 0.0,
            cpu_ns: 0,
            disk: Some(DiskBytes { read: 100, written: 100 }),
        };
        let mut figures = Figures::of_run(&run);
        figures.compare(&limits, &limits, run.entry_bytes);
        assert!((figures.get("device_share").unwrap() - 1.0).abs() < 1e-9, "{figures:?}");
        assert_eq!(figures.get("ratio_to_device"), None, "a filter has no such figure");
        run.kind = Kind::Table;
        let mut figures = Figures::of_run(&run);
        figures.compare(&limits, &limits, run.entry_bytes);
        // 100 bytes in 1.5 s of a device that writes 100 a second.
        assert!((figures.get("ratio_to_device").unwrap() - 2.0 / 3.0).abs() < 1e-9, "{figures:?}");
    }
}
