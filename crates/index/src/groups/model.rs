//! The costs of a table of groups with the required entries, and the search for the size of its buffers.

use super::config::PARTITIONS_MAX;
use super::{GroupConfig, GroupParameters};
use crate::model::text::bytes;
use crate::model::{
    Notes, OperationCosts, PAGE_BYTES, Parameter, ParameterValue, Policy, Prediction, Requirements,
    too_little_ram,
};
use crate::options::FLUSH_THREADS;
use crate::{OpenOptions, Result};

/// The ratio of pages of tables to pages of buffers, as long as buffers may grow.
pub const TABLES_PER_BUFFER: u64 = 16;
/// The maximum number of pages of a buffer.
const BUFFER_PAGES_MAX: u64 = 64;
/// Tables of a group: 256 KiB.
pub const GROUP_PAGES: u32 = 64;
/// The least RAM of a table whose groups have the usual size.
const LARGE_RAM_BYTES: u64 = 16 << 20;
/// The tables of a group if there is less RAM.
const GROUP_PAGES_SMALL: u32 = 16;
/// The share of a buffer's slots in use when it is full.
const BUFFER_FILL: f64 = 0.93;

/// The cost model of a table of groups.
pub trait GroupModel: GroupConfig {
    /// The configuration for the required entries.
    ///
    /// # Errors
    /// A policy other than [`Policy::Grow`], too little RAM.
    fn advised(requirements: &Requirements) -> Result<Self>;

    /// Returns the record tables for `entries` entries, a page each.
    fn tables(&self, entries: u64) -> f64;

    /// Returns the device operations that each operation costs with `entries` entries.
    fn costs_with(&self, entries: u64) -> OperationCosts;

    /// Returns the bytes of flash for each entry that it grows by, as the mean over a doubling.
    fn flash_bytes_per_entry(&self) -> f64;

    /// Returns the pages of a write buffer if all tables together have `tables` pages.
    fn buffer_pages_for(&self, _tables: u64) -> usize {
        self.common().buffer_pages as usize
    }

    /// The parameters that only this kind has, by name.
    fn parameters(&self) -> Vec<Parameter>;

    /// Describes them in a few words.
    fn shape(&self) -> String;

    /// Returns the notes of a prediction for `entries` entries, given those common to all kinds.
    fn notes(&self, entries: u64, notes: Notes) -> Notes;
}

/// Returns initial parameters: one partition with a buffer of one page.
///
/// # Errors
/// A requirement that the structure cannot meet.
pub fn plain<C: GroupConfig>(requirements: &Requirements) -> Result<GroupParameters> {
    requirements.check()?;
    requirements.check_no_extras(C::KIND)?;
    requirements.check_policy(C::KIND, "grow", requirements.policy == Policy::Grow)?;
    let is_small = requirements.ram_bytes.is_some_and(|most| most < LARGE_RAM_BYTES);
    Ok(GroupParameters {
        key_bytes: requirements.key_bytes as usize,
        value_bytes: requirements.value_bytes as usize,
        partitions: 1,
        buffer_pages: 1,
        spare_buffers: 2,
        group_pages: if is_small { GROUP_PAGES_SMALL } else { GROUP_PAGES },
        stagger: true,
        ram_bytes_max: requirements.ram_bytes,
    })
}

/// Returns the parameters with buffers of `buffers` pages in total, for at least `partitions_min` partitions if there
/// are enough pages.
#[must_use]
pub fn with_buffers(plain: GroupParameters, buffers: u64, partitions_min: u64) -> GroupParameters {
    let wanted = partitions_min.max(buffers.div_ceil(BUFFER_PAGES_MAX)).next_power_of_two();
    let most = 1 << buffers.max(1).ilog2();
    let partitions = wanted.min(most).min(PARTITIONS_MAX.into()) as u32;
    GroupParameters {
        partitions,
        buffer_pages: (buffers / u64::from(partitions)).clamp(1, BUFFER_PAGES_MAX) as u32,
        spare_buffers: (partitions / 64).clamp(2, 8),
        stagger: partitions > 1,
        ..plain
    }
}

/// Returns the maximum number of pages of all buffers that fit, up to `most`; 1 if none fit.
pub fn most_buffers(most: u64, fits: impl Fn(u64) -> bool) -> u64 {
    let mut buffers = most.max(1);
    while buffers > 1 && !fits(buffers) {
        buffers -= (buffers / 16).max(1);
    }
    buffers
}

/// Returns the configuration if it fits into the required RAM.
///
/// # Errors
/// Too little RAM.
pub fn within<C: GroupConfig>(config: C, requirements: &Requirements) -> Result<C> {
    let needed = ram_bytes(&config) + map_bytes(&config, requirements.entries);
    match requirements.ram_bytes.filter(|most| needed > *most) {
        Some(most) => Err(too_little_ram(most, needed)),
        None => Ok(config),
    }
}

/// Returns the RAM without the maps, in bytes, with the default threads.
pub fn ram_bytes<C: GroupConfig>(config: &C) -> u64 {
    config.ram().empty_bytes(FLUSH_THREADS)
}

/// Returns the most RAM of the maps for `entries` entries, in bytes.
pub fn map_bytes<C: GroupConfig>(config: &C, entries: u64) -> u64 {
    (entries as f64 * config.ram().map_bytes_per_entry(FLUSH_THREADS)) as u64
}

