//! The settings of a benchmark: flags that `nandex-bench` and `nandex-peers` share, checked once.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;
use nandex::counting::Discipline;
use nandex::raw::model::StoredKeys;
use serde::{Deserialize, Serialize};

use crate::cgroup::{HARNESS_BYTES, MemoryCgroup, MemoryLimit};
use crate::documents::DocumentSettings;
use crate::keys::{KEY_BYTES, VALUE_BYTES};
use crate::percentiles::Latency;
use crate::quantity::{parse_fraction, parse_seconds};
use crate::subject::{Counts, Durability, Maker, Spec};
use crate::workload::{Flow, Kind, Mix, Workload};
use nandex::raw::size::parse;

/// The default number of lookups and mixed operations per run.
const OPERATIONS: u64 = 1_000_000;
/// The default length of batches in queues, so that the wait for the last reads weighs little.
const BATCH_PER_DEPTH: usize = 8;
/// The number of keys per call while a table is loaded for other workloads.
pub const LOAD_BATCH: usize = 1024;

/// Bytes of a value: its number at least, and at most a page.
const VALUE_BYTES_RANGE: RangeInclusive<u64> = VALUE_BYTES as u64..=4096;

/// The way in which a table is loaded before it is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Load {
    /// In random order, by the batched call that a user would take.
    Random,
    /// In the engine's own key order, by its bulk loader if it has one: the most favourable load. It ignores
    /// the memory limit if lookups follow in a process of their own.
    Sorted,
}

