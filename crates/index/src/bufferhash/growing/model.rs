//! The size of a growing table's first generation, and the costs of the table with the required entries.

use super::Config;
use super::ram::ram_bytes_of_newest;
use super::sizes::{buffer_sizes, of_super_tables, with_buffers};
use crate::bufferhash;
use crate::bufferhash::model::{
    CAPACITY_SLACK, CleanedRing, FIXED_RAM_BYTES, INCARNATIONS_MIN, one_super_table, update_note,
};
use crate::model::text::{bytes, count, line};
use crate::model::{
    Notes, OperationCosts, PAGE_BYTES, ParameterValue, Policy, Prediction, Requirements, log_bytes,
    too_little_ram,
};
use crate::{Error, OpenOptions, Result};

/// Entries of a super table, unless buffers of these entries are too large for it.
const ENTRIES_PER_SUPER_TABLE: u64 = 1 << 19;
/// Incarnations of a super table: a word of columns; one is being written and one is kept for recovery.
const INCARNATIONS: u32 = 62;
/// Bits of a fingerprint: ten generations read less than .02 pages for an absent key.
const FINGERPRINT_BITS: u32 = 15;
/// The maximum number of super tables of the first generation.
const FIRST_SUPER_TABLES_MAX: u64 = 1 << 16;

impl Config {
    /// Returns the configuration whose first generation holds the required entries. Later ones are the same for every
    /// number of entries: a table that begins small may become large.
    ///
    /// # Errors
    /// A policy other than [`Policy::Grow`], RAM or flash too small for the first generation.
    pub fn advised(requirements: &Requirements) -> Result<Self> {
        requirements.check()?;
        requirements.check_no_extras("growing")?;
        let grows = requirements.policy == Policy::Grow;
        requirements.check_policy("growing table", "grow", grows)?;
        let super_tables = requirements.entries.div_ceil(ENTRIES_PER_SUPER_TABLE);
        if super_tables > FIRST_SUPER_TABLES_MAX {
            let reason = format!(
                "{}; a first generation holds {}, begin with less and let the table grow",
                requirements.entries,
                FIRST_SUPER_TABLES_MAX * ENTRIES_PER_SUPER_TABLE
            );
            return Err(Error::Config { field: "entries", reason });
        }
        let super_tables = u32::try_from(super_tables).expect("at most 65,536");
        let parts = (ENTRIES_PER_SUPER_TABLE, INCARNATIONS, FINGERPRINT_BITS);
        let largest = one_super_table(requirements, parts)?;
        let one = smallest(requirements, &largest);
        let incarnations_max = one.incarnations_max;
        let kept = ((one.entries_per_flush()? / CAPACITY_SLACK) as u64).max(1);
        // A few more than the entries fill, since super tables do not fill evenly, and one for recovery.
        let few =
            requirements.entries.div_ceil(kept).saturating_add(2).max(INCARNATIONS_MIN.into());
        let few = u32::try_from(few).map_or(incarnations_max, |few| few.min(incarnations_max));
        let one = bufferhash::Config { incarnations_max: few, ..one };
        let first = of_super_tables(&one, super_tables.next_power_of_two());
        let config = Self {
            first,
            incarnations_max,
            ram_bytes_max: requirements.ram_bytes,
            buffer_pages_max: largest.buffer_pages,
        };
        let needed = config.first.ram_bytes() + FIXED_RAM_BYTES;
        match requirements.ram_bytes {
            Some(most) if needed > most => Err(too_little_ram(most, needed)),
            _ => Ok(config),
        }
    }

    /// Returns the RAM of generations for `entries`, in bytes, with a buffer for each super table of each of them.
    pub(super) fn ram_bytes_with(&self, entries: u64) -> u64 {
        let generations = self.generations(entries);
        FIXED_RAM_BYTES + generations.iter().map(bufferhash::Config::ram_bytes).sum::<u64>()
    }

