//! What a table is wanted for, which structure does it, and what comes of that.

use std::fmt;

use anyhow::{Result, bail};
use clap::ValueEnum;
use nandex::bufferhash::Policy;
use nandex::compare::{Structure, Wish};
use nandex::model::{CostPreset, Load};
use nandex::{AnyConfig, AnyOptions, bufferhash, slicehash};

use crate::place::PolicyArg;
use crate::size;

/// Nanoseconds of a millisecond.
const NS_PER_MS: f64 = 1e6;

/// Which structure a table is to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum StructureArg {
    /// The one that suits the need, as `nandex advise` says
    #[default]
    Auto,
    /// Each entry written once, a few bytes of RAM per entry, few reads for keys that are not there
    Bufferhash,
    /// One page read for any key, a fraction of the RAM, many more bytes written
    Slicehash,
}

/// Limits and load, as `advise` and `create` take them.
#[derive(Clone, Debug, clap::Args)]
pub struct NeedArgs {
    /// RAM that it may take; without it, what it needs
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    ram: Option<u64>,
    /// Flash that it may take; without it, what it needs
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    flash: Option<u64>,
    /// Inserts that come each second
    #[arg(long, value_name = "COUNT", value_parser = size::parse)]
    inserts: Option<u64>,
    /// Lookups that come each second
    #[arg(long, value_name = "COUNT", value_parser = size::parse)]
    lookups: Option<u64>,
    /// The share of lookups whose key is not there, 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.5)]
    misses: f64,
    /// Page reads that a lookup of an absent key may take, on average; without it, what pays best
    #[arg(long, value_name = "PAGES")]
    miss_reads: Option<f64>,
    /// Device time that an insert may wait for a flush, in milliseconds
    #[arg(long, value_name = "MS")]
    worst_insert: Option<f64>,
    /// The device whose times are counted with
    #[arg(long, value_name = "PRESET", value_parser = preset_names())]
    device: Option<String>,
}

fn preset_names() -> Vec<&'static str> {
    CostPreset::all().iter().map(|preset| preset.name).collect()
}

impl NeedArgs {
    /// A table for so many entries of these widths, within these limits.
    ///
    /// # Errors
    /// Widths that are no widths.
    pub fn wish(&self, entries: u64, key_bytes: u64, value_bytes: u64) -> Result<Wish> {
        let mut wish = Wish::new(entries, key_bytes.try_into()?, value_bytes.try_into()?);
        wish.ram_bytes = self.ram;
        wish.flash_bytes = self.flash;
        wish.load = Load {
            inserts_per_s: self.inserts.unwrap_or(0) as f64,
            lookups_per_s: self.lookups.unwrap_or(0) as f64,
            miss_share: self.misses,
        };
        wish.miss_reads_max = self.miss_reads;
        wish.insert_worst_ns_max = self.worst_insert.map(|ms| ms * NS_PER_MS);
        if let Some(name) = &self.device {
            wish.device = CostPreset::by_name(name)?;
        }
        Ok(wish)
    }
}

/// A table that is to be made.
#[derive(Clone, Debug)]
pub struct TableWish {
    /// Which structure.
    pub structure: StructureArg,
    /// What it is for.
    pub need: Wish,
    /// What happens when flash is full.
    pub policy: Policy,
    /// Runs of a SliceHash's front table.
    pub front_runs: u32,
}

/// What a wish comes to.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Why this one, where there was a choice.
    pub reasons: Vec<String>,
    /// What to create it with.
    pub config: AnyConfig,
    /// What to open it with.
    pub options: AnyOptions,
    /// Entries that it is meant to hold.
    pub entries_capacity: u64,
}

impl TableWish {
    /// Chooses, and sizes what was chosen.
    ///
    /// # Errors
    /// Sizes that cannot work, with the least that would do, and choices that do not go together.
    pub fn plan(&self) -> Result<Plan> {
        let plan = match self.structure {
            StructureArg::Bufferhash => self.bufferhash()?,
            StructureArg::Slicehash => self.slicehash()?,
            StructureArg::Auto if self.front_runs > 0 => Plan {
                reasons: vec!["only a SliceHash has a front table".into()],
                ..self.slicehash()?
            },
            StructureArg::Auto if slice_policy(self.policy).is_none() => {
                let reason = format!("only a BufferHash evicts by {}", PolicyArg(self.policy));
                Plan { reasons: vec![reason], ..self.bufferhash()? }
            }
            StructureArg::Auto => self.either()?,
        };
        plan.config.validate()?;
        Ok(plan)
    }

