//! The errors of an index, each with its place and remedy.

use crate::model::text::bytes;

/// The result of an index operation.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of an index.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The volume failed, or holds something unexpected.
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
        /// The bytes that the table takes.
        expected: usize,
        /// The bytes that were passed.
        found: usize,
    },
    /// The table is full and its policy is to reject inserts rather than evict.
    #[error(
        "the table is full: {entries} entries on {} of flash, and its policy is to reject inserts rather than evict; create it again with more entries, or choose an eviction policy",
        bytes(*flash_bytes)
    )]
    Full {
        /// The entries in it.
        entries: u64,
        /// The flash that it may use.
        flash_bytes: u64,
    },
    /// A growing table has no space for its next generation.
    #[error("the table cannot grow: it holds {entries} entries, and {reason}")]
    GrowthStopped {
        /// The entries in it.
        entries: u64,
        /// The missing resource, and the remedy.
        reason: String,
    },
    /// A key or a value is longer than a table of large values takes.
    #[error(
        "a {what} of {found} bytes: this table takes {what}s of at most {limit} bytes here; {remedy}"
    )]
    TooLong {
        /// `key`, `value`, or another item that is too long.
        what: &'static str,
        /// The bytes that the table takes.
        limit: u64,
        /// The bytes that were passed.
        found: u64,
        /// The remedy.
        remedy: &'static str,
    },
    /// The value log is full, little of it is garbage, and its policy forbids overwriting.
    #[error(
        "the value log is full: {} of records are in use on {} of flash, and its policy is to keep everything; remove some, or create it again with more segments, or with a policy that overwrites the oldest",
        bytes(*live_bytes),
        bytes(*flash_bytes)
    )]
    ValuesFull {
        /// The bytes of records that are still referenced.
        live_bytes: u64,
        /// The flash that it may use.
        flash_bytes: u64,
    },
    /// A filter in RAM is full.
    #[error("the filter is full: {entries} of its {slots} slots are in use, {reason}")]
    FilterFull {
        /// The slots in use.
        entries: u64,
        /// The slots in total.
        slots: u64,
        /// The limit that was exceeded, and the remedy.
        reason: String,
    },
    /// A filter without tombstones cannot subtract what was not added.
    #[error(
        "{amount} cannot be added to a count of {count}: this filter keeps no counts below zero; subtract only what was added, or create the filter with signed counts"
    )]
    NotThere {
        /// The count of the fingerprint.
        count: i64,
        /// The amount that the caller tried to add.
        amount: i64,
    },
    /// A count would exceed 63 bits.
    #[error(
        "{amount} cannot be added to a count of {count}: counts go from -(2^63 - 1) to 2^63 - 1; add less, or count under several keys"
    )]
    CountRange {
        /// The current count.
        count: i64,
        /// The amount that the caller tried to add.
        amount: i64,
    },
    /// A saved filter's bytes differ from what was saved.
    #[error(
        "the saved filter is damaged: expected {expected}, found {found}; restore it from a copy, or build it again from the keys"
    )]
    FilterDamaged {
        /// The expected content.
        expected: String,
        /// The content that was found.
        found: String,
    },
    /// A filter holds as many keys as it was made for, and its policy is to keep its error rate.
    #[error(
        "the filter is full: it was made for {keys} keys and holds {entries}, and its policy is to keep its error rate; make one for more keys, or let it grow"
    )]
    KeysFull {
        /// The keys in it.
        entries: u64,
        /// The keys that it was made for.
        keys: u64,
    },
    /// The filter does not support deletes.
    #[error("a {structure} deletes no keys: {reason}")]
    NoDeletes {
        /// The kind of filter.
        structure: &'static str,
        /// The reason, and the remedy.
        reason: &'static str,
    },
    /// A watcher has cancelled a long operation.
    #[error("cancelled by the caller; completed work is kept")]
    Stopped,
    /// The structure needs more RAM. The reason states the least that is enough, if that is known.
    #[error("{field}: {reason}")]
    TooLittleRam {
        /// The name of the setting that limits the RAM.
        field: &'static str,
        /// The current limit, and the RAM that is needed.
        reason: String,
    },
    /// The write-ahead log is too short for the structure.
    #[error("{field}: {reason}")]
    ShortLog {
        /// The name of the setting for its length.
        field: &'static str,
        /// The current length, and the length that is needed.
        reason: String,
    },
    /// A configuration cannot work.
    #[error("{field}: {reason}")]
    Config {
        /// The field of the configuration.
        field: &'static str,
        /// The problem, and what would work.
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

    /// Checks the width of a key or value.
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

/// Formats an error and its causes in one line, without repetitions: for programs that report errors of several crates.
#[must_use]
pub fn words(error: &(dyn std::error::Error + 'static)) -> String {
    let mut line = String::new();
    let causes = std::iter::successors(Some(error), |error| error.source());
    for cause in causes.map(ToString::to_string) {
        if !line.contains(&cause) {
            let colon = if line.is_empty() { "" } else { ": " };
            line.push_str(&format!("{colon}{cause}"));
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(thiserror::Error, Debug)]
    #[error("{text}")]
    struct Outer {
        text: String,
        source: Error,
    }

    #[test]
    fn a_cause_is_not_said_twice() {
        let full = || Error::Full { entries: 7, flash_bytes: 4096 };
        let outer = |text: String| words(&Outer { text, source: full() });
        let expected = format!("cannot load: {}", full());
        assert_eq!(outer("cannot load".into()), expected);
        assert_eq!(outer(expected.clone()), expected);
    }
}
