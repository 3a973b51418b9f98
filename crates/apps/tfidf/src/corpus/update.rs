//! Adds and removes documents.

use nandex::Table;
use nandex_corpus::DocumentResult;
use nandex_corpus::cut::{PART_BYTES, is_long, parts_of};
use nandex_corpus::parts::{Threads, in_parts_meanwhile};

use super::batch::{Analysed, Batch, DocumentEntry};
use super::commit::BlocksMax;
use super::runs::{RunInfo, RunWriter};
use super::state::Unapplied;
use super::{Corpus, TermKey};
use crate::tokenise::KeyMap;
use crate::{Document, Error, Result};

/// The number of documents whose ids are looked up at a time, and the number that justifies a thread: some hundred us
/// of work.
const GROUP: usize = 512;
const DOCUMENTS_MIN: usize = 16;

/// The most and the least bytes of text at which a group is large enough, and the part of the RAM that they are. Two
/// groups are in RAM, and their terms, which take six times their text.
const GROUP_BYTES_MAX: usize = 2 << 20;
const GROUP_BYTES_MIN: usize = 128 << 10;
const GROUPS_EACH: u64 = 256;

/// The treatment of a document whose id is already in the index.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Repeats {
    /// It is an error.
    #[default]
    Refuse,
    /// It is skipped if its text is the same, and an error otherwise. So a failed run can be repeated.
    Skip,
}

/// The result of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Updated {
    /// The number of documents added or removed.
    pub documents: u64,
    /// The number of documents skipped because they already existed.
    pub skipped: u64,
    /// The number of occurrences of terms in these documents.
    pub occurrences: u64,
}

/// The direction in which counts change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Change {
    Add(Repeats),
    Remove,
}

impl Change {
    /// Returns an amount with the sign of the change.
    fn signed(self, amount: u64) -> Result<i64> {
        let amount = i64::try_from(amount).map_err(|_| Error::Contradiction {
            reason: format!("a batch with {amount} occurrences of a term"),
        })?;
        Ok(if self == Self::Remove { -amount } else { amount })
    }

    /// Returns whether a document is to be counted, given the hash of its text, that of a document of the same id
    /// earlier in the run, and that of one in the index. If not, it is skipped.
    fn takes(
        self,
        (id, text): (&str, TermKey),
        earlier: Option<TermKey>,
        stored: Option<TermKey>,
    ) -> Result<bool> {
        let reason = match (self, earlier.or(stored)) {
            (Self::Add(_), None) => return Ok(true),
            (Self::Add(Repeats::Skip), Some(found)) if found == text => return Ok(false),
            (Self::Add(_), Some(found)) => {
                let same = found == text;
                let difference = if same { "with the same text" } else { "with another text" };
                return Err(Error::Repeated { document: id.to_owned(), difference });
            }
            (Self::Remove, Some(_)) if earlier.is_some() => "the same run has removed it before",
            (Self::Remove, Some(found)) if found == text => return Ok(true),
            (Self::Remove, Some(_)) => "it was added with another text",
            (Self::Remove, None) => "no document of this id was added",
        };
        Err(Error::NotAdded { document: id.to_owned(), reason })
    }
}

/// Documents to be put into a batch.
#[derive(Default)]
struct Group {
    documents: Vec<(Document, DocumentEntry)>,
    /// The hashes of their texts by those of their ids.
    ids: KeyMap<TermKey>,
    /// The terms found in each, in parts.
    analysed: Vec<Vec<Analysed>>,
}

impl Corpus {
    /// Adds documents.
    ///
    /// Documents are counted in batches, and a batch as a whole. After an error or a crash the index has the completed
    /// batches, and none of the current batch; the same run with [`Repeats::Skip`] then adds the others.
    ///
    /// # Errors
    /// The errors of `documents`, [`Error::Repeated`], [`Error::TermTooLong`], a table without space, a failed read or
    /// write.
    pub fn update(
        &mut self,
        documents: impl IntoIterator<Item = DocumentResult>,
        repeats: Repeats,
    ) -> Result<Updated> {
        self.run(documents.into_iter(), Change::Add(repeats))
    }

    /// Removes documents: the index is then as if they had never been added. Each needs the id and the text that were
    /// added. Terms that no document has any more do not count, and are removed when runs are folded into tables.
    ///
    /// # Errors
    /// As [`update`](Self::update), and [`Error::NotAdded`] for a document that is absent or whose text differs.
    pub fn remove(
        &mut self,
        documents: impl IntoIterator<Item = DocumentResult>,
    ) -> Result<Updated> {
        self.run(documents.into_iter(), Change::Remove)
    }

