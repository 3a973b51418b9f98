//! One benchmark of a filter from start to end: fill it, measure the device, run, measure again, report.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value, json};

use super::drive::{self, Curve, Point};
use super::figures::{FilterFigures, rates};
use super::limits::FilterLimits;
use super::plan::FilterPlan;
use super::report::{FilterCase, FilterReport, SCHEMA};
use super::subject::{FilterMaker, FilterSubject};
use crate::cold;
use crate::drive::{Pass, Tally};
use crate::limit::Scratch;
use crate::loaded::Loaded;
use crate::percentiles::{Latency, clock_ns};
use crate::plan::{LOAD_BATCH, Plan, Workload};
use crate::process::{self, DiskBytes};
use crate::session::Surroundings;
use crate::workload::{KeySpace, Mix, Picker};

/// Exponent of the Zipf law of counts, unless told otherwise.
const COUNT_THETA: f64 = 0.99;
/// Keys whose counts are checked after each run, and keys looked up after deletes.
const CHECKED: usize = 10_000;

/// Runs `plan` on the filter that `maker` makes.
///
/// # Errors
/// A setting that cannot work, the filter's or the device's failure, or a false negative.
pub fn run(
    plan: &FilterPlan,
    maker: &dyn FilterMaker,
    surroundings: Surroundings<'_>,
) -> Result<FilterReport> {
    plan.check()?;
    plan.check_for(maker)?;
    let dir = &plan.plan.dir;
    fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let mut session = Session {
        filter: plan,
        plan: &plan.plan,
        maker,
        surroundings,
        scratch: scratch(&plan.plan, maker)?,
        keys: KeySpace::new(plan.plan.seed),
        pass_number: 1,
        settings: Map::new(),
        limits: None,
    };
    let cases = session.cases()?;
    Ok(FilterReport { schema: SCHEMA.to_owned(), settings: session.settings(), cases })
}

fn scratch(plan: &Plan, maker: &dyn FilterMaker) -> Result<Option<Scratch>> {
    if plan.limit_time.is_zero() || plan.workload == Workload::Load || !maker.on_flash() {
        return Ok(None);
    }
    let scratch = Scratch::in_dir(&plan.dir, plan.scratch_bytes);
    scratch.map(Some).context("the scratch file for the device's limits cannot be made")
}

struct Session<'a> {
    filter: &'a FilterPlan,
    plan: &'a Plan,
    maker: &'a dyn FilterMaker,
    surroundings: Surroundings<'a>,
    scratch: Option<Scratch>,
    keys: KeySpace,
    pass_number: u64,
    settings: Map<String, Value>,
    limits: Option<FilterLimits>,
}

/// The filter under test, and what was charged before it was made.
struct Filled {
    subject: Box<dyn FilterSubject>,
    keys: u64,
    allocated_before: u64,
}

/// One run, measured.
struct Measured {
    figures: FilterFigures,
    tally: Tally,
    curve: Vec<Point>,
}

