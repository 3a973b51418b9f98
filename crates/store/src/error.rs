//! The errors of a volume, each with the place and the remedy.

use nandex_device::PageId;

/// The result of a store operation.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of a volume.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The device failed.
    #[error(transparent)]
    Device(#[from] nandex_device::Error),
    /// Bytes on flash are not what was written there.
    #[error(
        "{what} at {page} is damaged: expected {expected}, found {found}; run `nandex check` on the \
         volume to see how far the damage reaches, and restore the volume from a copy, or export \
         the undamaged entries of a table with `nandex dump --skip-damaged`"
    )]
    Corrupt {
        /// The name of the damaged part.
        what: &'static str,
        /// The page.
        page: PageId,
        /// The expected value.
        expected: String,
        /// The value found.
        found: String,
    },
    /// The file is not a nandex volume.
    #[error("not a nandex volume: {reason}; check the path, or create a volume there first")]
    Foreign {
        /// The content of its first pages.
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
    /// The superblock is older than something else on the volume; only a drive that loses writes leaves this state.
    #[error(
        "the volume's superblock is stale: it is generation {found}, and the {what} at {page} was \
         written after generation {newest}; the drive has lost the newer ones, so structures and \
         updates since may be missing; restore the volume from a copy, or open the older state \
         with --older-state (VolumeOpenOptions::stale) and save what it still contains"
    )]
    Stale {
        /// The generation of the superblock.
        found: u64,
        /// A generation that was durable.
        newest: u64,
        /// The name of the part that proves that this generation was durable.
        what: &'static str,
        /// The page of that proof.
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
        "the volume refuses writes because an earlier one failed ({cause}); close it, fix the \
         cause and open it again: everything acknowledged as durable is still there"
    )]
    Poisoned {
        /// The first failure.
        cause: String,
    },
    /// An update of a volume that was opened read-only.
    #[error("the volume was opened read-only; reopen it read-write to modify it")]
    ReadOnly,
    /// An invalid configuration.
    #[error("{field}: {reason}")]
    Config {
        /// The name of the configuration field.
        field: &'static str,
        /// The fault of the value, and a value that would work.
        reason: String,
    },
    /// The volume has no structure of this name.
    #[error("the volume holds no structure named {name:?}; it holds {found}")]
    NoSuchStructure {
        /// The name asked for.
        name: String,
        /// The existing names.
        found: String,
    },
    /// A structure of this name exists already.
    #[error("the volume holds a structure named {name:?} already; open it, or choose another name")]
    Exists {
        /// The name asked for.
        name: String,
    },
    /// A structure of this name exists, but has another kind.
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
        /// The cause that keeps the tail from moving, and the remedy.
        reason: String,
    },
    /// The pages of a run cannot hold all of its entries.
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
        /// The fault, and the remedy.
        reason: String,
    },
}

impl Error {
    /// Creates an [`Error::Corrupt`] from displayable values.
    pub fn corrupt(
        what: &'static str,
        page: PageId,
        expected: impl std::fmt::Display,
        found: impl std::fmt::Display,
    ) -> Self {
        Self::Corrupt { what, page, expected: expected.to_string(), found: found.to_string() }
    }

    /// Creates an [`Error::Config`].
    pub fn config(field: &'static str, reason: impl std::fmt::Display) -> Self {
        Self::Config { field, reason: reason.to_string() }
    }
}
