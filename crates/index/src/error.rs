//! What can go wrong in an index, with the place and the remedy.

use crate::model::text::bytes;

/// The result of an index operation.
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong in an index.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The volume failed, or holds what it should not.
    #[error(transparent)]
    Store(#[from] nandex_store::Error),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] nandex_device::Error),
    /// A key or a value of another width than the table was created with.
    #[error("a {what} of {found} bytes: this table was created with {what}s of {expected} bytes")]
    Width {
        /// `key` or `value`.
        what: &'static str,
        /// Bytes the table takes.
        expected: usize,
        /// Bytes it was given.
        found: usize,
    },
    /// The table is full and its policy is to refuse rather than evict.
    #[error(
        "the table is full: {entries} entries on {} of flash, and its policy is to refuse rather than evict; create it again with more entries, or choose an eviction policy",
        bytes(*flash_bytes)
    )]
    Full {
        /// Entries in it.
        entries: u64,
        /// Flash it may use.
        flash_bytes: u64,
    },
    /// A growing table that has no space for its next generation.
    #[error("the table cannot grow: it holds {entries} entries, and {reason}")]
    GrowthStopped {
        /// Entries in it.
        entries: u64,
        /// What it lacks, and what to do.
        reason: String,
    },
    /// A key or a value longer than a table of large values takes.
    #[error(
        "a {what} of {found} bytes: this table takes {what}s of at most {limit} bytes here; {remedy}"
    )]
    TooLong {
        /// `key`, `value`, or another thing that is too much.
        what: &'static str,
        /// Bytes the table takes.
        limit: u64,
        /// Bytes it was given.
        found: u64,
        /// What to do.
        remedy: &'static str,
    },
    /// The value log is full, little of it is garbage, and nothing may be overwritten.
    #[error(
        "the value log is full: {} of records are in use on {} of flash, and it keeps everything; remove some, or create it again with more segments, or with leave to overwrite the oldest",
        bytes(*live_bytes),
        bytes(*flash_bytes)
    )]
    ValuesFull {
        /// Bytes of records that are referred to.
        live_bytes: u64,
        /// Flash it may use.
        flash_bytes: u64,
    },
    /// A filter in RAM is full.
    #[error("the filter is full: {entries} of its {slots} slots are in use, {reason}")]
    FilterFull {
        /// Slots in use.
        entries: u64,
        /// Slots there are.
        slots: u64,
        /// What is too much, and what to do.
        reason: String,
    },
    /// A filter without tombstones cannot subtract what is not there.
    #[error(
        "{amount} cannot be added to a count of {count}: this filter keeps no counts below zero; take away only what was added, or make the filter with signed counts"
    )]
    NotThere {
        /// How often the fingerprint is there.
        count: i64,
        /// What the caller wanted to add.
        amount: i64,
    },
    /// A count would be past 63 bits.
    #[error(
        "{amount} cannot be added to a count of {count}: counts go from -(2^63 - 1) to 2^63 - 1; add less, or count under several keys"
    )]
    CountRange {
        /// The count there is.
        count: i64,
        /// What the caller wanted to add.
        amount: i64,
    },
    /// A filter's saved bytes are not what was saved.
    #[error(
        "the saved filter is damaged: expected {expected}, found {found}; restore it from a copy, or build it again from the keys"
    )]
    FilterDamaged {
        /// What was expected.
        expected: String,
        /// What was found.
        found: String,
    },
    /// A filter holds as many keys as it was made for, and its policy is to keep its rate.
    #[error(
        "the filter holds {entries} keys, was made for {keys}, and is to refuse more rather than err more often; make one for more keys, or let it grow"
    )]
    KeysFull {
        /// Keys in it.
        entries: u64,
        /// Keys it was made for.
        keys: u64,
    },
    /// A filter that deletes no keys.
    #[error("a {structure} deletes no keys: {reason}")]
    NoDeletes {
        /// What it is.
        structure: &'static str,
        /// Why, and what to do.
        reason: &'static str,
    },
    /// Whoever watched a long operation has stopped it.
    #[error("stopped before its end: whoever watched it asked for that; what was done stays")]
    Stopped,
    /// Less RAM than the structure needs. The reason says the least that is enough, where that is known.
    #[error("{field}: {reason}")]
    TooLittleRam {
        /// What states the RAM.
        field: &'static str,
        /// How much it is, and how much is needed.
        reason: String,
    },
    /// A write-ahead log that is too short for the structure.
    #[error("{field}: {reason}")]
    ShortLog {
        /// What states its length.
        field: &'static str,
        /// How long it is, and how long it must be.
        reason: String,
    },
    /// A configuration that cannot work.
    #[error("{field}: {reason}")]
    Config {
        /// Which field of the configuration.
        field: &'static str,
        /// What is wrong with it, and what would do.
        reason: String,
    },
}

impl Error {
    /// Returns whether the device has no space.
    #[must_use]
    pub fn is_no_space(&self) -> bool {
        use nandex_device::Error::NoSpace;
        let of_device = match self {
            Self::Device(error) | Self::Store(nandex_store::Error::Device(error)) => error,
            _ => return false,
        };
        matches!(of_device, NoSpace { .. })
    }

    /// Refuses a key or value of the wrong width.
    ///
    /// # Errors
    /// [`Error::Width`].
    pub fn check_width(what: &'static str, bytes: &[u8], expected: usize) -> Result<()> {
        if bytes.len() == expected {
            return Ok(());
        }
        Err(Self::Width { what, expected, found: bytes.len() })
    }
}