    /// Returns the device operations of its operations once generations for `entries` are full.
    pub(super) fn costs(&self, entries: u64) -> Result<OperationCosts> {
        let of_one = self.first.operation_costs()?;
        let entry_bytes = (self.first.key_bytes + self.first.value_bytes) as u64;
        let of_each = |it: &bufferhash::Config| Ok(it.operation_costs()?.reads_per_miss);
        let of_all = self.generations(entries).iter().map(of_each).collect::<Result<Vec<_>>>()?;
        let reads_per_miss: f64 = of_all.iter().sum();
        Ok(OperationCosts {
            reads_per_hit: 1.0 + reads_per_miss / 2.0,
            reads_per_miss,
            insert_read_bytes: 0.0,
            insert_write_bytes: of_one.insert_write_bytes,
            updates: self.ring_taken_over(entries).map(|ring| ring.update_costs(entry_bytes)),
        })
    }

    /// Returns the ring of a generation that has taken `keys` keys over, once updates have filled those before it.
    /// `None` if its RAM is too little for one: then the table grows.
    fn ring_taken_over(&self, keys: u64) -> Option<CleanedRing> {
        let left = self.ram_bytes_max.map_or(u64::MAX, |it| it.saturating_sub(FIXED_RAM_BYTES));
        let generation = self.taking_over(keys, |it| ram_bytes_of_newest(it) <= left)?;
        Some(generation.ring_with(keys))
    }
}

/// Returns a super table with the smallest buffers that are enough for the required entries. If segments are whole
/// rounds of chunks over channels, all generations have the same buffers, which are the largest.
fn smallest(requirements: &Requirements, largest: &bufferhash::Config) -> bufferhash::Config {
    if requirements.channels.count() > 1 {
        return largest.clone();
    }
    let sizes = buffer_sizes(largest.buffer_pages).map_while(|it| with_buffers(largest, it));
    let enough =
        |it: &bufferhash::Config| of_super_tables(it, 1).entries_capacity() >= requirements.entries;
    sizes.take_while(enough).last().unwrap_or_else(|| largest.clone())
}

/// Returns the configuration and costs of a growing table with the required entries; see [`Config::advised`].
///
/// # Errors
/// As [`Config::advised`]; a limit that cannot be kept.
pub fn advise(requirements: &Requirements) -> Result<Prediction> {
    let config = Config::advised(requirements)?;
    let generations = config.generations(requirements.entries);
    let sum = |of: fn(&bufferhash::Config) -> u64| generations.iter().map(of).sum::<u64>();
    let flash_bytes = sum(|it| it.ring_pages() * PAGE_BYTES);
    requirements.check_flash(flash_bytes)?;
    let costs = config.costs(requirements.entries)?;
    requirements.check_miss_reads(costs.reads_per_miss)?;
    let device = &requirements.device.costs;
    let flush_bytes = (u64::from(config.first.segment_pages()) * PAGE_BYTES) as f64;
    let insert_worst_ns = device.insert_worst_ns(flush_bytes);
    requirements.check_insert_worst(insert_worst_ns)?;
    requirements.check_load(&costs)?;
    let filter_bytes = sum(|it| u64::from(it.super_tables) * it.filter.ram_bytes() as u64);
    let buffer_bytes = sum(buffer_bytes);
    let entries_flushed =
        flush_bytes / (costs.insert_write_bytes - log_bytes(requirements.entry_bytes()));
    Ok(Prediction {
        options: OpenOptions::default(),
        requirements: requirements.clone(),
        costs,
        entries_capacity: sum(bufferhash::Config::entries_capacity),
        buffer_bytes,
        filter_bytes,
        optional_filter_bytes: 0,
        other_bytes: config.ram_bytes_with(requirements.entries) - filter_bytes - buffer_bytes,
        flash_bytes,
        insert_amortised_ns: device.flush_ns(flush_bytes) / entries_flushed,
        insert_worst_ns,
        compromise: None,
        parameters: parameters(&config),
        notes: Notes {
            update: note_of_updates(config.ring_taken_over(requirements.entries)),
            ..notes(&config, generations.len())
        },
        config: config.into(),
    })
}

