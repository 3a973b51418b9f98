//! The encoding of a record: all keys of one fingerprint with their values, as drawn in docs/reference/format.md.

use nandex_device::PageId;
use nandex_store::bytes::Reader;
use nandex_store::hash::KeyHash;

use crate::Result;

/// The bytes of a fingerprint, which is a key of the table of references.
pub const FINGERPRINT_BYTES: usize = 16;

/// Bytes of a record before its entries.
pub const HEADER_BYTES: usize = FINGERPRINT_BYTES + 4;

/// Bytes of an entry before its key.
pub const ENTRY_HEADER_BYTES: usize = 8;

/// A key's hash by the volume's hash function, as the table's key.
pub type Fingerprint = [u8; FINGERPRINT_BYTES];

/// Returns the fingerprint of a key with this hash.
#[must_use]
pub fn fingerprint(hash: KeyHash) -> Fingerprint {
    let mut out = [0; FINGERPRINT_BYTES];
    out[..8].copy_from_slice(&hash.place.to_le_bytes());
    out[8..].copy_from_slice(&hash.filter.to_le_bytes());
    out
}

/// The maximum number of bytes of a key that may identify its group.
pub const GROUP_BYTES_MAX: usize = 8;

/// Returns the fingerprint of a key with this hash in a table of groups: it begins with the first `group_bytes` bytes
/// of the key, padded with zeros if the key is shorter.
#[must_use]
pub fn grouped_fingerprint(hash: KeyHash, key: &[u8], group_bytes: usize) -> Fingerprint {
    let mut out = fingerprint(hash);
    let given = key.len().min(group_bytes);
    out[..group_bytes].fill(0);
    out[..given].copy_from_slice(&key[..given]);
    out
}

/// A key and its value.
pub type Pair<'a> = (&'a [u8], &'a [u8]);

/// The contents of a record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record<'a> {
    /// The fingerprint of all its keys.
    pub fingerprint: Fingerprint,
    /// Its keys, which are all different, and their values. There is nearly always only one.
    pub pairs: Vec<Pair<'a>>,
}

impl<'a> Record<'a> {
    /// Returns the bytes of a record of these pairs.
    #[must_use]
    pub fn bytes(pairs: &[Pair<'_>]) -> u64 {
        let pair = |(key, value): &Pair<'_>| (ENTRY_HEADER_BYTES + key.len() + value.len()) as u64;
        HEADER_BYTES as u64 + pairs.iter().map(pair).sum::<u64>()
    }

    /// Encodes its headers; [`parts`](Self::parts) combines them with the keys and values.
    ///
    /// # Panics
    /// If a key or value is longer than 4 GiB, or there are 2^32 pairs or more.
    #[must_use]
    pub fn headers(&self) -> Vec<u8> {
        let number = |len: usize| u32::try_from(len).expect("keys and values are below 4 GiB");
        let mut out = self.fingerprint.to_vec();
        out.extend_from_slice(&number(self.pairs.len()).to_le_bytes());
        for (key, value) in &self.pairs {
            out.extend_from_slice(&number(key.len()).to_le_bytes());
            out.extend_from_slice(&number(value.len()).to_le_bytes());
        }
        out
    }

    /// Decodes a record from untrusted bytes; `page` is for the error.
    ///
    /// # Errors
    /// Bytes that are not a record.
    pub fn decode(bytes: &'a [u8], page: PageId) -> Result<Self> {
        let mut reader = Reader::new(bytes, "record of a large value", page);
        let mut fingerprint = [0; FINGERPRINT_BYTES];
        fingerprint.copy_from_slice(reader.take(FINGERPRINT_BYTES)?);
        let count = reader.count(ENTRY_HEADER_BYTES)?;
        let mut lengths = Vec::with_capacity(count);
        for _ in 0..count {
            lengths.push((reader.u32()? as usize, reader.u32()? as usize));
        }
        let mut pairs = Vec::with_capacity(count);
        for (key_bytes, value_bytes) in lengths {
            pairs.push((reader.take(key_bytes)?, reader.take(value_bytes)?));
        }
        if reader.left() > 0 || pairs.is_empty() {
            let found = format!("{} pairs and {} bytes more", pairs.len(), reader.left());
            return Err(reader.refuse("one pair or more and nothing behind", found).into());
        }
        Ok(Self { fingerprint, pairs })
    }

    /// Returns the value of a key.
    #[must_use]
    pub fn value(&self, key: &[u8]) -> Option<&'a [u8]> {
        self.pairs.iter().find(|(other, _)| *other == key).map(|(_, value)| *value)
    }

    /// Returns all of its bytes, in parts, with these headers.
    #[must_use]
    pub fn parts(&self, headers: &'a [u8]) -> Vec<&'a [u8]> {
        let pairs = self.pairs.iter().flat_map(|(key, value)| [*key, *value]);
        std::iter::once(headers).chain(pairs).collect()
    }
}

/// Returns whether `key` is the only key of a record, according to its first bytes.
#[must_use]
pub fn is_only_key(start: &[u8], fingerprint: &Fingerprint, key: &[u8]) -> bool {
    only_pair(start, fingerprint).is_some_and(|(found, _)| found == key)
}

/// Returns the only key of a record, and the bytes of its value, according to its first bytes; `None` if it has several
/// keys, or its key is longer than these bytes.
#[must_use]
pub fn only_pair<'s>(start: &'s [u8], fingerprint: &Fingerprint) -> Option<(&'s [u8], u32)> {
    let header = start.get(..HEADER_BYTES + ENTRY_HEADER_BYTES)?;
    let number = |at: usize| nandex_store::bytes::get_u32(header, at);
    if !header.starts_with(fingerprint) || number(FINGERPRINT_BYTES) != 1 {
        return None;
    }
    let key_bytes = number(HEADER_BYTES) as usize;
    let key = start[header.len()..].get(..key_bytes)?;
    Some((key, number(HEADER_BYTES + 4)))
}
