//! Figures of structures as Python dicts, under the names of the index's fields.

use nandex::counting::CountingStats;
use nandex::large::LargeStats;
use nandex::raw::device::PageId;
use nandex::{AnyConfig, FilterStats, TableStats};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Returns the figures as `nandex.Stats`, a dict whose `str` is a table.
///
/// # Errors
/// Fails if there is no memory.
pub fn shown<'py>(figures: Bound<'py, PyDict>, what: &str) -> PyResult<Bound<'py, PyAny>> {
    figures.py().import("nandex._stats")?.getattr("Stats")?.call1((what, figures))
}

/// Returns an open structure as HTML, with the three numbers of its costs.
///
/// # Errors
/// Fails as its `stats` does.
pub fn html(structure: &Bound<'_, PyAny>, kind: &str) -> PyResult<Py<PyAny>> {
    let module = structure.py().import("nandex._stats")?;
    Ok(module.getattr("structure_html")?.call1((structure, kind))?.unbind())
}

/// Sets items of a dict: each field under its name.
macro_rules! fields {
    ($dict:expr, $of:expr, $($field:ident),+ $(,)?) => {
        $($dict.set_item(stringify!($field), $of.$field)?;)+
    };
}

/// Returns the numbers of pages.
fn numbers(pages: &[PageId]) -> Vec<u64> {
    pages.iter().map(|page| page.0).collect()
}

/// Returns all parameters of a structure as text, by name.
///
/// # Errors
/// Fails if there is no memory.
pub fn of_config<'py>(py: Python<'py>, config: &AnyConfig) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    config.values().iter().try_for_each(|(name, value)| dict.set_item(name, value))?;
    Ok(dict)
}

/// Returns the figures of a table.
///
/// # Errors
/// Fails if there is no memory.
pub fn of_table<'py>(py: Python<'py>, stats: &TableStats) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    fields!(dict, stats, entries, ram_bytes, flash_bytes, inserts, hits, misses, hit_reads);
    fields!(dict, stats, miss_reads, reads_histogram, flushes, flush_fill, data_bytes_written);
    fields!(dict, stats, log_bytes_written, evicted, retained, forced_evictions, evicted_life);
    fields!(dict, stats, forced_evictions_life, cache_bytes, cache_bytes_max, cache_entries_max);
    fields!(dict, stats, cache_hits);
    dict.set_item("lost_pages", numbers(&stats.lost_pages))?;
    dict.set_item("ram_bytes_per_entry", stats.ram_bytes_per_entry())?;
    dict.set_item("reads_per_hit", stats.reads_per_hit())?;
    dict.set_item("reads_per_miss", stats.reads_per_miss())?;
    dict.set_item("reads_per_lookup", stats.reads_per_lookup())?;
    dict.set_item("cache_hit_rate", stats.cache_hit_rate())?;
    Ok(dict)
}

/// Returns the figures of a map: its own, those of its values with the prefix `values_`, and those of its
/// table with `table_`.
///
/// # Errors
/// Fails if there is no memory.
pub fn of_map<'py>(py: Python<'py>, stats: &LargeStats) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("entries", stats.table.entries)?;
    dict.set_item("lost_pages", numbers(&stats.table.lost_pages))?;
    fields!(dict, stats, ram_bytes, hits, misses, overwritten);
    fields!(dict, stats, cache_hits, cache_records, cache_bytes, cache_bytes_max);
    dict.set_item("flash_bytes", stats.table.flash_bytes + stats.values.flash_bytes)?;
    dict.set_item("written_per_byte", stats.written_per_byte())?;
    let values = PyDict::new(py);
    fields!(values, stats.values, live_bytes, live_records, garbage_bytes, free_segments);
    fields!(values, stats.values, flash_bytes, growths, appended_bytes, copied_bytes);
    fields!(values, stats.values, written_bytes, syncs, reads, pages_read, cleaned_segments);
    fields!(values, stats.values, overwritten_segments, overwritten_records, ram_bytes);
    for (name, value) in values {
        dict.set_item(format!("values_{name}"), value)?;
    }
    for (name, value) in of_table(py, &stats.table)? {
        dict.set_item(format!("table_{name}"), value)?;
    }
    Ok(dict)
}

/// Returns the figures of a filter.
///
/// # Errors
/// Fails if there is no memory.
pub fn of_filter<'py>(py: Python<'py>, stats: &FilterStats) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    fields!(dict, stats, entries, buffered, tombstones, rate, rate_made_for, keys_made_for);
    fields!(dict, stats, window_keys, ram_bytes, inserts, deletes, positives, negatives);
    fields!(dict, stats, flash_bytes, reads_histogram, lookup_reads, merges, merge_bytes_read);
    fields!(dict, stats, data_bytes_written, log_bytes_written, unmatched_deletes);
    dict.set_item("levels", stats.levels.len())?;
    dict.set_item("lost_pages", numbers(&stats.lost_pages))?;
    dict.set_item("ram_bytes_per_entry", stats.ram_bytes_per_entry())?;
    dict.set_item("bits_per_entry_on_flash", stats.bits_per_entry_on_flash())?;
    dict.set_item("reads_per_lookup", stats.reads_per_lookup())?;
    Ok(dict)
}

/// Returns the figures of a counting table.
///
/// # Errors
/// Fails if there is no memory.
pub fn of_counter<'py>(
    py: Python<'py>,
    stats: &FilterStats,
    counting: &CountingStats,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = of_filter(py, stats)?;
    fields!(dict, counting, stages, staged_pages, data_pages);
    Ok(dict)
}
