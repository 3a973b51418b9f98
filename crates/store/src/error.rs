//! What can go wrong in a volume, with the place and the remedy.

use nandex_device::PageId;

/// The result of a store operation.
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong in a volume.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The device failed.
    #[error(transparent)]
    Device(#[from] nandex_device::Error),
    /// Bytes on flash are not what was written there.
    #[error(
        "{what} at {page} is damaged: expected {expected}, found {found}; run `nandex check` on the \
         volume to see how far the damage reaches, and restore the volume from a copy, or write \
         what is whole of a table with `nandex dump --skip-damaged`"
    )]
    Corrupt {
        /// What should have been there.
        what: &'static str,
        /// Where.
        page: PageId,
        /// What was expected.
        expected: String,
        /// What was found.
        found: String,
    },
    /// The file is no nandex volume.
    #[error("not a nandex volume: {reason}; check the path, or create a volume there first")]
    Foreign {
        /// What its first pages hold.
        reason: String,
    },
    /// The format of the volume is unknown to this build.
    #[error(
        "the volume has format version {found}, and this nandex reads version {supported}; open it \
         with the nandex that wrote it"
    )]
    Version {
        /// The volume's version.
        found: u16,
        /// The one that this build reads.
        supported: u16,
    },
    /// The superblock is older than something else on the volume, which only a drive that loses writes leaves.
    #[error(
        "the volume's superblock is stale: it is generation {found}, and the {what} at {page} was \
         written after generation {newest}; the drive has lost the newer ones, so structures and \
         updates since may be missing; restore the volume from a copy, or open the older state \
         with --older-state (VolumeOpenOptions::stale) and take from it what is there"
    )]
    Stale {
        /// The generation of the superblock.
        found: u64,
        /// A generation that was durable.
        newest: u64,
        /// What proves that.
        what: &'static str,
        /// Where.
        page: PageId,
    },
    /// The volume is shorter than its superblock says.
    #[error(
        "the volume is truncated: it needs {expected_pages} pages of 4096 bytes, the device has \
         {found_pages}; restore the missing end from a copy"
    )]
    Truncated {
        /// Pages the superblock counts.
        expected_pages: u64,
        /// Pages there are.
        found_pages: u64,
    },
    /// An earlier write or sync failed; nothing more is written until the volume is opened again.
    #[error(
        "the volume refuses writes because an earlier one failed ({cause}); drop it, mend the cause \
         and open it again: everything acknowledged as durable is still there"
    )]
    Poisoned {
        /// The first failure.
        cause: String,
    },
    /// An update of a volume that was opened to be read.
    #[error("the volume is open to be read only; open it to be written to change it")]
    ReadOnly,
    /// A configuration that cannot work.
    #[error("{field}: {reason}")]
    Config {
        /// Which field of the configuration.
        field: &'static str,
        /// What is wrong with it, and what would do.
        reason: String,
    },
    /// No structure of that name.
    #[error("the volume holds no structure named {name:?}; it holds {found}")]
    NoSuchStructure {
        /// The name asked for.
        name: String,
        /// The existing names.
        found: String,
    },
    /// A structure of that name is there already.
    #[error("the volume holds a structure named {name:?} already; open it, or choose another name")]
    Exists {
        /// The name asked for.
        name: String,
    },
    /// A structure of that name is there, and of another kind.
    #[error("the structure {name:?} is a {found}, not a {expected}")]
    Kind {
        /// The name asked for.
        name: String,
        /// The kind asked for.
        expected: String,
        /// The kind it is.
        found: String,
    },
    /// A structure is open already through another handle.
    #[error("the structure {name:?} is open already; use that handle, or close it first")]
    Busy {
        /// The name asked for.
        name: String,
    },
    /// The write-ahead log has no space, because something keeps its tail from moving.
    #[error("the write-ahead log is full ({log_bytes} bytes): {reason}")]
    LogFull {
        /// The log's size.
        log_bytes: u64,
        /// What keeps its tail, and what to do.
        reason: String,
    },
    /// More entries than the pages of a run hold.
    #[error(
        "the run's {pages} pages are full and not all entries are in it; write it again with more pages"
    )]
    RunFull {
        /// Its pages, spare ones included.
        pages: u64,
    },
    /// The volume's log is on another device, which was not given or belongs to another volume.
    #[error("the write-ahead log of this volume is on a device of its own: {reason}")]
    LogDevice {
        /// What is wrong with it.
        reason: String,
    },
}

impl Error {
    /// A [`Error::Corrupt`] with displayable values.
    pub fn corrupt(
        what: &'static str,
        page: PageId,
        expected: impl std::fmt::Display,
        found: impl std::fmt::Display,
    ) -> Self {
        Self::Corrupt { what, page, expected: expected.to_string(), found: found.to_string() }
    }

    /// A [`Error::Config`].
    pub fn config(field: &'static str, reason: impl std::fmt::Display) -> Self {
        Self::Config { field, reason: reason.to_string() }
    }
}
