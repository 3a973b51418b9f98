//! Answers a query: reads the postings of its terms in parallel in the order of documents.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;

use super::format::{self, DOCUMENT_BYTES, DocumentEntry};
use super::tree::{Found, Tree};
use super::{RankAnswer, RankIndex};
use crate::corpus::{RankedBlocks, Section};
use crate::model::{CountedTerm, euclidean};
use crate::tokenise::Tokens;
use crate::{Error, Ranked, Result};

/// The least and the most bytes of the postings of a term that are read at a time.
const CHUNK_BYTES_MIN: usize = 4 << 10;
const CHUNK_BYTES_MAX: usize = 256 << 10;

/// A term of the query.
struct QueryTerm {
    /// Its value in the row of the query.
    value: f64,
    idf: f64,
    found: Found,
}

impl RankIndex<'_> {
    /// Returns the documents most similar to `query`, at most `count` and the most similar first: the same numbers as
    /// [`Model::rank`](crate::Model::rank) for the same documents.
    ///
    /// Costs reads of a node for each level of the tree and each term, of the terms' postings, once, and of the lengths
    /// of documents that have one of the terms: 682 of these are in a block of 16 KiB. RAM is at most a quarter of the
    /// index's, unless the query has more than some thousand terms.
    ///
    /// # Errors
    /// A failed read, damage.
    pub fn rank(&self, query: &str, count: usize) -> Result<RankAnswer> {
        let before = self.blocks.reads();
        let (terms, length) = self.terms(query)?;
        let mut best: BinaryHeap<Ranked> = BinaryHeap::new();
        let mut documents = 0;
        self.for_each_document(&terms, |number, product, euclidean| {
            documents += 1;
            let lengths = length * euclidean;
            let cosine = if lengths == 0.0 { 0.0 } else { product / lengths };
            if cosine > 0.0 {
                best.push(Ranked { cosine, number: number.into(), id: String::new() });
            }
            if best.len() > count {
                best.pop();
            }
        })?;
        let mut ranked = best.into_sorted_vec();
        for found in &mut ranked {
            found.id = self.id(found.number)?;
        }
        let (reads, pages) = self.blocks.reads();
        let (reads, pages_read) = (reads - before.0, pages - before.1);
        Ok(RankAnswer { ranked, documents, reads, pages_read })
    }

    /// Returns the terms of a query in the order of columns, and the length of its row.
    fn terms(&self, query: &str) -> Result<(Vec<QueryTerm>, f64)> {
        let (analyser, mut tokens) = (self.corpus.analyser(), Tokens::default());
        analyser.analyse(query, &mut tokens);
        let mut counts: BTreeMap<&[u8], u32> = BTreeMap::new();
        analyser.terms(&tokens).for_each(|term| *counts.entry(term).or_default() += 1);
        let mut tree = Tree::new(self.blocks, &self.info);
        let (mut counted, mut found) = (Vec::new(), Vec::new());
        for (column, (text, occurrences)) in (0..).zip(counts) {
            let Some(term) = tree.find(text)? else { continue };
            let idf = self.weigher.idf(term.entry.documents);
            counted.push(CountedTerm { column, occurrences, idf });
            found.push(term);
        }
        let (row, _) = self.weigher.row(&counted);
        let term = |((entry, counted), found): ((&crate::Entry, &CountedTerm), Found)| QueryTerm {
            value: entry.value,
            idf: counted.idf,
            found,
        };
        let terms = row.iter().zip(&counted).zip(found).map(term).collect();
        Ok((terms, euclidean(&row)))
    }

    /// Calls `take` with the number of each document that has a term, the product of its row with that of the query,
    /// and its length. Sums are in the order of columns, as those of a scan.
    fn for_each_document(
        &self,
        terms: &[QueryTerm],
        mut take: impl FnMut(u32, f64, f64),
    ) -> Result<()> {
        let chunk_bytes = self.corpus.config().batch_bytes() / terms.len().max(1);
        let chunk_bytes = chunk_bytes.clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX);
        let list = |term: &QueryTerm| List::new(self.blocks, &term.found, chunk_bytes);
        let mut lists: Vec<List<'_>> = terms.iter().map(list).collect();
        // By document, and then in the order of columns.
        let mut next: BinaryHeap<Reverse<(u32, usize, u32)>> = BinaryHeap::new();
        let named = |number, (document, occurrences)| Reverse((document, number, occurrences));
        for (number, list) in lists.iter_mut().enumerate() {
            next.extend(list.next()?.map(|posting| named(number, posting)));
        }
        let mut documents = Documents::new(self.blocks, self.info.documents);
        while let Some(Reverse((document, ..))) = next.peek().copied() {
            let DocumentEntry { length, euclidean, .. } = documents.get(document.into())?;
            let mut product = 0.0;
            while let Some(Reverse((found, number, occurrences))) = next.peek().copied() {
                if found != document {
                    break;
                }
                let term = &terms[number];
                product += term.value * (self.weigher.weight(occurrences, term.idf) / length);
                next.pop();
                next.extend(lists[number].next()?.map(|posting| named(number, posting)));
            }
            take(document, product, euclidean);
        }
        Ok(())
    }

    /// Returns the id of a document.
    fn id(&self, number: u64) -> Result<String> {
        let mut documents = Documents::new(self.blocks, self.info.documents);
        let start = match number.checked_sub(1) {
            Some(before) => documents.get(before)?.id_end,
            None => 0,
        };
        let end = documents.get(number)?.id_end;
        if end < start || end - start > self.info.bytes {
            return Err(refuse("the place of an id", "another number"));
        }
        let id = read(self.blocks, Section::Ids, start..end)?;
        String::from_utf8(id).map_err(|_| refuse("an id in UTF-8", "other bytes"))
    }
}

