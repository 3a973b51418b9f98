//! The table that one structure would create for given requirements, and its predicted costs.

use std::fmt;

use super::text::{self, Line, bytes, count, line, time};
use super::{OperationCosts, PAGE_BYTES, Policy, Requirements, log_bytes};
use crate::OpenOptions;
use crate::any::AnyConfig;

/// A shorter lifetime than this is early, in years: the usual warranty of a drive.
const LIFETIME_YEARS_MIN: f64 = 3.0;

/// A structure's answer to [`Requirements`]: its configuration, and the figures that its cost model predicts.
/// Prints as a report that explains each number.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Prediction {
    /// The configuration to create it with.
    pub config: AnyConfig,
    /// The options to open it with.
    pub options: OpenOptions,
    /// The user's requirements.
    pub requirements: Requirements,
    /// The device operations of its operations once it is full.
    pub costs: OperationCosts,
    /// Entries that it holds.
    pub entries_capacity: u64,
    /// RAM of all buffers, in bytes.
    pub buffer_bytes: u64,
    /// RAM of all filters, in bytes; 0 for none.
    pub filter_bytes: u64,
    /// The part of the filters' RAM that only an opening with [`options`](Self::options) takes, in bytes.
    pub optional_filter_bytes: u64,
    /// RAM of everything else, in bytes.
    pub other_bytes: u64,
    /// Flash in bytes.
    pub flash_bytes: u64,
    /// Device time per insert, in nanoseconds.
    pub insert_amortised_ns: f64,
    /// Device time of an insert that must wait for a whole flush, in nanoseconds.
    pub insert_worst_ns: f64,
    /// The reason why it is less than it could be, such as filters that do not fit into the RAM.
    pub compromise: Option<&'static str>,
    /// The structure's own parameters, by name.
    pub parameters: Vec<Parameter>,
    pub(crate) notes: Notes,
}

/// A parameter of one structure, such as its partitions.
pub type Parameter = (&'static str, ParameterValue);

/// The value of a [`Parameter`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ParameterValue {
    /// A count.
    Count(u64),
    /// A number that need not be whole.
    Number(f64),
    /// Yes or no.
    Flag(bool),
    /// Nothing, such as the growth of levels for a single level.
    None,
}

impl Prediction {
    /// Creates the prediction for this configuration, which has space for the required entries, with these costs, and
    /// with no RAM and flash yet.
    #[must_use]
    pub fn new(
        config: AnyConfig,
        requirements: &Requirements,
        costs: OperationCosts,
        notes: Notes,
    ) -> Self {
        Self {
            config,
            options: OpenOptions::default(),
            requirements: requirements.clone(),
            costs,
            entries_capacity: requirements.entries,
            buffer_bytes: 0,
            filter_bytes: 0,
            optional_filter_bytes: 0,
            other_bytes: 0,
            flash_bytes: 0,
            insert_amortised_ns: 0.0,
            insert_worst_ns: 0.0,
            compromise: None,
            parameters: Vec::new(),
            notes,
        }
    }

    /// All RAM, in bytes.
    #[must_use]
    pub fn ram_bytes(&self) -> u64 {
        self.buffer_bytes + self.filter_bytes + self.other_bytes
    }

    /// The RAM that remains of the stated RAM for a cache of entries, in bytes; 0 if the table grows into it, or if its
    /// policy keeps used entries.
    #[must_use]
    pub fn cache_bytes(&self) -> u64 {
        let left =
            self.requirements.ram_bytes.map_or(0, |most| most.saturating_sub(self.ram_bytes()));
        let takes_none = [Policy::Grow, Policy::Lru].contains(&self.requirements.policy);
        if takes_none { 0 } else { left }
    }

    /// RAM per required entry, in bytes.
    #[must_use]
    pub fn ram_bytes_per_entry(&self) -> f64 {
        self.ram_bytes() as f64 / self.requirements.entries as f64
    }

    /// Device time of a lookup that finds its key, one page at a time of each device, in nanoseconds.
    #[must_use]
    pub fn hit_ns(&self) -> f64 {
        self.costs.reads_per_hit * self.read_ns() / self.read_at_once()
    }

    /// Device time of a lookup that does not find its key, in nanoseconds.
    #[must_use]
    pub fn miss_ns(&self) -> f64 {
        self.costs.reads_per_miss * self.read_ns() / self.read_at_once()
    }

    fn read_at_once(&self) -> f64 {
        self.requirements.array.map_or(1.0, |array| f64::from(array.read_at_once()))
    }

    fn read_ns(&self) -> f64 {
        self.requirements.device.costs.read.ns(PAGE_BYTES as f64)
    }

    /// Bytes written per byte of key and value inserted, including those of the log.
    #[must_use]
    pub fn write_amplification_with_log(&self) -> f64 {
        self.costs.insert_write_bytes / self.requirements.entry_bytes() as f64
    }

    /// Bytes written per byte of key and value inserted, without the log.
    #[must_use]
    pub fn write_amplification(&self) -> f64 {
        let entry_bytes = self.requirements.entry_bytes();
        (self.costs.insert_write_bytes - log_bytes(entry_bytes)) / entry_bytes as f64
    }

