//! The settings that only filters have, beside those of every benchmark.

use anyhow::{Result, ensure};
use clap::Args;

use super::subject::{Ability, Counts, FilterMaker, FilterSpec};
use crate::plan::{Plan, Workload};
use crate::quantity::parse_fraction;

/// Settings of filters alone.
#[derive(Args, Clone, Debug)]
pub struct FilterOptions {
    /// Filters: rate of false positives at --entries keys.
    #[arg(long, default_value = "0.0039", value_parser = parse_fraction)]
    pub fpr: f64,
    /// Filters with levels: how many times larger each level is than the one before; by default as many
    /// as gives one level.
    #[arg(long, value_name = "TIMES")]
    pub fan_out: Option<u32>,
    /// Filters: points of the curve of inserts over time.
    #[arg(long, default_value_t = 50)]
    pub points: u32,
}

/// Every setting of a benchmark of a filter.
#[derive(Clone, PartialEq, Debug)]
pub struct FilterPlan {
    /// Those that tables have too.
    pub plan: Plan,
    /// Rate of false positives at `plan.entries` keys.
    pub rate: f64,
    /// How many times larger each level is than the one before.
    pub fan_out: Option<u32>,
    /// Points of the curve of inserts over time.
    pub points: u32,
}

impl FilterPlan {
    /// A plan of these settings, checked.
    ///
    /// # Errors
    /// The setting that cannot work.
    pub fn new(plan: Plan, options: &FilterOptions) -> Result<Self> {
        let FilterOptions { fpr: rate, fan_out, points } = *options;
        let plan = Self { plan, rate, fan_out, points };
        plan.check()?;
        Ok(plan)
    }

    /// Refuses settings that cannot work.
    ///
    /// # Errors
    /// The setting, what is wrong with it and what would do.
    pub fn check(&self) -> Result<()> {
        self.plan.check()?;
        let rate = self.rate;
        ensure!((1e-9..=0.5).contains(&rate), "--fpr {rate}: from 1e-9 to 0.5, such as 0.0039");
        ensure!(self.points > 0, "--points 0: ask for at least 1");
        let fits = self.fan_out.is_none_or(|times| (2..=1024).contains(&times));
        ensure!(fits, "--fan-out: from 2 to 1024");
        let deleted = self.plan.operations.saturating_mul(self.plan.runs.into());
        ensure!(
            self.plan.workload != Workload::Delete || deleted < self.plan.entries,
            "--workload delete takes {deleted} keys from {}; ask for fewer with --ops or --runs",
            self.plan.entries
        );
        Ok(())
    }

    /// Refuses a workload that is none of filters, or that this one cannot do.
    ///
    /// # Errors
    /// What it cannot do.
    pub fn check_for(&self, maker: &dyn FilterMaker) -> Result<()> {
        let (name, workload) = (maker.name(), self.plan.workload);
        let needed = match workload {
            Workload::Load | Workload::Insert | Workload::LookupHit | Workload::LookupMiss => None,
            Workload::Mixed => Some(Ability::Change),
            Workload::Delete => Some(Ability::Delete),
            Workload::Count => Some(Ability::Count),
            Workload::LookupStream | Workload::LookupBesideInserts | Workload::Update => {
                anyhow::bail!(
                    "--workload {}: a workload of tables; {name} is a filter",
                    workload.name()
                )
            }
        };
        let can = needed.is_none_or(|ability| maker.can(ability));
        ensure!(can, "--workload {}: {name} cannot do that", workload.name());
        Ok(())
    }

    /// What the filter is asked to be.
    #[must_use]
    pub fn spec(&self) -> FilterSpec {
        let plan = &self.plan;
        let counting = plan.workload == Workload::Count;
        FilterSpec {
            dir: plan.dir.clone(),
            keys: plan.entries_max(),
            rate: self.rate,
            ram_bytes: plan.ram_bytes,
            fan_out: self.fan_out,
            depth: plan.depth,
            threads: plan.threads,
            durability: plan.durability,
            counts: if counting { Counts::Kept } else { Counts::Membership },
        }
    }

    /// The name under which a loaded filter is noted: all that shapes its file and is not in the plan.
    #[must_use]
    pub fn note_name(&self, maker: &dyn FilterMaker) -> String {
        let fan_out = self.fan_out.map(|times| format!("-x{times}")).unwrap_or_default();
        format!("{}-{}{fan_out}", maker.name(), self.rate)
    }
}
