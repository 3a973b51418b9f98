//! The experiments of "RHIK" (Saha et al., HPDC 2023): the index of a key-value SSD, compared with a
//! multi-level hash index.
//!
//! Both are the tables of nandex, each on a taped device. Both have the same DRAM, and a clock decides which
//! of their pages are in it: the multi-level index has such a cache itself, RHIK's is added here. The
//! requests of both, with those for the values, are played against one model of a drive.
//!
//! ```text
//!   keys -> RHIK -> taped device -> page cache ----------------+-> tape + values -> model of a drive -> rates
//!       `-> multi-level index, with its cache, taped device ---+-> reads of each access
//! ```
//!
//! 1. A store is an access of the index and then an update of it; a retrieval is an access.
//! 2. Reads of an access are counted before the update, so that a rewrite of tables or levels counts for no
//!    access.
//! 3. Both indexes have entries of the same bytes: those of the key-value drive.

mod capacity;
mod expected;
mod figure_1;
mod figure_3;
mod figure_4;
mod lab;
mod multilevel;
mod pairs;
mod player;
mod records;
mod taped_table;

pub(crate) use capacity::{DIRECTORY_PART, SPARE};
pub(crate) use multilevel::{BUFFERS_PART, FIRST_PAGES};
pub(crate) use records::LEFT_PART;

use crate::Experiment;

/// Returns all experiments, in the paper's order.
#[must_use]
pub fn experiments() -> Vec<Box<dyn Experiment>> {
    vec![
        Box::new(figure_1::Figure1),
        Box::new(capacity::Capacity),
        Box::new(figure_3::Figure3),
        Box::new(figure_4::Figure4),
    ]
}
