//! The RAM of the generations of a growing table.
//!
//! A generation that takes over has its super tables rewritten one after another, and older ones release the filters of
//! entries that it has taken over. So RAM for both in full is not needed:
//!
//! ```text
//!   older   ##########  ########    ####      #
//!   next    #           ###         #######   ###########     columns of flushes that come meanwhile: what is left
//! ```

use crate::bufferhash::filter::Slices;
use crate::bufferhash::model::FIXED_RAM_BYTES;
use crate::bufferhash::{self, growing::sizes::live_incarnations};

/// The maximum number of steps of taking over that are evaluated.
const STEPS_MAX: u64 = 1 << 10;

/// Returns the RAM that generations take when they are full, in bytes. All but the last have flushed their buffers.
pub(super) fn ram_bytes_of<'g>(
    mut generations: impl DoubleEndedIterator<Item = &'g bufferhash::Config>,
) -> u64 {
    let newest = generations.next_back().map_or(0, ram_bytes_of_newest);
    ram_bytes_of_older(generations) + newest
}

/// Returns the RAM that generations take that have flushed their buffers, in bytes, including the fixed part.
pub(super) fn ram_bytes_of_older<'g>(older: impl Iterator<Item = &'g bufferhash::Config>) -> u64 {
    FIXED_RAM_BYTES + older.map(bufferhash::Config::retired_ram_bytes).sum::<u64>()
}

/// Returns the RAM that a generation takes while it is the newest, in bytes.
pub(super) fn ram_bytes_of_newest(generation: &bufferhash::Config) -> u64 {
    if generation.cleans() {
        return ram_bytes_with(generation, columns_alone(generation));
    }
    generation.ram_bytes()
}

/// Returns the RAM of a generation that is cleaned and has `columns` columns, in bytes.
pub(super) fn ram_bytes_with(generation: &bufferhash::Config, columns: u64) -> u64 {
    without_filters(generation) + columns * generation.column_bytes()
}

/// Returns the RAM of a generation that is cleaned, in bytes, with no filters except those of a super table that is
/// being rewritten.
pub(super) fn without_filters(generation: &bufferhash::Config) -> u64 {
    let filter_bytes = generation.filter_bytes();
    let of_one = filter_bytes / u64::from(generation.super_tables);
    generation.ram_bytes() - filter_bytes + of_one + generation.rewrite_bytes()
}

/// Returns the columns that a generation which is cleaned has without others: as many as its super tables have on
/// average, from one rewrite to the next.
pub(super) fn columns_alone(generation: &bufferhash::Config) -> u64 {
    let (live, peak) = live_incarnations(generation);
    let width = |incarnations: u32| Slices::width_of(incarnations as usize) as u64;
    let sum: u64 = (live..=peak).map(width).sum();
    let super_tables = u64::from(generation.super_tables);
    let mean = super_tables * sum / u64::from(peak - live + 1);
    let spread = mean / 32 + width(peak + 1) - width(live);
    (mean + spread).min(super_tables * width(peak + 1))
}

/// Returns the columns of a super table that was just rewritten.
pub(super) fn columns_fresh(generation: &bufferhash::Config) -> u64 {
    Slices::width_of(live_incarnations(generation).0 as usize + 1) as u64
}

/// Returns the most RAM that a table takes while a generation takes over from older ones, and afterwards, in bytes.
/// These are taken over in the order of their super tables.
pub(super) fn taking_over_bytes(older: &[&bufferhash::Config], next: &bufferhash::Config) -> u64 {
    let super_tables = u64::from(next.super_tables);
    let one = columns_fresh(next) * next.column_bytes();
    let left = |older: &bufferhash::Config, whole: u64| {
        let (count, bytes) = (u64::from(older.super_tables), older.retired_ram_bytes());
        bytes - bytes / count * (count * whole / super_tables)
    };
    let after = |whole: u64| {
        let older: u64 = older.iter().map(|it| left(it, whole)).sum();
        older + (whole + 1) * one
    };
    let steps = (0..super_tables).step_by(super_tables.div_ceil(STEPS_MAX) as usize);
    let meanwhile = without_filters(next) + steps.map(after).max().unwrap_or(0);
    FIXED_RAM_BYTES + meanwhile.max(ram_bytes_of_newest(next))
}
