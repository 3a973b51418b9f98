//! Documents go out by their ids.

use nandex::Table;
use nandex::raw::signature::Family;

use super::record::{Decision, Record};
use super::{Index, id_hash, number_key, refused};
use crate::Result;

/// Documents that are removed at a time.
const BATCH: usize = 1024;

/// What a removal has done.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Removed {
    /// Documents that are no more in the index.
    pub documents: u64,
    /// Ids of which there was none.
    pub unknown: Vec<String>,
}

impl Index {
    /// Takes documents out of the index by their ids; no texts are needed. What was decided of others stays: a
    /// duplicate of a document that has gone is still a duplicate. To have it decided on again, remove it too, and add
    /// it.
    ///
    /// Documents count in batches: after an error or a crash some are removed, and the same call removes the others.
    ///
    /// # Errors
    /// A failed read or write, damage.
    pub fn remove<T: AsRef<str>>(&mut self, ids: &[T]) -> Result<Removed> {
        self.check_sure()?;
        let mut removed = Removed::default();
        for ids in ids.chunks(BATCH) {
            self.remove_batch(ids, &mut removed)?;
        }
        Ok(removed)
    }

    fn remove_batch<T: AsRef<str>>(&mut self, ids: &[T], removed: &mut Removed) -> Result<()> {
        let hashes: Vec<_> = ids.iter().map(|id| id_hash(id.as_ref())).collect();
        let numbers = self.numbers_of(&hashes)?;
        let known: Vec<u64> = numbers.iter().flatten().copied().collect();
        let mut records = self.records_of(&known)?.into_iter();
        let mut next = self.state.clone();
        for (id, number) in ids.iter().map(AsRef::as_ref).zip(numbers) {
            let record = number.and_then(|number| Some((number, records.next().flatten()?)));
            match record.filter(|(_, record)| record.name == id) {
                Some((number, record)) if !next.removing.contains(&number) => {
                    let counts = &mut next.counts;
                    let count = match record.decision {
                        Decision::Kept => &mut counts.kept,
                        Decision::Exact(_) => &mut counts.exact,
                        Decision::Near(_) => &mut counts.near,
                    };
                    *count = count.saturating_sub(1);
                    next.removing.push(number);
                    removed.documents += 1;
                }
                // Twice in one call: it is gone, and known.
                Some(_) => {}
                None => removed.unknown.push(id.to_owned()),
            }
        }
        if next.removing.is_empty() {
            return Ok(());
        }
        // From here on they do not count; what follows only takes them out of the tables.
        self.put_state(next)?;
        self.finish_removal().inspect_err(|_| self.is_unsure = true)
    }

    /// Takes the documents that do not count any more out of the tables, durably. Doing it again changes nothing.
    pub(super) fn finish_removal(&mut self) -> Result<()> {
        if self.state.removing.is_empty() {
            return Ok(());
        }
        for number in &self.state.removing {
            let key = number_key(*number);
            if let Some(bytes) = self.records.get(&key)? {
                self.take_out(*number, &Record::decode(&bytes, *number)?)?;
            }
        }
        self.alike.sync()?;
        self.keys.sync()?;
        // Only a record says where else its document is, so it goes last.
        for number in &self.state.removing {
            self.records.remove(&number_key(*number))?;
        }
        self.records.sync()?;
        let mut next = self.state.clone();
        next.removing.clear();
        self.put_state(next)
    }

    /// Takes a document out of the buckets and the table of keys.
    fn take_out(&self, number: u64, record: &Record) -> Result<()> {
        if !record.signature.is_empty() {
            let family: &Family = self.sketcher.family();
            let signature = family.decode_signature(&record.signature)?;
            let mut keys = Vec::new();
            self.sketcher.bucket_keys(&signature, &mut keys)?;
            self.alike.remove(number, &keys).map_err(refused)?;
        }
        let keys = [id_hash(&record.name), record.text];
        for (key, found) in keys.iter().zip(self.numbers_of(&keys)?) {
            if found == Some(number) {
                self.keys.remove(key)?;
            }
        }
        Ok(())
    }
}
