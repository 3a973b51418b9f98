//! The cases of each workload, and their repetitions.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Result, bail, ensure};
use serde_json::json;

use super::{CHECKED, Loading, Measured, Session};
use crate::counted::{self, Counted};
use crate::drive::{self, Sought};
use crate::figures::ratio;
use crate::keys::Picker;
use crate::plan::KeyStorage;
use crate::report::Case;
use crate::worker::{Counters, Pass};
use crate::workload::{Mix, Workload};

impl Session<'_> {
    pub(super) fn cases(&mut self) -> Result<Vec<Case>> {
        match self.plan.workload {
            Workload::Load => {
                self.load_only()?;
                Ok(Vec::new())
            }
            Workload::Insert => Ok(vec![self.insert_case()?]),
            Workload::CountAdd => Ok(vec![self.count_case()?]),
            Workload::Mixed => self.mixed_cases(),
            Workload::LookupDuringInserts => self.during_inserts_cases(),
            Workload::Delete => Ok(vec![self.delete_case()?]),
            Workload::InsertAndQuery => Ok(vec![self.insert_and_query_case()?]),
            Workload::LookupHit
            | Workload::LookupMiss
            | Workload::LookupStream
            | Workload::LookupMissStream
            | Workload::CountHit
            | Workload::CountMiss
            | Workload::CountStream => Ok(vec![self.plain_case()?]),
            Workload::Update => Ok(vec![self.update_case()?]),
            Workload::Churn => Ok(vec![self.churn_case()?]),
        }
    }

    /// Repeats one case, each time by a pass of its own.
    pub(super) fn repeat(
        &mut self,
        name: String,
        mut run: impl FnMut(&mut Self, Pass) -> Result<Measured>,
    ) -> Result<Case> {
        let mut runs = Vec::new();
        for _ in 0..self.plan.runs {
            let pass = self.pass(self.plan.batch());
            runs.push(run(self, pass)?);
        }
        Ok(self.case(name, runs))
    }

    /// Combines the runs of one case.
    fn case(&self, name: String, mut runs: Vec<Measured>) -> Case {
        let mut all = Counters::default();
        let mut histogram: Option<Vec<u64>> = None;
        for run in &runs {
            all.merge(&run.counters);
            if let Some(reads) = &run.reads_histogram {
                let sum = histogram.get_or_insert_with(|| vec![0; reads.len()]);
                sum.iter_mut().zip(reads).for_each(|(sum, count)| *sum += count);
            }
        }
        let curves = runs.iter_mut().map(|run| std::mem::take(&mut run.counters.curve));
        let has_curve = self.kind.has_curves() && self.plan.workload == Workload::Insert;
        Case {
            name,
            mix: None,
            change_ns: all.change_ns.summary(),
            lookup_ns: all.lookup_ns.summary(),
            reads_per_operation: histogram.filter(|_| all.lookups > 0),
            curves: curves.filter(|curve| has_curve && !curve.is_empty()).collect(),
            runs: runs.into_iter().map(|run| run.figures).collect(),
        }
    }

    fn insert_case(&mut self) -> Result<Case> {
        let fill = self.fill();
        self.repeat(self.plan.workload.name(), |session, pass| {
            let loading = session.empty()?;
            let run =
                session.between_limits(&loading, |subject| drive::load(subject, pass, fill))?;
            session.put("loaded", json!(run.counters.changes));
            Ok(run)
        })
    }

    fn plain_case(&mut self) -> Result<Case> {
        let loading = self.load_or_open()?;
        let picker = self.picker(&loading);
        let (workload, operations) = (self.plan.workload, self.plan.operations());
        let sought = if workload.misses() { Sought::Absent } else { Sought::Here(&picker) };
        self.repeat(workload.name(), |session, pass| {
            let mut run = session.between_limits(&loading, |subject| match workload {
                Workload::LookupHit
                | Workload::LookupMiss
                | Workload::CountHit
                | Workload::CountMiss => drive::lookups(subject, pass, operations, sought),
                Workload::LookupStream | Workload::LookupMissStream | Workload::CountStream => {
                    drive::lookup_stream(subject, pass, operations, sought)
                }
                other => bail!("{} has its own runs", other.name()),
            })?;
            if workload.misses() {
                run.figures.false_positives(&run.counters);
            }
            run.figures.per_key(loading.count);
            Ok(run)
        })
    }

    pub(super) fn picker(&self, loading: &Loading) -> Picker {
        Picker::new(loading.count, self.plan.theta())
    }

    fn mixed_cases(&mut self) -> Result<Vec<Case>> {
        let loading = self.load_or_open()?;
        let picker = self.picker(&loading);
        self.settle_by_updates(&loading, &picker)?;
        let (next, operations) = (AtomicU64::new(loading.count), self.plan.operations());
        let mut cases = Vec::new();
        for mix in self.plan.mixes() {
            let Mix { lookup_fraction, success } = mix;
            let name = format!("mixed lookups={lookup_fraction} success={success}");
            let case = self.repeat(name, |session, pass| {
                session.between_limits(&loading, |subject| {
                    drive::mixed(subject, pass, operations, &picker, mix, &next)
                })
            })?;
            cases.push(Case { mix: Some(mix), ..case });
        }
        self.put("entries_at_end", json!(next.load(Ordering::Relaxed)));
        Ok(cases)
    }

    /// Measures lookups alone and lookups during inserts, alternately, so that changes of the device affect
    /// both.
    fn during_inserts_cases(&mut self) -> Result<Vec<Case>> {
        let loading = self.load_or_open()?;
        let picker = self.picker(&loading);
        let (next, flow) = (AtomicU64::new(loading.count), self.plan.flow());
        let operations = self.plan.operations();
        let mut during = Vec::new();
        let quiet = self.repeat("lookup-hit quiet".into(), |session, pass| {
            let quiet = session.between_limits(&loading, |subject| {
                drive::lookups(subject, pass, operations, Sought::Here(&picker))
            })?;
            let pass = session.pass(session.plan.batch());
            during.push(session.between_limits(&loading, |subject| {
                drive::lookups_during_inserts(subject, pass, &picker, flow, &next)
            })?);
            Ok(quiet)
        })?;
        self.put("entries_at_end", json!(next.load(Ordering::Relaxed)));
        let during = self.case("lookup-hit beside inserts".into(), during);
        let p99 = |case: &Case| case.lookup_ns.map(|latency| latency.p99 as f64);
        let p99_ratio =
            p99(&during).zip(p99(&quiet)).and_then(|(during, quiet)| ratio(during, quiet));
        self.put("p99_beside_over_quiet", json!(p99_ratio));
        Ok(vec![quiet, during])
    }

    /// Adds, in each run, documents that no earlier run has added.
    fn insert_and_query_case(&mut self) -> Result<Case> {
        let loading = self.load_or_open()?;
        let (next, operations) = (AtomicU64::new(loading.count), self.plan.operations());
        let case = self.repeat(self.plan.workload.name(), |session, pass| {
            session.between_limits(&loading, |subject| {
                drive::insert_and_query(subject, pass, operations, &next)
            })
        })?;
        self.put("entries_at_end", json!(next.load(Ordering::Relaxed)));
        Ok(case)
    }

    fn count_case(&mut self) -> Result<Case> {
        let picker = Picker::new(self.plan.entries, self.plan.theta());
        let operations = self.plan.operations();
        self.repeat(self.plan.workload.name(), |session, pass| {
            let loading = session.empty()?;
            let mut run = session.between_limits(&loading, |subject| {
                drive::add_picked(subject, pass, operations, &picker)
            })?;
            let subject = &*loading.subject;
            let counted = counted::check_counts(subject, pass, operations, &picker, CHECKED)?;
            session.check_exact(counted)?;
            run.figures.counted(counted, operations);
            Ok(run)
        })
    }

    fn check_exact(&self, counted: Counted) -> Result<()> {
        let is_exact = self.plan.filter.stored_keys == KeyStorage::Whole;
        ensure!(
            !is_exact || counted.above == 0.0,
            "{:.4} of the counts are too high, and with whole keys none may be",
            counted.above
        );
        Ok(())
    }

    /// Deletes, in each run, keys that no earlier run has deleted; then looks up some of the others.
    fn delete_case(&mut self) -> Result<Case> {
        let loading = self.load_or_open()?;
        let operations = self.plan.operations();
        let mut first = 0;
        self.repeat(self.plan.workload.name(), |session, pass| {
            ensure!(first + operations < loading.count, "only {} keys are there", loading.count);
            let run = session.between_limits(&loading, |subject| {
                drive::delete(subject, pass, first, operations)
            })?;
            first += operations;
            session.look_up_from(&loading, first)?;
            Ok(run)
        })
    }

    /// Looks up some of the keys from the one of index `first` on, which must all be present.
    fn look_up_from(&self, loading: &Loading, first: u64) -> Result<()> {
        let step = ((loading.count - first) / CHECKED as u64).max(1);
        let indices = (first..loading.count).step_by(usize::try_from(step)?);
        let keys: Vec<u64> = indices.map(|index| self.keys.key(index)).collect();
        let mut found = Vec::new();
        loading.subject.client()?.get_many(&keys, &mut found)?;
        let lost = found.iter().filter(|found| found.is_none()).count();
        ensure!(lost == 0, "{lost} of {} keys that were not deleted are gone", keys.len());
        Ok(())
    }
}
