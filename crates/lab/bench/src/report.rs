//! One report for every engine: text for readers, made by [`Report::text`], one JSON object for programs.
//!
//! The JSON object holds the settings (`schema`, `index`, `workload`, `loaded`, `value_bytes`, `threads`, `depth`,
//! `batch`, `durability`, `seed`, `clock_ns`, `memory_limit`, `device`, ...) and `cases`, one object per mix; all other
//! workloads have a single case. A case holds `case`, its name; `runs`, the [`Figures`] of each; `spread` with
//! minimum, median and maximum of each figure; `lookup_ns`, the latencies of all lookups together, and those of
//! the other calls.
//!
//! * For a table these are `insert_ns`. A case has each figure as the median of its runs, `lookup_fraction`
//!   and `success` of a mix, and `reads_per_operation`, a histogram of lookups by pages read, the last bucket
//!   "or more". The keys of a single case are at the top level, too.
//! * For a filter or an index of neighbours these are `change_ns`. A case has `curves`, for inserts: one per
//!   run, of points with the operations done and the seconds since the start.
//!
//! A figure that does not apply or is unknown is `null`. Keys are added, never changed, while `schema` stays.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::figures::Figures;
use crate::percentiles::{LatencySummary, Spread};
use crate::worker::Point;
use crate::workload::{Kind, Mix};

/// All runs of one mix, or of a workload that has no mixes.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Case {
    /// The workload, with its proportions if it has any.
    pub name: String,
    /// The proportions.
    pub mix: Option<Mix>,
    /// Every run.
    pub runs: Vec<Figures>,
    /// Latencies of calls that change something, all runs together.
    pub change_ns: Option<LatencySummary>,
    /// Latencies of lookup calls, all runs together.
    pub lookup_ns: Option<LatencySummary>,
    /// Lookups by the pages they read, all runs together, for tables.
    pub reads_per_operation: Option<Vec<u64>>,
    /// Inserts over time, one curve per run, for engines that are no tables.
    pub curves: Vec<Vec<Point>>,
}

impl Case {
    /// Returns the spread of every figure over the runs; figures without values are omitted.
    #[must_use]
    pub fn spread(&self) -> BTreeMap<String, Spread> {
        let spread = |name: &String| {
            let values = self.runs.iter().filter_map(|run| run.get(name));
            Some((name.clone(), Spread::of(values)?))
        };
        self.runs.first().into_iter().flat_map(Figures::names).filter_map(spread).collect()
    }

    /// Combines the cases of several processes, each of which has run it.
    fn of_rounds(rounds: Vec<Self>) -> Option<Self> {
        let summaries = |of: fn(&Self) -> Option<LatencySummary>| {
            LatencySummary::of_processes(&rounds.iter().filter_map(of).collect::<Vec<_>>())
        };
        let (change_ns, lookup_ns) = (summaries(|it| it.change_ns), summaries(|it| it.lookup_ns));
        let mut rounds = rounds.into_iter();
        let mut all = Self { change_ns, lookup_ns, ..rounds.next()? };
        for round in rounds {
            all.runs.extend(round.runs);
            all.curves.extend(round.curves);
            if let Some((sum, more)) =
                all.reads_per_operation.as_mut().zip(round.reads_per_operation)
            {
                sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
            }
        }
        Some(all)
    }

    /// Parses the case from its JSON.
    fn parse(kind: Kind, json: &Value) -> Option<Self> {
        let part = |key: &str| json.get(key).cloned().unwrap_or_default();
        Some(Self {
            name: json.get("case")?.as_str()?.to_owned(),
            mix: serde_json::from_value(json.clone()).ok(),
            runs: serde_json::from_value(part("runs")).ok()?,
            change_ns: serde_json::from_value(part(kind.change_key())).ok()?,
            lookup_ns: serde_json::from_value(part("lookup_ns")).ok()?,
            reads_per_operation: serde_json::from_value(part("reads_per_operation")).ok()?,
            curves: serde_json::from_value(part("curves")).unwrap_or_default(),
        })
    }

    fn json(&self, kind: Kind) -> Map<String, Value> {
        let spread = self.spread();
        let mut json = object(&json!({
            "case": self.name,
            "lookup_ns": self.lookup_ns,
            "runs": self.runs,
            "spread": spread,
        }));
        json.insert(kind.change_key().to_owned(), json!(self.change_ns));
        if kind.has_curves() {
            json.insert("curves".to_owned(), json!(self.curves));
            return json;
        }
        for name in Figures::of(kind).names() {
            json.insert(name.clone(), json!(spread.get(name).map(|spread| spread.median)));
        }
        json.append(&mut object(&json!({
            "lookup_fraction": self.mix.map(|mix| mix.lookup_fraction),
            "success": self.mix.map(|mix| mix.success),
            "reads_per_operation": self.reads_per_operation,
        })));
        json
    }
}

/// The settings and all cases.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// The kind of the engine.
    pub kind: Kind,
    /// The settings, as an object.
    pub settings: Map<String, Value>,
    /// The cases, in the order they ran.
    pub cases: Vec<Case>,
}

