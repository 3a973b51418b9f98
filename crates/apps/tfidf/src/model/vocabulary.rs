//! The terms of all columns in order, in an unnamed file.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use nandex_corpus::scratch::scratch_file;

use super::weigh::Weigher;
use crate::{Error, Result};

/// Bytes of a buffer.
const BUFFER_BYTES: usize = 256 << 10;

/// Bytes of the buffer for reading a few terms.
const STEP_BYTES: usize = 4 << 10;

/// A column's term.
#[derive(Clone, PartialEq, Debug)]
pub struct Term {
    /// Its text.
    pub text: String,
    /// The number of documents of the index that have it.
    pub documents: u64,
    /// Its inverse document frequency, or 1 if that is not used.
    pub idf: f64,
}

/// One in this many columns has its place in RAM.
const STEP: u64 = 64;

/// The complete file.
#[derive(Debug)]
pub(crate) struct Vocabulary {
    file: File,
    len: u64,
    bytes: u64,
    /// The beginning of each [`STEP`]th column.
    places: Vec<u64>,
}

/// The file during writing: each term's documents, the bytes of its text, the text.
pub(super) struct VocabularyWriter {
    file: BufWriter<File>,
    len: u64,
    places: Vec<u64>,
    bytes: u64,
}

impl VocabularyWriter {
    pub(super) fn new(folder: &Path) -> Result<Self> {
        let file = BufWriter::with_capacity(BUFFER_BYTES, scratch_file(folder)?);
        Ok(Self { file, len: 0, places: Vec::new(), bytes: 0 })
    }

    pub(super) fn push(&mut self, text: &[u8], documents: u64) -> Result<()> {
        let (documents, len) = (documents.to_le_bytes(), (text.len() as u64).to_le_bytes());
        let parts = [&documents[..], &len, text];
        if self.len.is_multiple_of(STEP) {
            self.places.push(self.bytes);
        }
        self.len += 1;
        self.bytes += (size_of::<[u64; 2]>() + text.len()) as u64;
        let written = parts.into_iter().try_for_each(|part| self.file.write_all(part));
        written.map_err(Error::scratch("write the vocabulary"))
    }

    pub(super) fn finish(self) -> Result<Vocabulary> {
        let file = self.file.into_inner().map_err(std::io::IntoInnerError::into_error);
        Ok(Vocabulary {
            file: file.map_err(Error::scratch("write the vocabulary"))?,
            len: self.len,
            bytes: self.bytes,
            places: self.places,
        })
    }
}

impl Vocabulary {
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Returns the bytes of its file: the texts, and 16 more for each.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn terms(&self, weigher: Weigher) -> Terms<'_> {
        self.terms_from(0, BUFFER_BYTES, weigher)
    }

    /// Returns the terms from a column on, after reading [`STEP`] or fewer before it. The column is a multiple of
    /// `STEP`.
    fn terms_from(&self, column: u64, buffer_bytes: usize, weigher: Weigher) -> Terms<'_> {
        let place = usize::try_from(column / STEP).ok().and_then(|step| self.places.get(step));
        let file = ReadFrom { file: &self.file, offset: place.copied().unwrap_or(0) };
        let file = BufReader::with_capacity(buffer_bytes, file);
        Terms { file, weigher, left: self.len.saturating_sub(column) }
    }

    /// Returns the texts of these columns, which ascend. Costs a read of up to [`STEP`] terms for each, and one for
    /// columns near each other.
    pub(super) fn texts(&self, columns: &[u64], weigher: Weigher) -> Result<Vec<String>> {
        let mut texts = Vec::with_capacity(columns.len());
        let mut columns = columns.iter().peekable();
        while let Some(first) = columns.peek() {
            let start = **first / STEP * STEP;
            let numbered = (start..).zip(self.terms_from(start, STEP_BYTES, weigher));
            for (number, term) in numbered.take(STEP as usize) {
                let term = term?;
                if columns.next_if(|column| **column == number).is_some() {
                    texts.push(term.text);
                }
                if columns.peek().is_none_or(|column| **column >= start + STEP) {
                    break;
                }
            }
            // Columns past the end do not exist.
            while columns.next_if(|column| **column < start + STEP).is_some() {}
        }
        Ok(texts)
    }
}

/// A file with a separate position, so that several can read it.
#[derive(Debug)]
struct ReadFrom<'f> {
    file: &'f File,
    offset: u64,
}

impl Read for ReadFrom<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read_at(buffer, self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}

/// The terms of all columns in order; see [`Model::terms`](crate::Model::terms).
#[derive(Debug)]
pub struct Terms<'m> {
    file: BufReader<ReadFrom<'m>>,
    weigher: Weigher,
    left: u64,
}

impl Terms<'_> {
    fn read(&mut self) -> std::io::Result<Term> {
        let mut number = [0; 8];
        self.file.read_exact(&mut number)?;
        let documents = u64::from_le_bytes(number);
        self.file.read_exact(&mut number)?;
        let len = usize::try_from(u64::from_le_bytes(number)).map_err(std::io::Error::other)?;
        let mut text = vec![0; len];
        self.file.read_exact(&mut text)?;
        let text = String::from_utf8(text).map_err(std::io::Error::other)?;
        Ok(Term { text, documents, idf: self.weigher.idf(documents) })
    }
}

impl Iterator for Terms<'_> {
    type Item = Result<Term>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let term = self.read().map_err(Error::scratch("read the vocabulary"));
        if term.is_err() {
            self.left = 0;
        }
        Some(term)
    }
}
