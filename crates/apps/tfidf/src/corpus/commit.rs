//! Changes the index as a whole: new content is written first, under unused numbers, and one record, the state, then
//! makes it count.
//!
//! ```text
//!   1. state: run 7 may have blocks     durable; a crash from here on leaves them, and the next opening removes them
//!   2. blocks of run 7                  durable
//!   3. state: run 7 counts              durable: this is the commit
//!   4. documents of the batch           into their table, which an opening does again if a crash comes between
//!   5. unneeded blocks                  removed
//! ```

use nandex::Table;

use super::Corpus;
use super::batch::DocumentEntry;
use super::ranked::Section;
use super::runs::{Kind, RunInfo};
use super::state::{State, Unapplied, Unused};
use crate::tokenise::TermKey;
use crate::{Error, Result};

/// Documents of a block.
const BLOCK_DOCUMENTS: usize = 2048;

/// Bytes of a document: the hashes of its id and its text.
const DOCUMENT_BYTES: usize = 32;

/// The most blocks of a run.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct BlocksMax {
    pub(super) terms: u32,
    pub(super) documents: u32,
    /// The most blocks of each section of a rank index.
    pub(super) ranked: u32,
}

impl BlocksMax {
    /// Returns the blocks of these runs merged into one.
    pub(super) fn of_runs(runs: &[RunInfo]) -> Self {
        Self { terms: RunInfo::blocks_max(runs.iter().copied()), ..Self::default() }
    }

    /// Returns the most blocks of `documents` documents.
    pub(super) fn of_documents(documents: u64) -> u32 {
        u32::try_from(documents.div_ceil(BLOCK_DOCUMENTS as u64)).unwrap_or(u32::MAX)
    }
}

impl Corpus {
    /// Fails if a commit failed before, so that it is unknown whether it counts.
    pub(super) fn check_sure(&self) -> Result<()> {
        if self.is_unsure { Err(Error::Unsure) } else { Ok(()) }
    }

    /// Replaces the state.
    fn put_state(&mut self, next: State) -> Result<()> {
        match self.blocks.put_state(&next.encode()) {
            Ok(()) => {
                self.state = next;
                Ok(())
            }
            // It failed before anything was written.
            Err(error @ Error::NoSpace(_)) => Err(error),
            Err(error) => {
                self.is_unsure = true;
                Err(error)
            }
        }
    }

    /// Begins a run of at most these blocks, and returns its number.
    pub(super) fn begin_run(&mut self, blocks_max: BlocksMax) -> Result<u64> {
        let mut next = self.state.clone();
        let run = next.next_run;
        next.next_run += 1;
        let BlocksMax { terms, documents, ranked } = blocks_max;
        next.unused.push(Unused { run, terms, documents, ranked });
        self.put_state(next)?;
        // Blocks that earlier states needed can be removed now that this one is durable.
        let (begun, unused) = self.state.unused.iter().partition(|it| it.run >= self.begun_from);
        self.state.unused = unused;
        self.remove_unused()?;
        self.state.unused = begun;
        Ok(run)
    }

    /// Makes everything written count, by a state that names it.
    pub(super) fn commit(&mut self, change: impl FnOnce(&mut State) -> Result<()>) -> Result<()> {
        self.blocks.sync()?;
        let mut next = self.state.clone();
        next.unused.clear();
        change(&mut next)?;
        self.put_state(next)?;
        self.begun_from = self.state.next_run;
        Ok(())
    }

    /// Drops runs that were begun and do not count, after a failure.
    pub(super) fn abandon<T>(&mut self, error: Error) -> Result<T> {
        if !self.is_unsure {
            // The first failure counts; the next opening removes the rest.
            let _ = self.remove_unused();
        }
        Err(error)
    }

    /// Removes the unused blocks.
    pub(super) fn remove_unused(&mut self) -> Result<()> {
        for unused in std::mem::take(&mut self.state.unused) {
            let Unused { run, terms, documents, ranked } = unused;
            (0..terms).try_for_each(|number| self.blocks.remove(Kind::Terms, run, number))?;
            (0..documents)
                .try_for_each(|number| self.blocks.remove(Kind::Documents, run, number))?;
            // If only the documents are removed, the terms are in use.
            if terms > 0 {
                self.blocks.remove(Kind::Firsts, run, 0)?;
            }
            for kind in Section::ALL.map(Kind::Ranked) {
                (0..ranked).try_for_each(|number| self.blocks.remove(kind, run, number))?;
            }
        }
        Ok(())
    }

    /// Notes a run whose blocks are no longer used.
    pub(super) fn replaced(run: RunInfo) -> Unused {
        Unused { run: run.id, terms: run.blocks, documents: 0, ranked: 0 }
    }

    /// Writes the blocks of documents from that number on, and returns the number after them.
    pub(super) fn write_documents(
        &self,
        (run, first): (u64, u32),
        documents: &[DocumentEntry],
    ) -> Result<u32> {
        let mut number = first;
        for documents in documents.chunks(BLOCK_DOCUMENTS) {
            let bytes = |document: &DocumentEntry| [document.id.0, document.text.0].concat();
            let block: Vec<u8> = documents.iter().flat_map(bytes).collect();
            self.blocks.put(Kind::Documents, (run, number), &block)?;
            number += 1;
        }
        Ok(number)
    }

    /// Puts the documents of the last batch into their table, durably. Doing it again changes nothing.
    pub(super) fn apply_documents(&mut self) -> Result<()> {
        let Some(Unapplied { run, blocks, are_removed }) = self.state.unapplied else {
            return Ok(());
        };
        for number in 0..blocks {
            let block = self.blocks.get(Kind::Documents, run, number)?;
            let (documents, _) = block.as_chunks::<DOCUMENT_BYTES>();
            let pairs: Vec<(&[u8], &[u8])> = documents.iter().map(|it| it.split_at(16)).collect();
            if are_removed {
                pairs.iter().try_for_each(|(id, _)| self.documents.remove(id))?;
            } else {
                self.documents.insert_many(&pairs)?;
            }
        }
        self.documents.sync()?;
        // The blocks are removed only after the next state.
        self.state.unapplied = None;
        self.state.unused.push(Unused { run, terms: 0, documents: blocks, ranked: 0 });
        Ok(())
    }

    /// Notes that all documents are in their table, and removes unused blocks.
    pub(super) fn settle(&mut self) -> Result<()> {
        if self.state.unused.is_empty() {
            return Ok(());
        }
        self.put_state(self.state.clone())?;
        self.remove_unused()?;
        self.put_state(self.state.clone())
    }
}

/// Decodes a document from an entry of a table.
pub(super) fn document((id, text): (&[u8], &[u8])) -> Result<DocumentEntry> {
    let hash = |bytes: &[u8]| {
        <[u8; 16]>::try_from(bytes).map(TermKey).map_err(|_| Error::Contradiction {
            reason: format!("a hash of a document of {} bytes, expected 16", bytes.len()),
        })
    };
    Ok(DocumentEntry { id: hash(id)?, text: hash(text)? })
}
