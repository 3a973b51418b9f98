//! The list of key spaces: their names, limits and counts, and its encoding in the drive.
//!
//! Pairs of all key spaces share one table of large values. The key of a pair begins with the number of its key space;
//! number 0 is the drive's own. Closing writes the counts; the first update of an opening marks them as outdated, and
//! an opening that finds them outdated counts the pairs.

use std::collections::BTreeMap;

use nandex::raw::device::PageId;
use nandex::raw::large::format::{ENTRY_HEADER_BYTES, HEADER_BYTES};
use nandex::raw::store::bytes::Reader;
use nandex::raw::store::values::format::RECORD_HEADER_BYTES;

use crate::{Config, Error, Result};

/// The number of bytes of a key before the caller's: the number of its key space.
pub(crate) const SPACE_BYTES: usize = 2;

/// The number of first bytes of a caller's key that identify its group.
pub(crate) const PREFIX_BYTES: usize = 4;

/// The number of bytes of a pair in the value log, in addition to the caller's key and value.
pub(crate) const PAIR_HEADER_BYTES: u64 =
    (RECORD_HEADER_BYTES + HEADER_BYTES + ENTRY_HEADER_BYTES + SPACE_BYTES) as u64;

/// The key of the list of key spaces.
pub(crate) const CATALOG_KEY: &[u8] = b"\0\0spaces";

/// The key of the configuration.
pub(crate) const CONFIG_KEY: &[u8] = b"\0\0config";

/// The longest name, in bytes.
pub(crate) const NAME_BYTES_MAX: usize = 255;

const VERSION: u8 = 1;

/// The number of a key space.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct SpaceId(pub(crate) u16);

impl SpaceId {
    /// Returns the key of a pair of this key space.
    pub(crate) fn key(self, key: &[u8]) -> Vec<u8> {
        [&self.0.to_be_bytes()[..], key].concat()
    }

    /// Returns the first bytes of all its pairs' keys, and so of their fingerprints.
    pub(crate) fn first_bytes(self) -> [u8; SPACE_BYTES] {
        self.0.to_be_bytes()
    }

    /// Returns the key space of a stored key, and the caller's key.
    pub(crate) fn of(stored: &[u8]) -> Option<(Self, &[u8])> {
        let (number, key) = stored.split_first_chunk::<SPACE_BYTES>()?;
        Some((Self(u16::from_be_bytes(*number)), key))
    }
}

/// The space that pairs take.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// The number of pairs.
    pub pairs: u64,
    /// The bytes of their keys.
    pub key_bytes: u64,
    /// The bytes of their values.
    pub value_bytes: u64,
}

impl Usage {
    /// Returns the usage of one pair of these lengths.
    #[must_use]
    pub fn pair(key_bytes: u64, value_bytes: u64) -> Self {
        Self { pairs: 1, key_bytes, value_bytes }
    }

    /// Returns the bytes of keys and values.
    #[must_use]
    pub fn logical_bytes(&self) -> u64 {
        self.key_bytes + self.value_bytes
    }

    /// Returns the same with the additional bytes of each pair on flash.
    #[must_use]
    pub fn stored_bytes(&self) -> u64 {
        self.logical_bytes() + self.pairs * PAIR_HEADER_BYTES
    }

    pub(crate) fn add(&mut self, more: Self) {
        self.pairs += more.pairs;
        self.key_bytes += more.key_bytes;
        self.value_bytes += more.value_bytes;
    }

    /// Subtracts a usage. Counts should never go below 0; they stop there.
    pub(crate) fn subtract(&mut self, less: Self) {
        self.pairs = self.pairs.saturating_sub(less.pairs);
        self.key_bytes = self.key_bytes.saturating_sub(less.key_bytes);
        self.value_bytes = self.value_bytes.saturating_sub(less.value_bytes);
    }
}

/// A key space.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Space {
    pub(crate) name: String,
    /// The most bytes of keys and values; 0 for no limit.
    pub(crate) limit_bytes: u64,
    pub(crate) usage: Usage,
    /// Whether it is being deleted; then users no longer see its name.
    pub(crate) is_deleting: bool,
    /// The opening that a handle has; not stored.
    pub(crate) opened_as: Option<u64>,
}

