//! One report for every engine: a table for people, one JSON object for programs.
//!
//! The JSON object holds the settings (`schema`, `index`, `workload`, `entries`, `loaded`, `threads`,
//! `depth`, `batch`, `durability`, `seed`, `clock_ns`, `memory_limit`, `device`, ...) and `cases`, one
//! object per mix (all other workloads have a single case, whose keys also stand at the top level).
//! A case holds each key of [`Figures`] as the median of its runs; `spread` with minimum, median and
//! maximum of each; `runs`, each run whole; `insert_ns` and `lookup_ns`, the latencies of all runs
//! together; and `reads_per_operation`, a histogram of lookups by pages read, the last bucket "or more".
//! A figure that does not apply or cannot be had is `null`. Keys are added, never changed, while
//! `schema` stays.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::percentiles::{LatencySummary, Spread};
use crate::quantity::{show_bytes, show_count, show_ns};

/// Name and version of the JSON object.
pub const SCHEMA: &str = "nandex-bench/1";

/// What one run measured; the keys of the JSON are the names of these fields.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Figures {
    /// Length of the timed part.
    pub seconds: f64,
    /// Waiting for work in the background after it; not part of any rate.
    pub settle_seconds: f64,
    /// Operations done.
    pub operations: u64,
    /// Lookups that found their key.
    pub hits: u64,
    /// Operations per second, of any kind.
    pub operations_per_s: f64,
    /// Inserts and overwrites per second.
    pub inserts_per_s: Option<f64>,
    /// Lookups per second.
    pub lookups_per_s: Option<f64>,
    /// The device's random 4 KiB reads per second at the same lanes and depth: mean of just before and
    /// just after the run.
    pub device_reads_per_s: Option<f64>,
    /// The device's sequential write bandwidth, likewise.
    pub device_write_bytes_per_s: Option<f64>,
    /// Where there are lookups: lookups per second over `device_reads_per_s`. Else: bytes written per
    /// second over `device_write_bytes_per_s`.
    pub ratio_to_device: Option<f64>,
    /// Pages read per lookup that found its key, as the index counts them.
    pub reads_per_hit: Option<f64>,
    /// Pages read per lookup that did not.
    pub reads_per_miss: Option<f64>,
    /// Bytes the kernel read from disks, in units of 4 KiB per lookup; all engines, page cache in the way.
    pub disk_reads_per_lookup: Option<f64>,
    /// RAM the engine says it holds, per entry.
    pub ram_bytes_per_entry: Option<f64>,
    /// RAM the engine says it holds.
    pub ram_bytes: Option<u64>,
    /// Bytes allocated from the Rust heap since before the engine was made, and not freed. It includes
    /// the harness's latency histograms, 130 KiB per thread and kind; allocations of C and C++ engines are not seen.
    pub allocated_bytes: Option<u64>,
    /// Resident memory of the whole process.
    pub rss_bytes: Option<u64>,
    /// Bytes written per byte the caller handed over: the index's own count (data and log) where it
    /// keeps one, else the kernel's.
    pub write_amplification: Option<f64>,
    /// Bytes the index wrote to its own pages per insert.
    pub data_bytes_per_entry: Option<f64>,
    /// Bytes the index wrote to its log per insert.
    pub log_bytes_per_entry: Option<f64>,
    /// Bytes the kernel wrote to disks per insert; all engines.
    pub disk_bytes_per_entry: Option<f64>,
    /// CPU time of all threads per operation, in microseconds.
    pub cpu_us_per_op: f64,
    /// Entries over room in the buffers that were flushed.
    pub flush_fill: Option<f64>,
    /// Entries dropped by the eviction policy.
    pub evicted: Option<u64>,
}

/// All runs of one mix, or of a workload that has no mixes.
#[derive(Clone, PartialEq, Debug)]
pub struct Case {
    /// The workload, with its proportions where it has any.
    pub name: String,
    /// Part of the operations that were lookups, for mixes.
    pub lookup_fraction: Option<f64>,
    /// Part of the lookups that were to find their key, for mixes.
    pub success: Option<f64>,
    /// Every run.
    pub runs: Vec<Figures>,
    /// Latencies of insert calls, all runs together.
    pub insert_ns: Option<LatencySummary>,
    /// Latencies of lookup calls, all runs together.
    pub lookup_ns: Option<LatencySummary>,
    /// Lookups by the pages they read, all runs together.
    pub reads_per_operation: Option<Vec<u64>>,
}

impl Case {
    /// The spread of every figure over the runs; figures that no run has are left out.
    #[must_use]
    pub fn spread(&self) -> BTreeMap<String, Spread> {
        let runs: Vec<_> = self.runs.iter().map(object).collect();
        let keys = object(&Figures::default());
        let spread = |key: &String| {
            let values = runs.iter().filter_map(|run| run.get(key)?.as_f64());
            Some((key.clone(), Spread::of(values)?))
        };
        keys.keys().filter_map(spread).collect()
    }

