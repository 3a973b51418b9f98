//! Options of commands, with the specification's numbers.

use crate::{Error, Result};

/// What a store does with a key that is there, or is not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum StoreKind {
    /// Overwrites the value, or makes the pair.
    #[default]
    Post = 0,
    /// Overwrites the value; a key that is not there is refused.
    UpdateOnly = 1,
    /// Makes the pair; a key that is there is refused.
    NoOverwrite = 2,
    /// Appends to the value, or makes the pair.
    Append = 3,
}

impl StoreKind {
    /// The kind of that number.
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

/// Which other pairs a pair belongs to, for a drive that places them together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Association {
    /// None.
    #[default]
    None,
    /// Those of a stream. This drive writes all pairs in one order, and refuses it.
    Stream(u16),
}

/// Options of a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StoreOptions {
    /// What is done with a key that is there.
    pub kind: StoreKind,
    /// Which pairs it belongs to.
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

/// Is a retrieved pair kept?
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Afterwards {
    /// It stays.
    #[default]
    Keep,
    /// It is deleted when it was retrieved, at once for others.
    Delete,
}

/// Options of a retrieval.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RetrieveOptions {
    /// The first byte to retrieve: a multiple of the drive's unit of offsets.
    pub offset: u64,
    /// Bytes to retrieve at most; `None` for all.
    pub length: Option<u64>,
    /// Is it kept?
    pub afterwards: Afterwards,
}

/// What is said of a deletion of a key that is not there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DeleteMissing {
    /// Nothing.
    #[default]
    Ignore,
    /// That it is not there.
    Refuse,
}

/// The order of keys in a key space.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum KeyOrder {
    /// None.
    #[default]
    None = 0,
    /// Ascending. An index by hashes does not have it.
    Ascend = 1,
    /// Descending. An index by hashes does not have it.
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

/// A value, or the part of it that was asked for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Retrieved {
    /// The bytes from the offset on.
    pub bytes: Vec<u8>,
    /// Bytes of the whole value.
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

    /// The end of what is wanted.
    pub(crate) fn end(self) -> u64 {
        self.length.map_or(u64::MAX, |length| self.offset.saturating_add(length))
    }

    /// Refuses an offset behind the end of a value of that many bytes.
    pub(crate) fn check_offset(self, value_bytes: u64) -> Result<()> {
        if self.offset == 0 || self.offset < value_bytes {
            return Ok(());
        }
        Err(Error::Offset { offset: self.offset, value_bytes })
    }

    /// What is wanted of a value.
    ///
    /// # Errors
    /// An offset behind its end.
    pub(crate) fn of(self, value: &[u8]) -> Result<Retrieved> {
        let value_bytes = value.len() as u64;
        self.check_offset(value_bytes)?;
        let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(value.len());
        let bytes = value[place(self.offset)..place(self.end())].to_vec();
        Ok(Retrieved { bytes, value_bytes })
    }
}