    /// The maximum number of operations a second of the stated load's mix that the stated devices allow.
    #[must_use]
    pub fn ops_per_s(&self) -> f64 {
        let Requirements { device, load, .. } = &self.requirements;
        self.costs.ops_per_s(device, load) * f64::from(self.requirements.devices())
    }

    /// The maximum number of inserts of new keys a second that the stated devices allow.
    #[must_use]
    pub fn inserts_per_s(&self) -> f64 {
        self.costs.inserts_per_s(&self.requirements.device) * f64::from(self.requirements.devices())
    }

    /// The maximum number of updates a second that the stated devices allow.
    #[must_use]
    pub fn updates_per_s(&self) -> f64 {
        self.costs.updates_per_s(&self.requirements.device) * f64::from(self.requirements.devices())
    }

    /// The share of its time that each of the stated devices is busy with the stated load; 0 without rates.
    #[must_use]
    pub fn busy_share(&self) -> f64 {
        let Requirements { device, load, .. } = &self.requirements;
        self.costs.busy_share(device, load) / f64::from(self.requirements.devices())
    }

    /// Years until the load's inserts wear out the stated flash, or the table's own; `None` without rates.
    #[must_use]
    pub fn lifetime_years(&self) -> Option<f64> {
        let Requirements { device, load, flash_bytes, .. } = &self.requirements;
        let bytes = flash_bytes.unwrap_or(self.flash_bytes);
        (load.inserts_per_s > 0.0).then(|| self.costs.lifetime_years(device, load, bytes))
    }

    /// Returns whether the load's inserts wear its flash out within three years, the usual warranty of a drive.
    #[must_use]
    pub fn wears_out_early(&self) -> bool {
        self.lifetime_years().is_some_and(|years| years < LIFETIME_YEARS_MIN)
    }
}

/// Sentences for the report on figures that all structures have.
#[derive(Clone, Debug, Default)]
pub struct Notes {
    /// The structure's own figures.
    pub shape: Vec<Line>,
    /// The state in which it takes this RAM.
    pub ram: String,
    /// The buffers that are counted.
    pub buffers: String,
    /// The filters that are counted.
    pub filters: String,
    /// The other RAM that is counted.
    pub other: String,
    /// The number that the RAM is divided by.
    pub per_entry: &'static str,
    /// The flash that is counted.
    pub flash: String,
    /// The reads of a lookup of a present key.
    pub hit: String,
    /// The reads of a lookup of an absent key.
    pub miss: String,
    /// The costs that are charged to an insert.
    pub insert: String,
    /// The operation that the slowest insert waits for.
    pub insert_worst: &'static str,
    /// The writes of an update.
    pub update: String,
    /// Bytes written, in the structure's own terms.
    pub written: Vec<Line>,
}

impl Prediction {
    fn lines(&self) -> Vec<Line> {
        let (notes, asked) = (&self.notes, &self.requirements);
        let widths = format!("{} + {} bytes each", asked.key_bytes, asked.value_bytes);
        let entries = format!("{widths}; space for {}", count(self.entries_capacity));
        let mut lines = vec![line("entries", count(asked.entries), entries)];
        lines.extend(notes.shape.iter().cloned());
        let per_entry = format!("{:.2} bytes", self.ram_bytes_per_entry());
        let reads = |reads: f64| format!("{reads:.4}");
        lines.extend([
            line("RAM", bytes(self.ram_bytes()), &notes.ram),
            line("  buffers", bytes(self.buffer_bytes), &notes.buffers),
            line("  filters", bytes(self.filter_bytes), &notes.filters),
            line("  other", bytes(self.other_bytes), &notes.other),
            line("  per entry", per_entry, notes.per_entry),
            line("flash", bytes(self.flash_bytes), &notes.flash),
            line("reads per hit", reads(self.costs.reads_per_hit), &notes.hit),
            line("reads per miss", reads(self.costs.reads_per_miss), &notes.miss),
            line("insert", time(self.insert_amortised_ns), &notes.insert),
            line("insert, worst", time(self.insert_worst_ns), notes.insert_worst),
        ]);
        lines.extend(notes.written.iter().cloned());
        lines.extend(self.update_lines());
        let worn = "T: until its flash is worn out by the load's inserts (ANCS'14, section 5.4)";
        let worn = match self.wears_out_early() {
            true => format!(
                "early, before {LIFETIME_YEARS_MIN} years: state more --flash, or take a structure that writes less; {worn}"
            ),
            false => worn.into(),
        };
        lines.extend(self.lifetime_years().map(|it| line("lifetime", text::years(it), worn)));
        lines
    }

    /// Returns the costs of an update, if they differ from those of an insert or if updates are stated.
    fn update_lines(&self) -> Vec<Line> {
        let costs = &self.costs;
        if costs.updates.is_none() && self.requirements.load.update_share == 0.0 {
            return Vec::new();
        }
        let show = |bytes: f64| format!("{bytes:.1} bytes");
        let read = costs.updates.map_or_else(
            || "as an insert".to_owned(),
            |it| format!("in {:.4} reads, where super tables are rewritten", it.reads),
        );
        vec![
            line("update, written", show(costs.update_write_bytes()), &self.notes.update),
            line("update, read", show(costs.update_read_bytes()), read),
        ]
    }
}

impl fmt::Display for Prediction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        text::write(f, self.lines())
    }
}
