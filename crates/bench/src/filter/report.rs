//! One report for every filter: a table for people, one JSON object for programs.
//!
//! The JSON object holds the settings and `cases`. A case holds `case`, its name; `runs`, the
//! [`FilterFigures`] of each; `spread`, minimum, median and maximum of each figure; `change_ns` and
//! `lookup_ns`, latencies of all runs together; and `curves`, for inserts: one per run, of points with
//! the operations done and the seconds since the start. Keys are added, never changed, while `schema`
//! stays.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::drive::Point;
use super::figures::FilterFigures;
use crate::percentiles::{LatencySummary, Spread};
use crate::quantity::{show_bytes, show_count, show_ns};
use crate::report::{object, plain, table};

/// Name and version of the JSON object.
pub const SCHEMA: &str = "nandex-bench-filter/1";

/// All runs of one mix, or of a workload that has no mixes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FilterCase {
    /// The workload, with its proportions where it has any.
    pub case: String,
    /// Every run.
    pub runs: Vec<FilterFigures>,
    /// Latencies of calls that insert, delete or count, all runs together.
    pub change_ns: Option<LatencySummary>,
    /// Latencies of lookup calls, all runs together.
    pub lookup_ns: Option<LatencySummary>,
    /// Inserts over time, one curve per run.
    pub curves: Vec<Vec<Point>>,
}

impl FilterCase {
    /// The spread of every figure over the runs; figures that no run has are left out.
    #[must_use]
    pub fn spread(&self) -> BTreeMap<String, Spread> {
        let runs: Vec<_> = self.runs.iter().map(object).collect();
        let keys = object(&FilterFigures::default());
        let spread = |key: &String| {
            let values = runs.iter().filter_map(|run| run.get(key)?.as_f64());
            Some((key.clone(), Spread::of(values)?))
        };
        keys.keys().filter_map(spread).collect()
    }

    fn json(&self) -> Value {
        let mut json = object(self);
        json.insert("spread".into(), json!(self.spread()));
        Value::Object(json)
    }
}

/// The settings and all cases.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FilterReport {
    /// [`SCHEMA`].
    pub schema: String,
    /// The cases, in the order they ran.
    pub cases: Vec<FilterCase>,
    /// The settings.
    #[serde(flatten)]
    pub settings: Map<String, Value>,
}

impl FilterReport {
    /// The one JSON object.
    #[must_use]
    pub fn json(&self) -> Value {
        let mut json = object(self);
        json.insert("cases".into(), self.cases.iter().map(FilterCase::json).collect());
        Value::Object(json)
    }

    /// The report that `json` was made from, or `None` when it is no report of this schema.
    #[must_use]
    pub fn parse(json: &Value) -> Option<Self> {
        let report: Self = serde_json::from_value(json.clone()).ok()?;
        (report.schema == SCHEMA).then_some(report)
    }

    /// The report for people: settings, a line per case, the curves, and every figure.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (key, value) in &self.settings {
            let _ = writeln!(text, "{key}: {}", plain(value));
        }
        text.push('\n');
        text.push_str(&summary(std::slice::from_ref(self)));
        for case in &self.cases {
            text.push_str(&details_text(case));
            case.curves.iter().for_each(|curve| text.push_str(&curve_text(&case.case, curve)));
        }
        text
    }
}

/// One line per case of all `reports`: medians, and the spread of the rate.
#[must_use]
pub fn summary(reports: &[FilterReport]) -> String {
    let header = [
        "filter",
        "case",
        "ops/s",
        "min..max",
        "FPR",
        "95 % of",
        "FPR stated",
        "bits/key",
        "flash:RAM",
        "reads/op",
        "disk rd/op",
        "B read/ch",
        "B writ/ch",
        "p50",
        "p99",
        "p99.9",
        "max",
        "cpu us/op",
        "RAM",
        "RSS",
        "rd/s d1",
        "rd/s d32",
        "seq read",
        "seq write",
        "lookups:dev",
        "dev share",
    ];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for report in reports {
        let name = report.settings.get("index").map(plain).unwrap_or_default();
        rows.extend(report.cases.iter().map(|case| row(&name, case)));
    }
    table(&rows)
}

