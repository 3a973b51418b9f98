//! Records of documents with neighbouring numbers, together: one read finds the names of all, and a document costs
//! little more than its bytes. See docs/reference/format.md.

use nandex::{Error, Result};

/// The version of a block.
const VERSION: u8 = 3;

/// The most documents of a block, and the most bytes of their bucket keys.
const DOCUMENTS_MAX: u64 = 64;
const KEY_BYTES_MAX: u64 = 4096;

/// Returns how many numbers share a block if a document has a bucket key in each of `tables` tables: a power of two.
pub(super) const fn documents_of(tables: u32) -> u64 {
    let most = KEY_BYTES_MAX / (8 * tables as u64);
    match most {
        0 => 1,
        DOCUMENTS_MAX.. => DOCUMENTS_MAX,
        _ => 1 << most.ilog2(),
    }
}

/// The stored data of a document.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry<'b> {
    /// An earlier document of the same name that still exists.
    pub(super) earlier: Option<u64>,
    /// A bucket key of each table.
    pub(super) keys: &'b [u64],
    /// Its name.
    pub(super) name: &'b [u8],
}

/// Names, in an order.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(super) struct NameList {
    ends: Vec<u32>,
    bytes: Vec<u8>,
}

impl NameList {
    /// Adds a name behind the others.
    pub(super) fn push(&mut self, name: &[u8]) {
        self.bytes.extend_from_slice(name);
        self.ends.push(self.bytes.len() as u32);
    }

    /// Returns the name at an index.
    pub(super) fn get(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        &self.bytes[start..self.ends[index] as usize]
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the bytes of all names.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn clear(&mut self) {
        self.ends.clear();
        self.bytes.clear();
    }
}

/// The existing documents of a block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Block {
    tables: usize,
    /// A bit for each number that has a document.
    present: u64,
    /// A bit for each of these that has an earlier document of the same name.
    repeats: u64,
    /// The earlier documents of these, in order.
    earlier: Vec<u64>,
    /// The bucket keys of each document, in order, as are names.
    keys: Vec<u64>,
    names: NameList,
}

impl Block {
    /// Creates a block without documents.
    pub(super) fn new(tables: usize) -> Self {
        let (earlier, keys, names) = (Vec::new(), Vec::new(), NameList::default());
        Self { tables, present: 0, repeats: 0, earlier, keys, names }
    }

    /// Returns the number of bucket keys of a document.
    pub(super) fn tables(&self) -> usize {
        self.tables
    }

    /// Adds a document whose place is behind all others.
    pub(super) fn push(&mut self, place: u32, entry: Entry<'_>) {
        assert!(self.present >> place == 0, "numbers of documents rise");
        self.present |= 1 << place;
        if let Some(earlier) = entry.earlier {
            self.repeats |= 1 << place;
            self.earlier.push(earlier);
        }
        self.keys.extend_from_slice(entry.keys);
        self.names.push(entry.name);
    }

    /// Returns the document at a place.
    pub(super) fn get(&self, place: u32) -> Option<Entry<'_>> {
        self.index_of(place).map(|index| self.entry(place, index))
    }

    /// Returns all documents with their places.
    pub(super) fn entries(&self) -> impl Iterator<Item = (u32, Entry<'_>)> {
        self.places().enumerate().map(|(index, place)| (place, self.entry(place, index)))
    }

    /// Returns the places of all documents.
    pub(super) fn places(&self) -> impl Iterator<Item = u32> {
        (0..u64::BITS).filter(|place| self.present >> place & 1 == 1)
    }

    /// Returns the bucket keys of all documents, a row for each.
    pub(super) fn rows(&self) -> impl Iterator<Item = &[u64]> {
        self.keys.chunks_exact(self.tables)
    }

    /// Returns the names of all documents.
    pub(super) fn names(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.names.ends.len()).map(|index| self.names.get(index))
    }

    /// Returns the index, in order, of the document at a place.
    pub(super) fn index_of(&self, place: u32) -> Option<usize> {
        rank(self.present, place)
    }

    /// Returns the name of the document of that index.
    pub(super) fn name(&self, index: usize) -> &[u8] {
        self.names.get(index)
    }

    /// Returns the number of documents without an earlier one of the same name.
    pub(super) fn documents(&self) -> u64 {
        u64::from((self.present & !self.repeats).count_ones())
    }

    /// Returns whether any document has an earlier one of the same name.
    pub(super) fn may_repeat(&self) -> bool {
        self.repeats != 0
    }

    fn entry(&self, place: u32, index: usize) -> Entry<'_> {
        let earlier = rank(self.repeats, place).map(|index| self.earlier[index]);
        let keys = &self.keys[index * self.tables..][..self.tables];
        Entry { earlier, keys, name: self.names.get(index) }
    }

    /// Returns the block without the document at a place.
    pub(super) fn without(&self, place: u32) -> Self {
        let mut others = Self::new(self.tables);
        let kept = self.entries().filter(|(other, _)| *other != place);
        kept.for_each(|(place, entry)| others.push(place, entry));
        others
    }

    /// Returns its bytes of RAM, without its own struct.
    pub(super) fn ram_bytes(&self) -> u64 {
        let numbers = self.earlier.capacity() + self.keys.capacity();
        (8 * numbers + 4 * self.names.ends.capacity() + self.names.bytes.capacity()) as u64
    }

    /// Encodes the block.
    pub(super) fn encode(&self) -> Vec<u8> {
        let documents = self.names.ends.len();
        let numbers = 2 + self.earlier.len() + self.keys.len();
        let mut bytes = Vec::with_capacity(1 + 8 * numbers + 4 * documents + self.names.bytes());
        bytes.push(VERSION);
        bytes.extend(self.present.to_le_bytes());
        bytes.extend(self.repeats.to_le_bytes());
        bytes.extend(self.earlier.iter().chain(&self.keys).flat_map(|it| it.to_le_bytes()));
        let lengths = (0..documents).map(|index| self.names.get(index).len() as u32);
        bytes.extend(lengths.flat_map(u32::to_le_bytes));
        bytes.extend(&self.names.bytes);
        bytes
    }

    /// Decodes block `number` of an index with `tables` tables.
    ///
    /// # Errors
    /// Invalid bytes.
    pub(super) fn decode(bytes: &[u8], tables: usize, number: u64) -> Result<Self> {
        Self::parsed(bytes, tables).ok_or_else(|| Error::Config {
            field: "record",
            reason: format!(
                "block {number} of records has {} bytes and cannot be read; expected version {VERSION} and {tables} \
                 bucket keys for each document; make the index again",
                bytes.len()
            ),
        })
    }

    fn parsed(bytes: &[u8], tables: usize) -> Option<Self> {
        let (version, bytes) = bytes.split_first()?;
        let (present, bytes) = bytes.split_first_chunk::<8>()?;
        let (repeats, bytes) = bytes.split_first_chunk::<8>()?;
        let (present, repeats) = (u64::from_le_bytes(*present), u64::from_le_bytes(*repeats));
        let documents = present.count_ones() as usize;
        let (earlier, bytes) = bytes.split_at_checked(8 * repeats.count_ones() as usize)?;
        let (keys, bytes) = bytes.split_at_checked(8 * documents.checked_mul(tables)?)?;
        let (lengths, mut rest) = bytes.split_at_checked(4 * documents)?;
        let ends = Vec::with_capacity(documents);
        let mut names = NameList { ends, bytes: Vec::with_capacity(rest.len()) };
        for length in lengths.as_chunks::<4>().0 {
            let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
            let (name, others) = rest.split_at_checked(length)?;
            names.push(name);
            rest = others;
        }
        let (earlier, keys) = (numbers(earlier).collect(), numbers(keys).collect());
        let block = Self { tables, present, repeats, earlier, keys, names };
        (*version == VERSION && repeats & !present == 0 && rest.is_empty()).then_some(block)
    }
}

