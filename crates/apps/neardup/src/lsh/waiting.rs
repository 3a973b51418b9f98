//! Documents that wait for the tables: single inserts, gathered into batches.
//!
//! A batch shares locks, entries of the log and records, so it costs a fraction of the single inserts. Waiting
//! documents are found by their names and buckets like others.

use super::block::NameList;
use super::generation::place_in;

/// The known data of an incoming document.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewDocument<'d> {
    pub(super) name: &'d [u8],
    pub(super) hash: u64,
    /// A bucket key of each table.
    pub(super) keys: &'d [u64],
    /// An earlier document of the same name.
    pub(super) earlier: Option<u64>,
}

/// The waiting documents.
#[derive(Debug)]
pub(super) struct Waiting {
    tables: usize,
    pub(super) numbers: Vec<u64>,
    pub(super) hashes: Vec<u64>,
    /// A row of bucket keys for each document.
    pub(super) keys: Vec<u64>,
    pub(super) earlier: Vec<Option<u64>>,
    pub(super) names: NameList,
    by_name: Chains,
    by_bucket: Chains,
}

impl Waiting {
    /// Creates an empty queue, with space for `documents_max` documents.
    pub(super) fn new(tables: usize, documents_max: usize) -> Self {
        Self {
            tables,
            numbers: Vec::new(),
            hashes: Vec::new(),
            keys: Vec::new(),
            earlier: Vec::new(),
            names: NameList::default(),
            by_name: Chains::new(documents_max),
            by_bucket: Chains::new(documents_max * tables),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Returns the bytes of RAM, approximately.
    pub(super) fn ram_bytes(&self) -> u64 {
        let numbers = self.numbers.capacity() + self.hashes.capacity() + self.keys.capacity();
        (8 * (numbers + 2 * self.earlier.capacity()) + self.names.bytes()) as u64
            + self.by_name.ram_bytes()
            + self.by_bucket.ram_bytes()
    }

    pub(super) fn push(&mut self, number: u64, document: NewDocument<'_>) {
        self.by_name.push(document.hash);
        for (table, key) in (0..).zip(document.keys) {
            self.by_bucket.push(place_in(table, *key));
        }
        self.numbers.push(number);
        self.hashes.push(document.hash);
        self.keys.extend_from_slice(document.keys);
        self.earlier.push(document.earlier);
        self.names.push(document.name);
    }

    /// Returns the latest document of that name.
    pub(super) fn number_of(&self, hash: u64, name: &[u8]) -> Option<u64> {
        let mut chain = self.by_name.chain(hash);
        let found = chain.find(|at| self.hashes[*at] == hash && self.names.get(*at) == name);
        found.map(|at| self.numbers[at])
    }

    /// Adds the places of documents that share a bucket with a row, rising.
    pub(super) fn add_candidates(&self, row: &[u64], places: &mut Vec<usize>) {
        let first = places.len();
        for (table, key) in row.iter().enumerate() {
            let chain = self.by_bucket.chain(place_in(table as u64, *key));
            let of_bucket = chain.filter(|at| self.keys[*at] == *key && at % self.tables == table);
            places.extend(of_bucket.map(|at| at / self.tables));
        }
        places[first..].sort_unstable();
        places.dedup();
    }

    pub(super) fn clear(&mut self) {
        self.numbers.clear();
        self.hashes.clear();
        self.keys.clear();
        self.earlier.clear();
        self.names.clear();
        self.by_name.clear();
        self.by_bucket.clear();
    }
}

/// Chains of entries that share a place, counted in the order of their arrival.
#[derive(Debug)]
struct Chains {
    /// The latest entry of each chain, counted from 1; 0 for none.
    heads: Vec<u32>,
    /// The entry before each in its chain, counted the same way.
    links: Vec<u32>,
}

impl Chains {
    fn new(entries_max: usize) -> Self {
        Self { heads: vec![0; entries_max.max(1)], links: Vec::new() }
    }

    fn head_of(&self, place: u64) -> usize {
        ((u128::from(place) * self.heads.len() as u128) >> 64) as usize
    }

    fn push(&mut self, place: u64) {
        let head = self.head_of(place);
        self.links.push(self.heads[head]);
        self.heads[head] = self.links.len() as u32;
    }

    /// Returns the entries of a place and others, the latest first.
    fn chain(&self, place: u64) -> impl Iterator<Item = usize> + '_ {
        let at = |link: u32| (link as usize).checked_sub(1);
        std::iter::successors(at(self.heads[self.head_of(place)]), move |it| at(self.links[*it]))
    }

    fn clear(&mut self) {
        self.heads.fill(0);
        self.links.clear();
    }

    fn ram_bytes(&self) -> u64 {
        4 * (self.heads.len() + self.links.capacity()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document<'d>(name: &'d [u8], keys: &'d [u64]) -> NewDocument<'d> {
        NewDocument { name, hash: name[0].into(), keys, earlier: None }
    }

    #[test]
    fn documents_are_found_by_names_and_buckets_until_they_leave() {
        let mut waiting = Waiting::new(2, 3);
        waiting.push(7, document(b"a", &[1, 2]));
        waiting.push(9, document(b"b", &[2, 2]));
        waiting.push(10, document(b"a", &[1, 3]));
        let number = |waiting: &Waiting, name: &[u8]| waiting.number_of(name[0].into(), name);
        assert_eq!(number(&waiting, b"a"), Some(10));
        assert_eq!((number(&waiting, b"b"), number(&waiting, b"bc")), (Some(9), None));
        let found = |waiting: &Waiting, row: [u64; 2]| {
            let mut places = Vec::new();
            waiting.add_candidates(&row, &mut places);
            places
        };
        assert_eq!(found(&waiting, [1, 2]), [0, 1, 2]);
        assert_eq!(found(&waiting, [2, 9]), [1]);
        assert_eq!(found(&waiting, [3, 1]), [0; 0], "keys of the other table");
        waiting.clear();
        assert_eq!((number(&waiting, b"a"), found(&waiting, [1, 2])), (None, Vec::new()));
        assert!(waiting.is_empty());
    }
}
