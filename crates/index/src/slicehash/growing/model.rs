//! The first table of a growing SliceHash, and its costs with the required entries.

use super::Config;
use super::config::{FIXED_RAM_BYTES, buffer_bytes, capacity, ram_bytes, with_partitions};
use crate::model::text::{bytes, count, line};
use crate::model::{
    Notes, PAGE_BYTES, Parameter, ParameterValue, Policy, Prediction, Requirements, too_little_ram,
};
use crate::slicehash::model::{PARTITIONS_MAX, slice_mean};
use crate::slicehash::{self};
use crate::{Error, OpenOptions, Result};

/// Slices of a slicetable: 3 MiB. Tables of entries of 8 + 8 bytes are then nearly full at powers of two.
const SLICES: u32 = 768;
/// Pages of a buffer: a full slicetable holds about 27 of them.
const BUFFER_PAGES: u32 = 24;
/// The share of entries that may find their slice full and stay in RAM until the table grows.
const REFUSED_SHARE: f64 = 1e-5;

impl Config {
    /// Returns the configuration whose first table holds the required entries. Slicetables and buffers are the same for
    /// every number of entries: a table that begins small may become large.
    ///
    /// # Errors
    /// A policy other than [`Policy::Grow`], RAM or flash too small for the first table.
    pub fn advised(requirements: &Requirements) -> Result<Self> {
        requirements.check()?;
        requirements.check_no_extras("growing SliceHash")?;
        let grows = requirements.policy == Policy::Grow;
        requirements.check_policy("growing SliceHash", "grow", grows)?;
        let entries_max =
            (f64::from(SLICES) * slice_mean(requirements.entry_bytes(), REFUSED_SHARE)) as u32;
        let partitions = requirements.entries.div_ceil(entries_max.into()).next_power_of_two();
        let Some(partitions) = u32::try_from(partitions).ok().filter(|it| *it <= PARTITIONS_MAX)
        else {
            let reason = format!(
                "{}; a first table holds {}, begin with less and let the table grow",
                requirements.entries,
                u64::from(PARTITIONS_MAX) * u64::from(entries_max)
            );
            return Err(Error::Config { field: "entries", reason });
        };
        let one = slicehash::Config {
            key_bytes: requirements.key_bytes as usize,
            value_bytes: requirements.value_bytes as usize,
            buffer_pages: BUFFER_PAGES,
            slices: SLICES,
            entries_max,
            ..slicehash::Config::tiny()
        };
        let first = with_partitions(one.aligned_to(&requirements.channels), partitions);
        let needed = FIXED_RAM_BYTES + ram_bytes(&first);
        match requirements.ram_bytes {
            Some(most) if needed > most => Err(too_little_ram(most, needed)),
            _ => Ok(Self { first, ram_bytes_max: requirements.ram_bytes }),
        }
    }
}

/// Returns the configuration and costs of a growing SliceHash with the required entries; see [`Config::advised`].
///
/// # Errors
/// As [`Config::advised`]; a limit that cannot be kept.
pub fn advise(requirements: &Requirements) -> Result<Prediction> {
    let config = Config::advised(requirements)?;
    let table = config.holding(requirements.entries);
    let flash_bytes = table.slicetable_pages() * PAGE_BYTES;
    requirements.check_flash(flash_bytes)?;
    let costs = table.operation_costs()?;
    requirements.check_miss_reads(costs.reads_per_miss)?;
    let device = &requirements.device.costs;
    let slicetable_bytes = (u64::from(table.block_pages()) * PAGE_BYTES) as f64;
    let insert_worst_ns =
        device.read.ns(slicetable_bytes) + device.insert_worst_ns(slicetable_bytes);
    requirements.check_insert_worst(insert_worst_ns)?;
    requirements.check_load(&costs)?;
    let merge_ns = device.read.ns(slicetable_bytes) + device.flush_ns(slicetable_bytes);
    Ok(Prediction {
        options: OpenOptions::default(),
        requirements: requirements.clone(),
        costs,
        entries_capacity: capacity(&table),
        buffer_bytes: buffer_bytes(&table),
        filter_bytes: 0,
        optional_filter_bytes: 0,
        other_bytes: ram_bytes(&table) - buffer_bytes(&table) + FIXED_RAM_BYTES,
        flash_bytes,
        insert_amortised_ns: merge_ns / f64::from(table.buffer_entries()?),
        insert_worst_ns,
        compromise: None,
        parameters: parameters(&config),
        notes: notes(&config, &table)?,
        config: config.into(),
    })
}

pub(super) fn parameters(config: &Config) -> Vec<Parameter> {
    let first = &config.first;
    let number = |number: u32| ParameterValue::Count(number.into());
    let incarnations = first.incarnations().unwrap_or(0.0);
    vec![
        ("partitions", number(first.partitions)),
        ("incarnations", ParameterValue::Number(incarnations)),
        ("pages_per_buffer", number(first.buffer_pages)),
        ("slices", number(first.slices)),
    ]
}

fn notes(config: &Config, table: &slicehash::Config) -> Result<Notes> {
    let first = &config.first;
    let slicetable = bytes(u64::from(table.block_pages()) * PAGE_BYTES);
    let buffer = bytes(u64::from(first.buffer_pages) * PAGE_BYTES);
    let limit = config
        .ram_bytes_max
        .map_or("no limit".to_owned(), |most| format!("at most {}", bytes(most)));
    Ok(Notes {
        shape: vec![
            line(
                "partitions",
                table.partitions.to_string(),
                "that hold the entries; each doubling splits every one",
            ),
            line("first", count(capacity(first)), "entries of the first table"),
            line("slicetable", slicetable, "of each partition, rewritten by a merge"),
            line(
                "incarnations",
                format!("{:.1}", first.incarnations()?),
                format!("k: buffers of {buffer} that a full slicetable holds (section 5.4)"),
            ),
        ],
        ram: format!(
            "of the table that holds the entries, half as much again while it splits; {limit}"
        ),
        buffers: "M, with the spare ones".into(),
        filters: "none: a lookup of an absent key reads one page too (section 5.1.2)".into(),
        other: "I/O chunks of a merge, log, maps".into(),
        per_entry: "all RAM over the required entries (section 5.4)",
        flash: "F: the slicetables and spare ones, half as many again while it splits".into(),
        hit: "one page; none where a buffer answers (section 5.4)".into(),
        miss: "one page".into(),
        insert: "of device time, amortised: a merge over a buffer's entries (section 5.4)".into(),
        insert_worst: "one flush: a slicetable is read and written (section 5.4)",
        update: "with the log; as an insert: a rewrite leaves the old version out".into(),
        ..Notes::default()
    })
}
