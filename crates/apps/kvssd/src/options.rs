//! Options of commands, with the specification's numbers.

use crate::{Error, Result};

/// The handling of existing and absent keys by a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum StoreKind {
    /// Overwrites the value, or creates the pair.
    #[default]
    Post = 0,
    /// Overwrites the value; fails if the key is absent.
    UpdateOnly = 1,
    /// Creates the pair; fails if the key exists.
    NoOverwrite = 2,
    /// Appends to the value, or creates the pair.
    Append = 3,
}

impl StoreKind {
    /// Returns the kind of this number.
    ///
    /// # Errors
    /// [`Error::Option`] for any other.
    pub fn from_number(number: u32) -> Result<Self> {
        let kinds = [Self::Post, Self::UpdateOnly, Self::NoOverwrite, Self::Append];
        let found = kinds.into_iter().find(|kind| *kind as u32 == number);
        found.ok_or_else(|| Error::Option {
            what: "store option",
            found: number.to_string(),
            choices: "0 post, 1 update only, 2 no overwrite, 3 append",
        })
    }
}

/// The other pairs that a pair belongs to, for a drive that places them together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Association {
    /// None.
    #[default]
    None,
    /// Those of a stream. This drive writes all pairs in one order, and rejects it.
    Stream(u16),
}

/// Options of a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StoreOptions {
    /// The handling of an existing key.
    pub kind: StoreKind,
    /// The pairs that it belongs to.
    pub association: Association,
}

impl StoreOptions {
    pub(crate) fn check(self) -> Result<()> {
        match self.association {
            Association::None => Ok(()),
            Association::Stream(stream) => Err(Error::Option {
                what: "association",
                found: format!("stream {stream}"),
                choices: "no streams",
            }),
        }
    }
}

impl From<StoreKind> for StoreOptions {
    fn from(kind: StoreKind) -> Self {
        Self { kind, association: Association::None }
    }
}

/// Whether a retrieved pair is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Afterwards {
    /// Keeps the pair.
    #[default]
    Keep,
    /// Deletes the pair when it was retrieved, atomically for other users.
    Delete,
}

/// Options of a retrieval.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RetrieveOptions {
    /// The first byte to retrieve: a multiple of the drive's unit of offsets.
    pub offset: u64,
    /// The most bytes to retrieve; `None` for all.
    pub length: Option<u64>,
    /// Whether the pair is kept.
    pub afterwards: Afterwards,
}

/// The handling of a deletion of an absent key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DeleteMissing {
    /// Succeeds.
    #[default]
    Ignore,
    /// Fails.
    Refuse,
}

/// The order of keys in a key space.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum KeyOrder {
    /// None.
    #[default]
    None = 0,
    /// Ascending. A hash index does not have it.
    Ascend = 1,
    /// Descending. A hash index does not have it.
    Descend = 2,
}

impl KeyOrder {
    pub(crate) fn check(self) -> Result<()> {
        match self {
            Self::None => Ok(()),
            Self::Ascend | Self::Descend => Err(Error::Option {
                what: "key order",
                found: format!("{self:?}").to_lowercase(),
                choices: "no order of keys: its index is by hashes",
            }),
        }
    }
}

/// A value, or the requested part of it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Retrieved {
    /// The bytes from the offset on.
    pub bytes: Vec<u8>,
    /// The bytes of the whole value.
    pub value_bytes: u64,
}

impl RetrieveOptions {
    pub(crate) fn check(self, unit: u32) -> Result<()> {
        let unit = u64::from(unit);
        if self.offset.is_multiple_of(unit) {
            return Ok(());
        }
        Err(Error::Misaligned { offset: self.offset, unit })
    }

    /// Returns the end of the requested part.
    pub(crate) fn end(self) -> u64 {
        self.length.map_or(u64::MAX, |length| self.offset.saturating_add(length))
    }

    /// Fails for an offset past the end of a value of `value_bytes` bytes.
    pub(crate) fn check_offset(self, value_bytes: u64) -> Result<()> {
        if self.offset == 0 || self.offset < value_bytes {
            return Ok(());
        }
        Err(Error::Offset { offset: self.offset, value_bytes })
    }

    /// Returns the requested part of a value.
    ///
    /// # Errors
    /// An offset past its end.
    pub(crate) fn of(self, value: &[u8]) -> Result<Retrieved> {
        let value_bytes = value.len() as u64;
        self.check_offset(value_bytes)?;
        let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(value.len());
        let bytes = value[place(self.offset)..place(self.end())].to_vec();
        Ok(Retrieved { bytes, value_bytes })
    }
}