/// All key spaces.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Catalog {
    pub(crate) spaces: BTreeMap<SpaceId, Space>,
    /// Whether the counts are those of the pairs on flash.
    pub(crate) is_counted: bool,
}

impl Catalog {
    /// Returns the key space of this name that users see.
    pub(crate) fn find(&self, name: &str) -> Result<SpaceId> {
        let mut visible = self.visible();
        let found = visible.find(|(_, space)| space.name == name).map(|(id, _)| id);
        found.ok_or_else(|| Error::NoSpace { name: name.to_owned() })
    }

    /// Returns the key spaces that users see, in the order of their numbers.
    pub(crate) fn visible(&self) -> impl Iterator<Item = (SpaceId, &Space)> {
        let all = self.spaces.iter().map(|(id, space)| (*id, space));
        all.filter(|(_, space)| !space.is_deleting)
    }

    /// Returns the smallest number that no key space has.
    pub(crate) fn free_id(&self) -> SpaceId {
        let mut id = 1;
        while self.spaces.contains_key(&SpaceId(id)) {
            id += 1;
        }
        SpaceId(id)
    }

    /// Returns the usage of all pairs.
    pub(crate) fn usage(&self) -> Usage {
        let mut sum = Usage::default();
        self.spaces.values().for_each(|space| sum.add(space.usage));
        sum
    }

    /// Returns the sum of the key spaces' limits in bytes.
    pub(crate) fn limits_bytes(&self) -> u64 {
        self.spaces.values().fold(0, |sum, space| sum.saturating_add(space.limit_bytes))
    }

    /// Encodes the list, as docs/reference/format.md draws it.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let count = u16::try_from(self.spaces.len()).expect("at most 1,024 key spaces");
        let mut out = vec![VERSION, u8::from(self.is_counted)];
        out.extend_from_slice(&count.to_le_bytes());
        for (id, space) in &self.spaces {
            let Usage { pairs, key_bytes, value_bytes } = space.usage;
            out.extend_from_slice(&id.0.to_le_bytes());
            let name_bytes = u8::try_from(space.name.len()).expect("at most 255 bytes");
            out.extend_from_slice(&[u8::from(space.is_deleting), name_bytes]);
            for number in [space.limit_bytes, pairs, key_bytes, value_bytes] {
                out.extend_from_slice(&number.to_le_bytes());
            }
            out.extend_from_slice(space.name.as_bytes());
        }
        out
    }

    /// Decodes a list from bytes that may be anything.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        decode(bytes, "list of key spaces", |reader| {
            let is_counted = reader.u8()? != 0;
            let mut spaces = BTreeMap::new();
            for _ in 0..reader.u16()? {
                let (id, space) = decode_space(reader)?;
                if id == SpaceId(0) || spaces.insert(id, space).is_some() {
                    return Err(reader.refuse("a number for each key space", id.0));
                }
            }
            Ok(Self { spaces, is_counted })
        })
    }
}

fn decode_space(reader: &mut Reader<'_>) -> nandex::raw::store::Result<(SpaceId, Space)> {
    let (id, is_deleting) = (SpaceId(reader.u16()?), reader.u8()? != 0);
    let name_bytes = usize::from(reader.u8()?);
    let (limit_bytes, pairs) = (reader.u64()?, reader.u64()?);
    let (key_bytes, value_bytes) = (reader.u64()?, reader.u64()?);
    let name = reader.take(name_bytes)?;
    let name = str::from_utf8(name).map_err(|error| reader.refuse("a name in UTF-8", error))?;
    let (name, usage) = (name.to_owned(), Usage { pairs, key_bytes, value_bytes });
    Ok((id, Space { name, limit_bytes, usage, is_deleting, opened_as: None }))
}

/// Encodes a configuration, as docs/reference/format.md draws it.
pub(crate) fn encode_config(config: &Config) -> Vec<u8> {
    let mut out = vec![VERSION, config.iterators_max];
    for number in [config.key_bytes_min, config.key_bytes_max, config.spaces_max] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    for number in [config.value_bytes_max, config.offset_unit] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    for number in [config.capacity_bytes, config.pairs_max] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out
}

