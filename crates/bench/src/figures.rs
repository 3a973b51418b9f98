//! What a run's counts come to: rates, costs per operation, and ratios to the device's limits.

use nandex::TableStats;

use crate::drive::Tally;
use crate::limit::Limits;
use crate::process::DiskBytes;
use crate::report::{Case, Figures};
use crate::workload::{ENTRY_BYTES, Mix};

/// One run, measured.
pub(crate) struct Measured {
    /// What it came to.
    pub(crate) figures: Figures,
    /// What it did.
    pub(crate) tally: Tally,
    /// Lookups by the pages they read, where the engine counts them.
    pub(crate) reads_histogram: Option<Vec<u64>>,
}

/// Rates and the cost in CPU time of what `tally` counts.
pub(crate) fn rates(tally: &Tally, cpu_ns: u64) -> Figures {
    let per_s = |count: u64| count as f64 / tally.seconds.max(1e-9);
    let operations = tally.operations();
    Figures {
        seconds: tally.seconds,
        operations,
        hits: tally.hits,
        operations_per_s: per_s(operations),
        inserts_per_s: (tally.inserts > 0).then(|| per_s(tally.inserts)),
        lookups_per_s: (tally.lookups > 0).then(|| per_s(tally.lookups)),
        cpu_us_per_op: cpu_ns as f64 / 1000.0 / operations.max(1) as f64,
        ..Figures::default()
    }
}

/// Page reads per lookup, by the kernel's count and by the engine's own.
pub(crate) fn read_costs(
    figures: &mut Figures,
    tally: &Tally,
    disk: Option<DiskBytes>,
    delta: Option<&TableStats>,
) {
    let lookups = tally.lookups as f64;
    let pages = disk.map(|disk| disk.read as f64 / nandex_device::PAGE_BYTES as f64);
    figures.disk_reads_per_lookup = pages.and_then(|pages| ratio(pages, lookups));
    let Some(delta) = delta else { return };
    figures.reads_per_hit = ratio(delta.hit_reads as f64, delta.hits as f64);
    figures.reads_per_miss = ratio(delta.miss_reads as f64, delta.misses as f64);
}

/// Bytes written per insert, likewise.
pub(crate) fn write_costs(
    figures: &mut Figures,
    tally: &Tally,
    disk: Option<DiskBytes>,
    delta: Option<&TableStats>,
) {
    let inserts = tally.inserts as f64;
    if tally.inserts == 0 {
        return;
    }
    figures.disk_bytes_per_entry = disk.and_then(|disk| ratio(disk.written as f64, inserts));
    let mut per_entry = figures.disk_bytes_per_entry;
    if let Some(delta) = delta {
        figures.data_bytes_per_entry = ratio(delta.data_bytes_written as f64, inserts);
        figures.log_bytes_per_entry = ratio(delta.log_bytes_written as f64, inserts);
        figures.flush_fill = (delta.flushes > 0).then_some(delta.flush_fill);
        figures.evicted = Some(delta.evicted);
        per_entry = ratio((delta.data_bytes_written + delta.log_bytes_written) as f64, inserts);
    }
    figures.write_amplification = per_entry.map(|bytes| bytes / ENTRY_BYTES as f64);
}

/// Sets a run beside the device's limits around it.
pub(crate) fn compare(figures: &mut Figures, before: Option<Limits>, after: Option<Limits>) {
    let Some((before, after)) = before.zip(after) else { return };
    let limits = Limits::between(before, after);
    figures.device_reads_per_s = Some(limits.reads_per_s);
    figures.device_write_bytes_per_s = Some(limits.write_bytes_per_s);
    figures.ratio_to_device = match (figures.lookups_per_s, figures.write_amplification) {
        (Some(lookups), _) => ratio(lookups, limits.reads_per_s),
        (None, Some(amplification)) => {
            let bytes_per_s = figures.operations_per_s * amplification * ENTRY_BYTES as f64;
            ratio(bytes_per_s, limits.write_bytes_per_s)
        }
        (None, None) => None,
    };
}

/// Figures that count, since `before`; figures that say how things are, as they are now.
pub(crate) fn since(now: &TableStats, before: &TableStats) -> TableStats {
    let mut delta = now.clone();
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
    delta
}

/// The runs of one case together.
pub(crate) fn case(name: String, mix: Option<Mix>, runs: Vec<Measured>) -> Case {
    let mut all = Tally::default();
    let mut histogram: Option<Vec<u64>> = None;
    for run in &runs {
        all.merge(&run.tally);
        if let Some(reads) = &run.reads_histogram {
            let sum = histogram.get_or_insert_with(|| vec![0; reads.len()]);
            sum.iter_mut().zip(reads).for_each(|(sum, count)| *sum += count);
        }
    }
    Case {
        name,
        lookup_fraction: mix.map(|mix| mix.lookup_fraction),
        success: mix.map(|mix| mix.success),
        runs: runs.into_iter().map(|run| run.figures).collect(),
        insert_ns: all.insert_ns.summary(),
        lookup_ns: all.lookup_ns.summary(),
        reads_per_operation: histogram.filter(|_| all.lookups > 0),
    }
}

/// Their quotient, where there is a whole.
pub(crate) fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}