    fn run(
        &mut self,
        mut documents: impl Iterator<Item = DocumentResult>,
        change: Change,
    ) -> Result<Updated> {
        self.check_sure()?;
        let mut updated = Updated::default();
        let mut batch = Batch::new(self.blocks.hasher(), self.batch_bytes);
        let (mut group, analyser) = (Group::default(), self.analyser.clone());
        let group_bytes =
            usize::try_from(self.config.ram_bytes / GROUPS_EACH).unwrap_or(usize::MAX);
        let group_bytes = group_bytes.clamp(GROUP_BYTES_MIN, GROUP_BYTES_MAX);
        loop {
            let documents = next_group(&mut documents, group_bytes)?;
            let is_end = documents.is_empty();
            let (mut next, skipped) = self.taken(documents, (&group, &batch), change)?;
            updated.skipped += skipped;
            // The terms of a group are counted while those of the next are found.
            let find = |part: &[(Document, DocumentEntry)]| {
                let of = |(document, _): &(Document, _)| match is_long(&document.text) {
                    true => Analysed::of("", &analyser),
                    false => Analysed::of(&document.text, &analyser),
                };
                part.iter().map(of).collect::<Vec<_>>()
            };
            let count = || self.count(&mut batch, &group, change, &mut updated);
            let threads = Threads::of_system(DOCUMENTS_MIN);
            let (counted, analysed) = in_parts_meanwhile(&next.documents, threads, find, count);
            counted?;
            next.analysed = analysed;
            group = next;
            if is_end {
                break;
            }
        }
        self.apply(&mut batch, change, &mut updated)?;
        drop(batch);
        match self.fold_if_due() {
            // A removal needs no tables; the runs stay.
            Err(Error::NoSpace(_)) if change == Change::Remove => {}
            folded => folded?,
        }
        self.settle()?;
        Ok(updated)
    }

    /// Adds the documents of a group to a batch, which is applied whenever it is full.
    fn count(
        &mut self,
        batch: &mut Batch,
        group: &Group,
        change: Change,
        updated: &mut Updated,
    ) -> Result<()> {
        for ((document, entry), analysed) in
            group.documents.iter().zip(group.analysed.iter().flatten())
        {
            if is_long(&document.text) {
                self.apply(batch, change, updated)?;
                self.add_long(batch, (document, *entry))?;
            } else {
                batch.add((&document.id, *entry), self.analyser.analysis(), analysed)?;
            }
            if batch.is_full() {
                self.apply(batch, change, updated)?;
            }
        }
        Ok(())
    }

    /// Adds a long document to an empty batch, in parts.
    fn add_long(
        &self,
        batch: &mut Batch,
        (document, entry): (&Document, DocumentEntry),
    ) -> Result<()> {
        let mut before: Option<Analysed> = None;
        let mut taken_bytes = 0;
        for part in parts_of(&document.text, PART_BYTES) {
            let analysed = Analysed::after(before.as_ref(), part, &self.analyser);
            batch.add_part(&document.id, self.analyser.analysis(), &analysed)?;
            taken_bytes += part.len() as u64;
            if batch.is_exceeded() {
                return Err(self.too_long((document, taken_bytes)));
            }
            before = Some(analysed);
        }
        batch.end(entry);
        Ok(())
    }

    /// Returns the error of a document of which so many bytes fit.
    fn too_long(&self, (document, taken_bytes): (&Document, u64)) -> Error {
        let (bytes, ram_bytes) = (document.text.len() as u64, self.config.ram_bytes);
        // Less than in proportion, because terms recur.
        let least_bytes =
            (u128::from(ram_bytes) * u128::from(bytes)).div_ceil(taken_bytes.max(1).into());
        let least_bytes = u64::try_from(least_bytes).unwrap_or(u64::MAX).next_multiple_of(1 << 20);
        Error::DocumentOverRam { document: document.id.clone(), bytes, ram_bytes, least_bytes }
    }

    /// Returns which of some documents are to be counted, after those of a group and a batch; and the number of the
    /// others.
    fn taken(
        &self,
        documents: Vec<Document>,
        (before, batch): (&Group, &Batch),
        change: Change,
    ) -> Result<(Group, u64)> {
        let entries: Vec<DocumentEntry> = documents.iter().map(entry).collect();
        let stored = self.stored(&entries)?;
        let (mut taken, mut skipped) = (Group::default(), 0);
        for ((document, entry), stored) in documents.into_iter().zip(entries).zip(stored) {
            let earlier = [&taken.ids, &before.ids].into_iter().find_map(|ids| ids.get(&entry.id));
            let earlier = earlier.copied().or_else(|| batch.text_of(&entry.id));
            if change.takes((&document.id, entry.text), earlier, stored)? {
                taken.ids.insert(entry.id, entry.text);
                taken.documents.push((document, entry));
            } else {
                skipped += 1;
            }
        }
        Ok((taken, skipped))
    }

    /// Returns the hashes of the texts under these ids.
    fn stored(&self, entries: &[DocumentEntry]) -> Result<Vec<Option<TermKey>>> {
        let keys: Vec<&[u8]> = entries.iter().map(|entry| &entry.id.0[..]).collect();
        let found = self.documents.get_many(&keys)?;
        let text = |value: &[u8]| <[u8; 16]>::try_from(value).map_or(TermKey([0; 16]), TermKey);
        Ok(found.into_iter().map(|it| it.map(|value| text(&value))).collect())
    }

