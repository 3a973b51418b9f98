//! The bytes of a rank index; see [the format](../../../../../docs/reference/format.md).

use std::ops::Range;

use crate::corpus::Section;
use crate::varint::{put_varint, varint};

/// Bytes of a document: its two lengths, and the end of its id.
pub(super) const DOCUMENT_BYTES: usize = 24;

/// The number of bytes after which a node of the tree ends.
pub(super) const NODE_BYTES: usize = 16 << 10;

/// The most bytes of a posting.
pub(super) const POSTING_BYTES_MAX: usize = 5 + 5;

/// The most bytes that a term takes in a node, in addition to its text.
pub(super) const TERM_OVERHEAD_BYTES: usize = 3 + 3 * 10;

/// Returns the bytes of the blocks of a section that is one string of bytes. A document is in one of them.
pub(super) fn block_bytes(section: Section) -> usize {
    match section {
        Section::Documents => (16 << 10) / DOCUMENT_BYTES * DOCUMENT_BYTES,
        Section::Postings | Section::Nodes | Section::Ids => 16 << 10,
    }
}

/// Appends a document that has a term: the number of documents since the last one without it, and its number of
/// occurrences.
pub(super) fn put_posting(out: &mut Vec<u8>, gap: u32, occurrences: u32) {
    let is_often = occurrences > 1;
    put_varint(out, u64::from(gap) << 1 | u64::from(is_often));
    if is_often {
        put_varint(out, u64::from(occurrences) - 2);
    }
}

/// Decodes a posting: the gap, the occurrences, and the end.
#[inline]
pub(super) fn posting(bytes: &[u8], at: usize) -> Option<(u64, u32, usize)> {
    let (number, end) = varint(bytes, at)?;
    if number & 1 == 0 {
        return Some((number >> 1, 1, end));
    }
    let (more, end) = varint(bytes, end)?;
    let occurrences = u32::try_from(more.checked_add(2)?).ok()?;
    Some((number >> 1, occurrences, end))
}

/// The data of a document in a rank index, except for its id.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct DocumentEntry {
    /// The number by which the weights of its row were divided.
    pub(super) length: f64,
    /// The root of the sum of squares of its row after that.
    pub(super) euclidean: f64,
    /// The end of its id among all ids. It begins at the end of the previous document's id.
    pub(super) id_end: u64,
}

impl DocumentEntry {
    pub(super) fn encode(&self) -> [u8; DOCUMENT_BYTES] {
        let mut bytes = [0; DOCUMENT_BYTES];
        bytes[..8].copy_from_slice(&self.length.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.euclidean.to_le_bytes());
        bytes[16..].copy_from_slice(&self.id_end.to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let ([length, euclidean, id_end], []) = bytes.as_chunks::<8>() else { return None };
        let id_end = u64::from_le_bytes(*id_end);
        let (length, euclidean) = (f64::from_le_bytes(*length), f64::from_le_bytes(*euclidean));
        let is_sound = length.is_finite() && length > 0.0 && euclidean.is_finite();
        is_sound.then_some(Self { length, euclidean, id_end })
    }
}

/// The data of a term in a leaf.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TermEntry {
    /// The number of documents of the counted index that have it.
    pub(super) documents: u64,
    /// The number of documents of the rank index that have it.
    pub(super) postings: u64,
    /// The bytes of its postings.
    pub(super) bytes: u64,
}

/// Appends a term.
pub(super) fn put_term(node: &mut Vec<u8>, text: &[u8], entry: TermEntry) {
    put_text(node, text);
    for number in [entry.documents, entry.postings, entry.bytes] {
        put_varint(node, number);
    }
}

/// Decodes the term that begins at `at`: its text, its data, and its end.
pub(super) fn term(node: &[u8], at: usize) -> Option<(Range<usize>, TermEntry, usize)> {
    let text = text(node, at)?;
    let (documents, end) = varint(node, text.end)?;
    let (postings, end) = varint(node, end)?;
    let (bytes, end) = varint(node, end)?;
    Some((text, TermEntry { documents, postings, bytes }, end))
}

/// Appends a child node, by its first text.
pub(super) fn put_child(node: &mut Vec<u8>, first: &[u8], number: u32) {
    put_text(node, first);
    put_varint(node, number.into());
}

/// Decodes the child that begins at `at`: its first text, its number, and its end.
pub(super) fn child(node: &[u8], at: usize) -> Option<(Range<usize>, u32, usize)> {
    let text = text(node, at)?;
    let (number, end) = varint(node, text.end)?;
    Some((text, u32::try_from(number).ok()?, end))
}

fn put_text(node: &mut Vec<u8>, text: &[u8]) {
    put_varint(node, text.len() as u64);
    node.extend_from_slice(text);
}

fn text(node: &[u8], at: usize) -> Option<Range<usize>> {
    let (bytes, start) = varint(node, at)?;
    let end = start.checked_add(usize::try_from(bytes).ok()?)?;
    (end <= node.len()).then_some(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of docs/reference/format.md: a change here makes every rank index unreadable.
    #[test]
    fn postings_and_terms_are_the_bytes_that_the_format_says() {
        let mut list = Vec::new();
        put_posting(&mut list, 3, 1);
        put_posting(&mut list, 0, 5);
        assert_eq!(list, [6, 1, 3]);
        assert_eq!((posting(&list, 0), posting(&list, 1)), (Some((3, 1, 1)), Some((0, 5, 3))));
        let mut leaf = Vec::new();
        put_term(&mut leaf, b"fish", TermEntry { documents: 2, postings: 2, bytes: 3 });
        assert_eq!(leaf, *b"\x04fish\x02\x02\x03");
        let mut node = Vec::new();
        put_child(&mut node, b"cat", 300);
        assert_eq!(node, *b"\x03cat\xac\x02");
    }

    #[test]
    fn what_was_written_is_read_and_what_is_cut_is_refused() {
        for (gap, occurrences) in [(0, 1), (u32::MAX, 1), (u32::MAX, u32::MAX), (1, 2)] {
            let mut list = Vec::new();
            put_posting(&mut list, gap, occurrences);
            assert!(list.len() <= POSTING_BYTES_MAX);
            assert_eq!(posting(&list, 0), Some((gap.into(), occurrences, list.len())));
            assert_eq!(posting(&list[..list.len() - 1], 0), None);
        }
        let entry = TermEntry { documents: u64::MAX, postings: 1 << 40, bytes: 300 };
        let (mut leaf, mut node) = (Vec::new(), Vec::new());
        put_term(&mut leaf, &[b'x'; 200], entry);
        put_child(&mut node, &[b'x'; 200], u32::MAX);
        assert_eq!(term(&leaf, 0), Some((2..202, entry, leaf.len())));
        assert_eq!(child(&node, 0), Some((2..202, u32::MAX, node.len())));
        for end in 0..leaf.len() {
            assert_eq!(term(&leaf[..end], 0), None);
        }
        for end in 0..node.len() {
            assert_eq!(child(&node[..end], 0), None);
        }
        let entry = DocumentEntry { length: 1.5, euclidean: -0.0, id_end: 7 };
        assert_eq!(DocumentEntry::decode(&entry.encode()), Some(entry));
        assert_eq!(DocumentEntry::decode(&entry.encode()[1..]), None);
        for length in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(DocumentEntry::decode(&DocumentEntry { length, ..entry }.encode()), None);
        }
    }
}
