//! The experiments of NSDI 2010, sections 3 and 6 to 8: the costs of BufferHash on two SSDs, a disk and a
//! chip, by formula and by run, and its gain in a WAN optimizer and in a merge of two indexes.
//!
//! The table is configured as the paper's (7.1.1): buffers and incarnations of 128 KiB with 4096 entries of
//! 16 bytes, 16 incarnations for each super table, Bloom filters of 16 bits for each entry. Berkeley DB's
//! hash table is reduced to its requests, by linear hashing over a page cache: see `linear_hash.rs`.

mod berkeley;
mod buffering;
mod cheap_eviction;
mod cost;
mod direct;
mod eviction;
mod filter_sizes;
mod flush_sizes;
mod fractions;
mod full_drive;
pub(crate) mod lab;
mod latencies;
mod linear_hash;
mod lookup_reads;
mod merge;
mod no_filters;
mod page_cache;
mod peers;
mod several;
mod slicing;
mod spurious;
mod wan;
mod workload;

pub(crate) use berkeley::FILE_OVER_CACHE;
pub(crate) use cost::INTEL_DOLLARS;
pub(crate) use merge::MERGE_CPU_NS;
pub(crate) use slicing::LINE_NS;
pub(crate) use wan::BERKELEY_WAN_NS;

use crate::play::Player;
use crate::{Experiment, fits, vary};

/// The CPU time of a lookup or an insert, in nanoseconds, if an experiment needs it: the paper's 0.006 ms for
/// an insert on the Intel SSD, minus a 4096th of the 0.83 to 2.72 ms of a flush.
pub const CPU_NS: u64 = 5_500;

/// Returns all experiments, in the paper's order.
#[must_use]
pub fn experiments() -> Vec<Box<dyn Experiment>> {
    vec![
        Box::new(merge::Merge),
        Box::new(filter_sizes::FilterSizes),
        Box::new(flush_sizes::FlushSizes),
        Box::new(spurious::Figure5),
        Box::new(lookup_reads::Table2),
        Box::new(latencies::Figure6),
        Box::new(full_drive::FullDrive),
        Box::new(peers::Figure7),
        Box::new(fractions::Table3),
        Box::new(buffering::NoBuffering),
        Box::new(no_filters::NoFilters),
        Box::new(slicing::NoBitSlicing),
        Box::new(eviction::Figure8),
        Box::new(several::Several),
        Box::new(wan::Figure9),
        Box::new(wan::Figure10),
        Box::new(cost::Cost),
    ]
}

/// Returns the CPU time with its variation.
fn cpu_ns() -> u64 {
    vary::value(&fits::NSDI_PROCESSOR, CPU_NS)
}

/// Returns a player with one thread, as in the paper, and this CPU time.
fn player() -> Player {
    Player::single(cpu_ns())
}
