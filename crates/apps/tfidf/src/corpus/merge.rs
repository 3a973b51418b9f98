//! Merges the documents of one index into another.

use std::ops::Range;

use nandex::Table;

use super::Corpus;
use super::commit::{self, BlocksMax};
use super::fold::frequency;
use super::runs::{self, Delta, RunInfo, RunWriter};
use super::state::Unapplied;
use crate::tokenise::TermKey;
use crate::{Error, Result};

/// The number of entries moved at a time: a whole number of blocks of documents.
const CHUNK: usize = 65_536;

/// Terms of another index, before they become a run.
#[derive(Default)]
struct Taken {
    /// The place of each, the position of its text, and its counts.
    terms: Vec<(u64, Range<usize>, Delta)>,
    texts: Vec<u8>,
}

impl Taken {
    fn push(&mut self, place: u64, text: &[u8], delta: Delta) {
        let start = self.texts.len();
        self.texts.extend_from_slice(text);
        self.terms.push((place, start..self.texts.len(), delta));
    }

    /// Returns its RAM, in bytes; a growing vector briefly has twice its content.
    fn ram_bytes(&self) -> usize {
        2 * (self.texts.len() + self.terms.len() * size_of::<(u64, Range<usize>, Delta)>())
    }

    fn sort(&mut self) {
        let Self { terms, texts } = self;
        let key = |text: &Range<usize>| TermKey::of(&texts[text.clone()]);
        terms.sort_unstable_by(|(one, one_text, _), (other, other_text, _)| {
            one.cmp(other).then_with(|| key(one_text).cmp(&key(other_text)))
        });
    }
}

impl Corpus {
    /// Adds all documents of `other`, as if they had been added one by one. The texts of these documents are not
    /// needed. Costs a listing of `other`, and runs of its terms. After an error or a crash the index has all of them
    /// or none.
    ///
    /// # Errors
    /// [`Error::OtherAnalysis`]; [`Error::Repeated`] if both have a document of the same id; [`Error::Unsure`] of this
    /// one; one; no space, a failed read or write.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        self.check_sure()?;
        self.check_same_analysis(other)?;
        self.check_no_common_document(other)?;
        let taken = self.take_all(other);
        let (runs, unapplied) = taken.or_else(|error| self.abandon(error))?;
        self.commit(|state| {
            state.outdate_ranked();
            state.documents += other.state.documents;
            state.occurrences += other.state.occurrences;
            runs.into_iter().for_each(|run| state.add_run(run));
            state.unapplied = Some(unapplied);
            Ok(())
        })?;
        self.apply_documents().inspect_err(|_| self.is_unsure = true)?;
        self.merge_runs_if_many()?;
        self.fold_if_due()?;
        self.settle()
    }

    /// Writes the terms of the other index as runs, and its documents.
    fn take_all(&mut self, other: &Self) -> Result<(Vec<RunInfo>, Unapplied)> {
        let documents = BlocksMax::of_documents(other.state.documents);
        let run = self.begin_run(BlocksMax { documents, ..BlocksMax::default() })?;
        let mut blocks = 0;
        for_chunks(other.documents.iter(), |entries| {
            let pairs = entries.iter().map(|(id, text)| commit::document((id, text)));
            let entries = pairs.collect::<Result<Vec<_>>>()?;
            blocks = self.write_documents((run, blocks), &entries)?;
            Ok(())
        })?;
        let (mut runs, mut taken) = (Vec::new(), Taken::default());
        other.merged()?.for_each(|total| {
            if frequency(total.text, total.delta)?.is_some() {
                taken.push(self.blocks.place(&total.key), total.text, total.delta);
            }
            if taken.ram_bytes() < self.batch_bytes {
                return Ok(());
            }
            runs.push(self.write_taken(std::mem::take(&mut taken))?);
            Ok(())
        })?;
        if !taken.terms.is_empty() {
            runs.push(self.write_taken(taken)?);
        }
        Ok((runs, Unapplied { run, blocks, are_removed: false }))
    }

    fn write_taken(&mut self, mut taken: Taken) -> Result<RunInfo> {
        let terms = runs::blocks_max(taken.terms.len(), taken.texts.len() as u64);
        let id = self.begin_run(BlocksMax { terms, ..BlocksMax::default() })?;
        taken.sort();
        let mut writer = RunWriter::new(&self.blocks, id);
        for (place, text, delta) in &taken.terms {
            writer.push(*place, &taken.texts[text.clone()], *delta)?;
        }
        writer.finish()
    }

    fn check_same_analysis(&self, other: &Self) -> Result<()> {
        let (expected, found) = (self.analysis(), other.analysis());
        if expected == found {
            return Ok(());
        }
        let text = |it| serde_json::to_string(it).unwrap_or_default();
        Err(Error::OtherAnalysis { expected: text(expected), found: text(found) })
    }

    fn check_no_common_document(&self, other: &Self) -> Result<()> {
        for_chunks(other.documents.iter(), |entries| {
            let keys: Vec<&[u8]> = entries.iter().map(|(key, _)| &key[..]).collect();
            for ((key, text), found) in entries.iter().zip(self.documents.get_many(&keys)?) {
                let Some(found) = found else { continue };
                let same = *found == **text;
                let hash: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
                return Err(Error::Repeated {
                    document: format!("whose id has the XXH3 hash {hash}"),
                    difference: if same { "with the same text" } else { "with another text" },
                });
            }
            Ok(())
        })
    }
}

/// Calls `act` with the items in chunks.
fn for_chunks<T, E>(
    items: impl Iterator<Item = std::result::Result<T, E>>,
    mut act: impl FnMut(&[T]) -> Result<()>,
) -> Result<()>
where
    Error: From<E>,
{
    // A table's iterator must not be called after its end.
    let mut items = items.fuse();
    loop {
        let chunk = items.by_ref().take(CHUNK).collect::<std::result::Result<Vec<T>, E>>()?;
        if chunk.is_empty() {
            return Ok(());
        }
        act(&chunk)?;
    }
}
