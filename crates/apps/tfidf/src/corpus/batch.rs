//! The terms of some documents, as they become a run: each occurrence is a record of its hash and its place in the
//! text, and sorting brings those of one term together.
//!
//! No map is asked for each occurrence, and no term has a copy: its text is where it was found. Records are spread over
//! buckets by their first bits as they come, so that a bucket is sorted within the processor's cache.

use nandex::store::hash::KeyHasher;

use super::runs::{self, Delta};
use crate::tokenise::{Analyser, KeyMap, TermKey, Tokens};
use crate::{Error, NGRAM_MAX, Result};

/// The longest term that is kept, in bytes.
pub const TERM_BYTES_MAX: usize = 128 << 10;

/// Buckets, by the first bits of the place.
const BUCKET_BITS: u32 = 8;

/// Bits of the number of tokens of an n-gram.
const NGRAM_BITS: u32 = NGRAM_MAX.trailing_zeros();

/// RAM of a document: its entry, and its id in a map with the map's own overhead, in bytes.
const DOCUMENT_RAM_BYTES: usize = 112;

/// The most RAM of a batch, in bytes: places in its text have 32 bits.
const RAM_BYTES_MAX: usize = 2 << 30;

/// An occurrence of a term. The order of fields is the order of a run, and within a term that of documents.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Occurrence {
    /// Where the term belongs in a run.
    place: u64,
    /// The first half of its key. With the place these are as many bits as the key has.
    half: u64,
    /// The number of its document, and below it its tokens minus one.
    document: u32,
    /// The number of its first token.
    token: u32,
}

/// A document of a batch, by the hashes of its id and its text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct DocumentEntry {
    pub(super) id: TermKey,
    pub(super) text: TermKey,
}

/// Some documents.
///
/// It is full when its occurrences and texts take the RAM it was made for. A single document is always taken whole, so
/// one that is longer than that takes more.
#[derive(Debug)]
pub(super) struct Batch {
    hasher: KeyHasher,
    buckets: Vec<Vec<Occurrence>>,
    /// The tokens of all documents, and where each begins and ends.
    text: Vec<u8>,
    spans: Vec<(u32, u32)>,
    documents: Vec<DocumentEntry>,
    /// The same, by ids.
    ids: KeyMap<TermKey>,
    occurrences: usize,
    /// Bytes of the texts of all occurrences.
    term_bytes: u64,
    ram_bytes: usize,
}

impl Batch {
    /// A batch that takes about this much RAM in bytes.
    pub(super) fn new(hasher: KeyHasher, ram_bytes: usize) -> Self {
        Self {
            hasher,
            buckets: vec![Vec::new(); 1 << BUCKET_BITS],
            text: Vec::new(),
            spans: Vec::new(),
            documents: Vec::new(),
            ids: KeyMap::default(),
            occurrences: 0,
            term_bytes: 0,
            ram_bytes: ram_bytes.min(RAM_BYTES_MAX),
        }
    }

    /// Takes the terms of a document, which errors call `name`.
    pub(super) fn add(
        &mut self,
        (name, document): (&str, DocumentEntry),
        analyser: &Analyser,
        tokens: &Tokens,
    ) -> Result<()> {
        let first = self.spans.len();
        self.take_tokens(name, tokens)?;
        let documents = self.documents.len() as u32;
        let analysis = analyser.analysis();
        for length in analysis.ngram_min..=analysis.ngram_max.min(tokens.len()) {
            let tag = documents << NGRAM_BITS | (length as u32 - 1);
            for (token, term) in (first as u32..).zip(tokens.ngrams(length)) {
                if term.len() > TERM_BYTES_MAX {
                    return Err(too_long(name, term));
                }
                self.term_bytes += term.len() as u64;
                self.push(TermKey::of(term), tag, token);
            }
            self.occurrences += tokens.len() + 1 - length;
        }
        self.documents.push(document);
        self.ids.insert(document.id, document.text);
        Ok(())
    }

