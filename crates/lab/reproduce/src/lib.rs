//! The experiments of the papers, run again on simulated drives in virtual time.
//!
//! The papers' drives are gone and today's differ from one machine to the next; a simulated drive is the same
//! everywhere. A structure runs once, without threads and with fixed seeds, on a device that records the
//! requests of each operation: the [`tape`]. The tape is then [played](play) against a model of each drive,
//! by the experiment's number of virtual threads. Each thread pays a stated CPU time for each operation. So
//! every number is the same on every run.
//!
//! ```text
//!   keys, seed -> structure -> tape -> model of a drive -> latencies -> tables and curves
//!                 (index)     (device)      (sim)                       with the paper's
//! ```
//!
//! A paper is a module with a function that lists its [`Experiment`]s; [`experiments`] names them all. A
//! paper's numbers are shown next to nandex's, with the reason if the two differ.
#![forbid(unsafe_code)]

pub mod batch;
pub mod bufferhash;
pub mod cascade;
mod claims;
pub mod conclusions;
pub mod counting;
mod drive;
mod error;
mod exhibits;
mod experiment;
mod fits;
mod full;
mod latency;
pub mod play;
mod report;
pub mod rhik;
mod scale;
pub mod slicehash;
mod spread;
pub mod tape;
mod taped;
mod vary;
mod volume;

use serde::{Deserialize, Serialize};

pub use claims::{Answer, Claim, Place, Verdict, Wanted, all_claims};
pub use drive::{Drive, Filled};
pub use error::{Error, Result};
pub use exhibits::{Exhibit, Shown, exhibits};
pub use experiment::{Experiment, Origin, Outcome, Printed, Row, Sense, Table};
pub use fits::{Constant, Fit, Source, constants, constants_text, fits};
pub use latency::Latencies;
pub use nandex_html::chart::{Chart, Scaling, Series};
pub use report::{Bounds, Counted, Page, Part, Ran, Report, constants_page, html, pages, text};
pub use scale::Scale;
pub use spread::{Event, Task, spread, tasks};
pub use taped::{Counts, Taped};

/// A paper whose experiments can be run again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Paper {
    /// Anand et al., "Cheap and Large CAMs for High Performance Data-Intensive Networked Systems", NSDI 2010.
    BufferHash,
    /// Anand et al., "Design Patterns for Tunable and Efficient SSD-based Indexes", ANCS 2014.
    SliceHash,
    /// Bender et al., "Don't Thrash: How to Cache Your Hash in Flash", HotStorage 2011, as the deck has it.
    Cascade,
    /// Clemons et al., "Hash in a Flash: Hash Tables for Solid State Devices", BigData 2013.
    Counting,
    /// Saha et al., "RHIK: Re-configurable Hash-based Indexing for KVSSD", HPDC 2023.
    Rhik,
}

impl Paper {
    /// All papers, in the order of their appearance.
    pub const ALL: [Self; 5] =
        [Self::BufferHash, Self::Cascade, Self::Counting, Self::SliceHash, Self::Rhik];

    /// Returns the structure that it describes, by the name on the command line and of pages.
    #[must_use]
    pub const fn structure(self) -> &'static str {
        match self {
            Self::BufferHash => "bufferhash",
            Self::SliceHash => "slicehash",
            Self::Cascade => "cascade",
            Self::Counting => "counting",
            Self::Rhik => "rhik",
        }
    }

    /// Returns its citation.
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
            Self::Counting => {
                "Clemons et al., Hash in a Flash: Hash Tables for Solid State Devices, BigData 2013"
            }
            Self::Rhik => {
                "Saha et al., RHIK: Re-configurable Hash-based Indexing for KVSSD, HPDC 2023"
            }
        }
    }

    /// Returns the divisor of the paper's size for its experiments at a scale.
    #[must_use]
    pub const fn times_smaller(self, scale: Scale) -> u32 {
        match self {
            Self::BufferHash | Self::SliceHash | Self::Cascade | Self::Rhik => scale.times(),
            Self::Counting => scale.times() / Scale::LEAST,
        }
    }

    /// Returns the quantities divided by the scale, and those of the paper.
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
            Self::Counting => {
                "This table has 100 or 200 MB only, so tokens and entries of a page are divided by \
                 a 64th of the scale: the scale 64 is the paper's own size, 1024 a 16th of it. \
                 Blocks, pages and all times of the drives are the paper's at each scale, so \
                 operations are as many as there."
            }
            Self::Rhik => {
                "Divided are keys, capacity and DRAM, so that the index is as many times larger \
                 than the DRAM as there; the drive keeps 64 blocks in each plane. Figure 4, with \
                 10 MB of DRAM, is divided by a 64th of the scale only. Sizes of pages and \
                 entries and all times of the drive stay."
            }
        }
    }
}

/// Returns all experiments of a paper, in its order, and the one on its surviving conclusions.
#[must_use]
pub fn experiments(paper: Paper) -> Vec<Box<dyn Experiment>> {
    let mut all = match paper {
        Paper::BufferHash => bufferhash::experiments(),
        Paper::SliceHash => slicehash::experiments(),
        Paper::Cascade => cascade::experiments(),
        Paper::Counting => counting::experiments(),
        Paper::Rhik => rhik::experiments(),
    };
    all.push(Box::new(conclusions::Conclusions(paper)));
    all
}