/// Returns the bytes of a section in this range.
fn read(blocks: RankedBlocks<'_>, section: Section, range: Range<u64>) -> Result<Vec<u8>> {
    if range.is_empty() {
        return Ok(Vec::new());
    }
    let block_bytes = format::block_bytes(section) as u64;
    let number = |at: u64| {
        u32::try_from(at / block_bytes).map_err(|_| refuse("a block's number", "one past 2^32"))
    };
    let (first, last) = (number(range.start)?, number(range.end - 1)?);
    let from = range.start % block_bytes;
    let mut bytes = if first == last {
        blocks.part(section, first, from..from + (range.end - range.start))?
    } else {
        let mut bytes = blocks.get_many(section, first..last.saturating_add(1))?.concat();
        bytes.drain(..(from as usize).min(bytes.len()));
        bytes
    };
    let wanted = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
    if bytes.len() < wanted {
        return Err(refuse("a longer block", "a shorter one"));
    }
    bytes.truncate(wanted);
    Ok(bytes)
}

/// The postings of a term.
struct List<'c> {
    blocks: RankedBlocks<'c>,
    chunk_bytes: u64,
    /// The unread bytes.
    left: Range<u64>,
    chunk: Vec<u8>,
    at: usize,
    /// The number of unread documents, and the least possible number of the next one.
    postings: u64,
    least: u64,
}

impl<'c> List<'c> {
    fn new(blocks: RankedBlocks<'c>, found: &Found, chunk_bytes: usize) -> Self {
        let (left, postings) = (found.postings.clone(), found.entry.postings);
        let (chunk_bytes, chunk) = (chunk_bytes as u64, Vec::new());
        Self { blocks, chunk_bytes, left, chunk, at: 0, postings, least: 0 }
    }

    /// Returns the next document, and the number of occurrences of the term in it.
    fn next(&mut self) -> Result<Option<(u32, u32)>> {
        if self.postings == 0 {
            return Ok(None);
        }
        if self.chunk.len() - self.at < format::POSTING_BYTES_MAX && !self.left.is_empty() {
            self.read_more()?;
        }
        let posting = format::posting(&self.chunk, self.at);
        let (gap, occurrences, end) = posting.ok_or_else(|| refuse("a posting", "other bytes"))?;
        let number = self.least.checked_add(gap).and_then(|it| u32::try_from(it).ok());
        let number = number.ok_or_else(|| refuse("a document's number", "one past 2^32"))?;
        (self.at, self.least) = (end, u64::from(number) + 1);
        self.postings -= 1;
        Ok(Some((number, occurrences)))
    }

    /// Reads up to a chunk, which ends at the end of a block if possible.
    fn read_more(&mut self) -> Result<()> {
        let block_bytes = format::block_bytes(Section::Postings) as u64;
        let start = self.left.start;
        let end = start.saturating_add(self.chunk_bytes);
        let aligned = end / block_bytes * block_bytes;
        let end = if aligned > start { aligned } else { end }.min(self.left.end);
        self.chunk.drain(..self.at);
        self.at = 0;
        self.chunk.extend(read(self.blocks, Section::Postings, start..end)?);
        self.left.start = end;
        Ok(())
    }
}

/// The data of documents, by ascending numbers. A block is in RAM.
struct Documents<'c> {
    blocks: RankedBlocks<'c>,
    count: u64,
    block: Option<(u64, Vec<u8>)>,
}

impl<'c> Documents<'c> {
    fn new(blocks: RankedBlocks<'c>, count: u64) -> Self {
        Self { blocks, count, block: None }
    }

    fn get(&mut self, number: u64) -> Result<DocumentEntry> {
        if number >= self.count {
            return Err(refuse("a document's number", "one past the last"));
        }
        let of_block = (format::block_bytes(Section::Documents) / DOCUMENT_BYTES) as u64;
        let wanted = number / of_block;
        if self.block.as_ref().is_none_or(|(held, _)| *held != wanted) {
            let start = wanted * of_block;
            let range = start..(start + of_block).min(self.count);
            let bytes = range.start * DOCUMENT_BYTES as u64..range.end * DOCUMENT_BYTES as u64;
            self.block = Some((wanted, read(self.blocks, Section::Documents, bytes)?));
        }
        let bytes = self.block.as_ref().map_or(&[][..], |(_, bytes)| bytes);
        let at = (number % of_block) as usize * DOCUMENT_BYTES;
        let entry = bytes.get(at..at + DOCUMENT_BYTES).and_then(DocumentEntry::decode);
        entry.ok_or_else(|| refuse("a document's length", "fewer bytes"))
    }
}

pub(super) fn refuse(expected: &str, found: &str) -> Error {
    let reason = format!("expected {expected} in the rank index, found {found}");
    Error::Contradiction { reason }
}
