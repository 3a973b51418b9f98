//! The stored record of a document: its name, the decision, its pairs and its signature. See docs/reference/format.md.

use super::numbers::Hash;
use crate::{Error, Result};

/// The version of a record.
const VERSION: u8 = 1;

/// The decision on a document.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Decision {
    /// It is new.
    Kept,
    /// Its text is that of another document, by its number.
    Exact(u64),
    /// It is near a kept one.
    Near(Neighbor),
}

/// Another document by its number, and how [near](crate::measure) it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Neighbor {
    pub(super) number: u64,
    pub(super) nearness: u32,
}

/// A document.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Record {
    pub(super) decision: Decision,
    pub(super) text: Hash,
    pub(super) name: String,
    /// The near earlier documents, the nearest first.
    pub(super) pairs: Vec<Neighbor>,
    /// The bytes of its signature; none for a document without shingles, and for one of an earlier text.
    pub(super) signature: Vec<u8>,
}

/// The content of a document's record, without its signature.
#[derive(Clone, Copy, Debug)]
pub(super) struct Described<'d> {
    pub(super) decision: Decision,
    pub(super) text: &'d Hash,
    pub(super) name: &'d str,
    pub(super) pairs: &'d [Neighbor],
}

impl Described<'_> {
    /// Encodes the record, with a signature of `signature_bytes` bytes, which `put_signature` appends.
    pub(super) fn encode(
        &self,
        signature_bytes: usize,
        put_signature: impl FnOnce(&mut Vec<u8>),
    ) -> Vec<u8> {
        let (kind, neighbor) = match self.decision {
            Decision::Kept => (0, Neighbor { number: 0, nearness: 0 }),
            Decision::Exact(number) => (1, Neighbor { number, nearness: 0 }),
            Decision::Near(neighbor) => (2, neighbor),
        };
        let pairs_bytes = (1 + self.pairs.len()) * NEIGHBOR_BYTES;
        let text_bytes = self.text.len() + self.name.len() + signature_bytes;
        let mut bytes = Vec::with_capacity(2 + 8 + pairs_bytes + text_bytes);
        bytes.extend_from_slice(&[VERSION, kind]);
        put_neighbor(&mut bytes, neighbor);
        bytes.extend_from_slice(self.text);
        bytes.extend_from_slice(&(self.name.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&(self.pairs.len() as u32).to_le_bytes());
        bytes.extend_from_slice(self.name.as_bytes());
        self.pairs.iter().for_each(|pair| put_neighbor(&mut bytes, *pair));
        put_signature(&mut bytes);
        bytes
    }
}

impl Record {
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn encode(&self) -> Vec<u8> {
        let Self { decision, text, name, pairs, signature } = self;
        let document = Described { decision: *decision, text, name, pairs };
        document.encode(signature.len(), |bytes| bytes.extend_from_slice(signature))
    }

    /// Decodes a record; `number` is for the error.
    pub(super) fn decode(bytes: &[u8], number: u64) -> Result<Self> {
        let reason = || format!("the record of document {number} cannot be read");
        parsed(bytes).ok_or_else(|| Error::Contradiction { reason: reason() })
    }
}

/// The bytes of a neighbour: its number and its nearness.
const NEIGHBOR_BYTES: usize = 8 + 4;

fn put_neighbor(bytes: &mut Vec<u8>, neighbor: Neighbor) {
    bytes.extend_from_slice(&neighbor.number.to_le_bytes());
    bytes.extend_from_slice(&neighbor.nearness.to_le_bytes());
}

fn parsed(bytes: &[u8]) -> Option<Record> {
    let (&[version, kind], bytes) = bytes.split_first_chunk::<2>()?;
    let (neighbor, bytes) = take_neighbor(bytes)?;
    let decision = match (version, kind) {
        (VERSION, 0) => Decision::Kept,
        (VERSION, 1) => Decision::Exact(neighbor.number),
        (VERSION, 2) => Decision::Near(neighbor),
        _ => return None,
    };
    let (text, bytes) = bytes.split_first_chunk::<16>()?;
    let (name_bytes, bytes) = take_u32(bytes)?;
    let (pair_count, bytes) = take_u32(bytes)?;
    let (name, mut bytes) = bytes.split_at_checked(name_bytes as usize)?;
    let name = String::from_utf8(name.to_vec()).ok()?;
    let mut pairs = Vec::new();
    for _ in 0..pair_count {
        let (pair, rest) = take_neighbor(bytes)?;
        pairs.push(pair);
        bytes = rest;
    }
    Some(Record { decision, text: *text, name, pairs, signature: bytes.to_vec() })
}

fn take_neighbor(bytes: &[u8]) -> Option<(Neighbor, &[u8])> {
    let (number, bytes) = bytes.split_first_chunk()?;
    let (nearness, bytes) = take_u32(bytes)?;
    Some((Neighbor { number: u64::from_le_bytes(*number), nearness }, bytes))
}

fn take_u32(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, bytes) = bytes.split_first_chunk()?;
    Some((u32::from_le_bytes(*number), bytes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record(decision: Decision) -> Record {
        let pairs =
            vec![Neighbor { number: 7, nearness: 120 }, Neighbor { number: 3, nearness: 99 }];
        Record { decision, text: [9; 16], name: "näme".into(), pairs, signature: vec![1, 2, 3, 4] }
    }

    #[test]
    fn records_are_read_as_they_were_written_and_what_is_cut_is_an_error() {
        let near = Decision::Near(Neighbor { number: 7, nearness: 120 });
        for decision in [Decision::Kept, Decision::Exact(5), near] {
            let (record, bytes) = (record(decision), record(decision).encode());
            assert_eq!(Record::decode(&bytes, 1).unwrap(), record);
            // The signature is the rest, so its end may be cut; its length is compared where it is used.
            for length in 0..bytes.len() - record.signature.len() {
                let error = Record::decode(&bytes[..length], 8).unwrap_err().to_string();
                assert!(error.contains("the record of document 8 cannot be read"), "{error}");
            }
        }
    }

    #[test]
    fn the_bytes_are_what_the_format_says() {
        let bytes = record(Decision::Exact(5)).encode();
        assert_eq!(bytes[..14], [1, 1, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[14..30], [9; 16]);
        assert_eq!(bytes[30..38], [5, 0, 0, 0, 2, 0, 0, 0]);
        assert_eq!(bytes.len(), 38 + 5 + 2 * 12 + 4);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_record_or_an_error(
            bytes in prop::collection::vec(any::<u8>(), 0..80),
            (at, byte) in (0..71_usize, any::<u8>())
        ) {
            let _ = Record::decode(&bytes, 1);
            let mut damaged = record(Decision::Kept).encode();
            damaged[at] = byte;
            let _ = Record::decode(&damaged, 1);
        }
    }
}
