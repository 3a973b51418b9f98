//! The experiments of ANCS 2014, sections 4, 5.4 and 7: the throughput of SliceHash on a Crucial M4, the
//! shares of it that come from slices and from knowing the drive's channels; and that of SliceBloom and
//! SliceLSH.
//!
//! The table is configured as the paper's (7.1): buffers of 128 KiB whose buckets have 3 entries, 32
//! incarnations in a slicetable of 4 MiB. It is taped once, and [modelled workers](workers) process the tape:
//! lookups in the order of the structure's own schedule, merges at the same time. SILT is not run: its
//! numbers are the paper's.

mod analysis;
mod figure_2;
mod figure_5;
mod figure_6;
mod flights;
mod full;
mod full_drive;
mod incarnations;
mod lab;
mod memory;
mod merge;
mod no_slices;
mod orders;
mod own_log;
pub mod processor;
mod several;
mod slicebloom;
mod slicelsh;
mod stage;
mod table_4;
#[cfg(test)]
mod tests;
mod throughput;
mod unsliced;
pub mod workers;

use crate::Experiment;

/// Returns all experiments, in the paper's order.
#[must_use]
pub fn experiments() -> Vec<Box<dyn Experiment>> {
    vec![
        Box::new(memory::Table1),
        Box::new(figure_2::Figure2),
        Box::new(analysis::Analysis),
        Box::new(figure_5::Figure5),
        Box::new(memory::Table3),
        Box::new(table_4::Table4),
        Box::new(figure_6::Figure6),
        Box::new(no_slices::NoSlices),
        Box::new(incarnations::Table5),
        Box::new(full_drive::FullDrive),
        Box::new(several::Table6),
        Box::new(slicebloom::Bloom),
        Box::new(slicelsh::Lsh),
        Box::new(own_log::OwnLog),
    ]
}