/// Settings of a benchmark. Counts take K, M, G (powers of 1000), sizes also KiB, MiB, GiB.
#[derive(Args, Clone, PartialEq, Debug)]
pub struct Plan {
    /// The workload.
    #[arg(long, value_enum)]
    pub workload: Workload,
    /// Entries loaded (inserted, for the insert workload).
    #[arg(long, visible_alias = "keys", default_value = "1M", value_parser = parse)]
    pub entries: u64,
    /// Bytes of a value, from 8 to 4096: a number of 8 bytes and random bytes, all of which lookups check.
    ///
    /// Maps and other engines take all sizes, and tables of fixed widths at most 64. Keys have 8 bytes.
    #[arg(long, default_value_t = VALUE_BYTES as u64, value_parser = parse)]
    pub value_bytes: u64,
    /// The share of the table's capacity that --entries fill: with .8 the table is made for a quarter more.
    #[arg(long = "full", value_name = "SHARE", default_value_t = 1.0, value_parser = parse_fraction)]
    pub full_share: f64,
    /// The order in which the table is loaded before it is measured; the insert workload is always random.
    #[arg(long, value_enum, default_value = "random")]
    pub load: Load,
    /// RAM the engine may use.
    #[arg(long = "ram", value_name = "RAM", default_value = "256MiB", value_parser = parse)]
    pub ram_bytes: u64,
    /// RAM for a table's cache of entries; by default what the table leaves of --ram, 0 for none.
    #[arg(long = "cache", value_name = "CACHE", value_parser = parse)]
    pub cache_bytes: Option<u64>,
    /// Threads at work.
    #[arg(long, default_value_t = 1)]
    pub threads: usize,
    /// Device operations in flight per thread; 1 means single calls, one after the other.
    #[arg(long, default_value_t = 32)]
    pub depth: usize,
    /// Keys per call: 1 uses single calls. By default 1 for changes and at depth 1, else
    /// eight times the depth.
    #[arg(long, value_parser = parse)]
    pub batch: Option<u64>,
    /// The durability of acknowledged writes.
    #[arg(long, value_enum, default_value = "every")]
    pub durability: Durability,
    /// Shares of mixed operations that are lookups.
    #[arg(long, value_delimiter = ',', default_value = "0,.3,.5,.7,1", value_parser = parse_fraction)]
    pub lookups: Vec<f64>,
    /// Shares of mixed lookups that find their key.
    #[arg(long, value_delimiter = ',', default_value = "0,.4,.8", value_parser = parse_fraction)]
    pub success: Vec<f64>,
    /// Inserts per second during lookups, by one additional thread.
    #[arg(long, default_value = "100k", value_parser = parse)]
    pub insert_rate: u64,
    /// Inserts during lookups in each repetition; the lookups last as long as the inserts.
    #[arg(long, default_value = "1M", value_parser = parse)]
    pub inserts: u64,
    /// Directory for the table and the scratch file; a table that is loaded there is reused.
    #[arg(long, default_value = "nandex-bench-data")]
    pub dir: PathBuf,
    /// Rounds of changes before the measured ones of update, churn and mixed, which then measure a table that
    /// has been in use: each round has as many updates as there are entries, or for churn as many inserts of
    /// new keys with removals of the oldest. They go in batches, are not timed, and are made once for all
    /// repetitions.
    ///
    /// `nandex-bench --index rhik --entries 4M --ram 64MiB --workload update --settle 10` measures a table of
    /// 4 million keys after 40 million updates.
    #[arg(long = "settle", value_name = "ROUNDS", default_value_t = 0)]
    pub settle_rounds: u32,
    /// The maximum seconds of the rounds of --settle, all made or not; the report has the number made.
    #[arg(long = "settle-seconds", value_name = "SETTLE_SECONDS", value_parser = parse_seconds)]
    pub settle_time_max: Option<Duration>,
    /// Measured repetitions; the report gives the median and lists them all.
    #[arg(long, default_value_t = 5)]
    pub runs: u32,
    /// Operations per repetition: 1M by default, for updates, churn and counts as many as there are entries.
    #[arg(long, value_parser = parse)]
    pub ops: Option<u64>,
    /// Pick keys by a Zipf law with this exponent, such as 0.99, instead of uniformly.
    #[arg(long, value_name = "EXPONENT")]
    pub zipf: Option<f64>,
    /// Seed of keys, streams and the hash of an index on flash.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Whether each call is timed.
    #[arg(long, value_enum, default_value = "on")]
    pub latency: Latency,
    /// Seconds for each measurement of the device between runs; 0 skips them.
    #[arg(long = "limit-seconds", value_name = "LIMIT_SECONDS", default_value = "1")]
    #[arg(value_parser = parse_seconds)]
    pub limit_time: Duration,
    /// Size of the scratch file the device is measured on.
    #[arg(long, default_value = "1GiB", value_parser = parse)]
    pub scratch: u64,
    /// The maximum seconds of a load, full or not; the report has the number of loaded entries.
    #[arg(long = "max-seconds", value_name = "MAX_SECONDS", value_parser = parse_seconds)]
    pub load_time_max: Option<Duration>,
    /// Run inside a memory cgroup of --ram and 32 MiB for the harness, or of the given size.
    #[arg(long, value_name = "BYTES", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "0", value_parser = parse)]
    pub cgroup: Option<u64>,
    /// Print one JSON object instead of tables.
    #[arg(long)]
    pub json: bool,
    /// The settings of filters.
    #[arg(skip)]
    pub filter: FilterSettings,
    /// The settings of indexes of neighbours.
    #[arg(skip)]
    pub documents: DocumentSettings,
}

/// The settings of filters alone.
#[derive(Args, Clone, Copy, PartialEq, Debug)]
pub struct FilterSettings {
    /// Filters: rate of false positives at --entries keys.
    #[arg(long = "fpr", value_name = "FPR", default_value = "0.0039", value_parser = parse_fraction)]
    pub rate: f64,
    /// Filters with levels: the size of each level over the previous one; by default as large as gives one
    /// level.
    #[arg(long, value_name = "TIMES")]
    pub fan_out: Option<u32>,
    /// Filters and counters: the stored form of keys.
    #[arg(long, value_enum, default_value = "fingerprints")]
    pub stored_keys: KeyStorage,
    /// Counting tables: mb, mdb or mdb-l; by default the one that suits the RAM.
    #[arg(long, value_parser = parse_discipline)]
    pub discipline: Option<Discipline>,
    /// Filters: points of the curve of inserts over time.
    #[arg(long, default_value_t = 50)]
    pub points: u32,
}

