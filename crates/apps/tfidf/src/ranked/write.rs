//! Writes a rank index: a pass over the documents, whose postings are sorted in unnamed files, and then each section
//! once, from front to back.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::Path;

use nandex_corpus::DocumentResult;
use nandex_corpus::scratch::{rewound, scratch_file};
use nandex_corpus::sort::{Sorted, Sorter};

use super::format::{self, DocumentEntry, NODE_BYTES, TermEntry};
use super::sort::Posting;
use crate::corpus::{RankedBlocks, Section};
use crate::model::{Vocabulary, Weigher, euclidean};
use crate::{Error, Model, Result};

/// Bytes of the buffer of a file.
const BUFFER_BYTES: usize = 256 << 10;

/// The data gathered by a pass over documents.
pub(super) struct Gathered {
    postings: Sorted<Posting>,
    pub(super) postings_count: u64,
    documents: Spool,
    ids: Spool,
    pub(super) documents_count: u32,
}

impl Gathered {
    /// Reads and weighs all documents. RAM for their postings is `ram_bytes`, and files are in `folder`.
    pub(super) fn read(
        model: &Model<'_>,
        documents: impl IntoIterator<Item = DocumentResult>,
        (folder, ram_bytes): (&Path, usize),
    ) -> Result<Self> {
        let weigher = model.weigher();
        let mut sorter = Sorter::new(folder, ram_bytes);
        let (mut entries, mut ids) = (Spool::new(folder)?, Spool::new(folder)?);
        let mut document = 0_u32;
        model.counted(documents, |id, terms| {
            for term in terms {
                let (column, occurrences) = (term.column, term.occurrences);
                sorter.push(Posting { column, document, occurrences })?;
            }
            let (row, length) = weigher.row(terms);
            ids.push(id.as_bytes())?;
            let (euclidean, id_end) = (euclidean(&row), ids.bytes);
            entries.push(&DocumentEntry { length, euclidean, id_end }.encode())?;
            document = document.checked_add(1).ok_or_else(too_many)?;
            Ok(())
        })?;
        let postings_count = sorter.len();
        let postings = sorter.finish()?;
        Ok(Self { postings, postings_count, documents: entries, ids, documents_count: document })
    }

    /// Returns a number of blocks that no section of the index exceeds.
    pub(super) fn blocks_max(&self, vocabulary: &Vocabulary) -> u32 {
        let terms = vocabulary.bytes() + vocabulary.len() * format::TERM_OVERHEAD_BYTES as u64;
        let postings = self.postings_count.saturating_mul(format::POSTING_BYTES_MAX as u64);
        // Each node but the last one of a level is full, and all others together are fewer than the leaves.
        let nodes = 2 * (terms / NODE_BYTES as u64) + 64;
        let of = |section, bytes: u64| bytes / format::block_bytes(section) as u64 + 1;
        let streams = [
            of(Section::Postings, postings),
            of(Section::Documents, self.documents.bytes),
            of(Section::Ids, self.ids.bytes),
        ];
        let blocks = streams.into_iter().fold(nodes, u64::max);
        u32::try_from(blocks).unwrap_or(u32::MAX)
    }
}

fn too_many() -> Error {
    Error::option("documents", format!("more than {}; rank fewer of them by an index", u32::MAX))
}

/// The result of writing.
pub(super) struct Written {
    /// The bytes of all sections.
    pub(super) bytes: u64,
    pub(super) root: u32,
    pub(super) height: u32,
}

/// Writes all sections.
pub(super) fn write(
    blocks: RankedBlocks<'_>,
    gathered: Gathered,
    (vocabulary, weigher): (&Vocabulary, Weigher),
) -> Result<Written> {
    let Gathered { mut postings, documents, ids, .. } = gathered;
    let mut bytes = documents.copy(Stream::new(blocks, Section::Documents))?;
    bytes += ids.copy(Stream::new(blocks, Section::Ids))?;
    let mut stream = Stream::new(blocks, Section::Postings);
    let mut tree = Tree::new(blocks);
    let mut next = postings.next().transpose()?;
    for (column, term) in (0..).zip(vocabulary.terms(weigher)) {
        let (term, start) = (term?, stream.bytes);
        let (mut count, mut expected) = (0, 0);
        let mut encoded = Vec::new();
        while let Some(posting) = next.filter(|posting| posting.column == column) {
            encoded.clear();
            format::put_posting(&mut encoded, posting.document - expected, posting.occurrences);
            stream.push(&encoded)?;
            (count, expected) = (count + 1, posting.document + 1);
            next = postings.next().transpose()?;
        }
        let list_bytes = stream.bytes - start;
        let entry = TermEntry { documents: term.documents, postings: count, bytes: list_bytes };
        tree.push(term.text.as_bytes(), start, entry)?;
    }
    bytes += stream.finish()?;
    let (root, height) = tree.finish()?;
    Ok(Written { bytes: bytes + tree.bytes, root, height })
}