/// Decodes a configuration from bytes that may be anything.
///
/// # Errors
/// [`Error::Damaged`], [`Error::Config`] for impossible limits.
pub(crate) fn decode_config(bytes: &[u8]) -> Result<Config> {
    let config = decode(bytes, "configuration", |reader| {
        let iterators_max = reader.u8()?;
        let (key_bytes_min, key_bytes_max) = (reader.u16()?, reader.u16()?);
        let spaces_max = reader.u16()?;
        let (value_bytes_max, offset_unit) = (reader.u32()?, reader.u32()?);
        let (capacity_bytes, pairs_max) = (reader.u64()?, reader.u64()?);
        Ok(Config {
            capacity_bytes,
            pairs_max,
            key_bytes_min,
            key_bytes_max,
            value_bytes_max,
            offset_unit,
            spaces_max,
            iterators_max,
        })
    })?;
    config.validate().map(|()| config)
}

/// Decodes bytes that begin with a version and end where `read` ends.
fn decode<T>(
    bytes: &[u8],
    what: &'static str,
    read: impl FnOnce(&mut Reader<'_>) -> nandex::raw::store::Result<T>,
) -> Result<T> {
    let damaged = |expected: &str, found: String| {
        Err(Error::Damaged { what, expected: expected.to_owned(), found })
    };
    let mut reader = Reader::new(bytes, what, PageId(0));
    match reader.u8() {
        Ok(VERSION) => {}
        Ok(version) => return damaged("version 1", format!("version {version}")),
        Err(_) => return damaged("version 1", "no bytes".to_owned()),
    }
    match read(&mut reader) {
        Ok(decoded) if reader.left() == 0 => Ok(decoded),
        Ok(_) => damaged("its end", format!("{} bytes more", reader.left())),
        Err(error) => damaged("its fields", error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalog() -> Catalog {
        let space = |name: &str, is_deleting| Space {
            name: name.to_owned(),
            limit_bytes: 7,
            usage: Usage { pairs: 1, key_bytes: 2, value_bytes: 3 },
            is_deleting,
            opened_as: None,
        };
        let spaces = [(SpaceId(1), space("one", false)), (SpaceId(300), space("two", true))];
        Catalog { spaces: spaces.into(), is_counted: true }
    }

    #[test]
    fn a_list_is_read_back_and_every_cut_of_it_is_refused() {
        let bytes = catalog().encode();
        assert_eq!(Catalog::decode(&bytes).unwrap(), catalog());
        for length in 0..bytes.len() {
            assert!(Catalog::decode(&bytes[..length]).is_err(), "{length}");
        }
        assert!(Catalog::decode(&[&bytes[..], &[0]].concat()).is_err());
    }

    #[test]
    fn a_configuration_is_read_back_and_every_cut_of_it_is_refused() {
        let bytes = encode_config(&Config::tiny());
        assert_eq!(decode_config(&bytes).unwrap(), Config::tiny());
        assert!((0..bytes.len()).all(|length| decode_config(&bytes[..length]).is_err()));
        let other = [&[9], &bytes[1..]].concat();
        assert!(decode_config(&other).unwrap_err().to_string().contains("version 9"));
    }

    /// The bytes on flash may only change with the version.
    #[test]
    fn the_bytes_are_those_of_version_1() {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let config = "0103\
            0100ff000400\
            0020000004000000\
            00000400000000009001000000000000";
        assert_eq!(hex(&encode_config(&Config::tiny())), config);
        let spaces = "01010200\
            010000030700000000000000010000000000000002000000000000000300000000000000\
            6f6e65\
            2c0101030700000000000000010000000000000002000000000000000300000000000000\
            74776f";
        assert_eq!(hex(&catalog().encode()), spaces);
    }

    #[test]
    fn numbers_are_given_again_only_when_nobody_has_them() {
        let mut catalog = catalog();
        assert_eq!(catalog.free_id(), SpaceId(2));
        assert!(catalog.find("two").is_err(), "it is being deleted");
        catalog.spaces.remove(&SpaceId(1));
        assert_eq!(catalog.free_id(), SpaceId(1));
    }
}