    fn either(&self) -> Result<Plan> {
        let comparison = self.need.compare()?;
        let one = match comparison.chosen {
            Structure::BufferHash => self.bufferhash()?,
            Structure::SliceHash => self.slicehash()?,
        };
        Ok(Plan { reasons: comparison.reasons(), ..one })
    }

    fn bufferhash(&self) -> Result<Plan> {
        if self.front_runs > 0 {
            bail!(
                "a BufferHash has no front table; leave --front-runs out, or take --structure slicehash"
            );
        }
        let advice = self.need.bufferhash()?;
        Ok(Plan {
            reasons: Vec::new(),
            config: bufferhash::Config {
                policy: self.policy,
                ..bufferhash::Config::advised(&advice)
            }
            .into(),
            options: AnyOptions::default(),
            entries_capacity: advice.entries_capacity,
        })
    }

    fn slicehash(&self) -> Result<Plan> {
        let Some(policy) = slice_policy(self.policy) else {
            bail!(
                "a SliceHash evicts in the order of age or refuses, not by {}; choose --policy fifo \
                 or reject, or --structure bufferhash",
                PolicyArg(self.policy)
            );
        };
        let advice = self.need.slicehash()?;
        let config = slicehash::Config {
            policy,
            front_runs: self.front_runs,
            ..slicehash::Config::advised(&advice)
        };
        let slicehash = slicehash::RuntimeOptions::advised(&advice);
        Ok(Plan {
            reasons: Vec::new(),
            config: config.into(),
            options: AnyOptions::default().with(slicehash),
            entries_capacity: advice.entries_capacity,
        })
    }
}

/// The same policy of a SliceHash, where that has it.
fn slice_policy(policy: Policy) -> Option<slicehash::Policy> {
    match policy {
        Policy::Fifo => Some(slicehash::Policy::Fifo),
        Policy::Reject => Some(slicehash::Policy::Reject),
        _ => None,
    }
}

/// What a table was made as: figures for people and programs.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Costs {
    /// What happens when it is full.
    policy: String,
    /// Pages read by a lookup that finds its key.
    reads_per_hit: f64,
    /// Pages read by a lookup that does not.
    reads_per_miss: f64,
    /// Bytes written per byte of key and value inserted, the log's among them.
    write_amplification_with_log: f64,
    #[serde(flatten)]
    shape: Shape,
}

/// The parameters, which each structure has of its own.
#[derive(Clone, Debug, serde::Serialize)]
#[serde(untagged)]
enum Shape {
    BufferHash {
        super_tables: u32,
        incarnations: u64,
        pages_per_buffer: u32,
    },
    SliceHash {
        partitions: u32,
        incarnations: f64,
        pages_per_buffer: u32,
        slices: u32,
        slice_parts: u32,
        front_runs: u32,
    },
}

impl Costs {
    /// What a table of this configuration costs once it is full, by its model.
    ///
    /// # Errors
    /// A configuration that is none.
    pub fn of(config: &AnyConfig) -> Result<Self> {
        let costs = config.operation_costs()?;
        let (entry_bytes, policy, shape) = if let Ok(it) = config.of::<bufferhash::Config>() {
            let shape = Shape::BufferHash {
                super_tables: it.super_tables,
                incarnations: it.incarnations(),
                pages_per_buffer: it.buffer_pages,
            };
            (it.key_bytes + it.value_bytes, it.policy, shape)
        } else {
            let it = config.of::<slicehash::Config>()?;
            (
                it.key_bytes + it.value_bytes,
                match it.policy {
                    slicehash::Policy::Fifo => Policy::Fifo,
                    slicehash::Policy::Reject => Policy::Reject,
                },
                Shape::SliceHash {
                    partitions: it.partitions,
                    incarnations: it.incarnations()?,
                    pages_per_buffer: it.buffer_pages,
                    slices: it.slices,
                    slice_parts: it.slice_parts,
                    front_runs: it.front_runs,
                },
            )
        };
        Ok(Self {
            policy: PolicyArg(policy).to_string(),
            reads_per_hit: costs.reads_per_hit,
            reads_per_miss: costs.reads_per_miss,
            write_amplification_with_log: costs.insert_write_bytes / entry_bytes as f64,
            shape,
        })
    }

