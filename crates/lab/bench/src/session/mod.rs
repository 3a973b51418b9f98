//! One benchmark from start to end: load, measure the device, run, measure again, report.

mod cases;
mod settled;

use std::fs;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};

use crate::cgroup::MemoryLimit;
use crate::cold;
use crate::drive::{self, Fill};
use crate::figures::{Figures, Run};
use crate::keys::KeySpace;
use crate::limit::{Limits, Scratch};
use crate::loaded::Loaded;
use crate::percentiles::{Latency, clock_ns};
use crate::plan::{KeyStorage, LOAD_BATCH, Load, Plan, discipline_name};
use crate::process::{self, BadSetting, DiskBytes};
use crate::reads::{RandomReads, ReadSource};
use crate::report::{Report, object};
use crate::sorted;
use crate::subject::{Maker, Subject};
use crate::worker::{Asks, Counters, Pass};
use crate::workload::{Kind, Workload};
use settled::{Settled, Updates};

/// The number of keys whose counts are checked after each run, and of keys looked up after removals and
/// updates.
const CHECKED: usize = 10_000;

/// The services of the binary to a session.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// Returns the bytes allocated and not freed, of the whole process.
    pub allocated_bytes: fn() -> u64,
    /// Returns the memory limit in force; called at the end, so that it knows the peak.
    pub memory_limit: &'a dyn Fn() -> MemoryLimit,
    /// Receives progress messages, a sentence at a time.
    pub progress: &'a dyn Fn(&str),
}

/// Runs `plan` on the engine that `maker` makes.
///
/// # Errors
/// Reports an impossible setting, a failure of the engine or of the device, and a wrong answer.
pub fn run(plan: &Plan, maker: &dyn Maker, surroundings: Surroundings<'_>) -> Result<Report> {
    plan.check().and_then(|()| plan.check_for(maker)).map_err(BadSetting::of)?;
    let dir = &plan.dir;
    fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let mut session = Session {
        plan,
        maker,
        kind: maker.kind(),
        surroundings,
        scratch: scratch(plan, maker)?,
        keys: KeySpace::new(plan.seed),
        pass_number: 1,
        version: 0,
        updates: Vec::new(),
        settled: None,
        settings: Map::new(),
        limits: None,
        read_source: None,
    };
    let cases = session.cases()?;
    Ok(Report { kind: session.kind, settings: session.settings(), cases })
}

fn scratch(plan: &Plan, maker: &dyn Maker) -> Result<Option<Scratch>> {
    let is_in_ram = !maker.lasting();
    let no_limits = plan.limit_time.is_zero() || plan.workload == Workload::Load;
    if no_limits || is_in_ram && maker.kind() != Kind::Table {
        return Ok(None);
    }
    let scratch = if is_in_ram {
        Scratch::in_memory(plan.scratch)
    } else {
        Scratch::in_dir(&plan.dir, plan.scratch)
    };
    scratch.map(Some).context("the scratch file for the device's limits cannot be made")
}

struct Session<'a> {
    plan: &'a Plan,
    maker: &'a dyn Maker,
    kind: Kind,
    surroundings: Surroundings<'a>,
    scratch: Option<Scratch>,
    keys: KeySpace,
    pass_number: u64,
    /// The newest version of a value, which the last updates have written.
    version: u64,
    /// All updates so far, from which the value of each key follows.
    updates: Vec<Updates>,
    /// The rounds of `--settle`, if any were made.
    settled: Option<Settled>,
    settings: Map<String, Value>,
    limits: Option<Limits>,
    /// The pages on which the last limit of random reads was measured.
    read_source: Option<ReadSource>,
}

/// The engine under test, and the memory charged before it was made.
struct Loading {
    subject: Box<dyn Subject>,
    count: u64,
    allocated_before: u64,
}

/// One run, measured.
struct Measured {
    figures: Figures,
    counters: Counters,
    /// The lookups by the pages they read, if the engine counts them.
    reads_histogram: Option<Vec<u64>>,
}

