//! What an index keeps of a document: its name, its bucket keys, and the number that it had before.
//!
//! A record is a version of one byte, the number of an earlier document of the same name plus one or 0, a bucket key of
//! each table, and the name: all little-endian.

use nandex::{Error, Result};

/// The version of a record.
const VERSION: u8 = 1;

/// A document.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// An earlier document of the same name, which is still there.
    pub earlier: Option<u64>,
    /// A bucket key of each table.
    pub keys: Vec<u64>,
    /// What it is called.
    pub name: Vec<u8>,
}

impl Record {
    /// Its bytes.
    pub fn encode(earlier: Option<u64>, keys: &[u64], name: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(9 + 8 * keys.len() + name.len());
        bytes.push(VERSION);
        bytes.extend(earlier.map_or(0, |number| number + 1).to_le_bytes());
        bytes.extend(keys.iter().flat_map(|key| key.to_le_bytes()));
        bytes.extend_from_slice(name);
        bytes
    }

    /// Reads the record of document `number` of an index with that many tables.
    ///
    /// # Errors
    /// Bytes that are none.
    pub fn decode(bytes: &[u8], tables: usize, number: u64) -> Result<Self> {
        Self::parsed(bytes, tables).ok_or_else(|| Error::Config {
            field: "record",
            reason: format!(
                "that of document {number} has {} bytes and cannot be read; expected version {VERSION} and {tables} \
                 bucket keys; make the index again",
                bytes.len()
            ),
        })
    }

    fn parsed(bytes: &[u8], tables: usize) -> Option<Self> {
        let (version, bytes) = bytes.split_first()?;
        let (earlier, bytes) = bytes.split_first_chunk::<8>()?;
        let (keys, name) = bytes.split_at_checked(8 * tables)?;
        let (keys, _) = keys.as_chunks::<8>();
        (*version == VERSION).then(|| Self {
            earlier: u64::from_le_bytes(*earlier).checked_sub(1),
            keys: keys.iter().map(|key| u64::from_le_bytes(*key)).collect(),
            name: name.to_vec(),
        })
    }
}
