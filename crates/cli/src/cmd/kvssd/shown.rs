//! Keys, and figures of runs, as they are printed.

use nandex_kvssd::{DriveStats, RunReport};
use serde_json::{Value, json};

use crate::size::{show_bytes, show_count};

/// Formats a key for people.
pub fn key_text(key: &[u8]) -> String {
    nandex_dedup::printable(&String::from_utf8_lossy(key))
}

/// Returns bytes for JSON: text if they are UTF-8, else hex, as the name says.
pub fn field(name: &str, bytes: &[u8]) -> (String, Value) {
    match str::from_utf8(bytes) {
        Ok(text) => (name.to_owned(), json!(text)),
        Err(_) => {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            (format!("{name}_hex"), json!(hex))
        }
    }
}

/// Formats the accesses by the number of flash pages they read, without the zeros at the end.
pub fn histogram(counts: &[u64]) -> String {
    let last = counts.iter().rposition(|count| *count > 0).unwrap_or(0);
    let parts = counts[..=last].iter().enumerate().map(|(pages, count)| {
        let more = if pages + 1 == counts.len() { " or more" } else { "" };
        format!("{pages}{more}: {}", show_count(*count))
    });
    parts.collect::<Vec<_>>().join(", ")
}

/// Returns the lines of a run.
pub fn run_rows(report: &RunReport) -> Vec<(&'static str, String)> {
    let latency = report.latency_us;
    let mut rows = vec![
        ("run", report.name.clone()),
        (
            "  commands",
            format!(
                "{} in {:.3} s, {:.0} a second",
                show_count(report.commands),
                report.elapsed_s,
                report.commands_per_s
            ),
        ),
        (
            "  latency",
            format!(
                "mean {:.1} us, p50 {:.1}, p99 {:.1}, max {:.1}",
                latency.mean, latency.p50, latency.p99, latency.max
            ),
        ),
        (
            "  index reads",
            format!(
                "{:.3} an access; by pages {}",
                report.index_reads_mean,
                histogram(&report.index_reads)
            ),
        ),
    ];
    if report.host_bytes_written > 0 {
        let (host, device) =
            (show_bytes(report.host_bytes_written), show_bytes(report.device_bytes_written));
        let factor = report.write_amplification;
        rows.push(("  written", format!("{host} by the host, {device} by the drive: {factor:.2}")));
    }
    rows
}

/// Returns the lines of a drive's use.
pub fn use_rows(stats: &DriveStats, capacity_bytes: u64) -> Vec<(&'static str, String)> {
    let percent = f64::from(stats.utilisation) / 100.0;
    vec![
        ("pairs", show_count(stats.pairs)),
        ("mean value", format!("{:.1} B", stats.value_bytes_mean)),
        ("keys and values", show_bytes(stats.logical_bytes)),
        (
            "in use",
            format!(
                "{} of {}, {percent:.2} %",
                show_bytes(stats.stored_bytes),
                show_bytes(capacity_bytes)
            ),
        ),
        ("garbage", format!("{} that cleaning frees", show_bytes(stats.garbage_bytes))),
        ("flash", show_bytes(stats.flash_bytes)),
        ("RAM of the index", show_bytes(stats.index_ram_bytes)),
    ]
}
