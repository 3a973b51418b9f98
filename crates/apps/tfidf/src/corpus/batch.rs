//! The terms of some documents on their way into a run: each occurrence is a record of its hash and its place in the
//! text, and sorting brings the occurrences of a term together.
//!
//! Most occurrences are of few terms. So the most recent terms are in a small table, which counts their occurrences
//! until another term needs the place; then they become one record. Few occurrences need a lookup in a large map, and
//! no term is copied: its text stays where it was found. Records are spread over buckets by their first bits as they
//! come, so that a bucket is sorted within the processor's cache.

use nandex::raw::store::hash::KeyHasher;

use nandex_corpus::parts::{Threads, in_parts};

use super::runs::{self, Delta};
use crate::tokenise::{Analyser, KeyMap, TermKey, Tokens};
use crate::{Analysis, Error, NGRAM_MAX, Result};

/// The longest stored term, in bytes.
pub const TERM_BYTES_MAX: usize = 128 << 10;

/// The number of buckets, by the first bits of the place, as a power of two.
const BUCKET_BITS: u32 = 8;

/// Bits of the number of tokens of an n-gram.
const NGRAM_BITS: u32 = NGRAM_MAX.trailing_zeros();

/// RAM of a document: its entry, and its id in a map with the map's own overhead, in bytes.
const DOCUMENT_RAM_BYTES: usize = 112;

/// The most RAM of a batch, in bytes: places in its text have 32 bits.
const RAM_BYTES_MAX: usize = 2 << 30;

/// The number of places of the table of recent terms: it fits the processor's cache.
const RECENT_BITS: u32 = 14;

/// The number of buckets that justify a thread for sorting.
const BUCKETS_MIN: usize = 32;

/// Set in a record's token if it is a place in the list of repeats.
const REPEATED: u32 = 1 << 31;

/// Some occurrences of a term. The order of fields is the order of a run, and within a term that of documents.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Occurrence {
    /// The term's position in a run.
    place: u64,
    /// The first half of its key. Together with the place it has as many bits as the key.
    half: u64,
    /// The number of its first document, and below it its tokens minus one.
    document: u32,
    /// The number of its first token; or its place in the list of repeats if it has more than one occurrence.
    token: u32,
}

/// Consecutive occurrences of a term.
#[derive(Clone, Copy, Debug)]
struct Repeat {
    /// The number of its first token.
    token: u32,
    /// The number of the last document that has it.
    last: u32,
    documents: u32,
    occurrences: u32,
}

/// A recent term, or none if it has no occurrences.
#[derive(Clone, Copy, Debug)]
struct Recent {
    key: TermKey,
    /// The number of its first document, and below it its tokens minus one.
    document: u32,
    repeat: Repeat,
}

impl Recent {
    const NONE: Self = Self {
        key: TermKey([0; 16]),
        document: 0,
        repeat: Repeat { token: 0, last: 0, documents: 0, occurrences: 0 },
    };
}

/// A document of a batch, by the hashes of its id and its text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct DocumentEntry {
    pub(super) id: TermKey,
    pub(super) text: TermKey,
}

/// The tokens of a document, and the keys of its terms in their order.
#[derive(Debug)]
pub(super) struct Analysed {
    tokens: Tokens,
    /// The number of tokens that are also the last ones of the part before.
    carried: usize,
    keys: Vec<TermKey>,
}

impl Analysed {
    pub(super) fn of(text: &str, analyser: &Analyser) -> Self {
        Self::after(None, text, analyser)
    }

    /// Analyses a part of a text. It begins with the last tokens of the part before, for terms that cross both.
    pub(super) fn after(before: Option<&Self>, text: &str, analyser: &Analyser) -> Self {
        let mut tokens = Tokens::default();
        analyser.analyse(text, &mut tokens);
        let mut carried = 0;
        if let Some(Self { tokens: before, .. }) = before {
            carried = (analyser.analysis().ngram_max - 1).min(before.len());
            tokens = before.carried_into(carried, &tokens);
        }
        tokens.shrink();
        let mut keys = Vec::with_capacity(terms_of(tokens.len(), analyser.analysis()));
        keys.extend(analyser.terms(&tokens).map(TermKey::of));
        Self { tokens, carried, keys }
    }
}