    /// Lines of a name and a value each.
    pub fn rows(&self) -> Vec<(&'static str, String)> {
        let written = self.write_amplification_with_log;
        vec![
            ("when full", self.policy.clone()),
            ("shape", self.shape.to_string()),
            (
                "reads",
                format!(
                    "{:.3} for a key that is there, {:.3} for one that is not",
                    self.reads_per_hit, self.reads_per_miss
                ),
            ),
            ("written", format!("{written:.2} bytes per byte inserted, with the log")),
        ]
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let buffers = |pages: &u32| size::show_bytes(u64::from(*pages) * 4096);
        match self {
            Self::BufferHash { super_tables, incarnations, pages_per_buffer } => write!(
                f,
                "super tables: {super_tables}, k = {incarnations} incarnations, buffers of {}",
                buffers(pages_per_buffer)
            ),
            Self::SliceHash { partitions, incarnations, pages_per_buffer, slices, .. } => write!(
                f,
                "partitions: {partitions}, slices: {slices}, k = {incarnations:.1} buffers of {}",
                buffers(pages_per_buffer)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(structure: StructureArg, policy: Policy) -> TableWish {
        TableWish {
            structure,
            need: Wish { ram_bytes: Some(600 << 20), ..Wish::new(256_000_000, 8, 8) },
            policy,
            front_runs: 0,
        }
    }

    #[test]
    fn a_policy_or_a_front_that_one_structure_has_decides_for_it() {
        let plan = wish(StructureArg::Auto, Policy::Lru).plan().unwrap();
        assert_eq!(plan.config.kind(), bufferhash::KIND);
        assert_eq!(plan.reasons, ["only a BufferHash evicts by lru"]);
        let bursts = TableWish { front_runs: 8, ..wish(StructureArg::Auto, Policy::Fifo) };
        let plan = bursts.plan().unwrap();
        assert_eq!(plan.config.of::<slicehash::Config>().unwrap().front_runs, 8);
    }

    #[test]
    fn what_was_named_is_made_whatever_would_suit_better() {
        for arg in [StructureArg::Bufferhash, StructureArg::Slicehash] {
            let plan = wish(arg, Policy::Reject).plan().unwrap();
            let is_slicehash = plan.config.kind() == slicehash::KIND;
            assert_eq!(is_slicehash, arg == StructureArg::Slicehash);
            assert_eq!(plan.reasons, [""; 0]);
            assert_eq!(Costs::of(&plan.config).unwrap().policy, "reject");
            assert!(plan.entries_capacity >= 256_000_000);
        }
    }

    #[test]
    fn the_advisors_choice_comes_with_its_reasons() {
        let mut small = wish(StructureArg::Auto, Policy::Reject);
        small.need.ram_bytes = Some(160 << 20);
        small.need.load.lookups_per_s = 1e4;
        let plan = small.plan().unwrap();
        assert_eq!(plan.config.kind(), slicehash::KIND);
        assert!(plan.reasons.len() > 1, "{:?}", plan.reasons);
    }

    #[test]
    fn choices_that_do_not_go_together_are_refused_with_what_would() {
        let error = wish(StructureArg::Slicehash, Policy::Lru).plan().unwrap_err().to_string();
        assert!(error.contains("not by lru; choose --policy fifo or reject"), "{error}");
        let front = TableWish { front_runs: 8, ..wish(StructureArg::Bufferhash, Policy::Fifo) };
        let error = front.plan().unwrap_err().to_string();
        assert!(error.contains("take --structure slicehash"), "{error}");
        let front = TableWish { front_runs: 8, ..wish(StructureArg::Slicehash, Policy::Reject) };
        let error = front.plan().unwrap_err().to_string();
        assert!(error.contains("front_runs"), "{error}");
    }
}