/// Returns the rank of the document at a place among the existing ones.
fn rank(present: u64, place: u32) -> Option<usize> {
    let is_there = present.checked_shr(place)? & 1 == 1;
    is_there.then(|| (present & ((1 << place) - 1)).count_ones() as usize)
}

fn numbers(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.as_chunks::<8>().0.iter().map(|number| u64::from_le_bytes(*number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made() -> Block {
        let mut block = Block::new(2);
        block.push(0, Entry { earlier: None, keys: &[1, 2], name: b"a" });
        block.push(3, Entry { earlier: Some(6), keys: &[3, u64::MAX], name: b"" });
        block.push(63, Entry { earlier: None, keys: &[5, 6], name: b"xyz" });
        block
    }

    #[test]
    fn the_bytes_are_those_of_the_format_page() {
        let mut expected = vec![3, 9, 0, 0, 0, 0, 0, 0, 0x80, 8, 0, 0, 0, 0, 0, 0, 0];
        for number in [6, 1, 2, 3, u64::MAX, 5, 6] {
            expected.extend(number.to_le_bytes());
        }
        expected.extend([1, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0]);
        expected.extend(b"axyz");
        assert_eq!(made().encode(), expected);
        assert_eq!(Block::decode(&expected, 2, 0).unwrap(), made());
    }

    #[test]
    fn a_block_that_is_cut_or_longer_or_of_another_version_is_refused() {
        let bytes = made().encode();
        let longer = [&bytes[..], b"."].concat();
        let other = [&[2], &bytes[1..]].concat();
        let repeated = [&bytes[..9], &[2], &bytes[10..]].concat();
        let cut = (0..bytes.len()).map(|end| bytes[..end].to_vec());
        for bytes in cut.chain([longer, other, repeated]) {
            let error = Block::decode(&bytes, 2, 7).unwrap_err().to_string();
            assert!(error.contains("block 7 of records"), "{error}");
        }
        assert!(Block::decode(&made().encode(), 3, 7).is_err(), "other tables");
    }

    #[test]
    fn a_document_is_found_at_its_place_until_it_goes() {
        let block = made();
        let keys = |block: &Block, place| block.get(place).map(|it| it.keys.to_vec());
        assert_eq!(keys(&block, 3), Some(vec![3, u64::MAX]));
        assert_eq!((keys(&block, 1), keys(&block, 64)), (None, None));
        let block = block.without(3);
        assert_eq!((keys(&block, 3), keys(&block, 63)), (None, Some(vec![5, 6])));
        let places: Vec<_> = block.entries().map(|(place, entry)| (place, entry.name)).collect();
        assert_eq!(places, [(0, &b"a"[..]), (63, b"xyz")]);
        assert_eq!(block.without(0).without(63), Block::new(2));
    }

    #[test]
    fn a_list_has_its_names_in_order() {
        let mut list = NameList::default();
        ["a", "", "bc"].iter().for_each(|name| list.push(name.as_bytes()));
        let all: Vec<_> = (0..list.ends.len()).map(|index| list.get(index)).collect();
        assert_eq!((all, list.bytes()), (vec![&b"a"[..], b"", b"bc"], 3));
    }

    #[test]
    fn a_block_has_a_power_of_two_of_documents() {
        let found = [1, 5, 8, 9, 64, 512, 513, 100_000].map(documents_of);
        assert_eq!(found, [64, 64, 64, 32, 8, 1, 1, 1]);
    }
}
