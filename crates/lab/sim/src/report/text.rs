//! The report as a table for a terminal.

use std::fmt::Write;

use super::collect::PART_NAMES;
use super::figures::{bandwidth, figures};
use super::number::{grouped, mean_micros, micros, three_digits};
use super::summary::{KindReport, Report};

/// Returns the report for a terminal, at most 100 columns wide unless names are longer.
#[must_use]
pub fn text(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{}: {}", report.device, report.load);
    for notice in &report.notices {
        let _ = writeln!(out, "note: {notice}");
    }
    for section in figures(report) {
        let _ = writeln!(out, "\n{}", section.title.to_lowercase());
        for figure in section.figures {
            let _ = writeln!(out, "  {:<26} {:>24}", figure.name, figure.shown);
        }
    }
    out += &latencies(report);
    out += &parts(report);
    out
}

/// Formats rows of names and columns of kinds.
fn table(title: &str, kinds: &[KindReport], rows: &[(&str, Vec<String>)]) -> String {
    let mut out = format!("\n{title:<14}");
    for kind in kinds {
        let _ = write!(out, " {:>20}", kind.kind);
    }
    out.push('\n');
    for (name, cells) in rows {
        let _ = write!(out, "  {name:<12}");
        for cell in cells {
            let _ = write!(out, " {cell:>20}");
        }
        out.push('\n');
    }
    out
}

fn latencies(report: &Report) -> String {
    let kinds = &report.kinds;
    let each = |of: &dyn Fn(&KindReport) -> String| kinds.iter().map(of).collect::<Vec<_>>();
    let time = |of: fn(&KindReport) -> u64| each(&|kind| micros(of(kind)));
    let rows = [
        ("count", each(&|kind| grouped(kind.count))),
        ("IOPS", each(&|kind| kind.iops.map_or_else(|| "-".into(), three_digits))),
        ("bandwidth", each(&|kind| bandwidth(kind.bytes_per_s))),
        ("min", time(|kind| kind.latency.min_ns)),
        ("mean", each(&|kind| mean_micros(kind.latency.mean_ns))),
        ("p50", time(|kind| kind.latency.p50_ns)),
        ("p90", time(|kind| kind.latency.p90_ns)),
        ("p99", time(|kind| kind.latency.p99_ns)),
        ("p99.9", time(|kind| kind.latency.p999_ns)),
        ("p99.99", time(|kind| kind.latency.p9999_ns)),
        ("max", time(|kind| kind.latency.max_ns)),
    ];
    table("latency, us", kinds, &rows)
}

fn parts(report: &Report) -> String {
    let kinds = &report.kinds;
    let mean = |part: usize| {
        kinds.iter().map(|kind| mean_micros(kind.parts_mean_ns.in_order()[part])).collect()
    };
    let rows: Vec<(&str, Vec<String>)> =
        PART_NAMES.into_iter().enumerate().map(|(part, name)| (name, mean(part))).collect();
    table("mean part, us", kinds, &rows)
}
