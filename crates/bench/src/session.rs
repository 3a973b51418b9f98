//! One benchmark from start to end: load, measure the device, run, measure again, report.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value, json};

use crate::beside;
use crate::cgroup::MemoryLimit;
use crate::cold;
use crate::drive::{self, Pass, Tally};
use crate::figures::{Measured, case, compare, rates, ratio, read_costs, since, write_costs};
use crate::limit::{Limits, Scratch};
use crate::loaded::Loaded;
use crate::percentiles::{Latency, clock_ns};
use crate::plan::{LOAD_BATCH, Load, Plan, Workload};
use crate::process::{self, DiskBytes};
use crate::report::{Case, Report, SCHEMA};
use crate::sorted;
use crate::subject::{Maker, Subject};
use crate::workload::{KeySpace, Mix, Picker};

/// What the binary lends to a session.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// Bytes allocated and not freed, of the whole process.
    pub allocated_bytes: fn() -> u64,
    /// The memory limit in force; asked at the end, so that it knows the peak.
    pub memory_limit: &'a dyn Fn() -> MemoryLimit,
    /// Told what happens, a sentence at a time.
    pub progress: &'a dyn Fn(&str),
}

/// Runs `plan` on the engine that `maker` makes.
///
/// # Errors
/// A setting that cannot work, the engine's or the device's failure, or a wrong answer.
pub fn run(plan: &Plan, maker: &dyn Maker, surroundings: Surroundings<'_>) -> Result<Report> {
    plan.check()?;
    let (workload, name) = (plan.workload.name(), maker.name());
    let fits = !plan.workload.is_of_filters();
    ensure!(fits, "--workload {workload}: a workload of filters; {name} is a table");
    let dir = &plan.dir;
    fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let scratch = scratch(plan, maker)?;
    let mut session = Session {
        plan,
        maker,
        surroundings,
        scratch,
        keys: KeySpace::new(plan.seed),
        pass_number: 1,
        settings: Map::new(),
        limits: None,
    };
    session.put("schema", json!(SCHEMA));
    let cases = session.cases()?;
    Ok(Report { settings: session.settings(), cases })
}

fn scratch(plan: &Plan, maker: &dyn Maker) -> Result<Option<Scratch>> {
    if plan.limit_time.is_zero() || plan.workload == Workload::Load {
        return Ok(None);
    }
    let scratch = if maker.lasting() {
        Scratch::in_dir(&plan.dir, plan.scratch_bytes)
    } else {
        Scratch::in_memory(plan.scratch_bytes)
    };
    scratch.map(Some).context("the scratch file for the device's limits cannot be made")
}

struct Session<'a> {
    plan: &'a Plan,
    maker: &'a dyn Maker,
    surroundings: Surroundings<'a>,
    scratch: Option<Scratch>,
    keys: KeySpace,
    pass_number: u64,
    settings: Map<String, Value>,
    limits: Option<Limits>,
}

/// The table under test, and what was charged before it was made.
struct Loading {
    subject: Box<dyn Subject>,
    count: u64,
    allocated_before: u64,
}

