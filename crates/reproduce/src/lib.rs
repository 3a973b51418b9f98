//! The experiments of the papers, run again on simulated drives in virtual time.
//!
//! The papers' drives are gone and ours differ from one machine to the next; a simulated drive is the same
//! everywhere. A structure runs once, without threads and with fixed seeds, on a device that records the
//! requests of each operation: the [`tape`]. The tape is then [played](play) against a model of each drive,
//! by the experiment's number of virtual threads. Each thread pays a stated time of the processor for each
//! operation. So every number is the same on every run.
//!
//! ```text
//!   keys, seed -> structure -> tape -> model of a drive -> latencies -> tables and curves
//!                 (index)     (device)      (sim)                       with the paper's
//! ```
//!
//! A paper is a module with a function that lists its [`Experiment`]s; [`experiments`] names them all. A
//! paper's numbers are shown next to ours, with the reason if the two differ.
#![forbid(unsafe_code)]

pub mod batch;
pub mod bufferhash;
pub mod cascade;
mod drive;
mod error;
mod experiment;
mod fits;
mod latency;
pub mod play;
mod report;
mod scale;
pub mod slicehash;
pub mod tape;
mod taped;

pub use drive::{Drive, Filled};
pub use error::{Error, Result};
pub use experiment::{Experiment, Origin, Outcome, Printed, Row, Sense, Table};
pub use latency::Latencies;
pub use nandex_html::chart::{Chart, Scaling, Series};
pub use report::{Ran, Report, html, text};
pub use scale::Scale;
pub use taped::{Counts, Taped};

/// A paper whose experiments can be run again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Paper {
    /// Anand et al., "Cheap and Large CAMs for High Performance Data-Intensive Networked Systems", NSDI 2010.
    BufferHash,
    /// Anand et al., "Design Patterns for Tunable and Efficient SSD-based Indexes", ANCS 2014.
    SliceHash,
    /// Bender et al., "Don't Thrash: How to Cache Your Hash in Flash", HotStorage 2011, as the deck has it.
    Cascade,
}

impl Paper {
    /// How to cite it.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::BufferHash => {
                "Anand et al., Cheap and Large CAMs for High Performance Data-Intensive Networked \
                 Systems, NSDI 2010"
            }
            Self::SliceHash => {
                "Anand et al., Design Patterns for Tunable and Efficient SSD-based Indexes, ANCS 2014"
            }
            Self::Cascade => {
                "Bender et al., Don't Thrash: How to Cache Your Hash in Flash, HotStorage 2011"
            }
        }
    }

    /// The quantities divided by the scale, and those of the paper.
    #[must_use]
    pub const fn scaled(self) -> &'static str {
        match self {
            Self::BufferHash | Self::SliceHash => {
                "Divided are partitions (super tables), entries and bytes of the drives (which \
                 keep at least 64 blocks in each plane). Sizes of pages, buffers and entries, \
                 incarnations of each partition, bits of filters for each entry and all times of \
                 the drives are the paper's, so a lookup reads and a flush writes as much as \
                 there."
            }
            Self::Cascade => {
                "Divided are keys, RAM and bytes of the drive (which keeps at least 64 blocks in \
                 each plane). The filter over RAM, buffers for all keys, fan-outs, false \
                 positives, sizes of pages and all times of the drive are those of the deck's \
                 size, so a lookup reads as many pages and a key is written as often."
            }
        }
    }
}

/// All experiments of a paper, in its order.
#[must_use]
pub fn experiments(paper: Paper) -> Vec<Box<dyn Experiment>> {
    match paper {
        Paper::BufferHash => bufferhash::experiments(),
        Paper::SliceHash => slicehash::experiments(),
        Paper::Cascade => cascade::experiments(),
    }
}