/// A section that is one string of bytes, in blocks.
struct Stream<'c> {
    blocks: RankedBlocks<'c>,
    section: Section,
    number: u32,
    block: Vec<u8>,
    bytes: u64,
}

impl<'c> Stream<'c> {
    fn new(blocks: RankedBlocks<'c>, section: Section) -> Self {
        let block = Vec::with_capacity(format::block_bytes(section));
        Self { blocks, section, number: 0, block, bytes: 0 }
    }

    fn push(&mut self, mut bytes: &[u8]) -> Result<()> {
        self.bytes += bytes.len() as u64;
        let block_bytes = format::block_bytes(self.section);
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(block_bytes - self.block.len()));
            self.block.extend_from_slice(now);
            bytes = later;
            if self.block.len() == block_bytes {
                self.end_block()?;
            }
        }
        Ok(())
    }

    fn end_block(&mut self) -> Result<()> {
        self.blocks.put(self.section, self.number, &self.block)?;
        self.number = self.number.checked_add(1).ok_or_else(too_many)?;
        self.block.clear();
        Ok(())
    }

    /// Writes the rest, and returns the bytes of the section.
    fn finish(mut self) -> Result<u64> {
        if !self.block.is_empty() {
            self.end_block()?;
        }
        Ok(self.bytes)
    }
}

/// The failing actions of a spool, in words.
const WRITE: &str = "write the data of documents";
const READ: &str = "read the data of documents";

/// Bytes in an unnamed file.
struct Spool {
    file: BufWriter<File>,
    bytes: u64,
}

impl Spool {
    fn new(folder: &Path) -> Result<Self> {
        let file = BufWriter::with_capacity(BUFFER_BYTES, scratch_file(folder)?);
        Ok(Self { file, bytes: 0 })
    }

    fn push(&mut self, bytes: &[u8]) -> Result<()> {
        self.bytes += bytes.len() as u64;
        self.file.write_all(bytes).map_err(Error::scratch(WRITE))
    }

    /// Copies all bytes to a section, and returns their number.
    fn copy(self, mut stream: Stream<'_>) -> Result<u64> {
        let mut file = rewound(self.file, (WRITE, READ))?;
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            let read = file.read(&mut buffer).map_err(Error::scratch(READ))?;
            if read == 0 {
                return stream.finish();
            }
            stream.push(&buffer[..read])?;
        }
    }
}

/// A level of the tree: the current node, with its first text. The leaves are level 0.
#[derive(Default)]
struct Level {
    node: Vec<u8>,
    entries: u32,
    first: Vec<u8>,
}

/// The tree from texts to postings, written from its leaves to its root as texts come in order.
struct Tree<'c> {
    blocks: RankedBlocks<'c>,
    levels: Vec<Level>,
    number: u32,
    bytes: u64,
}

impl<'c> Tree<'c> {
    fn new(blocks: RankedBlocks<'c>) -> Self {
        Self { blocks, levels: vec![Level::default()], number: 0, bytes: 0 }
    }

    /// Adds a term, whose postings begin at `start` among all.
    fn push(&mut self, text: &[u8], start: u64, entry: TermEntry) -> Result<()> {
        let leaf = self.level(0, text)?;
        if leaf.entries == 0 {
            leaf.node.extend_from_slice(&start.to_le_bytes());
        }
        format::put_term(&mut leaf.node, text, entry);
        leaf.entries += 1;
        Ok(())
    }

    /// Returns the node of a level that takes an entry of this text.
    fn level(&mut self, level: usize, text: &[u8]) -> Result<&mut Level> {
        if level == self.levels.len() {
            self.levels.push(Level::default());
        }
        // A node has at least two entries, so that each level is shorter than the one under it.
        let is_full = |it: &Level| it.node.len() >= NODE_BYTES && it.entries >= 2;
        if is_full(&self.levels[level]) {
            self.end_node(level)?;
        }
        let found = &mut self.levels[level];
        if found.entries == 0 {
            found.first.extend_from_slice(text);
        }
        Ok(found)
    }

    /// Writes the node of a level, and names it in the level above.
    fn end_node(&mut self, level: usize) -> Result<()> {
        let number = self.put(level)?;
        let first = std::mem::take(&mut self.levels[level].first);
        let above = self.level(level + 1, &first)?;
        format::put_child(&mut above.node, &first, number);
        above.entries += 1;
        Ok(())
    }

    fn put(&mut self, level: usize) -> Result<u32> {
        let (level, number) = (&mut self.levels[level], self.number);
        self.blocks.put(Section::Nodes, number, &level.node)?;
        self.bytes += level.node.len() as u64;
        self.number = number.checked_add(1).ok_or_else(too_many)?;
        level.node.clear();
        level.entries = 0;
        Ok(number)
    }

    /// Writes the last node of each level. Returns the number of the root, and the number of levels under it.
    fn finish(&mut self) -> Result<(u32, u32)> {
        let mut level = 0;
        while level + 1 < self.levels.len() {
            self.end_node(level)?;
            level += 1;
        }
        Ok((self.put(level)?, level as u32))
    }
}