impl Report {
    /// Combines the reports of several processes that have run the same, with the runs of all and the
    /// settings of the last. Percentiles of latencies are medians of the processes'. `None` without any, or
    /// if their cases differ.
    #[must_use]
    pub fn of_rounds(rounds: Vec<Self>) -> Option<Self> {
        let count = rounds.len();
        let last = rounds.last()?;
        let (kind, mut settings) = (last.kind, last.settings.clone());
        settings.insert("repetitions".to_owned(), json!(count));
        let mut of_cases: Vec<Vec<Case>> = last.cases.iter().map(|_| Vec::new()).collect();
        for round in rounds {
            let fits = round.kind == kind && round.cases.len() == of_cases.len();
            of_cases
                .iter_mut()
                .zip(fits.then_some(round.cases)?)
                .for_each(|(all, one)| all.push(one));
        }
        let cases = of_cases.into_iter().map(Case::of_rounds).collect::<Option<_>>()?;
        Some(Self { kind, settings, cases })
    }

    /// Returns the one JSON object.
    #[must_use]
    pub fn json(&self) -> Value {
        let mut json = self.settings.clone();
        let cases: Vec<_> = self.cases.iter().map(|case| case.json(self.kind)).collect();
        if let ([only], Kind::Table) = (cases.as_slice(), self.kind) {
            json.append(&mut only.clone());
        }
        json.insert("schema".to_owned(), json!(self.kind.schema()));
        json.insert("cases".to_owned(), json!(cases));
        Value::Object(json)
    }

    /// Parses a report from its JSON, or returns `None` if it is no report.
    #[must_use]
    pub fn parse(json: &Value) -> Option<Self> {
        let found = json.get("schema")?;
        let kind = Kind::ALL.into_iter().find(|kind| found == kind.schema())?;
        let cases = json.get("cases")?.as_array()?;
        let mut settings = json.as_object()?.clone();
        let of_cases = cases.iter().filter_map(Value::as_object).flat_map(Map::keys);
        for key in of_cases.map(String::as_str).chain(["schema", "cases"]) {
            settings.remove(key);
        }
        let cases = cases.iter().map(|case| Case::parse(kind, case)).collect::<Option<_>>()?;
        Some(Self { kind, settings, cases })
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

#[cfg(test)]
mod tests {
    use super::*;

    fn case(name: &str) -> Case {
        let run = |rate: f64| {
            let mut figures = Figures::of(Kind::Table);
            figures.set("operations_per_s", rate);
            figures.set("lookups_per_s", rate);
            figures
        };
        let runs = vec![run(1.0), run(5.0), run(3.0)];
        Case { name: name.into(), runs, ..Case::default() }
    }

    fn report(kind: Kind, cases: Vec<Case>) -> Report {
        Report { kind, settings: object(&json!({"index": "oracle"})), cases }
    }

    #[test]
    fn a_single_case_of_a_table_stands_at_the_top_level_too() {
        let json = report(Kind::Table, vec![case("lookup-hit")]).json();
        assert_eq!(json["schema"], "nandex-bench/1");
        assert_eq!(json["lookups_per_s"], 3.0);
        assert_eq!(json["cases"][0]["lookups_per_s"], 3.0);
        assert_eq!(json["spread"]["lookups_per_s"]["max"], 5.0);
        assert_eq!(json["runs"].as_array().unwrap().len(), 3);
    }

    #[test]
    fn several_cases_stand_in_their_array_only() {
        let json = report(Kind::Table, vec![case("a"), case("b")]).json();
        assert!(json.get("lookups_per_s").is_none());
        assert_eq!(json["cases"][1]["case"], "b");
    }

    #[test]
    fn a_figure_no_run_has_is_null_and_not_zero() {
        let json = report(Kind::Table, vec![case("a")]).json();
        assert!(json["inserts_per_s"].is_null());
        assert!(json["spread"].get("inserts_per_s").is_none());
    }

    #[test]
    fn rounds_become_one_report_with_all_runs() {
        let latency = |p50, max| {
            Some(LatencySummary { count: 10, mean: 2.0, p50, p99: 3, p999: 4, p9999: 5, max })
        };
        let round = |rate: f64, p50, max| {
            let mut figures = Figures::of(Kind::Filter);
            figures.set("operations_per_s", rate);
            let case =
                Case { runs: vec![figures], change_ns: latency(p50, max), ..case("count-add") };
            report(Kind::Filter, vec![case])
        };
        let rounds = vec![round(1.0, 7, 20), round(9.0, 1, 90), round(5.0, 3, 10)];
        let all = Report::of_rounds(rounds.clone()).unwrap();
        assert_eq!(all.settings["repetitions"], 3);
        let case = &all.cases[0];
        assert_eq!((case.runs.len(), case.spread()["operations_per_s"].median), (3, 5.0));
        assert_eq!(case.change_ns, latency(3, 90).map(|it| LatencySummary { count: 30, ..it }));
        assert_eq!(case.lookup_ns, None);
        let other = report(Kind::Filter, Vec::new());
        assert_eq!(Report::of_rounds([rounds, vec![other]].concat()), None);
        assert_eq!(Report::of_rounds(Vec::new()), None);
    }

    #[test]
    fn a_report_is_read_back_from_its_json() {
        let mixed = Case { mix: Some(Mix { lookup_fraction: 0.5, success: 1.0 }), ..case("m") };
        for cases in [vec![case("a")], vec![case("a"), mixed]] {
            let report = report(Kind::Table, cases);
            assert_eq!(Report::parse(&report.json()), Some(report));
        }
        let curves = vec![vec![Point { operations: 10, seconds: 0.5 }]];
        let report = report(Kind::Filter, vec![Case { curves, ..case("a") }]);
        let json = report.json();
        assert_eq!(json["cases"][0]["spread"]["operations_per_s"]["median"], 3.0);
        assert_eq!(Report::parse(&json), Some(report));
        assert_eq!(Report::parse(&json!({"schema": "another"})), None);
    }
}