/// Returns the bytes that a rewrite of all tables of a partition reads, and writes, with `entries` entries.
pub fn rewrite_bytes<C: GroupModel>(config: &C, entries: u64) -> f64 {
    config.tables(entries) / f64::from(config.common().partitions) * PAGE_BYTES as f64
}

/// Returns the pages of a buffer when the table has `entries` entries.
pub fn buffer_pages<C: GroupModel>(config: &C, entries: u64) -> usize {
    config.buffer_pages_for(config.tables(entries) as u64)
}

/// Returns the entries that a full buffer flushes when the table has `entries` entries.
pub fn buffered_entries<C: GroupModel>(config: &C, entries: u64) -> f64 {
    let slots = config.common().layout().map_or(1, |layout| layout.slots());
    (slots as f64 * buffer_pages(config, entries) as f64 * BUFFER_FILL).max(1.0)
}

/// Returns the flash of a table with `entries` entries, in bytes: tables, spare groups, and places for snapshots.
///
/// # Errors
/// Widths out of range.
pub fn flash_bytes<C: GroupModel>(config: &C, entries: u64) -> Result<u64> {
    let snapshot_bytes = crate::write::snapshot_pages(&config.common().shape()?) * PAGE_BYTES;
    let table_bytes = config.tables(entries) as u64 * PAGE_BYTES;
    Ok(table_bytes + table_bytes / 4 + rewrite_bytes(config, entries) as u64 + snapshot_bytes)
}

/// Returns the RAM of a table with `entries` entries, in bytes: buffers, and everything else.
fn ram_bytes_with<C: GroupModel>(config: &C, entries: u64) -> (u64, u64) {
    // Slightly more tables than expected make buffers a page larger.
    let common = config.common();
    let pages = (buffer_pages(config, entries) as u32 + 1).min(common.buffer_pages);
    let then = config.with_common(GroupParameters { buffer_pages: pages, ..common });
    let other = ram_bytes(config) - config.ram().buffer_bytes();
    (then.ram().buffer_bytes(), other + map_bytes(config, entries))
}

/// Returns the total of both.
pub fn ram_bytes_in_all<C: GroupModel>(config: &C, entries: u64) -> u64 {
    let (buffers, other) = ram_bytes_with(config, entries);
    buffers + other
}

/// Returns the configuration and costs of a table with the required entries.
///
/// # Errors
/// Those of the search; a limit that cannot be kept.
pub fn advise<C: GroupModel>(requirements: &Requirements) -> Result<Prediction> {
    let config = C::advised(requirements)?;
    let entries = requirements.entries;
    let rewritten = rewrite_bytes(&config, entries);
    let flash_bytes = flash_bytes(&config, entries)?;
    requirements.check_flash(flash_bytes)?;
    let costs = config.costs_with(entries);
    requirements.check_miss_reads(costs.reads_per_miss)?;
    let device = &requirements.device.costs;
    let insert_worst_ns = device.read.ns(rewritten) + device.insert_worst_ns(rewritten);
    requirements.check_insert_worst(insert_worst_ns)?;
    requirements.check_load(&costs)?;
    let rewrite_ns = device.read.ns(rewritten) + device.flush_ns(rewritten);
    let (buffer_bytes, other_bytes) = ram_bytes_with(&config, entries);
    Ok(Prediction {
        options: OpenOptions::default(),
        requirements: requirements.clone(),
        costs,
        entries_capacity: config.ram().entries_max(FLUSH_THREADS).min(1 << 48),
        buffer_bytes,
        filter_bytes: 0,
        optional_filter_bytes: 0,
        other_bytes,
        flash_bytes,
        insert_amortised_ns: rewrite_ns / buffered_entries(&config, entries),
        insert_worst_ns,
        compromise: None,
        parameters: parameters(&config),
        notes: config.notes(entries, notes(&config)),
        config: config.into(),
    })
}

/// The parameters of a table, by name.
pub(super) fn parameters<C: GroupModel>(config: &C) -> Vec<Parameter> {
    let number = |number: u32| ParameterValue::Count(number.into());
    let common = config.common();
    let mut all = vec![
        ("partitions", number(common.partitions)),
        ("pages_per_buffer", number(common.buffer_pages)),
    ];
    all.extend(config.parameters());
    all.push(("group_pages", number(common.group_pages)));
    all
}

/// The notes that tables of all kinds have.
fn notes<C: GroupConfig>(config: &C) -> Notes {
    let limit = config
        .common()
        .ram_bytes_max
        .map_or("no limit".to_owned(), |most| format!("at most {}", bytes(most)));
    Notes {
        ram: format!("when it holds the required entries; {limit}"),
        buffers: "of all partitions, with the spare ones".into(),
        filters: "none: signatures and keys are in the pages".into(),
        per_entry: "all RAM over the required entries",
        update: "with the log; as an insert: a rewrite leaves the old version out".into(),
        ..Notes::default()
    }
}

/// Returns the costs of operations when the tables are 16 times the buffers.
pub(super) fn usual_costs<C: GroupModel>(config: &C) -> OperationCosts {
    let common = config.common();
    let buffers = u64::from(common.partitions) * u64::from(common.buffer_pages);
    let slots = config.ram().records.slots() as f64;
    config.costs_with(((TABLES_PER_BUFFER * buffers) as f64 * 0.65 * slots) as u64)
}
