//! The errors of experiments.

/// The result of a step of an experiment.
pub type Result<T> = std::result::Result<T, Error>;

/// An error that stops an experiment.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The structure under test failed.
    #[error(transparent)]
    Index(#[from] nandex::Error),
    /// No such drive can exist at this scale.
    #[error(
        "the drive {preset} cannot be made {times} times smaller: {source}; take a smaller scale"
    )]
    Drive {
        /// The preset.
        preset: &'static str,
        /// The divisor of the size.
        times: u32,
        /// The simulator's error.
        source: Box<nandex_sim::PresetError>,
    },
    /// A conclusion whose rows an experiment does not have.
    #[error("the experiment {experiment} has no number for the conclusion: {says}")]
    Conclusion {
        /// The experiment.
        experiment: String,
        /// The paper's statement.
        says: String,
    },
    /// A corpus that cannot be read or measured.
    #[error("{}: {reason}", path.display())]
    Corpus {
        /// The file or folder.
        path: std::path::PathBuf,
        /// The reason, and the remedy.
        reason: String,
    },
    /// A system that does not report the time of a thread on a processor.
    #[error("per-thread CPU time is unavailable in /proc/thread-self/schedstat: measure on Linux")]
    ThreadTime,
    /// A scale that leaves nothing to measure, or that does not fit RAM.
    #[error(
        "a table {found} times smaller than the paper's: take a power of two from {least} to {most}"
    )]
    Scale {
        /// The requested scale.
        found: u32,
        /// The largest table.
        least: u32,
        /// The smallest.
        most: u32,
    },
}

impl From<nandex::raw::store::Error> for Error {
    fn from(source: nandex::raw::store::Error) -> Self {
        Self::Index(source.into())
    }
}

impl From<nandex::raw::device::Error> for Error {
    fn from(source: nandex::raw::device::Error) -> Self {
        Self::Index(source.into())
    }
}
