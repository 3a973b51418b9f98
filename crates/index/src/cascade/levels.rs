//! Which runs there are, and which of them a merge takes.
//!
//! ```text
//!   buffer      full: merged with every level above the one that has room, into that level
//!   [ 200 ]
//!   image       a buffer that was saved before it was full; the next merge takes it along
//!   level 0  |....|             at most  buffer x fan-out
//!   level 1  |........|         at most  buffer x fan-out^2
//!   level 2  |................|
//! ```

use std::sync::Arc;

use nandex_store::run::Run;
use nandex_store::space::Extent;

use super::Config;

/// The runs of a cascade filter at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Levels {
    /// A buffer that was saved before it was full.
    pub image: Option<Arc<Run>>,
    /// Is what the image holds in the buffer too, where an opening has put it? Then nobody reads it.
    pub image_is_loaded: bool,
    /// The levels, the smallest first; nothing in one that is empty.
    pub runs: Vec<Option<Arc<Run>>>,
}

/// Why a buffer leaves RAM.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Goal {
    /// It is full.
    Merge,
    /// It is to be on flash, full or not.
    Save,
    /// All of the filter is to be one run.
    Compact,
}

/// Where the result of a merge goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Output {
    Image,
    Level(usize),
}

/// What a merge does.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// The runs it takes beside the buffer.
    pub inputs: Vec<Arc<Run>>,
    pub output: Output,
    /// Is nothing older than what it takes? Then tombstones end here.
    pub is_last: bool,
}

impl Levels {
    /// The image, where lookups have to read it.
    pub(super) fn unread_image(&self) -> Option<&Arc<Run>> {
        self.image.as_ref().filter(|_| !self.image_is_loaded)
    }

    /// What lookups read, the largest level first: most keys are there.
    pub(super) fn readable(&self) -> impl Iterator<Item = &Arc<Run>> {
        self.runs.iter().rev().flatten().chain(self.unread_image())
    }

    /// All runs that lie on flash.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<Run>> {
        self.runs.iter().flatten().chain(&self.image)
    }

    pub(super) fn extents(&self) -> Vec<Extent> {
        self.all().map(|run| run.place().extent).collect()
    }

    /// Fingerprints on flash that are not in a buffer too.
    pub(super) fn entries(&self) -> u64 {
        self.readable().map(|run| run.entries()).sum()
    }

    /// What is to be done with a buffer of so many fingerprints.
    pub(super) fn plan(&self, buffered: u64, goal: Goal, config: &Config) -> Plan {
        let image = self.unread_image();
        let above = buffered + image.map_or(0, |image| image.entries());
        if goal == Goal::Save && above <= config.buffer_entries {
            let inputs = image.cloned().into_iter().collect();
            let is_last = self.runs.iter().all(Option::is_none);
            return Plan { inputs, output: Output::Image, is_last };
        }
        let level = match goal {
            Goal::Compact => self.level_for(config, above + self.level_entries(usize::MAX)),
            _ => self.first_with_room(config, above),
        };
        let taken = if goal == Goal::Compact { self.runs.len() } else { level + 1 };
        let taken = taken.min(self.runs.len());
        let inputs = image.into_iter().chain(self.runs[..taken].iter().flatten()).cloned();
        let is_last = self.runs[taken..].iter().all(Option::is_none);
        Plan { inputs: inputs.collect(), output: Output::Level(level), is_last }
    }

    /// The smallest level that can absorb the buffer and all above it.
    fn first_with_room(&self, config: &Config, above: u64) -> usize {
        let fits = |level: &usize| {
            above.saturating_add(self.level_entries(*level + 1)) <= config.level_entries_max(*level)
        };
        (0..).find(fits).expect("levels grow without limit")
    }

    /// The smallest level that may hold so many.
    fn level_for(&self, config: &Config, entries: u64) -> usize {
        let fits = |level: &usize| entries <= config.level_entries_max(*level);
        (0..).find(fits).expect("levels grow without limit")
    }

    /// Fingerprints in the first so many levels.
    fn level_entries(&self, count: usize) -> u64 {
        self.runs.iter().take(count).flatten().map(|run| run.entries()).sum()
    }

    /// The runs after a merge with that plan, of a buffer or none, has made `run`, or nothing because all
    /// cancelled out. An image that is loaded is in the buffer.
    pub(super) fn after(&self, plan: &Plan, takes_buffer: bool, run: Option<Run>) -> Self {
        let run = run.map(Arc::new);
        let kept = |old: &Arc<Run>| !plan.inputs.iter().any(|input| Arc::ptr_eq(old, input));
        let mut runs: Vec<_> =
            self.runs.iter().map(|old| old.clone().filter(|old| kept(old))).collect();
        let stays = self.image_is_loaded && !takes_buffer;
        let mut image = self.image.clone().filter(|_| stays);
        match plan.output {
            Output::Image => image = run,
            Output::Level(level) => {
                runs.resize(runs.len().max(level + 1), None);
                runs[level] = run;
            }
        }
        while runs.last().is_some_and(Option::is_none) {
            runs.pop();
        }
        Self { image, image_is_loaded: stays, runs }
    }
}
