//! Reports as text for readers: settings, a line per case, every run, every figure.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::percentiles::{LatencySummary, Spread};
use crate::quantity::{show_bytes, show_count};
use crate::report::{Case, Report};
use crate::worker::Point;
use crate::workload::Kind;

impl Report {
    /// Returns the report for readers: settings, a line per case, every run, and the details.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (key, value) in &self.settings {
            let _ = writeln!(text, "{key}: {}", plain(value));
        }
        text.push('\n');
        text.push_str(&summary(std::slice::from_ref(self)));
        for case in &self.cases {
            text.push_str(&runs_text(case));
            text.push_str(&details_text(self.kind, case));
            case.curves.iter().for_each(|curve| text.push_str(&curve_text(&case.name, curve)));
        }
        text
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Formats a number.
type Show = fn(f64) -> String;

/// A column of the summary.
enum Column {
    /// The median of this figure, formatted in this way.
    Figure(&'static str, Show),
    /// A percentile of lookups, or of changes if there are no lookups.
    Latency(fn(&LatencySummary) -> u64),
    /// Anything else.
    Other(fn(&Case, &Spreads) -> Option<String>),
}

type Spreads = BTreeMap<String, Spread>;

/// The columns of every summary, after the names of engine and case.
const RATE: [(&str, Column); 2] =
    [("ops/s", Column::Figure("operations_per_s", show_count)), ("min..max", Column::Other(range))];

const OF_TABLES: [(&str, Column); 18] = [
    ("reads/hit", Column::Figure("reads_per_hit", three)),
    ("reads/miss", Column::Figure("reads_per_miss", |reads| format!("{reads:.4}"))),
    ("disk rd/op", Column::Figure("disk_reads_per_lookup", three)),
    ("p50", Column::Latency(|latency| latency.p50)),
    ("p99", Column::Latency(|latency| latency.p99)),
    ("p99.9", Column::Latency(|latency| latency.p999)),
    ("p99.99", Column::Latency(|latency| latency.p9999)),
    ("max", Column::Latency(|latency| latency.max)),
    ("cpu us/op", Column::Figure("cpu_us_per_op", two)),
    ("wr.amp", Column::Figure("write_amplification", two)),
    ("RAM B/entry", Column::Figure("ram_bytes_per_entry", two)),
    ("RSS", Column::Figure("rss_bytes", show_bytes)),
    ("rounds", Column::Figure("settled_rounds", two)),
    ("fresh B/key", Column::Figure("file_bytes_per_entry_fresh", two)),
    ("settled B/key", Column::Figure("file_bytes_per_entry_settled", two)),
    ("files", Column::Figure("file_bytes", show_bytes)),
    ("device", Column::Other(device)),
    ("ratio", Column::Figure("ratio_to_device", two)),
];

const OF_FILTERS: [(&str, Column); 32] = [
    ("FPR", Column::Figure("rate_measured", percent)),
    ("95 % of", Column::Other(bounds)),
    ("FPR stated", Column::Figure("rate_stated", percent)),
    ("bits/key", Column::Figure("bits_per_key", two)),
    ("flash:RAM", Column::Figure("flash_over_ram", two)),
    ("reads/op", Column::Figure("reads_per_lookup", three)),
    ("disk rd/op", Column::Figure("disk_reads_per_lookup", three)),
    ("B read/ch", Column::Figure("disk_bytes_read_per_change", two)),
    ("B writ/ch", Column::Figure("disk_bytes_written_per_change", two)),
    ("data B/ch", Column::Figure("data_bytes_per_change", two)),
    ("log B/ch", Column::Figure("log_bytes_per_change", two)),
    ("p50", Column::Latency(|latency| latency.p50)),
    ("p99", Column::Latency(|latency| latency.p99)),
    ("p99.9", Column::Latency(|latency| latency.p999)),
    ("max", Column::Latency(|latency| latency.max)),
    ("cpu us/op", Column::Figure("cpu_us_per_op", two)),
    ("draw us", Column::Figure("draw_cpu_us_per_op", three)),
    ("RAM", Column::Figure("ram_bytes", show_bytes)),
    ("RAM B/key", Column::Figure("ram_bytes_per_key", two)),
    ("RAM bits/key", Column::Figure("ram_bits_per_key", three)),
    ("RSS", Column::Figure("rss_bytes", show_bytes)),
    ("rounds", Column::Figure("settled_rounds", two)),
    ("fresh B/key", Column::Figure("file_bytes_per_entry_fresh", two)),
    ("settled B/key", Column::Figure("file_bytes_per_entry_settled", two)),
    ("rd/s d1", Column::Figure("device_reads_depth_1_per_s", show_count)),
    ("rd/s d32", Column::Figure("device_reads_depth_32_per_s", show_count)),
    ("seq read", Column::Figure("device_read_bytes_per_s", bytes_per_s)),
    ("seq write", Column::Figure("device_write_bytes_per_s", bytes_per_s)),
    ("lookups:dev", Column::Figure("lookups_to_device", two)),
    ("lookups:limit", Column::Figure("lookups_to_limit", three)),
    ("reads:dev", Column::Figure("reads_to_device", three)),
    ("dev share", Column::Figure("device_share", two)),
];

const OF_NEIGHBORS: [(&str, Column); 17] = [
    ("lookups/s", Column::Figure("lookups_per_s", show_count)),
    ("inserts/s", Column::Figure("inserts_per_s", show_count)),
    ("found", Column::Figure("hits", show_count)),
    ("cand/lookup", Column::Figure("candidates_per_lookup", three)),
    ("reads/lookup", Column::Figure("reads_per_lookup", three)),
    ("device", Column::Other(device)),
    ("lookups:limit", Column::Figure("lookups_to_limit", three)),
    ("reads:dev", Column::Figure("reads_to_device", three)),
    ("p50", Column::Latency(|latency| latency.p50)),
    ("p99", Column::Latency(|latency| latency.p99)),
    ("max", Column::Latency(|latency| latency.max)),
    ("cpu us/op", Column::Figure("cpu_us_per_op", two)),
    ("data B/doc", Column::Figure("data_bytes_per_change", two)),
    ("log B/doc", Column::Figure("log_bytes_per_change", two)),
    ("RAM B/doc", Column::Figure("ram_bytes_per_document", two)),
    ("flash:RAM", Column::Figure("flash_over_own_ram", two)),
    ("RSS", Column::Figure("rss_bytes", show_bytes)),
];

fn two(number: f64) -> String {
    format!("{number:.2}")
}

fn three(number: f64) -> String {
    format!("{number:.3}")
}

fn percent(rate: f64) -> String {
    format!("{:.4}%", rate * 100.0)
}

fn bytes_per_s(bytes: f64) -> String {
    format!("{}/s", show_bytes(bytes))
}

fn range(_case: &Case, spreads: &Spreads) -> Option<String> {
    let spread = spreads.get("operations_per_s")?;
    Some(format!("{}..{}", show_count(spread.min), show_count(spread.max)))
}

fn bounds(_case: &Case, spreads: &Spreads) -> Option<String> {
    let (low, high) = (spreads.get("rate_low")?, spreads.get("rate_high")?);
    Some(format!("{}..{}", percent(low.median), percent(high.median)))
}

fn device(case: &Case, spreads: &Spreads) -> Option<String> {
    if case.lookup_ns.is_some() || spreads.contains_key("lookups_per_s") {
        let reads = spreads.get("device_reads_per_s")?;
        return Some(format!("{} rd/s", show_count(reads.median)));
    }
    Some(bytes_per_s(spreads.get("device_write_bytes_per_s")?.median))
}

/// Returns one line per case of all `reports`, which are of one kind of engine: medians, and the spread of
/// the rate.
#[must_use]
pub fn summary(reports: &[Report]) -> String {
    let Some(first) = reports.first() else { return String::new() };
    let own: &[(&str, Column)] = match first.kind {
        Kind::Table => &OF_TABLES,
        Kind::Filter => &OF_FILTERS,
        Kind::Neighbors => &OF_NEIGHBORS,
    };
    let columns = || RATE.iter().chain(own);
    let header = ["engine", "case"].into_iter().chain(columns().map(|(title, _)| *title));
    let mut rows = vec![header.map(str::to_owned).collect()];
    for report in reports {
        let engine = report.settings.get("index").map(plain).unwrap_or_default();
        for case in &report.cases {
            let spreads = case.spread();
            let cells = columns().map(|(_, column)| cell(column, case, &spreads));
            let names = [engine.clone(), case.name.clone()];
            rows.push(names.into_iter().chain(cells.map(or_dash)).collect());
        }
    }
    table(&rows)
}

fn cell(column: &Column, case: &Case, spreads: &Spreads) -> Option<String> {
    match column {
        Column::Figure(name, show) => Some(show(spreads.get(*name)?.median)),
        Column::Latency(pick) => {
            Some(nandex::raw::size::show_time(pick(&case.lookup_ns.or(case.change_ns)?) as f64))
        }
        Column::Other(show) => show(case, spreads),
    }
}

fn or_dash(cell: Option<String>) -> String {
    cell.unwrap_or_else(|| "-".to_owned())
}

fn runs_text(case: &Case) -> String {
    let columns: [(&str, &str, Show); 8] = [
        ("seconds", "seconds", two),
        ("ops/s", "operations_per_s", show_count),
        ("device reads/s", "device_reads_per_s", show_count),
        ("by fio", "fio_reads_per_s", show_count),
        ("device write", "device_write_bytes_per_s", bytes_per_s),
        ("ratio", "ratio_to_device", two),
        ("reads:dev", "reads_to_device", three),
        ("cpu us/op", "cpu_us_per_op", two),
    ];
    let titles = ["run"].into_iter().chain(columns.iter().map(|column| column.0));
    let mut rows = vec![titles.map(str::to_owned).collect()];
    for (number, run) in case.runs.iter().enumerate() {
        let cells = columns.iter().map(|(_, name, show)| or_dash(run.get(name).map(show)));
        rows.push([(number + 1).to_string()].into_iter().chain(cells).collect());
    }
    format!("\n{}: every run\n{}", case.name, table(&rows))
}

fn details_text(kind: Kind, case: &Case) -> String {
    let mut rows = vec![["figure", "median", "min", "max"].map(str::to_owned).to_vec()];
    let number = |number: f64| {
        if number.fract() == 0.0 { format!("{number}") } else { format!("{number:.6}") }
    };
    for (key, spread) in case.spread() {
        rows.push(vec![key, number(spread.median), number(spread.min), number(spread.max)]);
    }
    let mut text = format!("{}: every figure\n{}", case.name, table(&rows));
    for (name, latency) in [(kind.change_key(), case.change_ns), ("lookup_ns", case.lookup_ns)] {
        if let Some(latency) = latency {
            let _ = writeln!(text, "{name}: {}", json!(latency));
        }
    }
    if let Some(histogram) = &case.reads_per_operation {
        let _ = writeln!(text, "reads_per_operation: {}", json!(histogram));
    }
    text
}

/// Formats the rate over time: the operations done by each point, and the rate since the previous one.
fn curve_text(name: &str, curve: &[Point]) -> String {
    let mut rows = vec![["seconds", "operations", "ops/s since"].map(str::to_owned).to_vec()];
    let mut last = Point { operations: 0, seconds: 0.0 };
    for &point in curve {
        let since = (point.operations - last.operations) as f64;
        let rate = since / (point.seconds - last.seconds).max(1e-9);
        let operations = show_count(point.operations as f64);
        rows.push(vec![two(point.seconds), operations, show_count(rate)]);
        last = point;
    }
    format!("\n{name}: over time\n{}", table(&rows))
}

/// Formats columns as wide as their widest cell: the first two to the left, numbers to the right.
fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<_> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let _ = match column {
                0 | 1 => write!(line, "{cell:<width$}  "),
                _ => write!(line, "{cell:>width$}  "),
            };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Figures;

    #[test]
    fn the_text_has_a_line_per_case_every_run_and_the_curve() {
        let mut figures = Figures::of(Kind::Filter);
        figures.set("rate_measured", 0.004);
        let case = Case {
            name: "lookup-miss".into(),
            runs: vec![figures],
            curves: vec![vec![Point { operations: 10, seconds: 0.5 }]],
            ..Case::default()
        };
        let report = Report { kind: Kind::Filter, settings: Default::default(), cases: vec![case] };
        let text = report.text();
        for words in ["0.4000%", "every run", "over time"] {
            assert!(text.contains(words), "{text}");
        }
        assert_eq!(summary(&[report]).lines().count(), 2);
    }

    #[test]
    fn columns_line_up() {
        let rows = [
            vec!["a".to_owned(), "b".into(), "1".into()],
            vec!["aa".into(), "b".into(), "22".into()],
        ];
        assert_eq!(table(&rows), "a   b   1\naa  b  22\n");
    }
}