impl Session<'_> {
    /// Creates an empty engine; the result of an earlier run is removed.
    fn empty(&self) -> Result<Loading> {
        Loaded::forget(self.plan, self.maker)?;
        let allocated_before = (self.surroundings.allocated_bytes)();
        let subject = self.maker.create(&self.plan.spec())?;
        cold::evict(&self.plan.dir)?;
        Ok(Loading { subject, count: 0, allocated_before })
    }

    /// Leaves a loaded engine for a later run, and measures nothing.
    fn load_only(&mut self) -> Result<()> {
        let found = self.find_loaded();
        let count = match found {
            Some(count) => count,
            None => {
                Loaded::forget(self.plan, self.maker)?;
                let (subject, count) = self.load()?;
                drop(subject);
                Loaded::of(self.plan, self.maker, count).write(&self.plan.dir)?;
                count
            }
        };
        self.put("loaded", json!(count));
        Ok(())
    }

    /// Returns the number of entries that an earlier run has left.
    fn find_loaded(&mut self) -> Option<u64> {
        let found = Loaded::find(self.plan, self.maker).filter(|_| self.maker.lasting());
        self.put("reused", json!(found.is_some()));
        found
    }

    /// Returns the loaded engine of an earlier run if it fits, else a new one.
    fn load_or_open(&mut self) -> Result<Loading> {
        let allocated_before = (self.surroundings.allocated_bytes)();
        let found = self.find_loaded();
        let only_reads = self.plan.workload.only_reads();
        if !only_reads || found.is_none() {
            Loaded::forget(self.plan, self.maker)?;
        }
        let (subject, count) = if let Some(count) = found {
            (self.surroundings.progress)(&format!("{count} entries are loaded already"));
            (self.open()?, count)
        } else {
            let (subject, count) = self.load()?;
            (self.reopen(subject, count)?, count)
        };
        self.put("loaded", json!(count));
        Ok(Loading { subject, count, allocated_before })
    }

    /// Closes a fresh engine and reopens it, if it is persistent, so that a fresh load and a reused one are
    /// measured alike.
    fn reopen(&self, subject: Box<dyn Subject>, count: u64) -> Result<Box<dyn Subject>> {
        if !self.maker.lasting() {
            return Ok(subject);
        }
        drop(subject);
        if self.plan.workload.only_reads() {
            Loaded::of(self.plan, self.maker, count).write(&self.plan.dir)?;
        }
        self.open()
    }

    /// Opens a loaded engine, none of it in the page cache: pages that a load has left there are not charged
    /// to the limit of the lookups.
    fn open(&self) -> Result<Box<dyn Subject>> {
        cold::evict(&self.plan.dir)?;
        self.maker.open(&self.plan.spec()).context("what was loaded cannot be opened")
    }

    fn load(&mut self) -> Result<(Box<dyn Subject>, u64)> {
        let (plan, progress) = (self.plan, self.surroundings.progress);
        progress(&format!("loading {} entries", plan.entries));
        let subject = self.maker.create(&plan.spec())?;
        let start = Instant::now();
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
        let threads = self.loaders();
        let pass = Pass { latency: Latency::Off, threads, ..self.pass(LOAD_BATCH) };
        let counters = drive::load(subject, pass, self.fill())?;
        ensure!(counters.changes > 0, "nothing was loaded in the time given; give more");
        Ok((counters.changes, counters.seconds))
    }

    fn fill(&self) -> Fill {
        let Plan { entries, load_time_max, filter, .. } = *self.plan;
        Fill { entries, time_max: load_time_max, points: filter.points }
    }

    /// Returns the number of loading threads. More than processors, or than the engine lets write, would only
    /// take memory.
    fn loaders(&self) -> usize {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        if self.maker.has_one_writer() { 1 } else { cpus.min(self.plan.threads) }
    }

    /// Measures a run, and the device before and after it. The measurement after one run is the one before
    /// the next.
    fn between_limits(
        &mut self,
        loading: &Loading,
        work: impl FnOnce(&dyn Subject) -> Result<Counters>,
    ) -> Result<Measured> {
        let before = match self.limits.take() {
            Some(limits) => Some(limits),
            None => self.measure_limits(loading)?,
        };
        let mut run = self.measure(loading, work)?;
        self.limits = self.measure_limits(loading)?;
        if let Some((before, after)) = before.as_ref().zip(self.limits.as_ref()) {
            run.figures.compare(before, after, self.plan.entry_bytes());
        }
        Ok(run)
    }

    fn measure_limits(&mut self, loading: &Loading) -> Result<Option<Limits>> {
        let Some(scratch) = &self.scratch else { return Ok(None) };
        let reads = self.read_pages(scratch, loading)?;
        self.read_source = Some(reads.source());
        Limits::measure(scratch, &reads, self.kind, self.plan).map(Some)
    }

    /// Returns the pages that lookups may read, if the engine knows them, else those of the scratch.
    fn read_pages(&self, scratch: &Scratch, loading: &Loading) -> Result<RandomReads> {
        let own = match self.plan.workload.looks_up() {
            true => loading.subject.own_pages()?,
            false => None,
        };
        Ok(own.unwrap_or_else(|| scratch.reads()))
    }

    fn measure(
        &self,
        loading: &Loading,
        work: impl FnOnce(&dyn Subject) -> Result<Counters>,
    ) -> Result<Measured> {
        let subject = &*loading.subject;
        let (before, disk, cpu) = (subject.status(), DiskBytes::now(), process::cpu_ns());
        let counters = work(subject)?;
        let settling = Instant::now();
        // Background work that lookups leave belongs to none of the figures.
        let filled = self.kind == Kind::Filter
            || self.plan.workload == Workload::Insert
            || self.settled.is_some();
        if filled && counters.changes > 0 {
            subject.settle()?;
        }
        let settle_seconds = settling.elapsed().as_secs_f64();
        let after = subject.status();
        let run = Run {
            kind: self.kind,
            counters: &counters,
            before: &before,
            after: &after,
            entries: after.entries.unwrap_or(loading.count),
            entry_bytes: self.plan.entry_bytes(),
            ram_budget: self.plan.ram_bytes,
            settle_seconds,
            cpu_ns: process::cpu_ns() - cpu,
            disk: DiskBytes::now().zip(disk).map(|(now, before)| now.since(before)),
        };
        let mut figures = Figures::of_run(&run);
        figures.set("rss_bytes", process::rss_bytes());
        let allocated = (self.surroundings.allocated_bytes)();
        let since = allocated.saturating_sub(loading.allocated_before);
        figures.set("allocated_bytes", (allocated > 0).then_some(since));
        let live = match self.plan.workload {
            Workload::Update | Workload::Churn => loading.count,
            _ => run.entries,
        };
        figures.space_on_disk(&self.space(loading, live));
        if let Some(settled) = &self.settled {
            settled.put_into(&mut figures);
        }
        let reads_histogram = run.delta().map(|delta| delta.reads_histogram.to_vec());
        Ok(Measured { figures, counters, reads_histogram })
    }

    fn pass(&mut self, batch: usize) -> Pass {
        let number = self.pass_number;
        self.pass_number += 1;
        let Plan { seed, threads, latency, .. } = *self.plan;
        let Self { kind, keys, version, .. } = *self;
        let asks = self.asks();
        Pass { kind, keys, seed, number, threads, batch, latency, asks, version }
    }

    fn asks(&self) -> Asks {
        match (self.plan.workload.asks_counts(), self.plan.filter.stored_keys) {
            (false, _) => Asks::Values,
            (true, KeyStorage::Fingerprints) => Asks::Counts,
            (true, KeyStorage::Whole) => Asks::ExactCounts,
        }
    }

    fn put(&mut self, key: &str, value: Value) {
        self.settings.insert(key.to_owned(), value);
    }

    fn settings(mut self) -> Map<String, Value> {
        let plan = self.plan;
        let scratch = self.scratch.as_ref();
        let engine = scratch.map(Scratch::engine);
        let common = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "index": self.maker.name(),
            "workload": plan.workload,
            "ram_budget_bytes": plan.ram_bytes,
            "threads": plan.threads,
            "depth": plan.depth,
            "batch": plan.batch(),
            "durability": plan.durability,
            "repetitions": plan.runs,
            "settle_rounds": plan.settle_rounds,
            "distribution": plan.theta().map_or("uniform".into(), |theta| format!("zipf {theta}")),
            "seed": plan.seed,
            "latency": plan.latency,
            "clock_ns": clock_ns(),
            "cpus": std::thread::available_parallelism().map(usize::from).ok(),
            "memory_limit": (self.surroundings.memory_limit)(),
            "device": {
                "engine": engine.as_ref().map(|engine| &engine.name),
                "reason": engine.as_ref().map(|engine| &engine.reason),
                "scratch_bytes": scratch.map(Scratch::bytes),
                "reads_of": &self.read_source,
                "limit_seconds": plan.limit_time.as_secs_f64(),
            },
        });
        let is_flowing = plan.workload == Workload::LookupDuringInserts;
        let own = match self.kind {
            Kind::Table => json!({
                "entries": plan.entries,
                "value_bytes": plan.value_bytes,
                "load": plan.load,
                "flow": is_flowing.then_some(plan.flow()),
            }),
            Kind::Filter => json!({
                "keys": plan.entries,
                "rate_made_for": plan.filter.rate,
                "fan_out": plan.filter.fan_out,
                "stored_keys": plan.filter.stored_keys,
                "discipline": plan.filter.discipline.map(discipline_name),
                "configuration": self.maker.describe(&plan.spec()).ok().flatten(),
            }),
            Kind::Neighbors => json!({
                "documents": plan.entries,
                "made_of": plan.documents,
                "configuration": self.maker.describe(&plan.spec()).ok().flatten(),
            }),
        };
        self.settings.append(&mut object(&common));
        self.settings.append(&mut object(&own));
        self.settings
    }
}
