//! The requirements of a table on the command line, and the structure that meets them.

use std::ops::RangeInclusive;

use anyhow::Result;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use nandex::raw::model::{ArrayDesign, CostPreset, DeviceArray, Load, Parameter, ParameterValue};
use nandex::raw::registry;
use nandex::{AnyTable, Policy, Requirements, Table};
use serde_json::{Map, Value};

use crate::size;
use crate::stated::Values;

/// The number of nanoseconds in a millisecond.
const NS_PER_MS: f64 = 1e6;

/// The widths of keys and of values, in bytes, that a table of fixed widths may have.
const KEY_BYTES: RangeInclusive<u64> = 8..=32;
const VALUE_BYTES: RangeInclusive<u64> = 0..=64;

/// The structure of a table: one of the registry's kinds, or none for the most suitable.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StructureArg(pub Option<&'static str>);

impl StructureArg {
    /// Parses the kinds of tables, and `auto`.
    pub fn parser() -> impl TypedValueParser<Value = Self> {
        let auto = PossibleValue::new("auto");
        let auto = auto.help("The one that suits the requirements, as `nandex advise` says");
        let kinds = registry::tables()
            .map(|(row, _)| PossibleValue::new(row.kind).help(row.good_for.trim_end_matches('.')));
        let hidden = others().map(|(kind, _)| PossibleValue::new(kind).hide(true));
        let words = PossibleValuesParser::new([auto].into_iter().chain(kinds).chain(hidden));
        words.try_map(|word| match others().find(|(kind, _)| *kind == word) {
            Some((kind, verbs)) => Err(format!("a {kind} is not a table; {verbs} creates one")),
            None => Ok(Self(registry::find(&word).map(|row| row.kind))),
        })
    }
}

/// Returns the kinds that are not tables, and the verbs that create them.
fn others() -> impl Iterator<Item = (&'static str, &'static str)> {
    let filters = registry::filters();
    let filters = filters.map(|(row, _)| (row.kind, "`nandex filter build` or `nandex count`"));
    filters.chain(registry::neighbors().map(|(row, _)| (row.kind, "`nandex neardup index`")))
}

/// A design for several devices, by its word.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum DesignArg {
    /// Each slicetable on one device: multiplies the operations
    Throughput,
    /// Each slice has a page on every device, all read at once: multiplies the entries in the same RAM
    Memory,
}

impl DesignArg {
    /// Returns the design on `devices` devices.
    ///
    /// # Errors
    /// More devices than an array may have.
    pub fn on(self, devices: usize) -> Result<DeviceArray> {
        let design = match self {
            Self::Throughput => ArrayDesign::Throughput,
            Self::Memory => ArrayDesign::Memory,
        };
        Ok(DeviceArray { design, devices: devices.try_into()? })
    }
}

/// Reads a policy by its word; its number may be a count such as 1k.
///
/// # Errors
/// An unknown policy, with the choices.
pub fn policy(word: &str) -> Result<Policy, String> {
    match word.split_once(':') {
        Some((name, number)) => format!("{name}:{}", size::parse_count(number)?).parse(),
        None => word.parse(),
    }
}

/// Reads the width of keys.
///
/// # Errors
/// A width that no table has, with the valid ones.
pub fn key_bytes(text: &str) -> Result<u64, String> {
    let width = size::parse_within(text, "keys have", KEY_BYTES);
    width.map_err(|why| format!("{why}; hash longer keys to 16 bytes or more"))
}

/// Reads the width of values.
///
/// # Errors
/// As [`key_bytes`].
pub fn value_bytes(text: &str) -> Result<u64, String> {
    let width = size::parse_within(text, "values have", VALUE_BYTES);
    width.map_err(|why| format!("{why}; keep longer values elsewhere"))
}

/// Reads the width of a key and its value.
///
/// # Errors
/// As [`key_bytes`].
pub fn entry_bytes(text: &str) -> Result<u64, String> {
    let most = KEY_BYTES.end() + VALUE_BYTES.end();
    size::parse_within(text, "a key and its value have", *KEY_BYTES.start()..=most)
}

/// The limits and the load, as options of `advise` and `create`.
#[derive(Clone, Debug, clap::Args)]
pub struct RequirementArgs {
    /// Most RAM to use; default: as much as it needs
    #[arg(long, value_name = "SIZE", value_parser = size::parse_some_bytes)]
    ram: Option<u64>,
    /// Most flash to use; default: as much as it needs
    #[arg(long, value_name = "SIZE", value_parser = size::parse_some_bytes)]
    flash: Option<u64>,
    /// Number of inserts per second
    #[arg(long, value_name = "COUNT", value_parser = size::parse_count)]
    inserts: Option<u64>,
    /// Number of lookups per second
    #[arg(long, value_name = "COUNT", value_parser = size::parse_count)]
    lookups: Option<u64>,
    /// Share of lookups whose key is absent, 0 to 1
    #[arg(long, value_name = "SHARE", value_parser = size::parse_share, default_value = "0.5")]
    misses: f64,
    /// Share of inserts whose key is present already, 0 to 1: updates, removals, and new keys for removed ones
    #[arg(long, value_name = "SHARE", value_parser = size::parse_share, default_value = "0")]
    updates: f64,
    /// Most page reads of a lookup of an absent key, on average; default: the number that pays best
    #[arg(long, value_name = "PAGES", value_parser = size::parse_miss_reads)]
    miss_reads: Option<f64>,
    /// Most device time that an insert may wait for a flush, in milliseconds
    #[arg(long, value_name = "MS", value_parser = size::parse_positive)]
    worst_insert: Option<f64>,
    /// Device whose times are used for the model
    #[arg(long, value_name = "PRESET", value_parser = preset_names())]
    device: Option<String>,
}