    /// Copies the tokens of a document behind those of the others.
    fn take_tokens(&mut self, name: &str, tokens: &Tokens) -> Result<()> {
        let start = self.text.len();
        let end = start + tokens.bytes().len();
        if u32::try_from(end).is_err() {
            let (document, bytes_max) = (name.to_owned(), u32::MAX as usize - RAM_BYTES_MAX);
            return Err(nandex_corpus::Error::DocumentTooLong { document, bytes_max }.into());
        }
        reserve(&mut self.text, tokens.bytes().len());
        self.text.extend_from_slice(tokens.bytes());
        reserve(&mut self.spans, tokens.len());
        let moved = |(from, to): &(usize, usize)| ((start + from) as u32, (start + to) as u32);
        self.spans.extend(tokens.spans().iter().map(moved));
        Ok(())
    }

    #[inline]
    fn push(&mut self, key: TermKey, document: u32, token: u32) {
        let place = self.hasher.hash(&key.0).place;
        let bucket = &mut self.buckets[(place >> (64 - BUCKET_BITS)) as usize];
        if bucket.len() == bucket.capacity() {
            reserve(bucket, 1);
        }
        bucket.push(Occurrence { place, half: key.half(), document, token });
    }

    /// The hash of the text of the document of this id, if it is in the batch.
    pub(super) fn text_of(&self, id: &TermKey) -> Option<TermKey> {
        self.ids.get(id).copied()
    }

    pub(super) fn is_full(&self) -> bool {
        let documents = self.documents.len();
        let is_last = documents as u64 + 1 >= 1 << (u32::BITS - NGRAM_BITS);
        is_last || self.ram_bytes() >= self.ram_bytes
    }

    /// RAM that it takes, in bytes. A bucket has an eighth more than it holds, on average.
    fn ram_bytes(&self) -> usize {
        self.occurrences * size_of::<Occurrence>() / 8 * 9
            + self.text.capacity()
            + self.spans.capacity() * size_of::<(u32, u32)>()
            + self.documents.len() * DOCUMENT_RAM_BYTES
    }

    pub(super) fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    pub(super) fn documents(&self) -> &[DocumentEntry] {
        &self.documents
    }

    /// Occurrences of all terms.
    pub(super) fn occurrences(&self) -> u64 {
        self.occurrences as u64
    }

    /// The most blocks of its run.
    pub(super) fn blocks_max(&self) -> u32 {
        runs::blocks_max(self.occurrences, self.term_bytes)
    }

    /// Calls `take` with the place, the text and the counts of each term, in the order of a run.
    pub(super) fn for_each(
        &mut self,
        mut take: impl FnMut(u64, &[u8], Delta) -> Result<()>,
    ) -> Result<()> {
        for bucket in &mut self.buckets {
            bucket.sort_unstable();
            let alike = |a: &Occurrence, b: &Occurrence| a.place == b.place && a.half == b.half;
            for term in bucket.chunk_by(alike) {
                let other = |pair: &&[Occurrence]| pair[0].document != pair[1].document;
                let documents = term.windows(2).filter(other).count() as i64 + 1;
                let delta = Delta { documents, occurrences: term.len() as i64 };
                let tokens = (term[0].document & (NGRAM_MAX as u32 - 1)) as usize;
                let first = term[0].token as usize;
                let (start, end) = (self.spans[first].0, self.spans[first + tokens].1);
                take(term[0].place, &self.text[start as usize..end as usize], delta)?;
            }
        }
        Ok(())
    }

    /// Forgets everything, and gives back what a single document has taken beyond its RAM.
    pub(super) fn clear(&mut self) {
        let is_too_large = self.ram_bytes() > self.ram_bytes / 4 * 5;
        if is_too_large {
            *self = Self::new(self.hasher, self.ram_bytes);
            return;
        }
        self.buckets.iter_mut().for_each(Vec::clear);
        self.text.clear();
        self.spans.clear();
        self.documents.clear();
        self.ids.clear();
        (self.occurrences, self.term_bytes) = (0, 0);
    }
}

/// Makes space for more items in steps of a quarter, where a growing vector would double.
fn reserve<T>(items: &mut Vec<T>, more: usize) {
    let needed = items.len() + more;
    if needed > items.capacity() {
        items.reserve_exact((needed + needed / 4).max(64) - items.len());
    }
}

fn too_long(document: &str, term: &[u8]) -> Error {
    Error::TermTooLong {
        document: document.to_owned(),
        found: term.len(),
        bytes_max: TERM_BYTES_MAX,
    }
}