impl Default for FilterSettings {
    fn default() -> Self {
        let stored_keys = KeyStorage::Fingerprints;
        Self { rate: 0.0039, fan_out: None, stored_keys, discipline: None, points: 50 }
    }
}

/// The stored form of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum KeyStorage {
    /// Fingerprints as wide as --fpr requires: two keys may share one.
    Fingerprints,
    /// All 8 bytes: counts are exact, and a wrong one ends the run.
    Whole,
}

impl From<KeyStorage> for StoredKeys {
    fn from(storage: KeyStorage) -> Self {
        match storage {
            KeyStorage::Fingerprints => Self::Fingerprints,
            KeyStorage::Whole => Self::Whole(KEY_BYTES as u8),
        }
    }
}

/// Returns the name of a discipline on the command line.
pub(crate) fn discipline_name(discipline: Discipline) -> String {
    discipline.name().to_lowercase()
}

/// Parses a discipline, by its name in small letters.
///
/// # Errors
/// Fails for another word, with the known ones.
pub fn parse_discipline(word: &str) -> Result<Discipline, String> {
    let all = [Discipline::Mb, Discipline::Mdb, Discipline::MdbL];
    let found = all.into_iter().find(|discipline| discipline_name(*discipline) == word);
    found.ok_or_else(|| format!("`{word}` is no discipline; choose mb, mdb or mdb-l"))
}

impl Plan {
    /// Refuses impossible settings.
    ///
    /// # Errors
    /// Names the setting, the reason and the expected values.
    pub fn check(&self) -> Result<()> {
        ensure!(self.entries > 0, "--entries 0: ask for at least 1");
        ensure!(self.entries < 1 << 62, "--entries {}: at most 2^62", self.entries);
        let (value_bytes, range) = (self.value_bytes, VALUE_BYTES_RANGE);
        let (least, most) = (range.start(), range.end());
        ensure!(
            range.contains(&value_bytes),
            "--value-bytes {value_bytes}: from {least} to {most}, such as 100"
        );
        let full = self.full_share;
        ensure!(full >= 0.01, "--full {full}: from .01 to 1, such as .8");
        ensure!(self.ram_bytes > 0, "--ram 0: give the index some memory, such as 256MiB");
        ensure!((1..=1024).contains(&self.threads), "--threads {}: from 1 to 1024", self.threads);
        ensure!((1..=4096).contains(&self.depth), "--depth {}: from 1 to 4096", self.depth);
        let batch = self.batch();
        ensure!((1..=1 << 20).contains(&batch), "--batch {batch}: from 1 to 2^20");
        ensure!((1..=1000).contains(&self.runs), "--runs {}: from 1 to 1000", self.runs);
        ensure!(self.operations() > 0, "--ops 0: ask for at least 1");
        ensure!(self.inserts > 0, "--inserts 0: ask for at least 1");
        ensure!(self.insert_rate > 0, "--insert-rate 0: ask for at least 1 per second");
        ensure!(self.workload != Workload::Mixed || !self.mixes().is_empty(), "no mix to run");
        ensure!(
            self.load == Load::Random || self.load_time_max.is_none(),
            "--load sorted with --max-seconds: a load in key order that stops early lacks one end of \
             the keys; leave one of the two out"
        );
        let theta_fits = self.zipf.is_none_or(|theta| theta > 0.0 && theta <= 5.0);
        ensure!(theta_fits, "--zipf: the exponent must be above 0 and at most 5, such as 0.99");
        self.check_settling()?;
        self.check_filter()?;
        self.check_documents()
    }

