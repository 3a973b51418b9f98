//! The terms of some documents, added up before the tables see them.

use crate::tokenise::{Analyser, KeyMap, TermKey, Tokens};
use crate::{Error, Result};

/// The longest term that is kept, in bytes.
pub const TERM_BYTES_MAX: usize = 128 << 10;

/// RAM of a term in the map, with the map's own overhead, in bytes.
const TERM_RAM_BYTES: usize = 56;

/// Terms for which a batch has space, at least.
const TERMS_MIN: usize = 1024;

/// What a batch knows of a term.
#[derive(Clone, Copy, Debug)]
struct Counted {
    /// Occurrences in all documents of the batch.
    occurrences: u64,
    /// Where its text begins.
    start: usize,
    /// Documents that have it.
    documents: u32,
    /// The number of the last of these.
    last: u32,
    /// Bytes of its text.
    bytes: u32,
}

/// A document of a batch, by the hashes of its id and its text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct DocumentEntry {
    pub(super) id: TermKey,
    pub(super) text: TermKey,
}

/// Counts of the documents of a batch.
///
/// It is full when its terms or their texts take the RAM it was made for. A single document is always taken whole, so
/// one with more terms than that takes more.
#[derive(Debug)]
pub(super) struct Batch {
    terms: KeyMap<Counted>,
    texts: Vec<u8>,
    documents: Vec<DocumentEntry>,
    /// The same, by ids.
    ids: KeyMap<TermKey>,
    occurrences: u64,
    terms_max: usize,
    texts_max: usize,
    documents_max: usize,
}

impl Batch {
    /// A batch that takes about this much RAM in bytes.
    pub(super) fn new(ram_bytes: usize) -> Self {
        // The map doubles when it is 7/8 full, so it is made as large as it may become.
        let terms = (ram_bytes / 8 * 5 / TERM_RAM_BYTES).max(TERMS_MIN).next_power_of_two() / 2;
        let terms_max = (terms / 8 * 7).max(TERMS_MIN);
        Self {
            terms: KeyMap::with_capacity_and_hasher(terms_max, Default::default()),
            texts: Vec::with_capacity(ram_bytes / 4),
            documents: Vec::new(),
            ids: KeyMap::default(),
            occurrences: 0,
            terms_max,
            texts_max: ram_bytes / 4,
            documents_max: (ram_bytes / 8 / 64).max(16),
        }
    }

    /// Counts the terms of a document, which errors call `name`.
    pub(super) fn add(
        &mut self,
        (name, document): (&str, DocumentEntry),
        analyser: &Analyser,
        tokens: &Tokens,
    ) -> Result<()> {
        // A batch has fewer documents than that.
        let number = u32::try_from(self.documents.len()).unwrap_or(u32::MAX - 1) + 1;
        for term in analyser.terms(tokens) {
            let bytes = term_bytes(name, term)?;
            self.occurrences += 1;
            let texts = &mut self.texts;
            let counted = self.terms.entry(TermKey::of(term)).or_insert_with(|| {
                let start = texts.len();
                texts.extend_from_slice(term);
                Counted { occurrences: 0, start, documents: 0, last: 0, bytes }
            });
            counted.occurrences += 1;
            counted.documents += u32::from(counted.last != number);
            counted.last = number;
        }
        self.documents.push(document);
        self.ids.insert(document.id, document.text);
        Ok(())
    }

    /// The hash of the text of the document of this id, if it is in the batch.
    pub(super) fn text_of(&self, id: &TermKey) -> Option<TermKey> {
        self.ids.get(id).copied()
    }

    pub(super) fn is_full(&self) -> bool {
        self.terms.len() >= self.terms_max
            || self.texts.len() >= self.texts_max
            || self.documents.len() >= self.documents_max
    }

    pub(super) fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    pub(super) fn documents(&self) -> &[DocumentEntry] {
        &self.documents
    }

    /// Occurrences of all terms.
    pub(super) fn occurrences(&self) -> u64 {
        self.occurrences
    }

    /// The keys of all terms, sorted: a table with places in the order of hashes is then used in order.
    pub(super) fn keys(&self) -> Vec<TermKey> {
        let mut keys: Vec<TermKey> = self.terms.keys().copied().collect();
        keys.sort_unstable_by_key(|key| key.half());
        keys
    }

    /// A term's text; it is of this batch.
    pub(super) fn text(&self, key: &TermKey) -> &[u8] {
        let found = self.terms.get(key);
        found.map_or(&[], |it| &self.texts[it.start..it.start + it.bytes as usize])
    }

    /// A term's documents and occurrences.
    pub(super) fn counts(&self, key: &TermKey) -> (u32, u64) {
        self.terms.get(key).map_or((0, 0), |it| (it.documents, it.occurrences))
    }

    /// Forgets everything, and gives back what a single document has taken beyond its RAM.
    pub(super) fn clear(&mut self) {
        self.terms.clear();
        self.terms.shrink_to(self.terms_max);
        self.texts.clear();
        self.texts.shrink_to(self.texts_max);
        self.documents.clear();
        self.ids.clear();
        self.occurrences = 0;
    }
}

/// The length of a term that is short enough to be kept.
fn term_bytes(document: &str, term: &[u8]) -> Result<u32> {
    let bytes = u32::try_from(term.len()).ok().filter(|_| term.len() <= TERM_BYTES_MAX);
    bytes.ok_or_else(|| Error::TermTooLong {
        document: document.to_owned(),
        found: term.len(),
        bytes_max: TERM_BYTES_MAX,
    })
}