fn row(name: &str, case: &FilterCase) -> Vec<String> {
    let spread = case.spread();
    let show = |key: &str, show: fn(f64) -> String| {
        spread.get(key).map_or_else(|| "-".to_owned(), |spread| show(spread.median))
    };
    let two: fn(f64) -> String = |number| format!("{number:.2}");
    let rate: fn(f64) -> String = |rate| format!("{:.4}%", rate * 100.0);
    let per_s: fn(f64) -> String = |bytes| format!("{}/s", show_bytes(bytes));
    let latency = case.lookup_ns.or(case.change_ns);
    let ns = |pick: fn(&LatencySummary) -> u64| {
        latency.as_ref().map_or_else(|| "-".to_owned(), |latency| show_ns(pick(latency)))
    };
    let range = spread.get("operations_per_s").map_or_else(String::new, |spread| {
        format!("{}..{}", show_count(spread.min), show_count(spread.max))
    });
    let bounds = match (spread.get("rate_low"), spread.get("rate_high")) {
        (Some(low), Some(high)) => format!("{}..{}", rate(low.median), rate(high.median)),
        _ => "-".to_owned(),
    };
    vec![
        name.to_owned(),
        case.case.clone(),
        show("operations_per_s", show_count),
        range,
        show("rate_measured", rate),
        bounds,
        show("rate_stated", rate),
        show("bits_per_key", two),
        show("flash_over_ram", two),
        show("reads_per_lookup", |reads| format!("{reads:.3}")),
        show("disk_reads_per_lookup", |reads| format!("{reads:.3}")),
        show("disk_bytes_read_per_change", two),
        show("disk_bytes_written_per_change", two),
        ns(|latency| latency.p50),
        ns(|latency| latency.p99),
        ns(|latency| latency.p999),
        ns(|latency| latency.max),
        show("cpu_us_per_op", two),
        show("ram_bytes", show_bytes),
        show("rss_bytes", show_bytes),
        show("device_reads_depth_1_per_s", show_count),
        show("device_reads_depth_32_per_s", show_count),
        show("device_read_bytes_per_s", per_s),
        show("device_write_bytes_per_s", per_s),
        show("lookups_to_device", two),
        show("device_share", two),
    ]
}

fn details_text(case: &FilterCase) -> String {
    let mut rows = vec![["figure", "median", "min", "max"].map(str::to_owned).to_vec()];
    let number = |number: f64| {
        if number.fract() == 0.0 { format!("{number}") } else { format!("{number:.6}") }
    };
    for (key, spread) in case.spread() {
        rows.push(vec![key, number(spread.median), number(spread.min), number(spread.max)]);
    }
    let mut text = format!("\n{}: every figure\n{}", case.case, table(&rows));
    for (name, latency) in [("change_ns", case.change_ns), ("lookup_ns", case.lookup_ns)] {
        if let Some(latency) = latency {
            let _ = writeln!(text, "{name}: {}", json!(latency));
        }
    }
    text
}

/// The rate over time: what was done by each point, and how fast since the one before.
fn curve_text(name: &str, curve: &[Point]) -> String {
    let mut rows = vec![["seconds", "operations", "ops/s since"].map(str::to_owned).to_vec()];
    let mut last = Point { operations: 0, seconds: 0.0 };
    for &point in curve {
        let since = (point.operations - last.operations) as f64;
        let rate = since / (point.seconds - last.seconds).max(1e-9);
        rows.push(vec![
            format!("{:.2}", point.seconds),
            show_count(point.operations as f64),
            show_count(rate),
        ]);
        last = point;
    }
    format!("\n{name}: over time\n{}", table(&rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> FilterReport {
        let run = |rate| FilterFigures {
            operations_per_s: rate,
            rate_measured: Some(0.004),
            ..FilterFigures::default()
        };
        let case = FilterCase {
            case: "lookup-miss".into(),
            runs: vec![run(1.0), run(5.0), run(3.0)],
            change_ns: None,
            lookup_ns: None,
            curves: vec![vec![Point { operations: 10, seconds: 0.5 }]],
        };
        let settings = object(&json!({"index": "multiset"}));
        FilterReport { schema: SCHEMA.into(), cases: vec![case], settings }
    }

    #[test]
    fn a_report_is_read_back_from_its_json() {
        let json = report().json();
        assert_eq!(json["cases"][0]["spread"]["operations_per_s"]["median"], 3.0);
        assert_eq!(json["index"], "multiset");
        assert_eq!(FilterReport::parse(&json), Some(report()));
        assert_eq!(FilterReport::parse(&json!({"schema": "another"})), None);
    }

    #[test]
    fn the_text_has_a_line_per_case_and_the_curve() {
        let text = report().text();
        assert!(text.contains("0.4000%") && text.contains("over time"), "{text}");
        let lengths: Vec<_> =
            summary(&[report()]).lines().map(|it| it.split("  ").count()).collect();
        assert_eq!(lengths.len(), 2);
    }
}
