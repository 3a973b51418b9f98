//! The runs of a part, and the selection of those that a merge takes.
//!
//! ```text
//!   buffer      full: merged with every level above the one that has space, into that level
//!   [ 200 ]
//!   level 0  |....|             at most  buffer x fan-out
//!   level 1  |........|         at most  buffer x fan-out^2
//!   level 2  |................|
//! ```

use std::sync::Arc;

use nandex_store::run::Run;
use nandex_store::space::Extent;

use super::Config;

/// The runs of a part at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Levels {
    /// The runs, smallest level first; `None` for an empty level.
    pub runs: Vec<Option<Arc<Run>>>,
    /// The number of deletes in the buffers that it has taken since it was opened.
    pub deletes: u64,
}

/// The purpose of a merge of a part's levels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Goal {
    /// Merge a buffer into the smallest level that can take it.
    Flush,
    /// Merge all of the part into one run.
    Compact,
}

/// The plan of a merge.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// The runs that it takes in addition to the buffer.
    pub inputs: Vec<Arc<Run>>,
    /// The level that receives the result.
    pub output: usize,
    /// Whether nothing is older than its inputs, so that tombstones end here.
    pub is_last: bool,
}

impl Levels {
    /// Returns the runs that lookups read, the largest level first: most keys are in it.
    pub(super) fn readable(&self) -> impl Iterator<Item = &Arc<Run>> {
        self.runs.iter().rev().flatten()
    }

    pub(super) fn extents(&self) -> impl Iterator<Item = Extent> {
        self.readable().map(|run| run.place().extent)
    }

    /// Fingerprints on flash.
    pub(super) fn entries(&self) -> u64 {
        self.level_entries(usize::MAX)
    }

    /// Plans the merge of `entries` more fingerprints with the levels.
    pub(super) fn plan(&self, entries: u64, goal: Goal, config: &Config) -> Plan {
        let (output, taken) = match goal {
            Goal::Compact => (self.level_for(config, entries + self.entries()), self.runs.len()),
            Goal::Flush => {
                let level = self.first_with_space(config, entries);
                (level, self.runs.len().min(level + 1))
            }
        };
        let inputs = self.runs[..taken].iter().flatten().cloned().collect();
        let is_last = self.runs[taken..].iter().all(Option::is_none);
        Plan { inputs, output, is_last }
    }

    /// Returns the smallest level that can absorb `above` fingerprints and all levels above it.
    fn first_with_space(&self, config: &Config, above: u64) -> usize {
        let fits = |level: &usize| {
            above.saturating_add(self.level_entries(*level + 1)) <= config.level_entries_max(*level)
        };
        (0..).find(fits).expect("levels grow without limit")
    }

    /// Returns the smallest level that may hold `entries` fingerprints.
    fn level_for(&self, config: &Config, entries: u64) -> usize {
        let fits = |level: &usize| entries <= config.level_entries_max(*level);
        (0..).find(fits).expect("levels grow without limit")
    }

    /// Fingerprints in the first `count` levels.
    fn level_entries(&self, count: usize) -> u64 {
        self.runs.iter().take(count).flatten().map(|run| run.entries()).sum()
    }

    /// Returns the levels after a merge with this plan has produced `run`, or nothing because everything cancelled out.
    pub(super) fn after(&self, plan: &Plan, run: Option<Run>) -> Self {
        let kept = |old: &Arc<Run>| !plan.inputs.iter().any(|input| Arc::ptr_eq(old, input));
        let kept = |old: &Option<Arc<Run>>| old.clone().filter(kept);
        let mut runs: Vec<_> = self.runs.iter().map(kept).collect();
        runs.resize(runs.len().max(plan.output + 1), None);
        runs[plan.output] = run.map(Arc::new);
        while runs.last().is_some_and(Option::is_none) {
            runs.pop();
        }
        Self { runs, deletes: self.deletes }
    }
}

impl Plan {
    /// Returns whether it would write one run to the level of its only input, or has no input.
    pub(super) fn is_in_place(&self, levels: &Levels) -> bool {
        let there = levels.runs.get(self.output).and_then(Option::as_ref);
        match &self.inputs[..] {
            [] => true,
            [run] => there.is_some_and(|there| Arc::ptr_eq(there, run)),
            _ => false,
        }
    }
}
