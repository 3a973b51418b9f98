//! Table 4: the utilization of the processor, by times of operations that were measured and kept.
//!
//! A simulated drive has virtual time and no processor, and a page that is the same on every run cannot
//! measure one. So the times were measured once, by [`processor`](super::processor), and are constants here.
//! The rates are those of workers with these times, so nothing of the paper's table is an input.

use nandex::raw::store::schedule::Channels;

use super::lab::{Mix, Setup};
use super::processor::Times;
use super::throughput::Part;
use super::workers::WorkerModel;
use crate::bufferhash::lab::Filters;
use crate::{Drive, Experiment, Outcome, Result, Row, Scale, Table};

/// See the [module](self).
pub struct Table4;

/// Cores of the paper's machine.
const CORES: f64 = 8.0;
/// The processor of these times.
const RECORDED_ON: &str = "a virtual core of an AMD EPYC at 2.6 GHz, in November 2026";
const SLICE_HASH: Times = Times { lookup_ns: 1_330, insert_ns: 780 };
const BUFFER_HASH: Times = Times { lookup_ns: 1_190, insert_ns: 420 };

/// A workload of Table 4: the percentage of inserts, and for SliceHash and BufferHash the paper's utilization and its
/// operations a second in Figure 5.
struct Workload {
    mix: Mix,
    inserts: u32,
    slice_hash: (f64, f64),
    buffer_hash: (f64, f64),
    /// SILT's utilization.
    silt: f64,
}

/// The workloads in the order in which they are taped: inserts last, since a full BufferHash evicts the keys
/// that are looked up.
const WORKLOADS: [Workload; 3] = [
    Workload {
        mix: Mix::Lookups,
        inserts: 0,
        slice_hash: (16.0, 69_000.0),
        buffer_hash: (18.0, 57_000.0),
        silt: 27.0,
    },
    Workload {
        mix: Mix::Both,
        inserts: 50,
        slice_hash: (12.0, 105_000.0),
        buffer_hash: (24.0, 121_000.0),
        silt: 67.0,
    },
    Workload {
        mix: Mix::Inserts,
        inserts: 100,
        slice_hash: (8.0, 125_000.0),
        buffer_hash: (92.0, 1_100_000.0),
        silt: 72.0,
    },
];

impl Experiment for Table4 {
    fn name(&self) -> &'static str {
        "table-4"
    }

    fn title(&self) -> &'static str {
        "Utilization of the processor"
    }

    fn reference(&self) -> &'static str {
        "section 7.2, Table 4"
    }

    fn run(&self, scale: Scale) -> Result<Outcome> {
        let channels = Channels::of(&Drive::CRUCIAL.geometry()?);
        let mixes = WORKLOADS.each_ref().map(|workload| workload.mix);
        let slice = Part::of(Setup::paper(scale), mixes)?;
        let buffer = Part::of_buffer_hash(Filters::Bloom, mixes, scale)?;
        let [mut at_our_rates, mut at_the_papers] = [Vec::new(), Vec::new()];
        for ((workload, slice), buffer) in WORKLOADS.iter().zip(&slice).zip(&buffer) {
            let on = |part: &Part, model| part.work(model, Drive::CRUCIAL, scale);
            let slice_rate = on(slice, SLICE_HASH.of(WorkerModel::channel_aware(channels, 1)))?;
            let buffer_rate = on(buffer, BUFFER_HASH.of(WorkerModel::buffer_hash()))?;
            let both = [
                ("SliceHash", SLICE_HASH, workload.slice_hash, slice_rate.operations_per_s),
                ("BufferHash", BUFFER_HASH, workload.buffer_hash, buffer_rate.operations_per_s),
            ];
            for (name, times, (percent, papers_rate), rate) in both {
                let named = |what: &str| format!("{} % inserts, {name}{what}", workload.inserts);
                let of = |rate| times.utilization(workload.mix, rate);
                at_our_rates.push(recorded(named(""), of(rate)).paper(percent));
                at_our_rates.push(Row::recorded(
                    named(": operations a second"),
                    "operations/s",
                    rate,
                    RECORDED_ON,
                ));
                at_the_papers.push(recorded(named(""), of(papers_rate)).paper(percent));
            }
            let silt = format!("{} % inserts, SILT", workload.inserts);
            at_our_rates.push(Row::stated(silt, "%", workload.silt));
        }
        Ok(Outcome {
            setup: setup(),
            tables: vec![
                Table { title: "Times of operations".into(), rows: times() },
                Table {
                    title: "Utilization at the rates of our workers".into(),
                    rows: at_our_rates,
                },
                Table { title: "Utilization at the paper's rates".into(), rows: at_the_papers },
            ],
            charts: Vec::new(),
        })
    }
}

fn recorded(what: String, percent: f64) -> Row {
    Row::recorded(what, "%", percent, RECORDED_ON)
}

fn setup() -> Vec<String> {
    vec![
        "The processor's times of operations were measured on one thread, as its own time and not \
         the clock's, on tables of Figure 5 in RAM in place of a drive: a page is copied, and no \
         kernel is asked for it. Inserts have their share of merges and flushes. Utilization is \
         of the eight cores that the paper had, at this processor's times."
            .into(),
        "The workers of the second table have these times and those of the drive, and nothing of \
         the paper's Table 4. Figure 5 has the paper's times instead."
            .into(),
        "The paper's numbers are of iostat, so they have the kernel's work for each request in \
         them, 32 threads that wait and wake up, and a processor of 2009 at 2.26 GHz."
            .into(),
    ]
}

fn times() -> Vec<Row> {
    let all = [("SliceHash", SLICE_HASH), ("BufferHash", BUFFER_HASH)];
    let rows = all.into_iter().flat_map(|(name, times)| {
        [("a lookup", times.lookup_ns), ("an insert", times.insert_ns)].map(|(what, ns)| {
            let what = format!("{name}: {what}");
            Row::recorded(what, "us", ns as f64 / 1000.0, RECORDED_ON)
        })
    });
    let [lookups, _, inserts] = &WORKLOADS;
    let papers = [lookups.slice_hash, inserts.slice_hash, lookups.buffer_hash, inserts.buffer_hash];
    let papers = papers.map(|(percent, rate)| percent / 100.0 * CORES * 1e6 / rate);
    let why = "The paper's is computed: Table 4's share of eight cores over Figure 5's rate.";
    rows.zip(papers).map(|(row, us)| row.paper(us).why(why)).collect()
}

impl Times {
    fn of(self, model: WorkerModel) -> WorkerModel {
        WorkerModel { lookup_cpu_ns: self.lookup_ns, insert_cpu_ns: self.insert_ns, ..model }
    }

    /// The utilization in percent of all cores.
    fn utilization(self, mix: Mix, operations_per_s: f64) -> f64 {
        let ns = match mix {
            Mix::Lookups => self.lookup_ns as f64,
            Mix::Inserts => self.insert_ns as f64,
            Mix::Both => f64::midpoint(self.lookup_ns as f64, self.insert_ns as f64),
        };
        100.0 * operations_per_s * ns / 1e9 / CORES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utilization_is_the_share_of_eight_cores() {
        let times = Times { lookup_ns: 8_000, insert_ns: 24_000 };
        assert_eq!(times.utilization(Mix::Lookups, 100_000.0), 10.0);
        assert_eq!(times.utilization(Mix::Both, 100_000.0), 20.0);
        assert_eq!(times.utilization(Mix::Inserts, 100_000.0), 30.0);
    }
}