    /// The case that `json` was made from.
    fn parse(json: &Value) -> Option<Self> {
        let part = |key: &str| json.get(key).cloned().unwrap_or_default();
        Some(Self {
            name: json.get("case")?.as_str()?.to_owned(),
            lookup_fraction: part("lookup_fraction").as_f64(),
            success: part("success").as_f64(),
            runs: serde_json::from_value(part("runs")).ok()?,
            insert_ns: serde_json::from_value(part("insert_ns")).ok()?,
            lookup_ns: serde_json::from_value(part("lookup_ns")).ok()?,
            reads_per_operation: serde_json::from_value(part("reads_per_operation")).ok()?,
        })
    }

    fn json(&self) -> Map<String, Value> {
        let spread = self.spread();
        let mut json = object(&json!({
            "case": self.name,
            "lookup_fraction": self.lookup_fraction,
            "success": self.success,
        }));
        for key in object(&Figures::default()).keys() {
            let median = spread.get(key).map(|spread| spread.median);
            json.insert(key.clone(), json!(median));
        }
        json.append(&mut object(&json!({
            "insert_ns": self.insert_ns,
            "lookup_ns": self.lookup_ns,
            "reads_per_operation": self.reads_per_operation,
            "spread": spread,
            "runs": self.runs,
        })));
        json
    }
}

/// The settings and all cases.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// The settings, as an object.
    pub settings: Map<String, Value>,
    /// The cases, in the order they ran.
    pub cases: Vec<Case>,
}

impl Report {
    /// The one JSON object.
    #[must_use]
    pub fn json(&self) -> Value {
        let mut json = self.settings.clone();
        let cases: Vec<_> = self.cases.iter().map(Case::json).collect();
        if let [only] = cases.as_slice() {
            json.append(&mut only.clone());
        }
        json.insert("cases".into(), json!(cases));
        Value::Object(json)
    }

    /// The report that `json` was made from, or `None` when it is no report of this schema.
    #[must_use]
    pub fn parse(json: &Value) -> Option<Self> {
        if json.get("schema")? != SCHEMA {
            return None;
        }
        let cases = json.get("cases")?.as_array()?;
        let mut settings = json.as_object()?.clone();
        let of_cases = cases.iter().filter_map(Value::as_object).flat_map(Map::keys);
        of_cases.for_each(|key| {
            settings.remove(key);
        });
        settings.remove("cases");
        Some(Self { settings, cases: cases.iter().map(Case::parse).collect::<Option<_>>()? })
    }

    /// The report for people: settings, a line per case, every run, and the details.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (key, value) in &self.settings {
            let _ = writeln!(text, "{key}: {}", plain(value));
        }
        text.push('\n');
        text.push_str(&summary(std::slice::from_ref(self)));
        for case in &self.cases {
            text.push('\n');
            text.push_str(&runs_text(case));
            text.push_str(&details_text(case));
        }
        text
    }
}

pub(crate) fn object(value: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(map)) => map,
        _ => unreachable!(
            "a struct with named fields is an object, and its numbers are finite or null"
        ),
    }
}

pub(crate) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// One line per case of all `reports`: medians, and the spread of the rate.
#[must_use]
pub fn summary(reports: &[Report]) -> String {
    let header = [
        "engine",
        "case",
        "ops/s",
        "min..max",
        "reads/hit",
        "reads/miss",
        "disk rd/op",
        "p50",
        "p99",
        "p99.9",
        "p99.99",
        "max",
        "cpu us/op",
        "wr.amp",
        "RAM B/entry",
        "RSS",
        "device",
        "ratio",
    ];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for report in reports {
        let engine = report.settings.get("index").map(plain).unwrap_or_default();
        rows.extend(report.cases.iter().map(|case| summary_row(&engine, case)));
    }
    table(&rows)
}