fn preset_names() -> Vec<&'static str> {
    CostPreset::all().iter().map(|preset| preset.name).collect()
}

impl RequirementArgs {
    /// Returns whether only RAM and the device are given.
    pub fn is_free(&self) -> bool {
        let Self { flash, inserts, lookups, miss_reads, worst_insert, .. } = self;
        let counts = [flash, inserts, lookups].into_iter().all(Option::is_none);
        counts && miss_reads.is_none() && worst_insert.is_none()
    }

    /// Returns whether its RAM is given.
    pub fn has_ram(&self) -> bool {
        self.ram.is_some()
    }

    /// Returns the requirements of a table for `entries` entries of these widths, within these limits.
    ///
    /// # Errors
    /// Invalid widths.
    pub fn of(&self, entries: u64, key_bytes: u64, value_bytes: u64) -> Result<Requirements> {
        let load = Load {
            inserts_per_s: self.inserts.unwrap_or(0) as f64,
            lookups_per_s: self.lookups.unwrap_or(0) as f64,
            miss_share: self.misses,
            update_share: self.updates,
        };
        let device = match &self.device {
            Some(name) => CostPreset::by_name(name)?,
            None => CostPreset::default(),
        };
        Ok(Requirements {
            ram_bytes: self.ram,
            flash_bytes: self.flash,
            load,
            miss_reads_max: self.miss_reads,
            insert_worst_ns_max: self.worst_insert.map(|ms| ms * NS_PER_MS),
            device,
            ..Requirements::new(entries, key_bytes.try_into()?, value_bytes.try_into()?)
        })
    }
}

/// Returns a structure's parameters as members of a JSON object.
pub fn members(parameters: &[Parameter]) -> Map<String, Value> {
    let member = |(name, value): &Parameter| {
        let value = match *value {
            ParameterValue::Count(count) => count.into(),
            ParameterValue::Number(number) => number.into(),
            ParameterValue::Flag(flag) => flag.into(),
            ParameterValue::None => Value::Null,
        };
        ((*name).to_owned(), value)
    };
    parameters.iter().map(member).collect()
}

/// Formats the widths of keys and values for people.
pub fn shown_widths(key_bytes: Option<usize>, value_bytes: Option<usize>) -> String {
    match (key_bytes, value_bytes) {
        (Some(key), Some(value)) => format!("{key} + {value} bytes"),
        _ => "keys and values of any size; a key that is there takes one more read, of its record"
            .into(),
    }
}

/// The costs of a table: figures for people and programs.
#[derive(Clone, Debug, serde::Serialize)]
pub struct TableCosts {
    /// The behaviour when it is full.
    policy: String,
    /// Pages read by a lookup that finds its key.
    reads_per_hit: f64,
    /// Pages read by a lookup that does not.
    reads_per_miss: f64,
    /// Bytes written per byte of key and value inserted, including the log's.
    write_amplification_with_log: f64,
    #[serde(flatten)]
    parameters: Map<String, Value>,
    /// All parameters.
    values: Values,
    #[serde(skip)]
    shape: String,
}

impl TableCosts {
    /// Returns the costs of a table of this configuration once it is full, by its model.
    ///
    /// # Errors
    /// An invalid configuration.
    pub fn of(table: &AnyTable) -> Result<Self> {
        let (config, entry_bytes) = (table.config(), table.key_bytes() + table.value_bytes());
        let (costs, described) = (config.operation_costs()?, config.describe());
        Ok(Self {
            policy: described.when_full,
            reads_per_hit: costs.reads_per_hit,
            reads_per_miss: costs.reads_per_miss,
            write_amplification_with_log: costs.insert_write_bytes / entry_bytes as f64,
            parameters: members(&described.parameters),
            values: Values::of(&config),
            shape: described.shape,
        })
    }

    /// Returns a line of all parameters.
    pub fn values_row(&self) -> (&'static str, String) {
        self.values.row()
    }

    /// Returns lines of a name and a value each.
    pub fn rows(&self) -> Vec<(&'static str, String)> {
        let written = self.write_amplification_with_log;
        let (hit, miss) = (self.reads_per_hit, self.reads_per_miss);
        vec![
            ("when full", self.policy.clone()),
            ("shape", self.shape.clone()),
            ("reads", format!("{hit:.3} for a key that is there, {miss:.3} for one that is not")),
            ("written", format!("{written:.2} bytes per byte inserted, with the log")),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_policy_may_have_a_unit() {
        assert_eq!(policy("priority:1k"), Ok(Policy::Threshold(1000)));
        assert_eq!(policy("lru"), Ok(Policy::Lru));
        assert!(policy("random").unwrap_err().contains("fifo, lru"));
    }
}
