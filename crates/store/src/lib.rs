//! The crash-safe substrate of all nandex structures.
#![forbid(unsafe_code)]

pub mod bisect;
pub mod buffer;
pub mod bytes;
pub mod check;
pub mod checkpoint;
pub mod entries;
mod error;
pub mod fingerprint;
pub mod generation;
pub mod hash;
mod io_chunks;
mod kept_geometry;
pub mod log;
pub mod mutants;
pub mod page;
pub mod pages;
mod poison;
pub mod proven;
mod read_ahead;
pub mod reads;
pub mod records;
pub mod ring;
pub mod run;
pub mod schedule;
pub mod shadow;
pub mod slice;
pub mod space;
pub mod superblock;
mod timer;
pub mod values;
mod volume;
mod when_full;
mod workers;

pub use error::{Error, Result};
pub use io_chunks::IoChunks;
pub use log::{Durability, Log, Lsn};
pub use page::StructureId;
pub use poison::{PanicGuard, Poison};
pub use read_ahead::{PageRun, ReadAhead};
pub use timer::Timer;
pub use volume::{
    Captured, Checkpointed, Completion, Holds, Replacement, Shutdown, StaleSuperblock, Structure,
    StructureInfo, Threads, UNFINISHED_KIND, Volume, VolumeDevices, VolumeOpenOptions,
    VolumeOptions, VolumeStats, copy_closed, holds, is_part_of, is_replacement, part_name,
    remove_unfinished, superblock_generation,
};
pub use when_full::WhenFull;
pub use workers::{Asker, BackgroundWork, is_background_thread};