fn note_of_updates(ring: Option<CleanedRing>) -> String {
    match ring {
        None => {
            "with the log; as an insert, and the table grows: its RAM is too little to be cleaned"
                .into()
        }
        Some(_) => update_note(ring),
    }
}

fn buffer_bytes(generation: &bufferhash::Config) -> u64 {
    let buffers = u64::from(generation.super_tables) + u64::from(generation.spare_buffers);
    buffers * u64::from(generation.buffer_pages) * PAGE_BYTES
}

pub(super) fn parameters(config: &Config) -> Vec<crate::model::Parameter> {
    vec![
        ("super_tables", ParameterValue::Count(config.first.super_tables.into())),
        ("incarnations", ParameterValue::Count(config.first.incarnations_max.into())),
        ("pages_per_buffer", ParameterValue::Count(config.first.buffer_pages.into())),
        ("pages_per_segment", ParameterValue::Count(config.first.segment_pages().into())),
    ]
}

fn notes(config: &Config, generations: usize) -> Notes {
    let first = &config.first;
    let buffer = bytes(u64::from(first.buffer_pages) * PAGE_BYTES);
    let limit = config
        .ram_bytes_max
        .map_or("no limit".to_owned(), |most| format!("at most {}", bytes(most)));
    Notes {
        shape: vec![
            line(
                "generations",
                generations.to_string(),
                "that hold the entries; each has as many super tables as all before it",
            ),
            line("first", count(first.entries_capacity()), "entries of the first generation"),
            line(
                "buffer",
                buffer,
                format!("of each super table, which has {INCARNATIONS} incarnations of it"),
            ),
        ],
        ram: format!("of these generations when they are full; {limit}"),
        buffers: "of all generations, until older ones have written theirs".into(),
        filters: format!("{}-bit fuse filters, all columns", first.filter.bits_per_slot()),
        other: "fixed, and maps of segments".into(),
        per_entry: "all RAM over the required entries",
        flash: "segments of all generations".into(),
        hit: "half of the generations' filters may err first".into(),
        miss: format!("the filters of {generations} generations"),
        insert: "of device time, amortised: a flush over its entries (section 6.1)".into(),
        insert_worst: "C_worst: one flush, with an erase if it must wait for one (section 6.1)",
        ..Notes::default()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use nandex_device::{Counted, MemoryDevice};

    use super::*;
    use crate::bufferhash::growing::Growing;
    use crate::model::measured::{ERROR_MAX, Measured, Updates, volume};

    #[test]
    fn updates_of_a_table_that_has_taken_over_cost_what_is_predicted() {
        for (entries, key_bytes, value_bytes) in [(20_000, 8, 8), (100_000, 8, 8), (60_000, 16, 16)]
        {
            let asked = Requirements {
                policy: Policy::Grow,
                ..Requirements::new(entries, key_bytes, value_bytes)
            };
            let prediction = advise(&asked).unwrap();
            let config: &Config = prediction.config.of().unwrap();
            let device = Arc::new(Counted::new(MemoryDevice::new()));
            let volume = volume(Arc::clone(&device) as _, config.log_bytes_best());
            let inline = OpenOptions::default().inline();
            let table = Growing::create_with(&volume, "t", config.clone(), inline).unwrap();
            let mut updates = Updates::fill(&table, &asked);
            let has_taken_over = || {
                table.generations() == 1
                    && table.owner.parts.cores().all(|it| it.layout.config.cleans())
            };
            let mut quarters = 0..60;
            while !has_taken_over() {
                assert!(quarters.next().is_some(), "{entries} entries were not taken over");
                updates.put(entries / 4);
            }
            updates.put(3 * entries);
            let measured = Measured::of(&device, &mut updates, 8 * entries);
            let bytes = asked.entry_bytes();
            let what = format!("growing, {entries} entries of {bytes} bytes");
            measured.check(&prediction.costs, (&what, ERROR_MAX));
            assert!(prediction.to_string().contains("update, written"), "{prediction}");
        }
    }
}
