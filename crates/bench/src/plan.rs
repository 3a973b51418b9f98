//! What is to be run: every setting of a benchmark, checked once.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use crate::beside::Flow;
use crate::percentiles::Latency;
use crate::subject::{Durability, Spec};
use crate::workload::Mix;

/// How a table is loaded before it is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Load {
    /// In random order, by the batched call that a user would take.
    #[default]
    Random,
    /// In the engine's own key order, by its bulk loader where it has one: the kindest load there is.
    /// It ignores the memory limit where lookups follow in a process of their own.
    Sorted,
}

/// What is done to the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    /// Loads a table, untimed, and leaves it for the lookups of a later run.
    Load,
    /// Fills an empty table with unique random keys.
    Insert,
    /// Looks up keys that are there.
    LookupHit,
    /// Looks up keys that are not.
    LookupMiss,
    /// Looks up keys that are there, each thread's in one stream without an end of a batch to wait for.
    LookupStream,
    /// Looks up keys that are there, by turns alone and beside inserts at a given rate.
    LookupBesideInserts,
    /// Lookups and inserts of new keys, in stated proportions.
    Mixed,
    /// Overwrites keys that are there.
    Update,
    /// Filters: takes back inserts.
    Delete,
    /// Filters: adds 1 to the counts of keys, which are picked by a Zipf law unless told otherwise.
    Count,
}

impl Workload {
    /// Does it leave the table as it found it, so that the next run can use it again?
    #[must_use]
    pub const fn only_reads(self) -> bool {
        matches!(self, Self::Load | Self::LookupHit | Self::LookupStream | Self::LookupMiss)
    }

    /// Is it a workload of filters alone?
    #[must_use]
    pub const fn is_of_filters(self) -> bool {
        matches!(self, Self::Delete | Self::Count)
    }

    /// Its name in reports and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Insert => "insert",
            Self::LookupHit => "lookup-hit",
            Self::LookupMiss => "lookup-miss",
            Self::LookupStream => "lookup-stream",
            Self::LookupBesideInserts => "lookup-beside-inserts",
            Self::Mixed => "mixed",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Count => "count",
        }
    }
}

/// Every setting of a benchmark.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// What is done.
    pub workload: Workload,
    /// Entries loaded before the measured operations (inserted, for the insert workload).
    pub entries: u64,
    /// How they are loaded.
    pub load: Load,
    /// RAM the engine may use.
    pub ram_bytes: u64,
    /// Threads at work.
    pub threads: usize,
    /// Device operations in flight per thread.
    pub depth: usize,
    /// Keys per call of the measured operations; 1 uses the single calls.
    pub batch: usize,
    /// When writes must last.
    pub durability: Durability,
    /// Measured repetitions.
    pub runs: u32,
    /// Operations per repetition; the insert workload inserts `entries`.
    pub operations: u64,
    /// The proportions of the mixed workload.
    pub mixes: Vec<Mix>,
    /// The inserts beside lookups.
    pub flow: Flow,
    /// Exponent of the Zipf law that picks loaded keys; uniform when `None`.
    pub theta: Option<f64>,
    /// Seed of keys and streams.
    pub seed: u64,
    /// Where files go.
    pub dir: PathBuf,
    /// Whether calls are timed one by one.
    pub latency: Latency,
    /// How long each measurement of the device's limits takes; zero leaves them out.
    pub limit_time: Duration,
    /// Size of the file they are measured on.
    pub scratch_bytes: u64,
    /// Loads end after this long, full or not.
    pub load_time_max: Option<Duration>,
}

/// Keys per call while a table is loaded for other workloads.
pub const LOAD_BATCH: usize = 1024;

impl Plan {
    /// Refuses settings that cannot work.
    ///
    /// # Errors
    /// The setting, what is wrong with it and what would do.
    pub fn check(&self) -> Result<()> {
        ensure!(self.entries > 0, "--entries 0: ask for at least 1");
        ensure!(self.entries < 1 << 62, "--entries {}: at most 2^62", self.entries);
        ensure!(self.ram_bytes > 0, "--ram 0: give the index some memory, such as 256MiB");
        ensure!((1..=1024).contains(&self.threads), "--threads {}: from 1 to 1024", self.threads);
        ensure!((1..=4096).contains(&self.depth), "--depth {}: from 1 to 4096", self.depth);
        ensure!((1..=1 << 20).contains(&self.batch), "--batch {}: from 1 to 2^20", self.batch);
        ensure!((1..=1000).contains(&self.runs), "--runs {}: from 1 to 1000", self.runs);
        ensure!(self.operations > 0, "--ops 0: ask for at least 1");
        ensure!(self.flow.inserts > 0, "--inserts 0: ask for at least 1");
        ensure!(self.flow.inserts_per_s > 0, "--insert-rate 0: ask for at least 1 per second");
        ensure!(self.workload != Workload::Mixed || !self.mixes.is_empty(), "no mix to run");
        ensure!(
            self.load == Load::Random || self.load_time_max.is_none(),
            "--load sorted with --max-seconds: a load in key order that stops early lacks one end of \
             the keys; leave one of the two out"
        );
        let theta_fits = self.theta.is_none_or(|theta| theta > 0.0 && theta <= 5.0);
        ensure!(theta_fits, "--zipf: the exponent must be above 0 and at most 5, such as 0.99");
        Ok(())
    }

    /// Room for all entries a run may put in: the loaded ones and the new ones of mixed streams or beside
    /// lookups.
    #[must_use]
    pub fn entries_max(&self) -> u64 {
        let inserted = |mix: &Mix| (self.operations as f64 * (1.0 - mix.lookup_fraction)).ceil();
        let per_run: f64 = match self.workload {
            Workload::Mixed => self.mixes.iter().map(inserted).sum(),
            Workload::LookupBesideInserts => self.flow.inserts as f64,
            _ => 0.0,
        };
        let extra = per_run * f64::from(self.runs);
        // The draws of a binomial law stray; six standard deviations are never passed in practice.
        self.entries + (extra + 6.0 * extra.sqrt()).ceil() as u64
    }

    /// What the engine is asked to be.
    #[must_use]
    pub fn spec(&self) -> Spec {
        Spec {
            dir: self.dir.clone(),
            entries: self.entries_max(),
            ram_bytes: self.ram_bytes,
            depth: self.depth,
            threads: self.threads,
            durability: self.durability,
        }
    }
}