    /// Writes a batch as a run, commits it, and empties it.
    fn apply(&mut self, batch: &mut Batch, change: Change, updated: &mut Updated) -> Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        batch.seal();
        let documents = batch.documents().len() as u64;
        let occurrences = batch.occurrences();
        let blocks = BlocksMax {
            terms: batch.blocks_max(),
            documents: BlocksMax::of_documents(documents),
            ranked: 0,
        };
        let id = self.begin_run(blocks)?;
        let written = self.write_batch(id, batch, change);
        let (run, blocks) = written.or_else(|error| self.abandon(error))?;
        let signed = (change.signed(documents)?, change.signed(occurrences)?);
        self.commit(|state| {
            state.outdate_ranked();
            state.documents = changed(state.documents, signed.0)?;
            state.occurrences = changed(state.occurrences, signed.1)?;
            state.add_run(run);
            let are_removed = change == Change::Remove;
            state.unapplied = Some(Unapplied { run: id, blocks, are_removed });
            Ok(())
        })?;
        updated.documents += documents;
        updated.occurrences += occurrences;
        batch.clear();
        self.apply_documents().inspect_err(|_| self.is_unsure = true)?;
        self.merge_runs_if_many()
    }

    /// Writes the run of a batch, and its documents. Returns the run, and the blocks of documents.
    fn write_batch(&self, id: u64, batch: &Batch, change: Change) -> Result<(RunInfo, u32)> {
        let blocks = self.write_documents((id, 0), batch.documents())?;
        let mut writer = RunWriter::new(&self.blocks, id);
        let is_removed = change == Change::Remove;
        batch.for_each(|place, text, delta| {
            writer.push(place, text, if is_removed { delta.negated() } else { delta })
        })?;
        Ok((writer.finish()?, blocks))
    }
}

/// Returns the next documents, as many as fit; none at the end.
fn next_group(
    documents: &mut impl Iterator<Item = DocumentResult>,
    group_bytes: usize,
) -> Result<Vec<Document>> {
    let mut group = Vec::new();
    let mut bytes = 0;
    while group.len() < GROUP && bytes < group_bytes {
        let Some(document) = documents.next() else { break };
        let document = document?;
        bytes += document.text.len();
        group.push(document);
    }
    Ok(group)
}

fn entry(document: &Document) -> DocumentEntry {
    let (id, text) = (document.id.as_bytes(), document.text.as_bytes());
    DocumentEntry { id: TermKey::of(id), text: TermKey::of(text) }
}

/// Returns a total after a change.
fn changed(total: u64, amount: i64) -> Result<u64> {
    total.checked_add_signed(amount).ok_or_else(|| Error::Contradiction {
        reason: format!("{amount} more than {total} documents or occurrences"),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use nandex::raw::store::hash::{HashKind, KeyHasher};

    use super::{Analysed, Batch, parts_of};
    use crate::Analysis;
    use crate::corpus::batch::DocumentEntry;
    use crate::corpus::runs::Delta;
    use crate::tokenise::{Analyser, TermKey};

    /// Counts a text that is cut into parts of at least this many bytes.
    fn counted(text: &str, bytes: usize, analyser: &Analyser) -> BTreeMap<Vec<u8>, (i64, i64)> {
        let mut batch = Batch::new(KeyHasher::new(HashKind::Xxh3, 3), 64 << 20);
        let mut before = None;
        for part in parts_of(text, bytes) {
            let analysed = Analysed::after(before.as_ref(), part, analyser);
            batch.add_part("name", analyser.analysis(), &analysed).unwrap();
            before = Some(analysed);
        }
        let key = TermKey::of(text.as_bytes());
        batch.end(DocumentEntry { id: key, text: key });
        batch.seal();
        let mut counts = BTreeMap::new();
        let take = |_, text: &[u8], delta: Delta| {
            counts.insert(text.to_vec(), (delta.documents, delta.occurrences));
            Ok(())
        };
        batch.for_each(take).unwrap();
        counts
    }

    #[test]
    fn a_document_in_parts_has_the_terms_of_the_whole() {
        let word =
            |it: u64| format!("w{}{}", it * it % 97, if it.is_multiple_of(7) { " ." } else { "" });
        let words: Vec<String> = (0..3000).map(word).collect();
        let text = words.join(" ") + " \u{3a3}\u{391}\u{3a3} end";
        for (min, max) in [(1, 1), (1, 3), (2, 4), (3, 3)] {
            let analyser = Analyser::new(&Analysis::default().ngrams(min, max)).unwrap();
            let whole = counted(&text, usize::MAX, &analyser);
            assert!(whole.values().all(|(documents, _)| *documents == 1));
            for bytes in [1, 5, 100, 4000] {
                assert_eq!(counted(&text, bytes, &analyser), whole, "{min}-{max}, {bytes} bytes");
            }
        }
    }
}