/// Returns the number of terms of a text with this number of tokens.
fn terms_of(tokens: usize, analysis: &Analysis) -> usize {
    let lengths = analysis.ngram_min..=analysis.ngram_max.min(tokens);
    lengths.map(|length| tokens + 1 - length).sum()
}

/// Some documents.
///
/// It is full when its occurrences and texts take its RAM. A document is always taken whole, if need be in several
/// parts.
#[derive(Debug)]
pub(super) struct Batch {
    hasher: KeyHasher,
    recent: Box<[Recent]>,
    buckets: Vec<Vec<Occurrence>>,
    repeats: Vec<Repeat>,
    /// The number of records in all buckets.
    records: usize,
    /// The tokens of all documents, and the beginning and the end of each.
    text: Vec<u8>,
    spans: Vec<(u32, u32)>,
    documents: Vec<DocumentEntry>,
    /// The same, by ids.
    ids: KeyMap<TermKey>,
    occurrences: usize,
    /// The bytes of the texts of all records.
    term_bytes: u64,
    ram_bytes: usize,
}

impl Batch {
    /// Creates a batch that takes about this much RAM in bytes.
    pub(super) fn new(hasher: KeyHasher, ram_bytes: usize) -> Self {
        Self {
            hasher,
            recent: vec![Recent::NONE; 1 << RECENT_BITS].into(),
            buckets: vec![Vec::new(); 1 << BUCKET_BITS],
            repeats: Vec::new(),
            records: 0,
            text: Vec::new(),
            spans: Vec::new(),
            documents: Vec::new(),
            ids: KeyMap::default(),
            occurrences: 0,
            term_bytes: 0,
            ram_bytes: ram_bytes.min(RAM_BYTES_MAX),
        }
    }

    /// Takes the terms of a document; `name` identifies it in errors.
    pub(super) fn add(
        &mut self,
        (name, document): (&str, DocumentEntry),
        analysis: &Analysis,
        analysed: &Analysed,
    ) -> Result<()> {
        self.add_part(name, analysis, analysed)?;
        self.end(document);
        Ok(())
    }

    /// Ends the document whose parts were added.
    pub(super) fn end(&mut self, document: DocumentEntry) {
        self.documents.push(document);
        self.ids.insert(document.id, document.text);
    }

    /// Takes the terms of a part of the current document.
    pub(super) fn add_part(
        &mut self,
        name: &str,
        analysis: &Analysis,
        Analysed { tokens, carried, keys }: &Analysed,
    ) -> Result<()> {
        let first = self.spans.len() as u32;
        self.take_tokens(name, tokens)?;
        let documents = self.documents.len() as u32;
        let mut keys = keys.iter();
        for length in analysis.ngram_min..=analysis.ngram_max.min(tokens.len()) {
            let tag = documents << NGRAM_BITS | (length as u32 - 1);
            if let Some(term) = tokens.ngrams(length).find(|term| term.len() > TERM_BYTES_MAX) {
                return Err(too_long(name, term));
            }
            // Terms of the tokens before are in the part before.
            let (all, skipped) = (tokens.len() + 1 - length, (carried + 1).saturating_sub(length));
            let of_length = keys.by_ref().take(all);
            for (token, key) in (first..).zip(of_length).skip(skipped) {
                self.push(*key, tag, token);
            }
            self.occurrences += all - skipped;
        }
        Ok(())
    }

