//! Removes documents by their ids, in batches.
//!
//! ```text
//!   ids --keys: numbers--> records --> the state: these do not count     one sync: from here on they are gone
//!                             |
//!                             '--> buckets, keys --> records --> the state: none is being removed
//! ```
//!
//! All lookups and reads of a batch overlap. A record is read once, before the state changes, and lists the entries to
//! remove from the other tables; after a crash the next opening reads it again.

use std::collections::BTreeSet;

use nandex::Table;

use super::numbers::Hash;
use super::record::{Decision, Record};
use super::{Index, id_hash, number_key, refused};
use crate::Result;

/// The most bytes of the numbers of documents removed at a time, as the state lists them: they must fit into the
/// shortest segment of a value log that grows, 64 KiB.
const REMOVING_BYTES: usize = 48 << 10;

/// The result of a removal.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Removed {
    /// The number of removed documents.
    pub documents: u64,
    /// The ids without a document.
    pub unknown: Vec<String>,
}

/// A document under removal, and its places other than its record.
struct Leaving {
    number: u64,
    decision: Decision,
    /// Its keys in the table of keys.
    keys: Vec<Hash>,
    /// Its bucket keys; empty for a document that is in no bucket.
    buckets: Vec<u64>,
}

impl Index {
    /// Removes documents from the index by their ids; no texts are needed. Decisions on others stay: a duplicate of a
    /// removed document is still a duplicate. To have it decided on again, remove it too, and add it.
    ///
    /// Documents count in batches of up to 4096, and many in one call cost far less than a call for each: the lookups
    /// and reads of a batch overlap, and it shares its syncs. After an error or a crash the documents of the completed
    /// batches are removed, and the same call removes the others. An id that occurs twice is removed once; in a later
    /// batch it is unknown.
    ///
    /// Costs at most three flash reads per document: of the key of its id, of the location of its record, and of its
    /// record; and a fourth, of the key of its text, for a document that was near another. A page that several
    /// documents of a batch need is read once. Writes a removal in each table, and the state twice per batch.
    ///
    /// # Errors
    /// A failed read or write, damage.
    pub fn remove<T: AsRef<str>>(&mut self, ids: &[T]) -> Result<Removed> {
        self.check_sure()?;
        let mut removed = Removed::default();
        for ids in ids.chunks(self.removed_max()) {
            self.remove_batch(ids, &mut removed)?;
        }
        Ok(removed)
    }

    /// Returns the number of documents removed at a time: as many as are added, if the state can list them.
    fn removed_max(&self) -> usize {
        let digits = self.state.next.checked_ilog10().unwrap_or(0) as usize + 1;
        self.batch_documents.min(REMOVING_BYTES / (digits + 1))
    }

    fn remove_batch<T: AsRef<str>>(&mut self, ids: &[T], removed: &mut Removed) -> Result<()> {
        let leaving = self.leaving(ids, removed)?;
        if leaving.is_empty() {
            return Ok(());
        }
        let mut next = self.state.clone();
        for document in &leaving {
            let counts = &mut next.counts;
            let count = match document.decision {
                Decision::Kept => &mut counts.kept,
                Decision::Exact(_) => &mut counts.exact,
                Decision::Near(_) => &mut counts.near,
            };
            *count = count.saturating_sub(1);
            next.removing.push(document.number);
        }
        // From here on they do not count; the rest only removes them from the tables.
        self.put_state(next)?;
        removed.documents += leaving.len() as u64;
        self.take_out(&leaving).inspect_err(|_| self.is_unsure = true)
    }

    /// Returns the documents with these ids that count, each once, in the order of their numbers; notes ids without a
    /// document.
    fn leaving<T: AsRef<str>>(&self, ids: &[T], removed: &mut Removed) -> Result<Vec<Leaving>> {
        let hashes: Vec<_> = ids.iter().map(|id| id_hash(id.as_ref())).collect();
        let numbers = self.numbers_of(&hashes)?;
        let mut records = self.records_by_number(numbers.iter().flatten().copied().collect())?;
        let mut leaving = BTreeSet::new();
        for (id, number) in ids.iter().map(AsRef::as_ref).zip(numbers) {
            let found = number.filter(|it| records.get(it).is_some_and(|it| it.name == id));
            match found {
                Some(number) => _ = leaving.insert(number),
                None => removed.unknown.push(id.to_owned()),
            }
        }
        let stored = leaving.into_iter().filter_map(|it| Some((it, records.remove(&it)?)));
        self.places_of(stored.collect())
    }

    /// Returns the places of documents, by their records. Looks up in the table of keys only the texts whose first
    /// document may be another.
    fn places_of(&self, stored: Vec<(u64, Record)>) -> Result<Vec<Leaving>> {
        let unsure = stored.iter().filter(|(_, record)| has_text(record).is_none());
        let unsure: Vec<Hash> = unsure.map(|(_, record)| record.text).collect();
        let mut found = self.numbers_of(&unsure)?.into_iter();
        let leaving = stored.into_iter().map(|(number, record)| {
            let has_text =
                has_text(&record).unwrap_or_else(|| found.next().flatten() == Some(number));
            let mut buckets = Vec::new();
            if !record.signature.is_empty() {
                let signature = self.family().decode_signature(&record.signature)?;
                self.sketcher.bucket_keys(&signature, &mut buckets)?;
            }
            let text = has_text.then_some(record.text);
            let keys = std::iter::once(id_hash(&record.name)).chain(text).collect();
            Ok(Leaving { number, decision: record.decision, keys, buckets })
        });
        leaving.collect()
    }

    /// Ends an interrupted removal. Doing it again changes nothing.
    pub(super) fn finish_removal(&mut self) -> Result<()> {
        if self.state.removing.is_empty() {
            return Ok(());
        }
        let numbers = &self.state.removing;
        let stored = numbers.iter().copied().zip(self.stored_records(numbers, |_| true)?);
        let stored = stored.filter_map(|(number, record)| Some((number, record?)));
        let leaving = self.places_of(stored.collect())?;
        self.take_out(&leaving)
    }

    /// Removes documents that no longer count from the tables, durably.
    fn take_out(&mut self, leaving: &[Leaving]) -> Result<()> {
        let in_buckets = leaving.iter().filter(|it| !it.buckets.is_empty());
        let numbers: Vec<u64> = in_buckets.map(|it| it.number).collect();
        let buckets: Vec<u64> = leaving.iter().flat_map(|it| &it.buckets).copied().collect();
        self.alike.remove_many(&numbers, &buckets).map_err(refused)?;
        let keys: Vec<&[u8]> = leaving.iter().flat_map(|it| &it.keys).map(|it| &it[..]).collect();
        keys.into_iter().try_for_each(|key| self.keys.remove(key))?;
        self.alike.sync()?;
        self.keys.sync()?;
        // Only a record lists the other places of its document, so it goes last.
        leaving.iter().try_for_each(|it| self.records.remove(&number_key(it.number)))?;
        self.records.sync()?;
        let mut next = self.state.clone();
        next.removing.clear();
        self.put_state(next)
    }
}

/// Returns whether the key of a document's text has its number, as far as its record shows. A kept document was the
/// first of its text, and while it exists no other becomes the first; a document that was like an earlier text, or near
/// a document that has since been removed, may have been followed by another.
fn has_text(record: &Record) -> Option<bool> {
    match record.decision {
        Decision::Kept => Some(true),
        // Documents with the text of another have neither a key nor a signature.
        Decision::Exact(_) => Some(false),
        Decision::Near(_) if record.signature.is_empty() => Some(false),
        Decision::Near(_) => None,
    }
}