fn summary_row(engine: &str, case: &Case) -> Vec<String> {
    let spread = case.spread();
    let show = |key: &str, show: fn(f64) -> String| {
        spread.get(key).map_or_else(|| "-".to_owned(), |spread| show(spread.median))
    };
    let two = |number: f64| format!("{number:.2}");
    let latency = case.lookup_ns.or(case.insert_ns);
    let ns = |pick: fn(&LatencySummary) -> u64| {
        latency.as_ref().map_or_else(|| "-".to_owned(), |latency| show_ns(pick(latency)))
    };
    let range = spread.get("operations_per_s").map_or_else(String::new, |spread| {
        format!("{}..{}", show_count(spread.min), show_count(spread.max))
    });
    let device = if case.lookup_ns.is_some() || spread.contains_key("lookups_per_s") {
        show("device_reads_per_s", |rate| format!("{} rd/s", show_count(rate)))
    } else {
        show("device_write_bytes_per_s", |rate| format!("{}/s", show_bytes(rate)))
    };
    vec![
        engine.to_owned(),
        case.name.clone(),
        show("operations_per_s", show_count),
        range,
        show("reads_per_hit", |reads| format!("{reads:.3}")),
        show("reads_per_miss", |reads| format!("{reads:.4}")),
        show("disk_reads_per_lookup", |reads| format!("{reads:.3}")),
        ns(|latency| latency.p50),
        ns(|latency| latency.p99),
        ns(|latency| latency.p999),
        ns(|latency| latency.p9999),
        ns(|latency| latency.max),
        show("cpu_us_per_op", two),
        show("write_amplification", two),
        show("ram_bytes_per_entry", two),
        show("rss_bytes", show_bytes),
        device,
        show("ratio_to_device", two),
    ]
}

fn runs_text(case: &Case) -> String {
    let header =
        ["run", "seconds", "ops/s", "device reads/s", "device write", "ratio", "cpu us/op"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    let or_dash = |number: Option<String>| number.unwrap_or_else(|| "-".to_owned());
    for (number, run) in case.runs.iter().enumerate() {
        rows.push(vec![
            format!("{}", number + 1),
            format!("{:.2}", run.seconds),
            show_count(run.operations_per_s),
            or_dash(run.device_reads_per_s.map(show_count)),
            or_dash(run.device_write_bytes_per_s.map(|rate| format!("{}/s", show_bytes(rate)))),
            or_dash(run.ratio_to_device.map(|ratio| format!("{ratio:.2}"))),
            format!("{:.2}", run.cpu_us_per_op),
        ]);
    }
    format!("{}: every run\n{}", case.name, table(&rows))
}

fn details_text(case: &Case) -> String {
    let mut rows = vec![["figure", "median", "min", "max"].map(str::to_owned).to_vec()];
    let number = |number: f64| {
        if number.fract() == 0.0 { format!("{number}") } else { format!("{number:.4}") }
    };
    for (key, spread) in case.spread() {
        rows.push(vec![key, number(spread.median), number(spread.min), number(spread.max)]);
    }
    let mut text = format!("{}: every figure\n{}", case.name, table(&rows));
    for (name, latency) in [("insert_ns", case.insert_ns), ("lookup_ns", case.lookup_ns)] {
        if let Some(latency) = latency {
            let _ = writeln!(text, "{name}: {}", json!(latency));
        }
    }
    if let Some(histogram) = &case.reads_per_operation {
        let _ = writeln!(text, "reads_per_operation: {}", json!(histogram));
    }
    text
}

/// Columns as wide as their widest cell: the first two to the left, numbers to the right.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
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

    fn case(name: &str) -> Case {
        let run = |rate| Figures {
            operations_per_s: rate,
            lookups_per_s: Some(rate),
            ..Figures::default()
        };
        Case {
            name: name.into(),
            lookup_fraction: None,
            success: None,
            runs: vec![run(1.0), run(5.0), run(3.0)],
            insert_ns: None,
            lookup_ns: None,
            reads_per_operation: None,
        }
    }

    fn report(cases: Vec<Case>) -> Report {
        Report { settings: object(&json!({"schema": SCHEMA, "index": "oracle"})), cases }
    }

    #[test]
    fn a_single_case_stands_at_the_top_level_too() {
        let json = report(vec![case("lookup-hit")]).json();
        assert_eq!(json["schema"], SCHEMA);
        assert_eq!(json["lookups_per_s"], 3.0);
        assert_eq!(json["cases"][0]["lookups_per_s"], 3.0);
        assert_eq!(json["spread"]["lookups_per_s"]["max"], 5.0);
        assert_eq!(json["runs"].as_array().unwrap().len(), 3);
    }

    #[test]
    fn several_cases_stand_in_their_array_only() {
        let json = report(vec![case("a"), case("b")]).json();
        assert!(json.get("lookups_per_s").is_none());
        assert_eq!(json["cases"][1]["case"], "b");
    }

    #[test]
    fn a_figure_no_run_has_is_null_and_not_zero() {
        let json = report(vec![case("a")]).json();
        assert!(json["inserts_per_s"].is_null());
        assert!(json["spread"].get("inserts_per_s").is_none());
        assert!(report(vec![case("a")]).text().contains("every run"));
    }

    #[test]
    fn a_report_is_read_back_from_its_json() {
        for cases in [vec![case("a")], vec![case("a"), case("b")]] {
            let report = report(cases);
            assert_eq!(Report::parse(&report.json()), Some(report));
        }
        assert_eq!(Report::parse(&json!({"schema": "another"})), None);
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