    /// Appends the tokens of a document to those of the others.
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
    fn push(&mut self, key: TermKey, tag: u32, token: u32) {
        let document = tag >> NGRAM_BITS;
        let recent = &mut self.recent[(key.half() >> (64 - RECENT_BITS)) as usize];
        if recent.key == key && recent.repeat.occurrences > 0 {
            let repeat = &mut recent.repeat;
            repeat.documents += u32::from(repeat.last != document);
            repeat.last = document;
            repeat.occurrences += 1;
            return;
        }
        let repeat = Repeat { token, last: document, documents: 1, occurrences: 1 };
        let before = std::mem::replace(recent, Recent { key, document: tag, repeat });
        self.record(before);
    }

    /// Turns a recent term into a record.
    #[inline]
    fn record(&mut self, Recent { key, document, repeat }: Recent) {
        let token = match repeat.occurrences {
            0 => return,
            1 => repeat.token,
            _ => {
                reserve(&mut self.repeats, 1);
                self.repeats.push(repeat);
                REPEATED | (self.repeats.len() - 1) as u32
            }
        };
        let place = self.hasher.hash(&key.0).place;
        let bucket = &mut self.buckets[(place >> (64 - BUCKET_BITS)) as usize];
        if bucket.len() == bucket.capacity() {
            reserve(bucket, 1);
        }
        bucket.push(Occurrence { place, half: key.half(), document, token });
        self.records += 1;
        let (start, end) = self.span(document, repeat.token);
        self.term_bytes += (end - start) as u64;
    }

    /// Returns the place of a term's text, given its document with its number of tokens, and the first token.
    fn span(&self, document: u32, token: u32) -> (usize, usize) {
        let (first, more) = (token as usize, (document & (NGRAM_MAX as u32 - 1)) as usize);
        (self.spans[first].0 as usize, self.spans[first + more].1 as usize)
    }

    /// Turns all terms into records, in the order of a run. Must be called before they are read.
    pub(super) fn seal(&mut self) {
        for place in 0..self.recent.len() {
            let recent = std::mem::replace(&mut self.recent[place], Recent::NONE);
            self.record(recent);
        }
        in_parts(&mut self.buckets, Threads::of_system(BUCKETS_MIN), |part| {
            part.iter_mut().for_each(|bucket| bucket.sort_unstable());
        });
    }

    /// Returns the counts of a record.
    fn repeat(&self, record: &Occurrence) -> Repeat {
        if record.token & REPEATED == 0 {
            let last = record.document >> NGRAM_BITS;
            return Repeat { token: record.token, last, documents: 1, occurrences: 1 };
        }
        self.repeats[(record.token & !REPEATED) as usize]
    }

    /// Returns the counts of a term, given all its records.
    fn delta(&self, term: &[Occurrence]) -> Delta {
        let mut delta = Delta { documents: 0, occurrences: 0 };
        let mut last = None;
        for record in term {
            let repeat = self.repeat(record);
            let is_counted = last == Some(record.document >> NGRAM_BITS);
            delta.documents += i64::from(repeat.documents) - i64::from(is_counted);
            delta.occurrences += i64::from(repeat.occurrences);
            last = Some(repeat.last);
        }
        delta
    }

    /// Returns the hash of the text of the document of this id, if it is in the batch.
    pub(super) fn text_of(&self, id: &TermKey) -> Option<TermKey> {
        self.ids.get(id).copied()
    }

    pub(super) fn is_full(&self) -> bool {
        let documents = self.documents.len();
        let is_last = documents as u64 + 1 >= 1 << (u32::BITS - NGRAM_BITS);
        is_last || self.ram_bytes() >= self.ram_bytes
    }

    /// Returns whether a document in several parts takes more RAM than all of a batch may.
    pub(super) fn is_exceeded(&self) -> bool {
        self.ram_bytes() > self.ram_bytes
    }

