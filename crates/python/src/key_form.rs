//! The stored form of a counter's keys.

use nandex::Error;
use nandex::counting::Keys;
use pyo3::prelude::*;

use crate::batch::Slice;
use crate::error::Raised;
use crate::number::integer;

/// The longest keys that a counter can be made for, in bytes.
pub const LONGEST_MAX: u8 = nandex::counting::KEY_BYTES_MAX as u8 - 1;

/// The stored form of keys: padded with zeros, then their length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyForm {
    longest: u8,
}

impl KeyForm {
    /// Creates the form for keys of at most this many bytes, as [`longest_of`] reads them.
    pub fn new(longest: u8) -> Self {
        Self { longest }
    }

    /// Returns the kind of keys that the table stores.
    pub fn keys(self) -> Keys {
        Keys::Whole(self.longest + 1)
    }

    /// The bytes of a stored key.
    pub fn width(self) -> usize {
        usize::from(self.longest) + 1
    }

    /// Appends a key as it is stored.
    ///
    /// # Errors
    /// Fails for a key that is too long.
    pub fn store(self, key: &[u8], stored: &mut Vec<u8>) -> nandex::Result<()> {
        let Some(zeros) = usize::from(self.longest).checked_sub(key.len()) else {
            return Err(Error::TooLong {
                what: "key",
                limit: self.longest.into(),
                found: key.len() as u64,
                remedy: self.remedy(),
            });
        };
        stored.extend_from_slice(key);
        stored.resize(stored.len() + zeros, 0);
        stored.push(key.len() as u8);
        Ok(())
    }

    fn remedy(self) -> &'static str {
        match self.longest {
            LONGEST_MAX => {
                "no counter takes longer ones; count a digest of the key, such as hashlib.blake2b(key, \
                 digest_size=16).digest()"
            }
            _ => {
                "make the counter with a larger `longest`, of 31 at most, or count a digest of the key"
            }
        }
    }

    /// The length of the longest key, in bytes.
    pub fn longest(self) -> u8 {
        self.longest
    }

    /// Returns the form of the keys of an existing counter.
    ///
    /// # Errors
    /// Fails for another length than the one that was asked for, and for keys that are not stored whole.
    pub fn of_existing(name: &str, keys: Keys, asked: Option<u8>) -> PyResult<Self> {
        let Keys::Whole(width @ 2..) = keys else {
            return Err(Raised::Unsupported.new(format!(
                "counter {name:?} stores fingerprints of its keys, which Python cannot list; a program that uses the \
                 library made it, and reads it"
            )));
        };
        let longest = width - 1;
        match asked.filter(|asked| *asked != longest) {
            None => Ok(Self { longest }),
            Some(asked) => Err(Raised::Config.new(format!(
                "longest: counter {name:?} exists with keys of up to {longest} bytes, and was asked for with {asked}; \
                 leave `longest` out, or choose another name"
            ))),
        }
    }

    /// Returns a key as it is stored.
    ///
    /// # Errors
    /// Fails for a key that is too long.
    pub fn stored(self, key: &[u8]) -> nandex::Result<Vec<u8>> {
        let mut stored = Vec::with_capacity(self.width());
        self.store(key, &mut stored).map(|()| stored)
    }

    /// Stores all keys, one after another.
    ///
    /// # Errors
    /// Fails for a key that is too long.
    pub fn store_all(self, keys: &Slice<'_>) -> nandex::Result<Vec<u8>> {
        let mut stored = Vec::with_capacity(keys.len() * self.width());
        keys.all().into_iter().try_for_each(|key| self.store(key, &mut stored))?;
        Ok(stored)
    }

    /// Stores all keys; in place of each key that is too long it stores one that the table cannot contain.
    pub fn store_all_or_none(self, keys: &Slice<'_>) -> Vec<u8> {
        let mut stored = Vec::with_capacity(keys.len() * self.width());
        for key in keys.all() {
            if self.store(key, &mut stored).is_err() {
                stored.resize(stored.len() + self.width(), u8::MAX);
            }
        }
        stored
    }

    /// Returns the original key of a stored one.
    pub fn key_of(self, stored: &[u8]) -> &[u8] {
        let len = stored.last().map_or(0, |len| usize::from(*len));
        stored.get(..len).unwrap_or(stored)
    }
}

/// Returns the length of the longest key, in bytes.
///
/// # Errors
/// Fails for a length that the counting table does not take.
pub fn longest_of(given: &Bound<'_, PyAny>) -> PyResult<u8> {
    integer(given, "longest", 1..=LONGEST_MAX)
}
