//! One benchmark from start to end: load, measure the device, run, measure again, report.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nandex::TableStats;
use serde_json::{Map, Value, json};

use crate::cgroup::MemoryLimit;
use crate::cold;
use crate::drive::{self, Pass, Tally};
use crate::limit::{Limits, Scratch};
use crate::loaded::Loaded;
use crate::percentiles::{Latency, clock_ns};
use crate::plan::{LOAD_BATCH, Load, Plan, Workload};
use crate::process::{self, DiskBytes};
use crate::report::{Case, Figures, Report, SCHEMA};
use crate::sorted;
use crate::subject::{Maker, Subject};
use crate::workload::{ENTRY_BYTES, KeySpace, Mix, Picker};

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

/// One run, measured.
struct Measured {
    figures: Figures,
    tally: Tally,
    reads_histogram: Option<Vec<u64>>,
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
                Workload::LookupMiss => drive::lookup_misses(subject, pass, operations),
                Workload::Update => drive::updates(subject, pass, operations, &picker),
                Workload::Load | Workload::Insert | Workload::Mixed => {
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

fn rates(tally: &Tally, cpu_ns: u64) -> Figures {
    let per_s = |count: u64| count as f64 / tally.seconds.max(1e-9);
    let operations = tally.operations();
    Figures {
        seconds: tally.seconds,
        operations,
        hits: tally.hits,
        operations_per_s: per_s(operations),
        inserts_per_s: (tally.inserts > 0).then(|| per_s(tally.inserts)),
        lookups_per_s: (tally.lookups > 0).then(|| per_s(tally.lookups)),
        cpu_us_per_op: cpu_ns as f64 / 1000.0 / operations.max(1) as f64,
        ..Figures::default()
    }
}

fn read_costs(
    figures: &mut Figures,
    tally: &Tally,
    disk: Option<DiskBytes>,
    delta: Option<&TableStats>,
) {
    let lookups = tally.lookups as f64;
    let pages = disk.map(|disk| disk.read as f64 / nandex_device::PAGE_BYTES as f64);
    figures.disk_reads_per_lookup = pages.and_then(|pages| ratio(pages, lookups));
    let Some(delta) = delta else { return };
    figures.reads_per_hit = ratio(delta.hit_reads as f64, delta.hits as f64);
    figures.reads_per_miss = ratio(delta.miss_reads as f64, delta.misses as f64);
}

fn write_costs(
    figures: &mut Figures,
    tally: &Tally,
    disk: Option<DiskBytes>,
    delta: Option<&TableStats>,
) {
    let inserts = tally.inserts as f64;
    if tally.inserts == 0 {
        return;
    }
    figures.disk_bytes_per_entry = disk.and_then(|disk| ratio(disk.written as f64, inserts));
    let mut per_entry = figures.disk_bytes_per_entry;
    if let Some(delta) = delta {
        figures.data_bytes_per_entry = ratio(delta.data_bytes_written as f64, inserts);
        figures.log_bytes_per_entry = ratio(delta.log_bytes_written as f64, inserts);
        figures.flush_fill = (delta.flushes > 0).then_some(delta.flush_fill);
        figures.evicted = Some(delta.evicted);
        per_entry = ratio((delta.data_bytes_written + delta.log_bytes_written) as f64, inserts);
    }
    figures.write_amplification = per_entry.map(|bytes| bytes / ENTRY_BYTES as f64);
}

/// Sets a run beside the device's limits around it.
fn compare(figures: &mut Figures, before: Option<Limits>, after: Option<Limits>) {
    let Some((before, after)) = before.zip(after) else { return };
    let limits = Limits::between(before, after);
    figures.device_reads_per_s = Some(limits.reads_per_s);
    figures.device_write_bytes_per_s = Some(limits.write_bytes_per_s);
    figures.ratio_to_device = match (figures.lookups_per_s, figures.write_amplification) {
        (Some(lookups), _) => ratio(lookups, limits.reads_per_s),
        (None, Some(amplification)) => {
            let bytes_per_s = figures.operations_per_s * amplification * ENTRY_BYTES as f64;
            ratio(bytes_per_s, limits.write_bytes_per_s)
        }
        (None, None) => None,
    };
}

/// Figures that count, since `before`; figures that say how things are, as they are now.
fn since(now: &TableStats, before: &TableStats) -> TableStats {
    let mut delta = now.clone();
    delta.hits -= before.hits;
    delta.misses -= before.misses;
    delta.hit_reads -= before.hit_reads;
    delta.miss_reads -= before.miss_reads;
    delta.flushes -= before.flushes;
    delta.data_bytes_written -= before.data_bytes_written;
    delta.log_bytes_written -= before.log_bytes_written;
    delta.evicted -= before.evicted;
    let buckets = delta.reads_histogram.iter_mut().zip(before.reads_histogram);
    buckets.for_each(|(bucket, earlier)| *bucket -= earlier);
    delta
}

fn case(name: String, mix: Option<Mix>, runs: Vec<Measured>) -> Case {
    let mut all = Tally::default();
    let mut histogram: Option<Vec<u64>> = None;
    for run in &runs {
        all.merge(&run.tally);
        if let Some(reads) = &run.reads_histogram {
            let sum = histogram.get_or_insert_with(|| vec![0; reads.len()]);
            sum.iter_mut().zip(reads).for_each(|(sum, count)| *sum += count);
        }
    }
    Case {
        name,
        lookup_fraction: mix.map(|mix| mix.lookup_fraction),
        success: mix.map(|mix| mix.success),
        runs: runs.into_iter().map(|run| run.figures).collect(),
        insert_ns: all.insert_ns.summary(),
        lookup_ns: all.lookup_ns.summary(),
        reads_per_operation: histogram.filter(|_| all.lookups > 0),
    }
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// Seconds as a duration, for settings.
///
/// # Errors
/// A negative number, or one that passes the largest duration.
pub fn seconds(number: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(number).with_context(|| format!("{number} s is no length of time"))
}
