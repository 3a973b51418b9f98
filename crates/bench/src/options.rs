//! The command line that `nandex-bench` and `nandex-peers` have in common.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Args;

use crate::beside::Flow;
use crate::cgroup::{HARNESS_BYTES, MemoryCgroup, MemoryLimit};
use crate::percentiles::Latency;
use crate::plan::{Load, Plan, Workload};
use crate::quantity::{parse_fraction, parse_quantity};
use crate::session::seconds;
use crate::subject::Durability;
use crate::workload::Mix;

/// Lookups and mixed operations per run unless `--ops` says otherwise.
const OPERATIONS: u64 = 1_000_000;
/// Batches are this many queues long by default, so that the wait for the last reads weighs little.
const BATCH_PER_DEPTH: usize = 8;

/// Settings of a benchmark. Counts take K, M, G (powers of 1000), sizes also KiB, MiB, GiB.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// What is done to the table.
    #[arg(long, value_enum)]
    pub workload: Workload,
    /// Entries loaded (inserted, for the insert workload).
    #[arg(long, visible_alias = "keys", default_value = "1M", value_parser = parse_quantity)]
    pub entries: u64,
    /// How the table is loaded before it is measured; the insert workload is always random.
    #[arg(long, value_enum, default_value = "random")]
    pub load: Load,
    /// RAM the engine may use.
    #[arg(long, default_value = "256MiB", value_parser = parse_quantity)]
    pub ram: u64,
    /// Threads at work.
    #[arg(long, default_value_t = 1)]
    pub threads: usize,
    /// Device operations in flight per thread; 1 means single calls, one after the other.
    #[arg(long, default_value_t = 32)]
    pub depth: usize,
    /// Keys per call: 1 uses single calls. By default 1 for changes and at depth 1, else
    /// eight times the depth.
    #[arg(long, value_parser = parse_quantity)]
    pub batch: Option<u64>,
    /// When an acknowledged write is durable.
    #[arg(long, value_enum, default_value = "every")]
    pub durability: Durability,
    /// Parts of mixed operations that are lookups.
    #[arg(long, value_delimiter = ',', default_value = "0,.3,.5,.7,1", value_parser = parse_fraction)]
    pub lookups: Vec<f64>,
    /// Parts of mixed lookups that find their key.
    #[arg(long, value_delimiter = ',', default_value = "0,.4,.8", value_parser = parse_fraction)]
    pub success: Vec<f64>,
    /// Inserts per second beside lookups, by one thread more.
    #[arg(long, default_value = "100k", value_parser = parse_quantity)]
    pub insert_rate: u64,
    /// Inserts beside lookups in each repetition; the lookups last as long as they.
    #[arg(long, default_value = "1M", value_parser = parse_quantity)]
    pub inserts: u64,
    /// Directory for the table and the scratch file; a table that is loaded there is used again.
    #[arg(long, default_value = "nandex-bench-data")]
    pub dir: PathBuf,
    /// Measured repetitions; the report gives the median and lists them all.
    #[arg(long, default_value_t = 5)]
    pub runs: u32,
    /// Operations per repetition: 1M by default, for updates and counts as many as there are entries.
    #[arg(long, value_parser = parse_quantity)]
    pub ops: Option<u64>,
    /// Pick keys by a Zipf law with this exponent, such as 0.99, instead of uniformly.
    #[arg(long, value_name = "EXPONENT")]
    pub zipf: Option<f64>,
    /// Seed of keys and streams.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Whether each call is timed.
    #[arg(long, value_enum, default_value = "on")]
    pub latency: Latency,
    /// Seconds for each of the two measurements of the device between runs; 0 leaves them out.
    #[arg(long, default_value_t = 1.0)]
    pub limit_seconds: f64,
    /// Size of the scratch file the device is measured on.
    #[arg(long, default_value = "1GiB", value_parser = parse_quantity)]
    pub scratch: u64,
    /// Loads end after this many seconds, full or not; the report says how many entries went in.
    #[arg(long)]
    pub max_seconds: Option<f64>,
    /// Run inside a memory cgroup of --ram and 32 MiB for the harness, or of the size given.
    #[arg(long, value_name = "BYTES", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "0", value_parser = parse_quantity)]
    pub cgroup: Option<u64>,
    /// Print one JSON object instead of tables.
    #[arg(long)]
    pub json: bool,
}

impl Options {
    /// The plan of these settings, checked.
    ///
    /// # Errors
    /// The setting that cannot work.
    pub fn plan(&self) -> Result<Plan> {
        let plan = Plan {
            workload: self.workload,
            entries: self.entries,
            load: self.load,
            ram_bytes: self.ram,
            threads: self.threads,
            depth: self.depth,
            batch: self.batch()?,
            durability: self.durability,
            runs: self.runs,
            operations: self.operations(),
            mixes: self.mixes(),
            flow: Flow { inserts: self.inserts, inserts_per_s: self.insert_rate },
            theta: self.zipf,
            seed: self.seed,
            dir: self.dir.clone(),
            latency: self.latency,
            limit_time: seconds(self.limit_seconds)?,
            scratch_bytes: self.scratch,
            load_time_max: self.max_seconds.map(seconds).transpose()?,
        };
        plan.check()?;
        Ok(plan)
    }

    fn batch(&self) -> Result<usize> {
        if let Some(batch) = self.batch {
            ensure!(batch <= 1 << 20, "--batch {batch}: from 1 to 2^20");
            return Ok(usize::try_from(batch)?);
        }
        let changes = [Workload::Insert, Workload::Update, Workload::Delete, Workload::Count];
        let single = changes.contains(&self.workload) || self.depth == 1;
        Ok(if single { 1 } else { self.depth.saturating_mul(BATCH_PER_DEPTH) })
    }

    fn operations(&self) -> u64 {
        let usual = match self.workload {
            Workload::Insert | Workload::Update | Workload::Count => self.entries,
            _ => OPERATIONS,
        };
        self.ops.unwrap_or(usual)
    }

    /// Every pair of a lookup part and a success rate; without lookups there is no success to vary.
    fn mixes(&self) -> Vec<Mix> {
        let pair = |&lookup_fraction: &f64| {
            let count = if lookup_fraction == 0.0 { 1 } else { self.success.len() };
            let rates = self.success.iter().take(count);
            rates.map(move |&success| Mix { lookup_fraction, success })
        };
        self.lookups.iter().flat_map(pair).collect()
    }

    /// Enters the memory cgroup that was asked for, if any.
    ///
    /// # Errors
    /// No cgroups here, or no permission.
    pub fn enter_cgroup(&self) -> Result<Option<MemoryCgroup>> {
        let bytes = |given| if given == 0 { self.ram.saturating_add(HARNESS_BYTES) } else { given };
        self.cgroup.map(|given| MemoryCgroup::enter(bytes(given))).transpose()
    }
}

/// The limit in force under `cgroup`.
#[must_use]
pub fn in_force(cgroup: Option<&MemoryCgroup>) -> MemoryLimit {
    cgroup.map_or_else(MemoryLimit::none, MemoryCgroup::in_force)
}
