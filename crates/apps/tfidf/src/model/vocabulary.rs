//! The terms of all columns in order, in a file without a name.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::weigh::Weigher;
use crate::{Error, Result};

/// Bytes of a buffer.
const BUFFER_BYTES: usize = 256 << 10;

/// A column's term.
#[derive(Clone, PartialEq, Debug)]
pub struct Term {
    /// Its text.
    pub text: String,
    /// Documents of the index that have it.
    pub documents: u64,
    /// Its inverse document frequency, or 1 if that is not used.
    pub idf: f64,
}

/// The file, complete.
#[derive(Debug)]
pub(super) struct Vocabulary {
    file: File,
    len: u64,
}

/// The file while it is written: each term's documents, the bytes of its text, the text.
pub(super) struct VocabularyWriter {
    file: BufWriter<File>,
    len: u64,
}

impl VocabularyWriter {
    pub(super) fn new(folder: &Path) -> Result<Self> {
        let file =
            tempfile::tempfile_in(folder).map_err(Error::scratch("make a temporary file"))?;
        Ok(Self { file: BufWriter::with_capacity(BUFFER_BYTES, file), len: 0 })
    }

    pub(super) fn push(&mut self, text: &[u8], documents: u64) -> Result<()> {
        let (documents, len) = (documents.to_le_bytes(), (text.len() as u64).to_le_bytes());
        let parts = [&documents[..], &len, text];
        self.len += 1;
        let written = parts.into_iter().try_for_each(|part| self.file.write_all(part));
        written.map_err(Error::scratch("write the vocabulary"))
    }

    pub(super) fn finish(self) -> Result<Vocabulary> {
        let file = self.file.into_inner().map_err(std::io::IntoInnerError::into_error);
        Ok(Vocabulary {
            file: file.map_err(Error::scratch("write the vocabulary"))?,
            len: self.len,
        })
    }
}

impl Vocabulary {
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn terms(&self, weigher: Weigher) -> Terms<'_> {
        let file = ReadFrom { file: &self.file, offset: 0 };
        let file = BufReader::with_capacity(BUFFER_BYTES, file);
        Terms { file, weigher, left: self.len }
    }
}

/// A file with a place of its own, so that several may read it.
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