    /// Returns its RAM, in bytes. A bucket takes an eighth more than its content, on average.
    fn ram_bytes(&self) -> usize {
        self.records * size_of::<Occurrence>() / 8 * 9
            + self.repeats.capacity() * size_of::<Repeat>()
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

    /// Returns the number of occurrences of all terms.
    pub(super) fn occurrences(&self) -> u64 {
        self.occurrences as u64
    }

    /// Returns the most blocks of its run, once it is sealed.
    pub(super) fn blocks_max(&self) -> u32 {
        runs::blocks_max(self.records, self.term_bytes)
    }

    /// Calls `take` with the place, the text and the counts of each term, in the order of a run, once it is sealed.
    pub(super) fn for_each(
        &self,
        mut take: impl FnMut(u64, &[u8], Delta) -> Result<()>,
    ) -> Result<()> {
        for bucket in &self.buckets {
            let alike = |a: &Occurrence, b: &Occurrence| a.place == b.place && a.half == b.half;
            for term in bucket.chunk_by(alike) {
                let (start, end) = self.span(term[0].document, self.repeat(&term[0]).token);
                take(term[0].place, &self.text[start..end], self.delta(term))?;
            }
        }
        Ok(())
    }

    /// Empties the batch, and releases the RAM that a single document took beyond the batch's.
    pub(super) fn clear(&mut self) {
        let is_too_large = self.ram_bytes() > self.ram_bytes / 4 * 5;
        if is_too_large {
            *self = Self::new(self.hasher, self.ram_bytes);
            return;
        }
        self.recent.fill(Recent::NONE);
        self.buckets.iter_mut().for_each(Vec::clear);
        self.repeats.clear();
        self.text.clear();
        self.spans.clear();
        self.documents.clear();
        self.ids.clear();
        (self.records, self.occurrences, self.term_bytes) = (0, 0, 0);
    }
}

/// Makes space for more items in steps of a quarter, whereas a growing vector would double.
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

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use nandex::raw::store::hash::HashKind;

    use super::*;

    /// Creates words: some are in most texts and most are in few, more than are recent at a time.
    fn texts(count: usize) -> Vec<String> {
        let mut state = 1_u64;
        let mut below = |end: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % end
        };
        let text = |_| {
            let word = |_| match below(2) {
                0 => format!("w{}", below(40)),
                _ => format!("w{}", below(60_000)),
            };
            (0..300).map(word).collect::<Vec<_>>().join(" ")
        };
        (0..count).map(text).collect()
    }

    fn counted(batch: &mut Batch) -> BTreeMap<Vec<u8>, (i64, i64)> {
        batch.seal();
        let (mut counts, mut places) = (BTreeMap::new(), Vec::new());
        let take = |place, text: &[u8], delta: Delta| {
            places.push(place);
            let counted = counts.insert(text.to_vec(), (delta.documents, delta.occurrences));
            assert_eq!(counted, None, "a term comes once");
            Ok(())
        };
        batch.for_each(take).unwrap();
        assert!(places.is_sorted());
        assert!(batch.blocks_max() > 0);
        counts
    }

    #[test]
    fn each_term_is_counted_once_however_often_it_leaves_the_recent_ones() {
        let analysis = Analysis::default().ngrams(1, 2);
        let analyser = Analyser::new(&analysis).unwrap();
        let mut batch = Batch::new(KeyHasher::new(HashKind::Xxh3, 3), 64 << 20);
        for texts in texts(300).chunks(150) {
            let mut expected: BTreeMap<Vec<u8>, (BTreeSet<usize>, i64)> = BTreeMap::new();
            for (number, text) in texts.iter().enumerate() {
                let key = TermKey::of(&number.to_le_bytes());
                let analysed = Analysed::of(text, &analyser);
                let document = DocumentEntry { id: key, text: key };
                batch.add(("name", document), &analysis, &analysed).unwrap();
                for term in analyser.terms(&analysed.tokens) {
                    let counts = expected.entry(term.to_vec()).or_default();
                    counts.0.insert(number);
                    counts.1 += 1;
                }
            }
            let expected = expected.into_iter().map(|(term, (documents, occurrences))| {
                (term, (documents.len() as i64, occurrences))
            });
            assert!(batch.records > 2 << RECENT_BITS && !batch.repeats.is_empty());
            assert!(counted(&mut batch) == expected.collect());
            batch.clear();
        }
    }
}