    fn check_settling(&self) -> Result<()> {
        let rounds = self.settle_rounds;
        ensure!(rounds <= 1000, "--settle {rounds}: from 0 to 1000");
        let (settles, workload) = (self.workload.settles(), self.workload.name());
        ensure!(
            rounds == 0 || settles,
            "--settle {rounds}: only update, churn and mixed are settled first, not {workload}"
        );
        ensure!(
            rounds > 0 || self.settle_time_max.is_none(),
            "--settle-seconds without --settle: state the rounds, such as --settle 10"
        );
        Ok(())
    }

    fn check_documents(&self) -> Result<()> {
        let DocumentSettings { tables, near_share, similarity, rows } = self.documents;
        ensure!((1..=64).contains(&tables), "--tables {tables}: from 1 to 64");
        ensure!((0.0..=0.95).contains(&near_share), "--near-share {near_share}: from 0 to 0.95");
        ensure!((0.0..=1.0).contains(&similarity), "--similarity {similarity}: from 0 to 1");
        ensure!((1..=1024).contains(&rows), "--rows {rows}: from 1 to 1024");
        Ok(())
    }

    fn check_filter(&self) -> Result<()> {
        let FilterSettings { rate, fan_out, points, .. } = self.filter;
        ensure!((1e-9..=0.5).contains(&rate), "--fpr {rate}: from 1e-9 to 0.5, such as 0.0039");
        ensure!(points > 0, "--points 0: ask for at least 1");
        let fits = fan_out.is_none_or(|times| (2..=1024).contains(&times));
        ensure!(fits, "--fan-out: from 2 to 1024");
        let deleted = self.operations().saturating_mul(self.runs.into());
        ensure!(
            self.workload != Workload::Delete || deleted < self.entries,
            "--workload delete takes {deleted} keys from {}; ask for fewer with --ops or --runs",
            self.entries
        );
        Ok(())
    }

    /// Refuses a workload that this engine does not support.
    ///
    /// # Errors
    /// Names the missing ability.
    pub fn check_for(&self, maker: &dyn Maker) -> Result<()> {
        let (name, workload) = (maker.name(), self.workload.name());
        match self.workload.kind() {
            Some(kind) if kind != maker.kind() => {
                let (needed, found) = (kind.several(), maker.kind().one());
                anyhow::bail!("--workload {workload}: a workload of {needed}; {name} is {found}")
            }
            _ => {}
        }
        let can = maker.supports(self.workload);
        ensure!(can, "--workload {workload}: {name} cannot do that");
        let has_values = maker.kind() == Kind::Table;
        ensure!(
            has_values || self.value_bytes() == VALUE_BYTES,
            "--value-bytes {}: values are of tables; {name} is {}; leave the flag out",
            self.value_bytes,
            maker.kind().one()
        );
        let has_updates = maker.kind() == Kind::Table || self.workload != Workload::Mixed;
        ensure!(
            self.settle_rounds == 0 || has_updates,
            "--settle with --workload {workload}: updates are of tables; {name} is {}",
            maker.kind().one()
        );
        Ok(())
    }

    /// Returns the keys per call of the measured operations; 1 uses the single calls.
    #[must_use]
    pub fn batch(&self) -> usize {
        let single = self.workload.only_changes() || self.depth == 1;
        let usual = if single { 1 } else { self.depth.saturating_mul(BATCH_PER_DEPTH) };
        self.batch.map_or(usual, |batch| usize::try_from(batch).unwrap_or(usize::MAX))
    }

    /// Returns the bytes of a value.
    #[must_use]
    pub fn value_bytes(&self) -> usize {
        usize::try_from(self.value_bytes).unwrap_or(usize::MAX)
    }

    /// Returns the bytes of a key and its value; write amplification is relative to these.
    #[must_use]
    pub fn entry_bytes(&self) -> u64 {
        (KEY_BYTES as u64).saturating_add(self.value_bytes)
    }