impl Session<'_> {
    fn cases(&mut self) -> Result<Vec<Case>> {
        if self.plan.workload == Workload::Insert {
            return Ok(vec![self.insert_case()?]);
        }
        if self.plan.workload == Workload::Load {
            return self.load_only();
        }
        let loading = self.load_or_open()?;
        self.put("loaded", json!(loading.count));
        match self.plan.workload {
            Workload::Mixed => self.mixed_cases(&loading),
            Workload::LookupBesideInserts => self.beside_cases(&loading),
            _ => Ok(vec![self.plain_case(&loading)?]),
        }
    }

    /// Leaves a loaded table for a later run, and measures nothing.
    fn load_only(&mut self) -> Result<Vec<Case>> {
        let found = Loaded::find(self.plan, self.maker.name());
        self.put("reused", json!(found.is_some()));
        let count = match found {
            Some(count) => count,
            None => {
                Loaded::forget(&self.plan.dir, self.maker.name())?;
                let (subject, count) = self.load()?;
                drop(subject);
                Loaded::of(self.plan, self.maker.name(), count).write(&self.plan.dir)?;
                count
            }
        };
        self.put("loaded", json!(count));
        Ok(Vec::new())
    }

    fn insert_case(&mut self) -> Result<Case> {
        Loaded::forget(&self.plan.dir, self.maker.name())?;
        let mut runs = Vec::new();
        for _ in 0..self.plan.runs {
            let allocated_before = (self.surroundings.allocated_bytes)();
            let subject = self.maker.create(&self.plan.spec())?;
            let loading = Loading { subject, count: 0, allocated_before };
            let pass = self.pass(self.plan.batch);
            let (entries, time_max) = (self.plan.entries, self.plan.load_time_max);
            let load = |subject: &dyn Subject| drive::load(subject, pass, entries, time_max);
            let run = self.between_limits(&loading, load)?;
            self.put("loaded", json!(run.tally.inserts));
            runs.push(run);
        }
        Ok(case(self.plan.workload.name().into(), None, runs))
    }

    fn plain_case(&mut self, loading: &Loading) -> Result<Case> {
        let picker = Picker::new(loading.count, self.plan.theta);
        let (workload, operations) = (self.plan.workload, self.plan.operations);
        let mut runs = Vec::new();
        for _ in 0..self.plan.runs {
            let pass = self.pass(self.plan.batch);
            runs.push(self.between_limits(loading, |subject| match workload {
                Workload::LookupHit => drive::lookup_hits(subject, pass, operations, &picker),
                Workload::LookupStream => drive::lookup_stream(subject, pass, operations, &picker),
                Workload::LookupMiss => drive::lookup_misses(subject, pass, operations),
                Workload::Update => drive::updates(subject, pass, operations, &picker),
                Workload::Load
                | Workload::Insert
                | Workload::Mixed
                | Workload::LookupBesideInserts
                | Workload::Delete
                | Workload::Count => {
                    bail!("{} has its own runs", workload.name())
                }
            })?);
        }
        Ok(case(workload.name().into(), None, runs))
    }

    fn mixed_cases(&mut self, loading: &Loading) -> Result<Vec<Case>> {
        let picker = Picker::new(loading.count, self.plan.theta);
        let next = AtomicU64::new(loading.count);
        let mut cases = Vec::new();
        for &mix in &self.plan.mixes {
            let mut runs = Vec::new();
            for _ in 0..self.plan.runs {
                let pass = self.pass(self.plan.batch);
                let operations = self.plan.operations;
                runs.push(self.between_limits(loading, |subject| {
                    drive::mixed(subject, pass, operations, &picker, mix, &next)
                })?);
            }
            let Mix { lookup_fraction, success } = mix;
            let name = format!("mixed lookups={lookup_fraction} success={success}");
            cases.push(case(name, Some(mix), runs));
        }
        self.put("entries_at_end", json!(next.load(Ordering::Relaxed)));
        Ok(cases)
    }

    /// Lookups alone and lookups beside inserts by turns, so that a device that changes its mind does so
    /// to both.
    fn beside_cases(&mut self, loading: &Loading) -> Result<Vec<Case>> {
        let picker = Picker::new(loading.count, self.plan.theta);
        let next = AtomicU64::new(loading.count);
        let (operations, flow) = (self.plan.operations, self.plan.flow);
        let (mut quiet, mut beside) = (Vec::new(), Vec::new());
        for _ in 0..self.plan.runs {
            let pass = self.pass(self.plan.batch);
            quiet.push(self.between_limits(loading, |subject| {
                drive::lookup_hits(subject, pass, operations, &picker)
            })?);
            let pass = self.pass(self.plan.batch);
            beside.push(self.between_limits(loading, |subject| {
                beside::lookups_beside_inserts(subject, pass, &picker, flow, &next)
            })?);
        }
        self.put("entries_at_end", json!(next.load(Ordering::Relaxed)));
        let quiet = case("lookup-hit quiet".into(), None, quiet);
        let beside = case("lookup-hit beside inserts".into(), None, beside);
        let p99 = |case: &Case| case.lookup_ns.map(|latency| latency.p99 as f64);
        let (beside_p99, quiet_p99) = (p99(&beside), p99(&quiet));
        let p99_ratio = beside_p99.zip(quiet_p99).and_then(|(beside, quiet)| ratio(beside, quiet));
        self.put("p99_beside_over_quiet", json!(p99_ratio));
        Ok(vec![quiet, beside])
    }

    /// The loaded table of an earlier run where it fits, else a new one.
    fn load_or_open(&mut self) -> Result<Loading> {
        let allocated_before = (self.surroundings.allocated_bytes)();
        let name = self.maker.name();
        let found = Loaded::find(self.plan, name).filter(|_| self.maker.lasting());
        self.put("reused", json!(found.is_some()));
        if !self.plan.workload.only_reads() || found.is_none() {
            Loaded::forget(&self.plan.dir, name)?;
        }
        if let Some(count) = found {
            (self.surroundings.progress)(&format!("{count} entries are loaded already"));
            return Ok(Loading { subject: self.open()?, count, allocated_before });
        }
        let (subject, count) = self.load()?;
        if !self.maker.lasting() {
            return Ok(Loading { subject, count, allocated_before });
        }
        // Closed and opened again, so that a fresh load and a reused one are measured alike.
        drop(subject);
        if self.plan.workload.only_reads() {
            Loaded::of(self.plan, name, count).write(&self.plan.dir)?;
        }
        Ok(Loading { subject: self.open()?, count, allocated_before })
    }

    /// Opens what was loaded, none of it in the page cache: what a load has left there is not charged to
    /// the limit under which it is looked up.
    fn open(&self) -> Result<Box<dyn Subject>> {
        cold::evict(&self.plan.dir)?;
        self.maker.open(&self.plan.spec()).context("the loaded table cannot be opened")
    }

    fn load(&mut self) -> Result<(Box<dyn Subject>, u64)> {
        let plan = self.plan;
        (self.surroundings.progress)(&format!("loading {} entries", plan.entries));
        let subject = self.maker.create(&plan.spec())?;
        let (start, progress) = (Instant::now(), self.surroundings.progress);
        let (count, seconds) = match plan.load {
            Load::Random => self.load_at_random(&*subject)?,
            Load::Sorted => {
                sorted::load(&*subject, self.keys, plan.entries, progress)?;
                (plan.entries, start.elapsed().as_secs_f64())
            }
        };
        subject.settle()?;
        self.put("load_seconds", json!(seconds));
        progress(&format!("{count} loaded in {seconds:.1} s"));
        Ok((subject, count))
    }

    fn load_at_random(&mut self, subject: &dyn Subject) -> Result<(u64, f64)> {
        let mut pass = self.pass(LOAD_BATCH);
        pass.latency = Latency::Off;
        pass.threads = self.loaders();
        let tally = drive::load(subject, pass, self.plan.entries, self.plan.load_time_max)?;
        if tally.inserts == 0 {
            bail!("nothing was loaded in the time given; give more");
        }
        Ok((tally.inserts, tally.seconds))
    }

    /// More loaders than processors, or than the engine lets write, only take memory.
    fn loaders(&self) -> usize {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        if self.maker.has_one_writer() { 1 } else { cpus.min(self.plan.threads) }
    }

    fn between_limits(
        &mut self,
        loading: &Loading,
        work: impl FnOnce(&dyn Subject) -> Result<Tally>,
    ) -> Result<Measured> {
        // The measurement after one run is the one before the next.
        let before = match self.limits {
            Some(limits) => Some(limits),
            None => self.measure_limits()?,
        };
        let mut run = self.measure(loading, work)?;
        self.limits = self.measure_limits()?;
        compare(&mut run.figures, before, self.limits);
        Ok(run)
    }

    fn measure_limits(&self) -> Result<Option<Limits>> {
        let Some(scratch) = &self.scratch else { return Ok(None) };
        let Plan { threads, depth, limit_time, .. } = *self.plan;
        let reads_per_s = scratch.reads_per_s(threads, depth, limit_time)?;
        let write_bytes_per_s = scratch.write_bytes_per_s(limit_time)?;
        Ok(Some(Limits { reads_per_s, write_bytes_per_s }))
    }

    fn measure(
        &self,
        loading: &Loading,
        work: impl FnOnce(&dyn Subject) -> Result<Tally>,
    ) -> Result<Measured> {
        let subject = &*loading.subject;
        let (stats, disk, cpu) = (subject.stats(), DiskBytes::now(), process::cpu_ns());
        let tally = work(subject)?;
        let settling = Instant::now();
        let cpu = process::cpu_ns() - cpu;
        if self.plan.workload == Workload::Insert {
            subject.settle()?;
        }
        let settle_seconds = settling.elapsed().as_secs_f64();
        let disk = DiskBytes::now().zip(disk).map(|(now, before)| now.since(before));
        let now = subject.stats();
        let delta = now.as_ref().zip(stats).map(|(now, before)| since(now, &before));
        let mut figures = rates(&tally, cpu);
        figures.settle_seconds = settle_seconds;
        figures.rss_bytes = process::rss_bytes();
        let allocated = (self.surroundings.allocated_bytes)();
        figures.allocated_bytes =
            (allocated > 0).then(|| allocated.saturating_sub(loading.allocated_before));
        figures.ram_bytes = subject.ram_bytes();
        let entries = now.map_or(loading.count, |stats| stats.entries);
        figures.ram_bytes_per_entry =
            figures.ram_bytes.and_then(|bytes| ratio(bytes as f64, entries as f64));
        read_costs(&mut figures, &tally, disk, delta.as_ref());
        write_costs(&mut figures, &tally, disk, delta.as_ref());
        let reads_histogram = delta.map(|delta| delta.reads_histogram.to_vec());
        Ok(Measured { figures, tally, reads_histogram })
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
        let scratch = self.scratch.as_ref();
        let engine = scratch.map(Scratch::engine);
        let cpus = std::thread::available_parallelism().map(usize::from).ok();
        let settings = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "index": self.maker.name(),
            "workload": plan.workload,
            "entries": plan.entries,
            "load": plan.load,
            "ram_budget_bytes": plan.ram_bytes,
            "threads": plan.threads,
            "depth": plan.depth,
            "batch": plan.batch,
            "durability": plan.durability,
            "flow": (plan.workload == Workload::LookupBesideInserts).then_some(plan.flow),
            "repetitions": plan.runs,
            "distribution": plan.theta.map_or("uniform".into(), |theta| format!("zipf {theta}")),
            "seed": plan.seed,
            "latency": plan.latency,
            "clock_ns": clock_ns(),
            "cpus": cpus,
            "memory_limit": (self.surroundings.memory_limit)(),
            "device": {
                "engine": engine.as_ref().map(|engine| &engine.name),
                "reason": engine.as_ref().map(|engine| &engine.reason),
                "scratch_bytes": scratch.map(Scratch::bytes),
                "limit_seconds": plan.limit_time.as_secs_f64(),
            },
        });
        if let Value::Object(mut settings) = settings {
            self.settings.append(&mut settings);
        }
        self.settings
    }
}

/// Seconds as a duration, for settings.
///
/// # Errors
/// A negative number, or one that passes the largest duration.
pub fn seconds(number: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(number).with_context(|| format!("{number} s is no length of time"))
}