impl Session<'_> {
    fn cases(&mut self) -> Result<Vec<FilterCase>> {
        match self.plan.workload {
            Workload::Insert => return Ok(vec![self.insert_case()?]),
            Workload::Count => return Ok(vec![self.count_case()?]),
            Workload::Load => return self.load_only(),
            _ => {}
        }
        let filled = self.fill_or_open()?;
        self.put("loaded", json!(filled.keys));
        match self.plan.workload {
            Workload::LookupHit | Workload::LookupMiss => Ok(vec![self.lookup_case(&filled)?]),
            Workload::Delete => Ok(vec![self.delete_case(&filled)?]),
            Workload::Mixed => self.mixed_cases(&filled),
            other => bail!("--workload {}: none of filters", other.name()),
        }
    }

    /// Leaves a full filter for a later run, and measures nothing.
    fn load_only(&mut self) -> Result<Vec<FilterCase>> {
        let name = self.filter.note_name(self.maker);
        let found = Loaded::find(self.plan, &name).filter(|_| self.maker.on_flash());
        self.put("reused", json!(found.is_some()));
        let count = match found {
            Some(count) => count,
            None => {
                Loaded::forget(&self.plan.dir, &name)?;
                let (subject, count) = self.fill()?;
                drop(subject);
                Loaded::of(self.plan, &name, count).write(&self.plan.dir)?;
                count
            }
        };
        self.put("loaded", json!(count));
        Ok(Vec::new())
    }

    fn insert_case(&mut self) -> Result<FilterCase> {
        let mut runs = Vec::new();
        for _ in 0..self.plan.runs {
            let filled = self.empty()?;
            let pass = self.pass(self.plan.batch);
            let (keys, time_max) = (self.plan.entries, self.plan.load_time_max);
            let points = self.filter.points;
            let mut curve = Vec::new();
            let mut run = self.between_limits(&filled, |subject| {
                let noted = Curve::start(keys, points);
                let tally = drive::insert(subject, pass, keys, time_max, &noted)?;
                curve = noted.points();
                Ok(tally)
            })?;
            run.curve = curve;
            self.put("loaded", json!(run.tally.inserts));
            runs.push(run);
        }
        Ok(case(self.plan.workload.name().into(), runs))
    }

    /// An empty filter; what an earlier run left is forgotten.
    fn empty(&self) -> Result<Filled> {
        Loaded::forget(&self.plan.dir, &self.filter.note_name(self.maker))?;
        let allocated_before = (self.surroundings.allocated_bytes)();
        let subject = self.maker.create(&self.filter.spec())?;
        cold::evict(&self.plan.dir)?;
        Ok(Filled { subject, keys: 0, allocated_before })
    }

    fn count_case(&mut self) -> Result<FilterCase> {
        let picker = Picker::new(self.plan.entries, self.plan.theta.or(Some(COUNT_THETA)));
        let operations = self.plan.operations;
        let mut runs = Vec::new();
        for _ in 0..self.plan.runs {
            let filled = self.empty()?;
            let pass = self.pass(self.plan.batch);
            let mut run = self.between_limits(&filled, |subject| {
                let start = Instant::now();
                let mut tally = drive::count(subject, pass, operations, &picker)?;
                subject.sync()?;
                tally.seconds = start.elapsed().as_secs_f64();
                Ok(tally)
            })?;
            let subject = &*filled.subject;
            let (above, all) = drive::check_counts(subject, pass, operations, &picker, CHECKED)?;
            run.figures.counts_above = Some(above as f64 / all.max(1) as f64);
            runs.push(run);
        }
        Ok(case(self.plan.workload.name().into(), runs))
    }

    fn lookup_case(&mut self, filled: &Filled) -> Result<FilterCase> {
        let picker = Picker::new(filled.keys, self.plan.theta);
        let (workload, operations) = (self.plan.workload, self.plan.operations);
        let misses = workload == Workload::LookupMiss;
        let mut runs = Vec::new();
        for _ in 0..self.plan.runs {
            let pass = self.pass(self.plan.batch);
            let mut run = self.between_limits(filled, |subject| {
                if misses {
                    drive::lookup_misses(subject, pass, operations)
                } else {
                    drive::lookup_hits(subject, pass, operations, &picker)
                }
            })?;
            if misses {
                run.figures.false_positives(&run.tally);
            }
            runs.push(run);
        }
        Ok(case(workload.name().into(), runs))
    }

    /// Each run deletes keys that no run before has deleted; then some of those left are looked up.
    fn delete_case(&mut self, filled: &Filled) -> Result<FilterCase> {
        let operations = self.plan.operations;
        let mut first = 0;
        let mut runs = Vec::new();
        for _ in 0..self.plan.runs {
            ensure!(first + operations < filled.keys, "only {} keys are there", filled.keys);
            let pass = self.pass(self.plan.batch);
            let run = self.between_limits(filled, |subject| {
                drive::delete(subject, pass, first, operations)
            })?;
            first += operations;
            self.look_at_the_rest(filled, first)?;
            runs.push(run);
        }
        Ok(case(self.plan.workload.name().into(), runs))
    }

    fn look_at_the_rest(&self, filled: &Filled, first: u64) -> Result<()> {
        let left = filled.keys - first;
        let step = (left / CHECKED as u64).max(1);
        let keys: Vec<u64> = (first..filled.keys)
            .step_by(usize::try_from(step)?)
            .map(|index| self.keys.key(index))
            .collect();
        let mut found = Vec::new();
        filled.subject.lane()?.contains_many(&keys, &mut found)?;
        let lost = found.iter().filter(|&&found| !found).count();
        ensure!(lost == 0, "{lost} of {} keys that were not deleted are gone", keys.len());
        Ok(())
    }

    fn mixed_cases(&mut self, filled: &Filled) -> Result<Vec<FilterCase>> {
        let picker = Picker::new(filled.keys, self.plan.theta);
        let next = AtomicU64::new(filled.keys);
        let operations = self.plan.operations;
        let mut cases = Vec::new();
        for &mix in &self.plan.mixes {
            let mut runs = Vec::new();
            for _ in 0..self.plan.runs {
                let pass = self.pass(self.plan.batch);
                runs.push(self.between_limits(filled, |subject| {
                    drive::mixed(subject, pass, operations, &picker, mix, &next)
                })?);
            }
            let Mix { lookup_fraction, success } = mix;
            cases.push(case(format!("mixed lookups={lookup_fraction} success={success}"), runs));
        }
        self.put("entries_at_end", json!(next.load(Ordering::Relaxed)));
        Ok(cases)
    }

    /// The full filter of an earlier run where it fits, else a new one.
    fn fill_or_open(&mut self) -> Result<Filled> {
        let allocated_before = (self.surroundings.allocated_bytes)();
        let (name, on_flash) = (self.filter.note_name(self.maker), self.maker.on_flash());
        let found = Loaded::find(self.plan, &name).filter(|_| on_flash);
        self.put("reused", json!(found.is_some()));
        if !self.plan.workload.only_reads() || found.is_none() {
            Loaded::forget(&self.plan.dir, &name)?;
        }
        if let Some(keys) = found {
            (self.surroundings.progress)(&format!("{keys} keys are in already"));
            return Ok(Filled { subject: self.open()?, keys, allocated_before });
        }
        let (subject, keys) = self.fill()?;
        if !on_flash {
            return Ok(Filled { subject, keys, allocated_before });
        }
        // Closed and opened again, so that a fresh filter and a reused one are measured alike.
        drop(subject);
        if self.plan.workload.only_reads() {
            Loaded::of(self.plan, &name, keys).write(&self.plan.dir)?;
        }
        Ok(Filled { subject: self.open()?, keys, allocated_before })
    }

    fn open(&self) -> Result<Box<dyn FilterSubject>> {
        cold::evict(&self.plan.dir)?;
        self.maker.open(&self.filter.spec()).context("the full filter cannot be opened")
    }

    fn fill(&mut self) -> Result<(Box<dyn FilterSubject>, u64)> {
        let plan = self.plan;
        (self.surroundings.progress)(&format!("inserting {} keys", plan.entries));
        let subject = self.maker.create(&self.filter.spec())?;
        let mut pass = self.pass(LOAD_BATCH);
        pass.latency = Latency::Off;
        pass.threads = 1;
        let curve = Curve::start(plan.entries, self.filter.points);
        let tally = drive::insert(&*subject, pass, plan.entries, plan.load_time_max, &curve)?;
        ensure!(tally.inserts > 0, "nothing was inserted in the time given; give more");
        subject.settle()?;
        self.put("load_seconds", json!(tally.seconds));
        (self.surroundings.progress)(&format!("{} in in {:.1} s", tally.inserts, tally.seconds));
        Ok((subject, tally.inserts))
    }

    fn between_limits(
        &mut self,
        filled: &Filled,
        work: impl FnOnce(&dyn FilterSubject) -> Result<Tally>,
    ) -> Result<Measured> {
        // The measurement after one run is the one before the next.
        let before = match self.limits {
            Some(limits) => Some(limits),
            None => self.measure_limits()?,
        };
        let mut run = self.measure(filled, work)?;
        self.limits = self.measure_limits()?;
        run.figures.compare(before, self.limits);
        Ok(run)
    }

    fn measure_limits(&self) -> Result<Option<FilterLimits>> {
        let Some(scratch) = &self.scratch else { return Ok(None) };
        let Plan { threads, depth, limit_time, .. } = *self.plan;
        FilterLimits::measure(scratch, threads, depth, limit_time).map(Some)
    }

    fn measure(
        &self,
        filled: &Filled,
        work: impl FnOnce(&dyn FilterSubject) -> Result<Tally>,
    ) -> Result<Measured> {
        let subject = &*filled.subject;
        let (before, disk, cpu) = (subject.state(), DiskBytes::now(), process::cpu_ns());
        let tally = work(subject)?;
        let settling = Instant::now();
        if tally.inserts > 0 {
            subject.settle()?;
        }
        let settle_seconds = settling.elapsed().as_secs_f64();
        let cpu = process::cpu_ns() - cpu;
        let disk = DiskBytes::now().zip(disk).map(|(now, before)| now.since(before));
        let mut figures = rates(&tally, cpu);
        figures.settle_seconds = settle_seconds;
        figures.rss_bytes = process::rss_bytes();
        let allocated = (self.surroundings.allocated_bytes)();
        figures.allocated_bytes =
            (allocated > 0).then(|| allocated.saturating_sub(filled.allocated_before));
        let now = subject.state();
        let keys = now.entries.unwrap_or(filled.keys + tally.inserts);
        figures.space(now, before, self.plan.ram_bytes, keys);
        figures.disk(disk, &tally);
        Ok(Measured { figures, tally, curve: Vec::new() })
    }

    fn pass(&mut self, batch: usize) -> Pass {
        let number = self.pass_number;
        self.pass_number += 1;
        let Plan { seed, threads, latency, .. } = *self.plan;
        Pass { keys: self.keys, seed, number, threads, batch, latency }
    }

    fn put(&mut self, key: &str, value: Value) {
        self.settings.insert(key.to_owned(), value);
    }

    fn settings(mut self) -> Map<String, Value> {
        let plan = self.plan;
        let engine = self.scratch.as_ref().map(Scratch::engine);
        let theta = plan.theta.or((plan.workload == Workload::Count).then_some(COUNT_THETA));
        let settings = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "index": self.maker.name(),
            "workload": plan.workload,
            "keys": plan.entries,
            "rate_made_for": self.filter.rate,
            "fan_out": self.filter.fan_out,
            "ram_budget_bytes": plan.ram_bytes,
            "threads": plan.threads,
            "depth": plan.depth,
            "batch": plan.batch,
            "durability": plan.durability,
            "repetitions": plan.runs,
            "distribution": theta.map_or("uniform".into(), |theta| format!("zipf {theta}")),
            "seed": plan.seed,
            "latency": plan.latency,
            "clock_ns": clock_ns(),
            "cpus": std::thread::available_parallelism().map(usize::from).ok(),
            "memory_limit": (self.surroundings.memory_limit)(),
            "device": {
                "engine": engine.as_ref().map(|engine| &engine.name),
                "reason": engine.as_ref().map(|engine| &engine.reason),
                "scratch_bytes": self.scratch.as_ref().map(Scratch::bytes),
                "limit_seconds": plan.limit_time.as_secs_f64(),
            },
        });
        if let Value::Object(mut settings) = settings {
            self.settings.append(&mut settings);
        }
        self.settings
    }
}

/// The runs of one case together.
fn case(name: String, runs: Vec<Measured>) -> FilterCase {
    let mut all = Tally::default();
    runs.iter().for_each(|run| all.merge(&run.tally));
    FilterCase {
        case: name,
        change_ns: all.insert_ns.summary(),
        lookup_ns: all.lookup_ns.summary(),
        curves: runs.iter().map(|run| run.curve.clone()).filter(|it| !it.is_empty()).collect(),
        runs: runs.into_iter().map(|run| run.figures).collect(),
    }
}