    /// Returns the operations per repetition; the insert workload inserts all entries.
    #[must_use]
    pub fn operations(&self) -> u64 {
        let usual = match self.workload {
            Workload::Insert | Workload::Update | Workload::Churn | Workload::CountAdd => {
                self.entries
            }
            _ => OPERATIONS,
        };
        self.ops.unwrap_or(usual)
    }

    /// Returns the proportions of the mixed workload: every pair of a lookup share and a success rate.
    /// Without lookups there is no success to vary.
    #[must_use]
    pub fn mixes(&self) -> Vec<Mix> {
        let pair = |&lookup_fraction: &f64| {
            let count = if lookup_fraction == 0.0 { 1 } else { self.success.len() };
            let rates = self.success.iter().take(count);
            rates.map(move |&success| Mix { lookup_fraction, success })
        };
        self.lookups.iter().flat_map(pair).collect()
    }

    /// Returns the inserts during lookups.
    #[must_use]
    pub fn flow(&self) -> Flow {
        Flow { inserts: self.inserts, inserts_per_s: self.insert_rate }
    }

    /// Returns the exponent of the Zipf law that picks loaded keys; without one they are picked uniformly.
    #[must_use]
    pub fn theta(&self) -> Option<f64> {
        self.zipf
    }

    /// Returns the entries that the table is made for: the maximum of a run, which is the loaded entries and
    /// the new ones of mixed streams, during lookups or with them; more if these do not make it full.
    #[must_use]
    pub fn entries_max(&self) -> u64 {
        let inserted = |mix: Mix| (self.operations() as f64 * (1.0 - mix.lookup_fraction)).ceil();
        let per_run: f64 = match self.workload {
            Workload::Mixed => self.mixes().into_iter().map(inserted).sum(),
            Workload::LookupDuringInserts => self.inserts as f64,
            Workload::InsertAndQuery => self.operations() as f64,
            _ => 0.0,
        };
        let extra = per_run * f64::from(self.runs);
        // Draws of a binomial distribution vary; six standard deviations are never exceeded in practice.
        let most = self.entries + (extra + 6.0 * extra.sqrt()).ceil() as u64;
        if self.full_share < 1.0 { (most as f64 / self.full_share).ceil() as u64 } else { most }
    }

    /// Returns whether no table may evict entries: their keys are changed again and again, and all must stay.
    fn keeps_all(&self) -> bool {
        self.settle_rounds > 0 || matches!(self.workload, Workload::Update | Workload::Churn)
    }

    /// Returns the engine's spec.
    #[must_use]
    pub fn spec(&self) -> Spec {
        let counting = self.workload.counts();
        Spec {
            dir: self.dir.clone(),
            entries: self.entries_max(),
            keeps_all: self.keeps_all(),
            value_bytes: self.value_bytes(),
            ram_bytes: self.ram_bytes,
            cache_bytes: self.cache_bytes,
            depth: self.depth,
            threads: self.threads,
            durability: self.durability,
            rate: self.filter.rate,
            fan_out: self.filter.fan_out,
            counts: if counting { Counts::Kept } else { Counts::Membership },
            stored_keys: self.filter.stored_keys.into(),
            discipline: self.filter.discipline,
            documents: self.documents,
            seed: self.seed,
        }
    }

    /// Enters the requested memory cgroup, if any.
    ///
    /// # Errors
    /// Fails without cgroups and without permission.
    pub fn enter_cgroup(&self) -> Result<Option<MemoryCgroup>> {
        let whole = self.ram_bytes.saturating_add(HARNESS_BYTES);
        let bytes = |given| if given == 0 { whole } else { given };
        self.cgroup.map(|given| MemoryCgroup::enter(bytes(given))).transpose()
    }
}

/// Returns the limit in force under `cgroup`.
#[must_use]
pub fn in_force(cgroup: Option<&MemoryCgroup>) -> MemoryLimit {
    cgroup.map_or_else(MemoryLimit::none, MemoryCgroup::in_force)
}
